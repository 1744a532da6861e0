"""How a verb is added to the command line."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["add_verb"]


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
