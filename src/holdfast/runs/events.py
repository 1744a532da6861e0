"""Scalars for TensorBoard, written without PyTorch."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.files import Entry

__all__ = ["Events"]

_FLUSH_SECONDS = 10


class Events:
    """A file of events in a run's folder.

    Args:
        folder: The run's folder.
        first_step: The step to continue from; TensorBoard is told to drop what earlier files have from there on.
    """

    def __init__(self, folder: Path | Entry, first_step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary = Event, Summary
        # TensorBoard recognises its files by the beginning of their names, and reads them in that order.
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        about = f"{seconds:010d}.{nanoseconds:09d}.{socket.gethostname()}.{os.getpid()}"
        within = folder if isinstance(folder, Entry) else Entry(folder)
        self._file = (within / f"events.out.tfevents.{about}").create()
        self._records = RecordWriter(self._file)
        self._add(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if first_step > 0:
            start = SessionLog(status=SessionLog.START)
            self._add(Event(wall_time=time.time(), step=first_step, session_log=start))
        self._file.flush()
        self._flushed_at = time.monotonic()

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Add one value to each of several curves."""
        found = [
            self._summary.Value(tag=name, simple_value=float(value))
            for name, value in values.items()
            if math.isfinite(value)
        ]
        self._add(self._event(wall_time=time.time(), step=step, summary=self._summary(value=found)))
        if time.monotonic() - self._flushed_at > _FLUSH_SECONDS:
            self._file.flush()
            self._flushed_at = time.monotonic()

    def _add(self, event: Any) -> None:
        self._records.write(event.SerializeToString())

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()
