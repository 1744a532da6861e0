"""Each item of the paper leads to exactly one public name, or is pending."""

from __future__ import annotations

import pytest

from tests.paper_index import ITEMS, PENDING, PENDING_AT_MOST, Item, all_claims, claims_of, index_problems


def test_each_item_leads_to_one_public_name_or_is_pending() -> None:
    assert index_problems(all_claims(), ITEMS, PENDING) == []


def test_the_number_of_pending_items_is_the_recorded_one() -> None:
    assert len(PENDING) == PENDING_AT_MOST


# That the index can fail, on a paper of two items:

SMALL_PAPER = {"alg:walk": Item("Algorithm", "walking"), "lem:steps add": Item("Lemma", "steps add up")}
WALK = '''
__all__ = ["walk"]

def walk():
    """Walk.

    Paper: Algorithm alg:walk
    """
'''
STEPS_ADD = '''
def test_steps_add():
    """Two walks are one longer walk.

    Paper: Lemma lem:steps add
    """
'''


def problems(code: str, test: str, pending: tuple[str, ...] = ()) -> list[str]:
    claims = [*claims_of(code, "src/walks.py"), *claims_of(test, "tests/test_walks.py")]
    return index_problems(claims, SMALL_PAPER, pending)


def test_a_complete_index_has_no_problem() -> None:
    assert problems(WALK, STEPS_ADD) == []
    assert problems(WALK, "", pending=("lem:steps add",)) == []


def test_a_public_method_may_claim_an_item() -> None:
    code = '''
__all__ = ["Walker"]
class Walker:
    def walk(self):
        """Paper: Algorithm alg:walk"""
'''
    assert problems(code, STEPS_ADD) == []
    assert problems(code.replace("def walk", "def _walk"), STEPS_ADD) != []
    assert problems(code.replace('["Walker"]', "[]"), STEPS_ADD) != []


@pytest.mark.parametrize(
    ("code", "test", "pending", "sentence"),
    [
        (WALK.replace("alg:walk", "alg:run"), STEPS_ADD, ("alg:walk",), "names no item"),
        (WALK.replace("Algorithm alg:walk", "alg:walk"), STEPS_ADD, ("alg:walk",), "names no item"),
        (WALK.replace("alg:walk", "alg:walk."), STEPS_ADD, ("alg:walk",), "names no item"),
        (WALK.replace("Algorithm", "Equation"), STEPS_ADD, (), "is of kind Algorithm, not Equation"),
        (WALK + WALK.replace("def walk", "def walk_again"), STEPS_ADD, (), "claimed more than once"),
        (WALK.replace('["walk"]', "[]"), STEPS_ADD, (), "listed in its module's __all__"),
        (WALK.replace('__all__ = ["walk"]', ""), STEPS_ADD, (), "listed in its module's __all__"),
        (WALK, STEPS_ADD, ("alg:walk",), "take it off PENDING"),
        ("", STEPS_ADD, (), "claimed by no docstring"),
        (WALK, "", (), "claimed by no docstring"),
        (WALK, STEPS_ADD, ("alg:run",), "pending but no item"),
        ("", STEPS_ADD, ("alg:walk", "alg:walk"), "pending twice"),
        (WALK + STEPS_ADD, "", (), "must lead to the test that shows it"),
        ("", WALK + STEPS_ADD, (), "must lead to a public name"),
        (WALK, STEPS_ADD.replace("def test_", "def "), (), "must be a test function"),
    ],
)
def test_a_fault_is_named(code: str, test: str, pending: tuple[str, ...], sentence: str) -> None:
    assert any(sentence in line for line in problems(code, test, pending))
