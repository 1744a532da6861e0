"""Bugs in holdfast itself: write the traceback to a file and tell the user in one sentence."""

from __future__ import annotations

import os
import platform
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from holdfast import __version__
from holdfast.cli.doctor import package_versions

__all__ = ["recorded_fault"]

_LONGEST = 200


def recorded_fault(error: BaseException, command: Sequence[str]) -> str:
    """Write the traceback of a bug into the temporary directory and return a sentence about it.

    Args:
        error: The exception.
        command: The command-line arguments.
    """
    said = " ".join(str(error).split())[:_LONGEST]
    what = f"this is a fault of holdfast ({type(error).__name__}{': ' if said else ''}{said})"
    try:
        path = _write(_report(error, command))
    except OSError as problem:
        return (
            f"{what}, and its traceback could not be written ({problem.strerror or problem}): please repeat the "
            "command with HOLDFAST_DEBUG=1, and report what it prints to the maintainers of holdfast"
        )
    return (
        f"{what}, not of what you typed: its traceback is in {path}; please report it to the maintainers of "
        "holdfast, with that file"
    )


def _report(error: BaseException, command: Sequence[str]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    return (
        f"holdfast {__version__}, Python {platform.python_version()}, {platform.platform()}\n{versions}\n"
        f"arguments: {list(command)}\n\n{''.join(traceback.format_exception(error))}"
    )


def _write(text: str) -> Path:
    """Write a file that only the user can read, under an unguessable name."""
    handle, name = tempfile.mkstemp(prefix="holdfast-fault-", suffix=".txt")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        with suppress(OSError):
            Path(name).unlink()
        raise
    return Path(name)
