"""What a user types: NAME=VALUE pairs, names of files, and code of her own as module:name."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.core.errors import InputError

__all__ = ["allow_code", "code_folder", "file_name", "keyword_arguments", "literal", "printable"]


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
    """The Python literal that a text is, or else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def printable(text: str) -> str:
    """The text without what a terminal would take for an order."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def file_name(environment: str) -> str:
    """A name for folders and headings: cliff, my_map.txt, FrozenLake-v1, holdfast-Cliff-v0."""
    name = Path(environment).name if Path(environment).is_file() else environment
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "map"


def allow_code(name: str | None) -> None:
    """Let the module of what was typed as ``module:name`` be found in the current folder."""
    here = code_folder(name)
    if here is not None and here not in sys.path:
        sys.path.insert(0, here)


def code_folder(name: str | None) -> str | None:
    """The folder in which such a module is looked for; None for what is no code."""
    if name is None or ":" not in name:
        return None
    return os.getcwd()  # noqa: PTH109 - as Python puts it there
