"""The one decorator that compiles functions, with a disk cache that notices every change.

Numba keys its cache on the compiled function's own file alone. Functions that it calls are built into its machine
code, so a change to another file would go unnoticed. Here a function's name in the cache carries a fingerprint of
its file and of all compiled functions, constants and named tuples that the file imports; compiled functions carry
their own fingerprints.

Only this module imports numba, which is slow to import: ``holdfast.core`` itself does not import it.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import event

__all__ = ["compiled", "fingerprint", "in_python"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile ``function`` on its first call, and keep the machine code on disk for later processes.

    The function may call other compiled functions by name. Those from other files must be imported or made above
    it in its file, and so must the constants that it reads and the classes of the named tuples that it receives.
    Plain functions of the same package that it calls by name are compiled with it, so the formulas of ``core``,
    which do not depend on numba, can build on each other. If the cache folder cannot be written, or the source
    cannot be read, every process compiles the function anew. With the environment variable ``NUMBA_DISABLE_JIT=1``
    the function is returned unchanged.
    """
    jit: Any = numba.njit
    if jit(function) is function:  # compiling is switched off
        return function
    assert isinstance(function, FunctionType)
    # A copy, so that the original keeps its name.
    plain = {name: compiled(callee) for name, callee in _plain_callees(function).items()}
    names = {**function.__globals__, **plain} if plain else function.__globals__
    twin = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    twin.__module__, twin.__doc__ = function.__module__, function.__doc__
    try:
        twin.__qualname__ = f"{function.__qualname__}_{fingerprint(twin)}"
        return jit(twin, cache=True)  # type: ignore[no-any-return]
    except (RuntimeError, OSError):  # numba's "cannot cache function": nowhere to write; or no source to read
        return jit(twin)  # type: ignore[no-any-return]


def in_python(function: F) -> F:
    """The Python function behind a compiled one; the functions it calls stay compiled.

    Passing a random generator to compiled code takes longer than a few draws from it. A Python loop that needs one
    choice at a time is faster this way, and draws the same numbers.
    """
    return getattr(function, "py_func", function)


def fingerprint(function: FunctionType) -> str:
    """Short hash of everything in the source text that determines what ``function`` compiles to."""
    digest = hashlib.sha256(_text_hash(inspect.getfile(function)))
    package = function.__module__.partition(".")[0]
    for fact in _facts(function.__globals__, function.__globals__, package):
        digest.update(fact)
    return digest.hexdigest()[:12]


def _plain_callees(function: FunctionType) -> dict[str, FunctionType]:
    """Uncompiled functions of its own package that ``function`` reads by name, by their names."""
    package = function.__module__.partition(".")[0]
    known = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    return {
        name: value
        for name, value in known.items()
        if isinstance(value, FunctionType)
        and value is not function
        and value.__module__.partition(".")[0] == package
    }


def _facts(names: Mapping[str, Any], own: Mapping[str, Any], package: str) -> Iterator[bytes]:
    """What compiled code may build in from a module's ``names``; ``own`` are the names in the function's file."""
    for name, value in sorted(names.items()):
        if name.startswith("__"):
            continue
        if _is_constant(value):
            yield f"{name}={value!r};".encode()
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            yield f"{name}={value.dtype}{value.shape};".encode() + value.tobytes()
        elif hasattr(value, "py_func"):
            # The file's hash already covers functions of the same file, whether they stand above or below.
            if value.py_func.__globals__ is not own:
                yield f"{name}:{value.py_func.__qualname__};".encode()
        elif isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            # Compiled code finds a field by its position.
            yield f"{name}:{value._fields!r};".encode() + _text_hash(inspect.getfile(value))
        elif isinstance(value, type) and issubclass(value, Enum):
            yield f"{name}:".encode()
            yield from _facts({member.name: member.value for member in value}, own, package)
        elif isinstance(value, ModuleType) and names is own and value.__name__.partition(".")[0] == package:
            yield f"{name}:".encode()
            yield from _facts(vars(value), own, package)


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic)


@functools.cache
def _text_hash(path: str) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()


class _Announcement(event.Listener):
    """Logs, once per process, that holdfast's code is being compiled; code from the cache is not announced."""

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
            else "compiling machine code, as in every run: the cache is not writable (see: holdfast docs doctor)"
        )

    def on_end(self, event: Any) -> None:
        """Log nothing."""


event.register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]  # numba has few types
