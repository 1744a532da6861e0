"""The entry point: find the verb, run it, and say in one line what went wrong, and whose fault it is."""

from __future__ import annotations

import argparse
import difflib
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, cast

from holdfast import __version__
from holdfast.cli.faults import recorded_fault
from holdfast.cli.notices import notices
from holdfast.cli.option_names import as_typed
from holdfast.cli.streams import flushed, restore_streams, usable_streams
from holdfast.cli.typed_values import printable
from holdfast.core.errors import InputError
from holdfast.core.user_code import StoppedBySignal

__all__ = ["main"]

_VERBS = (
    "demo",
    "train",
    "evaluate",
    "explore",
    "export",
    "runs",
    "plot",
    "solve",
    "sweep",
    "tradeoff",
    "reproduce",
    "doctor",
    "docs",
)
"""Each has a module of its name, which is imported when its parser is wanted."""

EXIT_ENVIRONMENT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_FAULT = 70
"""As sysexits.h has it: an internal software error."""
EXIT_INTERRUPTED = 130

_PACKAGE = Path(__file__).parents[1]
_RUN_OUT = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.ENOMEM,
    errno.EMFILE,
    errno.ENFILE,
    errno.EAGAIN,
    errno.EIO,
}
"""Of the disk, of memory, of files that may be open, of processes, of a disk that works."""


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``holdfast`` with ``argv`` (the process's own arguments by default); returns the exit code."""
    with usable_streams():
        try:
            code = _run(argv)
        except Exception as error:
            code = _say("holdfast", *_verdict(error, argv))
        return flushed(code)


def _run(argv: Sequence[str] | None) -> int:
    typed = sys.argv[1:] if argv is None else argv
    # One that was typed needs only its own parser.
    parser = _build_parser(typed[:1] if typed[:1] and typed[0] in _VERBS else _VERBS)
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
            try:
                return _run_verb(arguments)
            finally:
                restore_streams()
    except (KeyboardInterrupt, StoppedBySignal) as stop:
        sys.stderr.write(f"holdfast {arguments.verb}: interrupted\n")
        return stop.exit_code if isinstance(stop, StoppedBySignal) else EXIT_INTERRUPTED
    except InputError as error:
        if os.environ.get("HOLDFAST_DEBUG"):
            raise
        sentence = as_typed(error, _parser_of(parser, arguments.verb), arguments)
        return _say(f"holdfast {arguments.verb}", EXIT_BAD_INPUT, sentence)
    except Exception as error:
        return _say(f"holdfast {arguments.verb}", *_verdict(error, argv))


def _run_verb(arguments: argparse.Namespace) -> int:
    """Run the verb that was typed; its exit code. Only its own return may say that all went well.

    Raises:
        EnvironmentFailedError: Code of the user tried to end the program, such as by ``sys.exit(0)``.
    """
    from holdfast.core.user_code import described, is_interrupt, place_of

    try:
        return int(arguments.execute(arguments))
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        is_fine = isinstance(error, SystemExit) and error.code in (0, None)
        if is_interrupt(error) and not is_fine:
            raise
        from holdfast.envs import EnvironmentFailedError

        raise EnvironmentFailedError(
            f"its code raised {described(error)}{place_of(error, but=__file__)}"
        ) from error


def _say(who: str, code: int, sentence: str) -> int:
    sys.stderr.write(f"{who}: {printable(' '.join(sentence.split()))}\n")
    return code


def _verdict(error: Exception, argv: Sequence[str] | None) -> tuple[int, str]:
    """Whose fault an error is that is about no input: the exit code, and what to say of it."""
    if os.environ.get("HOLDFAST_DEBUG"):
        raise error
    if _is_of_the_environment(error):
        said = str(error)
        told = said if said.startswith("the environment") else f"the environment failed: {said}"
        return EXIT_ENVIRONMENT_FAILED, told
    if isinstance(error, MemoryError):
        said = f" ({error})" if str(error) else ""
        return EXIT_BAD_INPUT, f"this needs more memory than there is{said}: choose something smaller"
    if isinstance(error, OSError) and _is_of_the_machine(error):
        return EXIT_BAD_INPUT, str(error) if error.filename is None else f"{error.filename}: {error.strerror}"
    return EXIT_FAULT, recorded_fault(error, sys.argv[1:] if argv is None else argv)


def _is_of_the_environment(error: Exception) -> bool:
    # Not imported for this: where it was not, no environment has failed.
    failures = sys.modules.get("holdfast.envs.failures")
    return failures is not None and isinstance(error, failures.EnvironmentFailedError)


def _is_of_the_machine(error: OSError) -> bool:
    """Whether it is about a path that a user can change, or about something that the machine has run out of."""
    if error.filename is None:
        return error.errno in _RUN_OUT
    return not isinstance(error.filename, str) or not Path(error.filename).is_relative_to(_PACKAGE)


def _parser_of(parser: argparse.ArgumentParser, verb: str) -> argparse.ArgumentParser:
    verbs = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return cast("argparse.ArgumentParser", verbs.choices[verb])


def _hint(parser: argparse.ArgumentParser, verb: str | None, unknown: Sequence[str]) -> str:
    """What may have been meant by options that there are not."""
    known = [
        option
        for action in (_parser_of(parser, verb)._actions if verb else [])
        if action.help is not argparse.SUPPRESS
        for option in action.option_strings
    ]
    for given in unknown:
        nearest = difflib.get_close_matches(given.partition("=")[0], known, n=1, cutoff=0.75)
        if given.startswith("-") and nearest:
            return f"did you mean {nearest[0]}?"
    help_page = f"see holdfast {verb} --help" if verb else "see holdfast --help"
    return f"arguments of the algorithm are given with --set; {help_page}" if verb == "train" else help_page


def _build_parser(names: Sequence[str] = _VERBS) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="holdfast",
        description="Reinforcement-learning agents that decide what to do and how long to hold it.",
        epilog="holdfast VERB --help explains a verb. Set HOLDFAST_DEBUG=1 to see tracebacks.",
    )
    parser.add_argument("--version", action="version", version=f"holdfast {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", parser_class=_Parser)
    for name in names:
        importlib.import_module(f"holdfast.cli.{name}").add_parser(verbs)
    return parser
