"""A time limit for each call of an environment, whatever the environment is stuck in.

Python cannot interrupt C code that holds the interpreter's lock, so another process keeps watch. It sees in a page
of shared memory which call is under way, and for how long; only time in which this process could run counts, so a
training that was suspended does not hang. If the call takes too long, it asks this process for its stack by a
signal (``faulthandler`` answers without the lock), says in one sentence where the environment hangs, and ends this
process: with exit code 1 if the interpreter still runs, by SIGKILL if not. The run is left as after any other kill
and continues from its last checkpoint.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.core.checks import check_real
from holdfast.core.errors import InputError
from holdfast.envs.failures import __file__ as _caller
from holdfast.envs.failures import watch_calls
from holdfast.files import shared_page

__all__ = ["step_limit"]

_RECORD = struct.Struct("<dqqq")
"""When the call began (0 outside calls), which call it is, its episode, and the step within the episode."""
_CALLS = {"reset": 0, "step": 1}
_EXIT_ENVIRONMENT_FAILED = 1


class _Record:
    """Records the current call of an environment for another process."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def begins(self, call: str, episode: int, step: int) -> None:
        """A call begins now."""
        _RECORD.pack_into(self._memory, 0, time.monotonic(), _CALLS[call], episode, step)

    def ends(self) -> None:
        """No call is under way."""
        _RECORD.pack_into(self._memory, 0, 0.0, 0, 0, 0)


@contextmanager
def step_limit(seconds: float | None, who: str, hint: str = "") -> Iterator[None]:
    """Within the block, end the process if a ``reset`` or ``step`` of an environment exceeds ``seconds``.

    Args:
        seconds: The limit; None for no limit.
        who: Beginning of the message.
        hint: End of the message.

    Raises:
        InputError: The limit is not a positive number, or the system lacks the signals.
    """
    if seconds is None:
        yield
        return
    limit = check_real("step_timeout", seconds, 0.0, open_low=True)
    if not hasattr(signal, "SIGUSR2") or not hasattr(faulthandler, "register"):
        raise InputError(
            "step_timeout must not be given on this system, which has no signals for it", "step_timeout"
        )
    stacks, stack_end = os.pipe()
    orders, order_end = os.pipe()
    with shared_page(_RECORD.size) as (memory, page):
        faulthandler.register(signal.SIGUSR2, file=stack_end, all_threads=True, chain=False)
        arguments = (os.getpid(), page, stacks, order_end, limit, _caller, who, hint)
        watching = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("step_watch.py")), *map(str, arguments)],
            pass_fds=(page, stacks, order_end),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(order_end)
        waiting = threading.Thread(target=_end_if_told, args=(orders,), daemon=True)
        waiting.start()
        watch_calls(_Record(memory))
        try:
            yield
        finally:
            watch_calls(None)
            watching.kill()
            watching.wait()
            # The only process that could write to it is gone.
            waiting.join()
            faulthandler.unregister(signal.SIGUSR2)
            for handle in (stacks, stack_end, orders):
                os.close(handle)


def _end_if_told(orders: int) -> None:
    if os.read(orders, 1):
        os._exit(_EXIT_ENVIRONMENT_FAILED)
