"""``holdfast docs``: the pages that messages refer to, wherever holdfast is installed."""

from __future__ import annotations

import argparse
import difflib
import re
import shutil
from pathlib import Path
from typing import Any

from holdfast.cli.narrow_pages import fitted
from holdfast.cli.streams import results
from holdfast.cli.verbs import add_verb
from holdfast.core.errors import InputError

__all__ = ["add_parser", "find_pages"]

_DESCRIPTION = """\
List the pages of the documentation, or print one of them. They are installed
with holdfast; no network is needed.
"""
_EXAMPLES = """\
examples:
  holdfast docs                       # list the pages
  holdfast docs train | less
  holdfast docs constraints > constraints.txt
"""

_TITLES = {
    "citation": "How to cite holdfast and the paper",
    "constraints": "Tested versions of all packages, for pip install -c",
}
"""Titles of the pages that are not Markdown."""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(verbs, "docs", "list and print the pages of the documentation", _DESCRIPTION, _EXAMPLES)
    parser.add_argument("page", metavar="PAGE", nargs="?", help="page to print (default: list all pages)")
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """List or print."""
    pages = find_pages()
    if arguments.page is None:
        width = max(map(len, pages))
        results().writelines(f"{name:<{width}}  {_title(name, path)}\n" for name, path in pages.items())
        results().write("\nholdfast docs PAGE prints one of them.\n")
    else:
        results().write(_fitted_to_the_terminal(pages[_name(arguments.page, pages)]))
    return 0


def _fitted_to_the_terminal(path: Path) -> str:
    """The page, with paragraphs refilled if it is wider than the terminal."""
    page = path.read_text(encoding="utf-8")
    columns = shutil.get_terminal_size().columns
    is_narrow = results().isatty() and columns < max(map(len, page.splitlines()), default=0)
    return fitted(page, columns) if is_narrow and path.suffix == ".md" else page


def find_pages() -> dict[str, Path]:
    """The path of each page by name, in the package or in the clone it is installed from."""
    package = Path(__file__).resolve().parent.parent
    shipped = package / "pages"
    clone = package.parent.parent
    if shipped.is_dir():
        found = list(shipped.iterdir())
    elif (clone / "docs").is_dir():
        found = [
            *clone.glob("docs/*.md"),
            clone / "CHANGELOG.md",
            clone / "CITATION.cff",
            clone / "constraints.txt",
        ]
    else:
        raise InputError(f"the pages of the documentation are missing from {package}: install holdfast again")
    return {path.stem.lower(): path for path in sorted(found, key=lambda path: path.stem.lower())}


def _name(given: str, pages: dict[str, Path]) -> str:
    """The page that is meant, given its name or its file, with or without the folder."""
    name = re.sub(r"\.(?:md|txt|cff)$", "", given.lower().removeprefix("docs/"))
    if name in pages:
        return name
    nearest = difflib.get_close_matches(name, pages, n=1)
    hint = f"did you mean {nearest[0]}?" if nearest else "holdfast docs lists them"
    raise InputError(f"PAGE must be the name of a page, not {given!r} ({hint})")


def _title(name: str, path: Path) -> str:
    if name in _TITLES:
        return _TITLES[name]
    with path.open(encoding="utf-8") as lines:
        return next(lines).removeprefix("#").strip().replace("`", "")
