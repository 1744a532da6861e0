"""The entry point: find the verb, run it, and turn bad input into one sentence and exit code 2."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from holdfast import __version__
from holdfast.cli import doctor, evaluate, plot, runs, solve, train
from holdfast.cli.values import printable

__all__ = ["main"]

_VERBS = (train, evaluate, runs, plot, solve, doctor)

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``holdfast`` with ``argv`` (the process's own arguments by default); returns the exit code."""
    try:
        code = _run(argv)
        # What is still buffered must be written here, where a reader that went away can be caught.
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe has seen enough (`| head`): nothing is wrong, and nothing more can be printed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _run(argv: Sequence[str] | None) -> int:
    parser = _build_parser()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    if arguments.verb is None:
        parser.print_help()
        return 0
    try:
        return int(arguments.run(arguments))
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError, MemoryError) as error:
        if os.environ.get("HOLDFAST_DEBUG"):
            raise
        sys.stderr.write(f"holdfast {arguments.verb}: {printable(_sentence(error))}\n")
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        sys.stderr.write(f"holdfast {arguments.verb}: interrupted\n")
        return EXIT_INTERRUPTED


def _sentence(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"this needs more memory than there is ({' '.join(str(error).split())}): choose something smaller"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def _build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="holdfast",
        description="Reinforcement-learning agents that decide what to do and how long to hold it.",
        epilog="holdfast VERB --help explains a verb. Set HOLDFAST_DEBUG=1 to see tracebacks.",
    )
    parser.add_argument("--version", action="version", version=f"holdfast {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", parser_class=_Parser)
    for verb in _VERBS:
        verb.add_parser(verbs)
    return parser
