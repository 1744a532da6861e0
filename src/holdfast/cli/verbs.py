"""How a verb is added to the command line, with the options that mean the same in several verbs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["add_output", "add_pairs", "add_verb"]


def add_verb(
    verbs: Any, name: str, summary: str, description: str, examples: str | None = None, **options: Any
) -> argparse.ArgumentParser:
    """The parser of a verb, whose description and examples are shown as they are written.

    Args:
        verbs: The subparsers of the command line.
        name: What is typed.
        summary: The line in the list of all verbs.
        description: What its own help begins with.
        examples: What its own help ends with.
        options: Passed on to the parser.
    """
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=summary,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **options,
    )
    return parser


def add_pairs(
    parser: argparse.ArgumentParser, option: str, meaning: str, default: Sequence[str] | None = None
) -> None:
    """Add an option that takes any number of NAME=VALUE, and may be given again for more of them."""
    parser.add_argument(option, nargs="+", action="extend", default=default, metavar="NAME=VALUE", help=meaning)


def add_output(parser: argparse.ArgumentParser, meaning: str, metavar: str = "DIR") -> None:
    """Add ``-o``: where the verb writes."""
    parser.add_argument("-o", "--out", type=Path, metavar=metavar, help=meaning)
