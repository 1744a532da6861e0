from __future__ import annotations

from typing import Any

import pytest

from holdfast.cli.tune import range_of
from holdfast.experiments.tuning.ranges import Range, check_ranges, ranges_for
from holdfast.policies import ALGORITHMS, find_algorithm
from tests.architecture import ROOT


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_ranges_of_every_algorithm_hold_its_defaults_and_what_it_takes(name: str) -> None:
    algorithm = ALGORITHMS[name]
    ranges, known = ranges_for(algorithm), algorithm.arguments()
    assert len(ranges) >= 4
    check_ranges(algorithm, ranges, {})
    assert [argument for argument, one in ranges.items() if not one.has(known[argument].default)] == []
    assert ("k_max" in ranges or "persistences" in ranges) == algorithm.holds


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_page_has_the_ranges_of_every_algorithm(name: str) -> None:
    page = (ROOT / "docs/tune.md").read_text(encoding="utf-8")
    for argument, one in ranges_for(ALGORITHMS[name]).items():
        rows = [line for line in page.splitlines() if line.startswith(f"| `{argument}` |")]
        assert any(f"| {one} |" in line for line in rows), (argument, str(one))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gamma", None),
        ("gamma=0.9..1", Range(0.9, 1)),
        ("batch_size=16..64", Range(16, 64)),
        ("learning_rate=1e-5..1e-2:log", Range(1e-5, 1e-2, is_log=True)),
        ("batch_size=32,64", Range(choices=(32, 64))),
        ("persistences=[1,2],[1,4]", Range(choices=([1, 2], [1, 4]))),
        ("target_value=double,options", Range(choices=("double", "options"))),
    ],
)
def test_ranges_as_they_are_typed(text: str, found: Range | None) -> None:
    assert range_of(text) == (text.partition("=")[0], found)


@pytest.mark.parametrize("text", ["=3", "gamma=", "gamma=a..b", "gamma=1..2:exp", "2x=1..2", "gamma=1..0"])
def test_what_is_no_range_is_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="range must"):
        range_of(text)


def test_whole_numbers_are_drawn_where_both_ends_are_whole() -> None:
    assert Range(1, 5).is_whole
    assert not Range(1, 5.0).is_whole
    assert Range(1, 5).has(5)
    assert not Range(1, 5).has(2.5)
    assert Range(0.0, 1.0).has(0.25)
    assert not Range(0.0, 1.0).has(None)
    with pytest.raises(ValueError, match="must begin above 0"):
        Range(0, 5, is_log=True)
    with pytest.raises(ValueError, match="must have ends of at most"):
        Range(1, 10**23)


@pytest.mark.parametrize(
    ("ranges", "fixed", "sentence"),
    [
        ({}, {}, "there is nothing to tune"),
        ({"lr": Range(0.1, 1.0)}, {}, "which perdqn does not have; did you mean learning_rate"),
        ({"gamma": Range(0.1, 0.9)}, {"gamma": 0.5}, "range and set must not both name 'gamma'"),
        ({"batch_size": Range(0.1, 0.9)}, {}, "batch_size must be a whole number, not 0.1"),
    ],
)
def test_what_cannot_be_tuned_is_one_sentence(ranges: Any, fixed: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_ranges(find_algorithm("perdqn"), ranges, fixed)
