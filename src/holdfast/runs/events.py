"""Scalars for TensorBoard, written without PyTorch."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["Events"]

_FLUSH_SECONDS = 10


class Events:
    """A file of events in a run's folder.

    Args:
        folder: The run's.
        first_step: What earlier files have from this step on did not happen: TensorBoard is told to forget it.
    """

    def __init__(self, folder: Path, first_step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary = Event, Summary
        self._writer: Any = EventFileWriter(str(folder), flush_secs=_FLUSH_SECONDS)
        if first_step > 0:
            start = SessionLog(status=SessionLog.START)
            self._writer.add_event(Event(wall_time=time.time(), step=first_step, session_log=start))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Add one value to each of several curves."""
        found = [
            self._summary.Value(tag=name, simple_value=float(value))
            for name, value in values.items()
            if math.isfinite(value)
        ]
        self._writer.add_event(self._event(wall_time=time.time(), step=step, summary=self._summary(value=found)))

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
