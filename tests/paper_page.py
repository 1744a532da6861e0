"""The index of the paper as a page: ``python -m tests.paper_page`` writes docs/paper_index.md.

It is made of what ``tests.paper_index`` knows and of the ``Paper:`` lines of the docstrings, so that it says what
is there. A name is shown in its shortest public form and leads to the file that holds it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping

from tests.architecture import ROOT
from tests.paper_index import ITEMS, PENDING, Claim, Item, all_claims, exported_names

PAGE = ROOT / "docs" / "paper_index.md"

SECTIONS = {
    "Definitions and equations": ("Definition", "Equation"),
    "Operators": ("Operator",),
    "Statements": ("Lemma", "Theorem", "Corollary", "Proposition"),
    "Algorithms": ("Algorithm",),
    "Figures": ("Figure",),
}

_HEAD = """\
# The paper, item by item

This page finds every definition, statement, algorithm and figure of *Simultaneously Updating All Persistence
Values in Reinforcement Learning* (AAAI 2023) in holdfast. The lemma, the theorem and the corollary lead to the
test that shows them, everything else to a public name. If that is a reference written for reading and testing,
as for Algorithms 1 and 3, its docstring names the compiled code that training runs instead. Labels are those of
the paper's LaTeX source; items without one have none here. [theory.md](theory.md) explains the items, and
[errata.md](errata.md) lists the corrected formulas.

`make paper-index` writes this page from the `Paper:` lines of the docstrings; a test fails if it is out of date.
{done} of {all} items are there.
"""

_NOT_YET = "not yet"


def page(
    items: Mapping[str, Item] = ITEMS, claims: Iterable[Claim] | None = None, pending: Collection[str] = PENDING
) -> str:
    """The page, as Markdown."""
    by_label = {claim.label: claim for claim in (all_claims() if claims is None else claims)}
    done = sum(label not in pending for label in items)
    parts = [_HEAD.format(done=done, all=len(items))]
    for title, kinds in SECTIONS.items():
        rows = [
            f"| {item.title} | {_label(label)} | {_place(by_label.get(label))} |"
            for label, item in items.items()
            if item.kind in kinds
        ]
        if rows:
            parts.append("\n".join([f"## {title}", "", "| what | label | where |", "|---|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def public_name(claim: Claim) -> str:
    """The shortest name that a claim's object can be imported by."""
    packages = claim.path.removeprefix("src/").split("/")[:-1]
    own = claim.name.split(".")[len(packages) + 1 :]
    for depth in range(1, len(packages) + 1):
        source = ROOT.joinpath("src", *packages[:depth], "__init__.py").read_text("utf-8")
        if own[0] in exported_names(ast.parse(source)):
            return ".".join([*packages[:depth], *own])
    return claim.name


def _label(label: str) -> str:
    return f"`{label}`" if ":" in label else ""


def _place(claim: Claim | None) -> str:
    if claim is None:
        return _NOT_YET
    name = claim.name.rpartition(".")[2] if claim.in_tests else public_name(claim)
    return f"[`{name}`](../{claim.path})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
