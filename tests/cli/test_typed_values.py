from __future__ import annotations

import pytest

from holdfast.cli.typed_values import keyword_arguments


def test_values_are_literals_or_text() -> None:
    pairs = ["slip=0.2", "seed=3", "border=deadly", "limit=None", "arch=[64, 64]", "on=True", "empty=", "a=b=c"]
    assert keyword_arguments("--set", pairs) == {
        "slip": 0.2,
        "seed": 3,
        "border": "deadly",
        "limit": None,
        "arch": [64, 64],
        "on": True,
        "empty": "",
        "a": "b=c",
    }


def test_nothing_is_executed() -> None:
    text = "__import__('os').getcwd()"
    assert keyword_arguments("--set", [f"x={text}"]) == {"x": text}


@pytest.mark.parametrize("pair", ["slip", "=3", "two words=1", "slip:0.2"])
def test_what_is_no_pair_is_refused(pair: str) -> None:
    with pytest.raises(ValueError, match="--set must be pairs NAME=VALUE"):
        keyword_arguments("--set", [pair])


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="must name 'a' once"):
        keyword_arguments("--set", ["a=1", "a=2"])
