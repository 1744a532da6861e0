"""Each verb of the command line has a page, docs/VERB.md, that explains all its options and no others."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from holdfast.cli.main import _build_parser
from holdfast.policies.algorithms import ALGORITHMS

DOCS = Path(__file__).resolve().parent.parent / "docs"


def verbs() -> dict[str, argparse.ArgumentParser]:
    parser = _build_parser()
    return dict(next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices)


def explained(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The arguments that --help shows, without --help itself."""
    return [
        action
        for action in parser._actions
        if action.help is not argparse.SUPPRESS and not isinstance(action, argparse._HelpAction)
    ]


def occurs(word: str, text: str) -> bool:
    """Whether a page has the word by itself: --env is not in --env-kwargs."""
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def missing_from(text: str, parser: argparse.ArgumentParser) -> set[str]:
    """What a page does not say: options, arguments and the values that an option may have."""
    found = set()
    for action in explained(parser):
        names = action.option_strings or [str(action.metavar or action.dest)]
        if not any(occurs(name, text) for name in names):
            found.add(names[-1])
        found |= {str(choice) for choice in action.choices or () if not occurs(f"`{choice}`", text)}
    return found


def invented_by(text: str, parser: argparse.ArgumentParser) -> set[str]:
    """Options that the first column of a table explains and the verb does not have."""
    known = {option for action in parser._actions for option in action.option_strings}
    cells = re.findall(r"^\|([^|]*`-[^|]*)\|", text, flags=re.MULTILINE)
    named = {option for cell in cells for option in re.findall(r"`(--?[a-z][\w-]*)", cell)}
    return named - known


@pytest.mark.parametrize("verb", verbs())
def test_a_verb_has_a_page_with_all_its_options(verb: str) -> None:
    page = DOCS / f"{verb}.md"
    assert page.exists(), f"docs/{verb}.md must explain holdfast {verb}"
    text, parser = page.read_text(encoding="utf-8"), verbs()[verb]
    assert missing_from(text, parser) == set()
    assert invented_by(text, parser) == set()


def test_the_page_of_train_lists_the_algorithms() -> None:
    text = (DOCS / "train.md").read_text(encoding="utf-8")
    table = text.partition("## Algorithms")[2].partition("##")[0]
    listed = re.findall(r"^\| `([\w-]+)` \|.*\| (with a network|in a table) \|$", table, flags=re.MULTILINE)
    known = {name: "with a network" if one.is_deep else "in a table" for name, one in ALGORITHMS.items()}
    assert listed == list(known.items())


# That it can fail:


def small_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("place", metavar="PLACE")
    parser.add_argument("-o", "--out")
    parser.add_argument("--out-of", choices=("oak", "ash"))
    parser.add_argument("--secret", help=argparse.SUPPRESS)
    return parser


def test_what_is_not_said_is_found() -> None:
    complete = "`PLACE` | `-o FILE` | `--out-of WOOD`: `oak` or `ash`"
    assert missing_from(complete, small_parser()) == set()
    assert missing_from(complete.replace("-o FILE", "FILE"), small_parser()) == {"--out"}
    assert missing_from(complete.replace("PLACE", "HERE"), small_parser()) == {"PLACE"}
    assert missing_from(complete.replace("--out-of", "--out"), small_parser()) == {"--out-of"}
    assert missing_from(complete.replace("`ash`", "ash"), small_parser()) == {"ash"}


def test_what_is_invented_is_found() -> None:
    table = "| `-o FILE`, `--out FILE` | as `--elsewhere` |\n| `--out-of WOOD` | |\n"
    assert invented_by(table, small_parser()) == set()
    assert invented_by(table + "| `--outer` | |\n", small_parser()) == {"--outer"}
