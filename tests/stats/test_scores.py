"""A learning curve as one score."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from holdfast.stats import episode_mean

CURVES = np.array([[0.0, 2.0, 4.0, 4.0], [1.0, 1.0, 1.0, 1.0]])


def test_means_over_episodes_by_hand() -> None:
    assert episode_mean(CURVES).tolist() == [2.5, 1.0]
    assert episode_mean(CURVES, last=3) == pytest.approx([10.0 / 3.0, 1.0])
    assert episode_mean(CURVES, last=1).tolist() == [4.0, 1.0]
    assert episode_mean(CURVES[0], last=2) == 4.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: episode_mean(CURVES, last=5), "last must be at most the 4 episodes"),
        (lambda: episode_mean(CURVES, last=0), "last must be"),
        (lambda: episode_mean([[1.0, math.nan]]), "curves must be finite"),
        (lambda: episode_mean([]), "curves must have shape"),
    ],
)
def test_refused_in_a_sentence(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
