from __future__ import annotations

import numpy as np
import pytest

from holdfast.core.durations import drawn_durations, duration_distribution


def test_distributions_by_hand() -> None:
    np.testing.assert_allclose(duration_distribution("uniform", 4), 0.25)
    # 1, 1/4 and 1/9 are 36, 9 and 4 parts of 49.
    np.testing.assert_allclose(duration_distribution("zeta", 3), np.array([36.0, 9.0, 4.0]) / 49.0)
    np.testing.assert_allclose(duration_distribution("zeta", 2, mu=1.0), [2 / 3, 1 / 3])
    np.testing.assert_array_equal(duration_distribution("zeta", 1), [1.0])


def test_draws_by_hand() -> None:
    cumulative = np.array([0.5, 0.75, 1.0])
    draws = [0.0, 0.49, 0.5, 0.74, 0.75, 0.99]
    np.testing.assert_array_equal(drawn_durations(draws, cumulative), [1, 1, 2, 2, 3, 3])
    assert drawn_durations(0.6, cumulative) == 2


def test_sums_that_rounding_leaves_below_one_still_give_a_duration() -> None:
    assert drawn_durations(np.nextafter(1.0, 0.0), np.array([0.5, 1.0 - 1e-9])) == 2


@pytest.mark.parametrize("kind", ["uniform", "zeta"])
def test_drawn_durations_are_distributed_as_they_should_be(kind: str) -> None:
    chances = duration_distribution(kind, 6)
    draws = (np.arange(100_000) + 0.5) / 100_000
    drawn = drawn_durations(draws, np.cumsum(chances))
    np.testing.assert_allclose(np.bincount(drawn, minlength=7)[1:] / 100_000, chances, atol=1e-4)


def test_unknown_distributions_get_one_sentence() -> None:
    with pytest.raises(ValueError, match="durations must be one of 'uniform', 'zeta', not 'normal'"):
        duration_distribution("normal", 3)
