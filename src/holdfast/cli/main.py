"""The entry point: find the verb, run it, and report any failure in one line that says whose fault it is."""

from __future__ import annotations

import argparse
import difflib
import errno
import importlib
import os
import re
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
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
    "report",
    "watch",
    "solve",
    "sweep",
    "tune",
    "tradeoff",
    "reproduce",
    "doctor",
    "docs",
)
"""Each verb has a module of the same name, imported when its parser is needed."""

EXIT_ENVIRONMENT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_FAULT = 70
"""EX_SOFTWARE of sysexits.h: an internal software error."""
EXIT_INTERRUPTED = 130

_NAME = r"argument (?:-\w/)?(?P<name>\S+)"
_WRONG_TYPE = re.compile(rf"{_NAME}: invalid (?P<kind>.+?) value: (?P<value>.+)", re.DOTALL)
_WRONG_CHOICE = re.compile(rf"{_NAME}: invalid choice: (?P<value>.+) \(choose from (?P<choices>.+)\)", re.DOTALL)
_KINDS = {"int": "whole number", "float": "number"}
"""What argparse calls types, and what a user does."""

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
    errno.EINTR,
}
"""Errors of the machine: disk full, no memory, too many open files or processes, I/O error, time-out."""


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {_reworded(message)} (see {self.prog} --help)\n")


def _reworded(message: str) -> str:
    """What argparse says about a value, worded like all other messages: --seed must be a whole number, not 'x'."""
    said = _WRONG_TYPE.fullmatch(message)
    if said:
        return f"{said['name']} must be a {_KINDS.get(said['kind'], said['kind'])}, not {said['value']}"
    said = _WRONG_CHOICE.fullmatch(message)
    if said:
        # Until Python 3.11 the choices are in quotation marks.
        choices = said["choices"].replace("'", "")
        return f"{said['name']} must be one of {choices}, not {said['value']}"
    return message


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
    # If a verb was typed, only its parser is needed.
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
    """Run the verb and return its exit code; only a normal return counts as success.

    Raises:
        EnvironmentFailedError: The user's code tried to end the program, for example by ``sys.exit(0)``.
    """
    from holdfast.core.user_code import described, is_interrupt, where_raised

    try:
        with _limited_steps(arguments):
            return int(arguments.execute(arguments))
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        is_fine = isinstance(error, SystemExit) and error.code in (0, None)
        if is_interrupt(error) and not is_fine:
            raise
        from holdfast.envs import EnvironmentFailedError

        raise EnvironmentFailedError(
            f"its code raised {described(error)}{where_raised(error, but=__file__)}"
        ) from error


def _limited_steps(arguments: argparse.Namespace) -> AbstractContextManager[None]:
    """Applies ``--step-timeout``; the jobs of a campaign apply it themselves."""
    limit = getattr(arguments, "step_timeout", None)
    if limit is None or hasattr(arguments, "engine"):
        return nullcontext()
    from holdfast.runs.step_limit import step_limit

    hint = (
        "; type the same command again to continue from the last checkpoint" if arguments.verb == "train" else ""
    )
    return step_limit(limit, f"holdfast {arguments.verb}", hint)


def _say(who: str, code: int, sentence: str) -> int:
    sys.stderr.write(f"{who}: {printable(' '.join(sentence.split()))}\n")
    return code


def _verdict(error: Exception, argv: Sequence[str] | None) -> tuple[int, str]:
    """The exit code and the message for an error other than bad input."""
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
    # Not imported for this check: if it is not loaded, no environment has failed.
    failures = sys.modules.get("holdfast.envs.failures")
    return failures is not None and isinstance(error, failures.EnvironmentFailedError)


def _is_of_the_machine(error: OSError) -> bool:
    """Whether the error is about a path that the user can change, or a resource that has run out."""
    if error.filename is None:
        return error.errno in _RUN_OUT
    return not isinstance(error.filename, str) or not Path(error.filename).is_relative_to(_PACKAGE)


def _parser_of(parser: argparse.ArgumentParser, verb: str) -> argparse.ArgumentParser:
    verbs = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return cast("argparse.ArgumentParser", verbs.choices[verb])


def _hint(parser: argparse.ArgumentParser, verb: str | None, unknown: Sequence[str]) -> str:
    """A suggestion for options that do not exist."""
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
