"""The entry point: find the verb, run it, and turn bad input into one sentence and exit code 2."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from holdfast import __version__
from holdfast.cli import demo, docs, doctor, evaluate, explore, export, plot, reproduce, runs, solve, sweep, train
from holdfast.cli.leaving import run_verb
from holdfast.cli.notices import notices
from holdfast.cli.streams import flushed, let_go_of_output, usable_streams
from holdfast.cli.values import printable

__all__ = ["main"]

_VERBS = (demo, train, evaluate, explore, export, runs, plot, solve, sweep, reproduce, doctor, docs)

EXIT_ENVIRONMENT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``holdfast`` with ``argv`` (the process's own arguments by default); returns the exit code."""
    with usable_streams():
        try:
            code = _run(argv)
        except BrokenPipeError:
            # The reader of a pipe has seen enough (`| head`): nothing is wrong, and nothing more can be printed.
            let_go_of_output()
            return 0
        return flushed(code)


def _run(argv: Sequence[str] | None) -> int:
    parser = _build_parser()
    try:
        arguments, unknown = parser.parse_known_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    if unknown:
        verb = f"holdfast {arguments.verb}" if arguments.verb else "holdfast"
        hint = _hint(parser, arguments.verb, unknown)
        sys.stderr.write(printable(f"{verb}: unrecognized arguments: {' '.join(unknown)} ({hint})") + "\n")
        return EXIT_BAD_INPUT
    if arguments.verb is None:
        parser.print_help()
        return 0
    try:
        with notices(sys.stderr, f"holdfast {arguments.verb}", getattr(arguments, "quiet", False)):
            return run_verb(arguments)
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError, MemoryError) as error:
        if os.environ.get("HOLDFAST_DEBUG"):
            raise
        sys.stderr.write(f"holdfast {arguments.verb}: {printable(_sentence(error))}\n")
        return EXIT_BAD_INPUT
    except RuntimeError as error:
        if os.environ.get("HOLDFAST_DEBUG") or not _is_of_the_environment(error):
            raise
        said = printable(_sentence(error))
        told = said if said.startswith("the environment") else f"the environment failed: {said}"
        sys.stderr.write(f"holdfast {arguments.verb}: {told}\n")
        return EXIT_ENVIRONMENT_FAILED
    except KeyboardInterrupt:
        sys.stderr.write(f"holdfast {arguments.verb}: interrupted\n")
        return EXIT_INTERRUPTED


def _is_of_the_environment(error: RuntimeError) -> bool:
    from holdfast.envs import EnvironmentFailedError

    return isinstance(error, EnvironmentFailedError)


def _hint(parser: argparse.ArgumentParser, verb: str | None, unknown: Sequence[str]) -> str:
    """What may have been meant by options that there are not."""
    verbs = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    known = [
        option
        for action in (verbs.choices[verb]._actions if verb else [])
        if action.help is not argparse.SUPPRESS
        for option in action.option_strings
    ]
    for given in unknown:
        nearest = difflib.get_close_matches(given.partition("=")[0], known, n=1, cutoff=0.75)
        if given.startswith("-") and nearest:
            return f"did you mean {nearest[0]}?"
    help_page = f"see holdfast {verb} --help" if verb else "see holdfast --help"
    return f"arguments of the algorithm are given with --set; {help_page}" if verb == "train" else help_page


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
