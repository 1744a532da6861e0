"""The list of algorithms is what the documentation and the colours go by too."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.draw.style import algorithm_color
from holdfast.policies import ALGORITHMS
from tests.conformance.agents import AGENTS, CONTINUOUS

DOCUMENT = Path(__file__).parents[2] / "docs" / "baselines.md"


@pytest.mark.parametrize("name", AGENTS)
def test_every_deep_algorithm_is_described_and_has_a_colour(name):
    assert f"| `{name}` |" in DOCUMENT.read_text(encoding="utf-8")
    assert algorithm_color(name).startswith("#")


def test_every_deep_algorithm_of_the_list_is_put_to_these_tests():
    deep = {name for name, algorithm in ALGORITHMS.items() if algorithm.is_deep}
    assert set(AGENTS) == {name for name in deep if not ALGORITHMS[name].is_continuous}
    assert set(CONTINUOUS) == deep - set(AGENTS)
    assert {"perdqn", "dqn", "msa-dqn", "temporl-dqn", "ez-dqn"} <= set(AGENTS)
