"""Where the command line prints: streams that are closed, full, or cannot show our characters lose no result."""

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
"""What stands for our characters where they cannot be shown."""


class _Unbroken:
    """A stream to print to that falls silent when the reader of its pipe has gone, as behind ``| head``.

    Whoever prints goes on with its work: only that work decides the exit code. Code of a user that closes it does
    not close the stream itself.

    Args:
        stream: Where everything goes until then.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.problem = ""
        """Why nothing more arrives, such as that the disk behind it is full."""

    @property
    def is_closed(self) -> bool:
        """Whether the stream itself was closed."""
        return bool(getattr(self._stream, "closed", False))

    def write(self, text: str) -> int:
        """Print; nothing arrives where the stream itself was closed, which ``flushed`` tells at the end."""
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
        """Write what is still buffered: others print here, too."""
        self.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_in_use: list[tuple[_Unbroken, _Unbroken]] = []
"""Standard output and standard error of the commands that run, the innermost last."""


def results() -> Any:
    """Where results are printed: the standard output, whatever code of a user has made of ``sys.stdout``."""
    return _in_use[-1][0] if _in_use else sys.stdout


def restore_streams() -> None:
    """Undo what code of a user has made of ``sys.stdout`` and ``sys.stderr``."""
    if _in_use:
        sys.stdout, sys.stderr = _in_use[-1]


@contextmanager
def usable_streams() -> Iterator[None]:
    """Let whatever is printed arrive, for as long as the block lasts.

    Characters that a stream cannot show are replaced. A stream whose reader has gone falls silent. With a closed
    standard output the results go to the standard error; where that is closed too, nobody can be told.
    """
    _occupy_standard_descriptors()
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123 - no path of a file
        # None is what Python has for a stream that was closed when it began.
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
    """Write what is still buffered; ``code``, or another exit code where the output is lost."""
    output = results()
    output.flush()
    problem = getattr(output, "problem", "") or ("it was closed" if getattr(output, "is_closed", False) else "")
    if problem and code == 0:
        sys.stderr.write(f"holdfast: the standard output cannot be written: {problem}\n")
        return EXIT_OUTPUT_LOST
    return code


def _let_go_of(stream: Any) -> None:
    """Send what is still to be printed nowhere: else Python would try again when the process ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)


def _occupy_standard_descriptors() -> None:
    """See that 0, 1 and 2 are open: else the next file would get such a number, and all that is printed."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # The smallest number that is free, which is this one.
            os.open(os.devnull, os.O_RDWR)


def _replaced_errors(stream: Any) -> str | None:
    """Let a stream replace what it cannot show; what it did before, or None if it is left as it is."""
    errors = getattr(stream, "errors", None)
    if errors not in ("strict", "surrogateescape") or not hasattr(stream, "reconfigure"):
        return None
    try:
        stream.reconfigure(errors=_HANDLER)
    except OSError:
        # Some streams refuse, such as one whose descriptor was exchanged under it; they stay as they are.
        return None
    return str(errors)


def _in_plain_characters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_PLAIN.get(one) or one.encode("ascii", "backslashreplace").decode() for one in text), error.end


codecs.register_error(_HANDLER, _in_plain_characters)
