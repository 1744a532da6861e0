"""Replace Python's argument names in messages by the options that a user types."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping

from holdfast.cli.typed_values import literal
from holdfast.core.errors import InputError

__all__ = ["as_typed"]

_PAIRS = "NAME="
"""How the metavar of an option begins whose values are pairs, such as --set NAME=VALUE."""

_SAME = {"env": "environment"}
"""Arguments that have another name in Python, where they are objects rather than names."""


def as_typed(error: InputError, parser: argparse.ArgumentParser, given: argparse.Namespace) -> str:
    """The sentence of an error in the words of the command line.

    ``n_envs must be 1`` becomes ``--n-envs must be 1``, and ``give study='visits'`` becomes ``give --study
    visits``. An argument given as a NAME=VALUE pair is named with its option: ``--set: head_arch must be a list``.
    Names that are not options of the verb stay as they are.

    Args:
        error: An error that the user can fix.
        parser: The verb's parser.
        given: The parsed command line.
    """
    options = {action.dest: action for action in parser._actions if action.help is not argparse.SUPPRESS}
    sentence, began_with = str(error), ""
    for name in error.arguments:
        option = options.get(_SAME.get(name, name))
        for pairs, text in _pairs_with(name, options, given):
            # If an option of that name was given too, the value shows which of them the sentence is about.
            values = [f"not {literal(value)!r}" for value in (text, *text.split(","))]
            if option is None or not _is_given(option, given) or any(value in sentence for value in values):
                began_with = began_with or f"{_title(pairs)}: "
                break
        else:
            sentence = sentence if option is None else _with_option(sentence, name, option)
    return began_with + sentence


def _pairs_with(
    name: str, options: Mapping[str, argparse.Action], given: argparse.Namespace
) -> Iterator[tuple[argparse.Action, str]]:
    """The options whose NAME=VALUE pairs have the name, with the text of its value."""
    for option in options.values():
        if str(option.metavar).startswith(_PAIRS):
            for pair in getattr(given, option.dest) or ():
                if pair.partition("=")[0] == name:
                    yield option, pair.partition("=")[2]


def _is_given(option: argparse.Action, given: argparse.Namespace) -> bool:
    return bool(getattr(given, option.dest) != option.default)


def _with_option(sentence: str, name: str, option: argparse.Action) -> str:
    """The sentence with the option in place of the first mention of the name, which may be ``name=value``."""

    def typed(mention: re.Match[str]) -> str:
        value = mention["value"]
        if value is None or option.nargs == 0:
            return _title(option)
        return f"{_title(option)} {value.strip(chr(39))}"

    pattern = rf"(?<![\w'\"./-]){re.escape(name)}(?:=(?P<value>'[^']*'|[\w.+-]*\w))?(?![\w'\"])"
    return re.sub(pattern, typed, sentence, count=1)


def _title(option: argparse.Action) -> str:
    """The option as the help shows it: --n-envs, or ENV if there is no flag."""
    return max(option.option_strings, key=len) if option.option_strings else str(option.metavar)
