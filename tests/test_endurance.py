"""The lines that the endurance battery fits, and that it tells a leak from noise."""

from __future__ import annotations

import numpy as np
import pytest

from tests.endurance import Look, slope, verdicts


def test_a_slope_is_that_of_least_squares() -> None:
    # By hand: means 1 and 2, products 0·… : Σ(x−1)(y−2) = 2, Σ(x−1)² = 2.
    rise, half = slope(np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    assert rise == pytest.approx(1.0)
    assert half == pytest.approx(0.0, abs=1e-6)
    assert slope(np.array([0.0, 1.0, 2.0]), np.full(3, 7.0)) == (0.0, 0.0)


@pytest.mark.parametrize("leak", [0.0, 50.0])
def test_a_leak_is_told_from_noise(leak: float) -> None:
    draw = np.random.default_rng(1)
    looks = [
        Look(5.0 * n, 500.0 + leak * 5.0 * n / 3600.0 + draw.normal(), 10.0, 0.001 * n, 100.0 * n)
        for n in range(400)
    ]
    found = verdicts(looks)
    assert found["memory, MB"][3] == (leak == 0.0)
    assert found["open files"][1:] == (0.0, 0.0, True)
    assert found["processor, µs a step"][0] == pytest.approx(10.0)
