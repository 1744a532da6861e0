"""docs/paper_index.md says what is there, and every name on it can be imported."""

from __future__ import annotations

import importlib

import pytest

from tests.paper_index import ITEMS, Claim, Item, all_claims
from tests.paper_page import PAGE, SECTIONS, page, public_name


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "docs/paper_index.md is out of date: run make paper-index"


@pytest.mark.parametrize("claim", [claim for claim in all_claims() if not claim.in_tests], ids=lambda c: c.label)
def test_public_names_lead_to_the_claimed_objects(claim: Claim) -> None:
    module, _, name = public_name(claim).rpartition(".")
    found = getattr(importlib.import_module(module), name)
    assert claim.text in (found.__doc__ or "")


def test_every_kind_of_item_has_its_section() -> None:
    kinds = [kind for section in SECTIONS.values() for kind in section]
    assert sorted(kinds) == sorted(set(kinds))
    assert {item.kind for item in ITEMS.values()} <= set(kinds)


def test_what_is_not_there_is_said_to_be_missing() -> None:
    items = {
        "alg:walk": Item("Algorithm", "walking"),
        "alg:run": Item("Algorithm", "running"),
        "steps": Item("Definition", "steps"),
    }
    claims = [
        Claim("Algorithm alg:walk", "holdfast.core.options.Option", "src/holdfast/core/options.py", public=True),
        Claim("Definition steps", "walks.test_steps", "tests/walks.py", public=True),
    ]
    lines = page(items, claims, pending=["alg:run"]).splitlines()
    assert "| walking | `alg:walk` | [`holdfast.Option`](../src/holdfast/core/options.py) |" in lines
    assert "| running | `alg:run` | not yet |" in lines
    assert "| steps |  | [`test_steps`](../tests/walks.py) |" in lines
    assert any("2 of 3 items" in line for line in lines)


def test_a_title_fits_into_a_table() -> None:
    assert not [item.title for item in ITEMS.values() if "|" in item.title or not item.title]
