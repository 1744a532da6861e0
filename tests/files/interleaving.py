"""A writer that does as many steps as it is told, and a reader in whose calls it does them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

_CHANGES = ("rename", "unlink", "rmdir")
"""What a writer does to names that a reader may know; what it does to a folder of its own, nobody sees."""
_LOOKS = ("open", "stat")
_PATIENCE = 30.0


class _Writer(threading.Thread):
    def __init__(self, write: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._write = write
        self._permits = threading.Semaphore(0)
        self._waits = threading.Semaphore(0)
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.pause()
            self._write()
        except BaseException as error:
            self.error = error
        finally:
            self._write = lambda: None
            self._waits.release()

    def pause(self) -> None:
        self._waits.release()
        assert self._permits.acquire(timeout=_PATIENCE)

    def begin(self) -> None:
        self.start()
        assert self._waits.acquire(timeout=_PATIENCE)

    def advance(self) -> None:
        """One step: up to the next change of a name, or to the end."""
        if self.is_alive():
            self._permits.release()
            assert self._waits.acquire(timeout=_PATIENCE)


@contextmanager
def interleaved(write: Callable[[], None], steps: Callable[[int], int]) -> Iterator[None]:
    """Within the block, before each of the block's looks at a file the writer does some steps.

    Args:
        write: What the writer does, in a thread of its own; it is finished after the block.
        steps: Steps before the look of this number; 0 is the first.
    """
    writer = _Writer(write)
    n_looks = 0

    def changing(original: Any) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Any:
            if threading.current_thread() is writer:
                writer.pause()
            return original(*arguments, **keywords)

        return call

    def looking(original: Any) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Any:
            nonlocal n_looks
            if threading.current_thread() is not writer:
                for _ in range(steps(n_looks)):
                    writer.advance()
                n_looks += 1
            return original(*arguments, **keywords)

        return call

    with ExitStack() as stack:
        writer.begin()
        for names, kind in ((_CHANGES, changing), (_LOOKS, looking)):
            for name in names:
                stack.enter_context(mock.patch.object(os, name, kind(getattr(os, name))))
        try:
            yield
        finally:
            while writer.is_alive():
                writer.advance()
                writer.join(0.0)
            writer.join(_PATIENCE)
    if writer.error is not None:
        raise writer.error
