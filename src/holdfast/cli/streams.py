"""Output streams of the command line: no result is lost if they are closed, full or lack our characters."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

__all__ = ["EXIT_OUTPUT_LOST", "flushed", "restore_streams", "results", "usable_streams"]

EXIT_OUTPUT_LOST = 1

_HANDLER = "holdfast.plain"
_PLAIN = {
    "█": "#",
    "–": "-",
    "—": "-",
    "−": "-",
    "·": "|",
    "…": "...",
    "×": "x",
    "±": "+-",
    "≤": "<=",
    "≥": ">=",
    "→": "->",
    "ε": "eps",
    "\N{REPLACEMENT CHARACTER}": "?",
}
"""Replacements for characters that a stream cannot show."""


class _Unbroken:
    """An output stream that falls silent when the reader of its pipe has gone, as with ``| head``.

    The command continues, and only its own work decides the exit code. If a user's code closes this object, the
    underlying stream stays open.

    Args:
        stream: The underlying stream.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.problem = ""
        """Why writing failed, for example because the disk is full."""

    @property
    def is_closed(self) -> bool:
        """Whether the underlying stream was closed."""
        return bool(getattr(self._stream, "closed", False))

    def write(self, text: str) -> int:
        """Print; if the underlying stream was closed, nothing arrives, and ``flushed`` reports it at the end."""
        if self.is_closed:
            return len(text)
        try:
            return int(self._stream.write(text))
        except BrokenPipeError:
            _let_go_of(self._stream)
        except OSError as error:
            self.problem = error.strerror or str(error)
            _let_go_of(self._stream)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Print several lines."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what is still buffered."""
        if self.is_closed:
            return
        try:
            self._stream.flush()
        except BrokenPipeError:
            _let_go_of(self._stream)
        except OSError as error:
            self.problem = error.strerror or str(error)
            _let_go_of(self._stream)

    def close(self) -> None:
        """Flush only: others print here, too."""
        self.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_in_use: list[tuple[_Unbroken, _Unbroken]] = []
"""Standard output and standard error of the commands that run, the innermost last."""


def results() -> Any:
    """Where results are printed: standard output, even if a user's code replaced ``sys.stdout``."""
    return _in_use[-1][0] if _in_use else sys.stdout


def restore_streams() -> None:
    """Restore ``sys.stdout`` and ``sys.stderr`` after a user's code replaced them."""
    if _in_use:
        sys.stdout, sys.stderr = _in_use[-1]


@contextmanager
def usable_streams() -> Iterator[None]:
    """Within the block, make sure that whatever is printed arrives.

    Characters that a stream cannot show are replaced. A stream whose reader has gone falls silent. With a closed
    standard output, results go to standard error; if that is closed too, they are lost.
    """
    _occupy_standard_descriptors()
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123 - no path of a file
        # Python uses None for a stream that was closed when the process started.
        sys.stderr = sys.stderr or nowhere
        sys.stdout = sys.stdout or sys.stderr
        streams: tuple[Any, ...] = (sys.stdout, sys.stderr)
        changed = [(stream, errors) for stream in streams if (errors := _replaced_errors(stream)) is not None]
        _in_use.append((_Unbroken(sys.stdout), _Unbroken(sys.stderr)))
        restore_streams()
        try:
            yield
        finally:
            _in_use.pop()
            for stream, errors in changed:
                # An environment may have closed it.
                with suppress(ValueError, OSError):
                    stream.reconfigure(errors=errors)
            sys.stdout, sys.stderr = before


def flushed(code: int) -> int:
    """Flush; return ``code``, or another exit code if output was lost."""
    output = results()
    output.flush()
    problem = getattr(output, "problem", "") or ("it was closed" if getattr(output, "is_closed", False) else "")
    if problem and code == 0:
        sys.stderr.write(f"holdfast: the standard output cannot be written: {problem}\n")
        return EXIT_OUTPUT_LOST
    return code


def _let_go_of(stream: Any) -> None:
    """Discard what is still buffered; otherwise Python would try again when the process ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)


def _occupy_standard_descriptors() -> None:
    """Make sure that descriptors 0, 1 and 2 are open; otherwise the next file would receive what is printed."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # The smallest free number, which is this one.
            os.open(os.devnull, os.O_RDWR)


def _replaced_errors(stream: Any) -> str | None:
    """Make a stream replace what it cannot show; return its old setting, or None if it is unchanged."""
    errors = getattr(stream, "errors", None)
    if errors not in ("strict", "surrogateescape") or not hasattr(stream, "reconfigure"):
        return None
    try:
        stream.reconfigure(errors=_HANDLER)
    except OSError:
        # Some streams refuse, for example if their descriptor was replaced; they stay as they are.
        return None
    return str(errors)


def _in_plain_characters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_PLAIN.get(one) or one.encode("ascii", "backslashreplace").decode() for one in text), error.end


codecs.register_error(_HANDLER, _in_plain_characters)
