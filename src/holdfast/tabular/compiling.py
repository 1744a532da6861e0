"""One decorator for everything that is compiled, with a disk cache that notices every change.

Numba keys its cache on the file of the compiled function alone. What the function calls is built into its machine
code, so that a change in another file would go unnoticed. Here a function's name in the cache carries a
fingerprint of its file and of all compiled functions, numbers and named tuples that its file imports; the compiled
functions carry their own.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba
from numba.core import event

__all__ = ["compiled", "fingerprint", "in_python"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile ``function`` on its first call, and keep the machine code on disk for later processes.

    It may call other compiled functions by name; those of other files must be imported at the top of its file, and
    so must the classes of the named tuples that it is called with.
    Where no folder for the cache can be written, it is compiled in every process. With the environment
    variable ``NUMBA_DISABLE_JIT=1`` it stays the function that it is.
    """
    jit: Any = numba.njit
    if jit(function) is function:  # compiling is switched off
        return function
    assert isinstance(function, FunctionType)
    # A copy: the original's name stays as it is.
    twin = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    twin.__module__, twin.__doc__ = function.__module__, function.__doc__
    twin.__qualname__ = f"{function.__qualname__}_{fingerprint(function)}"
    try:
        return jit(twin, cache=True)  # type: ignore[no-any-return]
    except RuntimeError:  # numba's "cannot cache function": nowhere to write
        return jit(twin)  # type: ignore[no-any-return]


def in_python(function: F) -> F:
    """A compiled function before it was compiled, still calling compiled ones.

    Handing a random generator to compiled code takes longer than a few draws from it; a loop in Python that
    needs but one choice at a time is quicker this way, and draws the same.
    """
    return getattr(function, "py_func", function)


def fingerprint(function: FunctionType) -> str:
    """Short hash of what ``function`` compiles to, as far as source text can tell."""
    digest = hashlib.sha256(Path(inspect.getfile(function)).read_bytes())
    for name, value in sorted(function.__globals__.items()):
        if isinstance(value, bool | int | float):
            digest.update(f"{name}={value!r};".encode())
        elif hasattr(value, "py_func"):
            digest.update(f"{name}:{value.py_func.__qualname__};".encode())
        elif isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            # Compiled code knows a field by its place.
            digest.update(f"{name}:{value._fields!r};".encode() + Path(inspect.getfile(value)).read_bytes())
    return digest.hexdigest()[:12]


class _Announcement(event.Listener):
    """Logs, once in a process, that holdfast's code is being compiled; what comes from the cache is not."""

    def __init__(self) -> None:
        self._is_made = False

    def on_start(self, event: Any) -> None:
        """Numba found nothing in its cache and begins to compile."""
        dispatcher = event.data["dispatcher"]
        if self._is_made or dispatcher.py_func.__module__.partition(".")[0] != "holdfast":
            return
        self._is_made = True
        is_kept = dispatcher.stats.cache_path is not None
        logging.getLogger("holdfast.compiling").info(
            "compiling machine code; later runs will reuse it"
            if is_kept
            else "compiling machine code, as in every run: it cannot be kept here (see: holdfast docs doctor)"
        )

    def on_end(self, event: Any) -> None:
        """Nothing is said."""


event.register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]  # numba has few types
