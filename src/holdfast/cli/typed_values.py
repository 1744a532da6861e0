"""What a user types: whole numbers, NAME=VALUE pairs, names of files, and the user's own code as module:name."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.core.errors import InputError

__all__ = [
    "allow_code",
    "code_folder",
    "counted",
    "environment_file_name",
    "keyword_arguments",
    "literal",
    "printable",
    "whole_number",
    "whole_numbers",
]


def counted(number: int, what: str) -> str:
    """1 step, 2 steps."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def whole_number(text: str) -> int:
    """A whole number, also as 1e6 or 100_000."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise ValueError from None
        return int(number)


whole_number.__name__ = "whole number"  # what argparse calls it


def whole_numbers(text: str) -> list[int]:
    """Whole numbers separated by commas."""
    return [whole_number(part) for part in text.split(",")]


whole_numbers.__name__ = "list of whole numbers"


def keyword_arguments(option: str, pairs: Sequence[str]) -> dict[str, Any]:
    """The dictionary that NAME=VALUE pairs describe.

    A value is a Python literal (a number, True, None, a list), or else the text itself.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"{option} must be pairs NAME=VALUE, not {pair!r}")
        if name in found:
            raise InputError(f"{option} must name {name!r} once")
        found[name] = literal(text)
    return found


def literal(text: str) -> Any:
    """The text as a Python literal, or the text itself if it is not one."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def printable(text: str) -> str:
    """The text without control characters that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def environment_file_name(environment: str) -> str:
    """A name for folders and headings: cliff, my_map.txt, FrozenLake-v1, holdfast-Cliff-v0."""
    name = Path(environment).name if Path(environment).is_file() else environment
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "map"


def allow_code(name: str | None) -> None:
    """Let the module named by ``module:name`` be found in the current folder."""
    here = code_folder(name)
    if here is not None and here not in sys.path:
        sys.path.insert(0, here)


def code_folder(name: str | None) -> str | None:
    """The folder in which such a module is looked up; None if the name is not code."""
    if name is None or ":" not in name:
        return None
    return os.getcwd()  # noqa: PTH109 - as Python puts it there
