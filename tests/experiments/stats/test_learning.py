"""One number for a learning curve."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.experiments.stats import area_under_curve, episode_mean, mean_level

STEPS = np.array([0.0, 10.0, 20.0, 60.0])
CURVES = np.array([[0.0, 2.0, 4.0, 4.0], [1.0, 1.0, 1.0, 1.0]])


def test_means_over_episodes_by_hand() -> None:
    assert episode_mean(CURVES).tolist() == [2.5, 1.0]
    assert episode_mean(CURVES, last=3) == pytest.approx([10.0 / 3.0, 1.0])
    assert episode_mean(CURVES, last=1).tolist() == [4.0, 1.0]
    assert episode_mean(CURVES[0], last=2) == 4.0


def test_areas_by_hand() -> None:
    # 10 · 1 + 10 · 3 + 40 · 4.
    assert area_under_curve(STEPS, CURVES).tolist() == [200.0, 60.0]
    assert mean_level(STEPS, CURVES) == pytest.approx([200.0 / 60.0, 1.0])
    assert mean_level([5.0], [[7.0]]).tolist() == [7.0]


@given(st.integers(3, 30), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.integers(0, 1000))
def test_a_straight_line_has_the_level_of_its_middle(points: int, slope: float, start: float, seed: int) -> None:
    steps = np.cumsum(np.random.default_rng(seed).uniform(0.1, 5.0, points))
    middle = start + slope * (steps[0] + steps[-1]) / 2.0
    assert mean_level(steps, start + slope * steps) == pytest.approx(middle, abs=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: episode_mean(CURVES, last=5), "last must be at most the 4 episodes"),
        (lambda: episode_mean(CURVES, last=0), "last must be"),
        (lambda: episode_mean([[1.0, math.nan]]), "curves must be finite"),
        (lambda: episode_mean([]), "curves must have shape"),
        (lambda: area_under_curve([0.0, 1.0], CURVES), "steps must be 4 growing numbers"),
        (lambda: area_under_curve([0.0, 2.0, 2.0, 3.0], CURVES), "steps must be 4 growing numbers"),
        (lambda: mean_level([[0.0]], CURVES), "steps must be 4 growing numbers"),
    ],
)
def test_refused_in_a_sentence(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
