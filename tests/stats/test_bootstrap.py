"""Bootstrap intervals: against SciPy's, against every possible resample, and how often they cover the truth."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from holdfast.stats import (
    AGGREGATES,
    aggregate_estimates,
    bootstrap_band,
    bootstrap_estimate,
    improvement_estimate,
    improvement_probability,
    interquartile_mean,
    mean_score,
    optimality_gap,
    performance_profile,
    profile_band,
)
from holdfast.stats import bootstrap as module

Floats = NDArray[np.float64]

SCORES = np.random.default_rng(5).normal([0.2, 0.5, 1.0], [0.1, 0.3, 0.2], size=(12, 3))
OTHERS = np.random.default_rng(6).normal([0.3, 0.4, 0.8], [0.2, 0.3, 0.2], size=(9, 3))


def test_a_seed_repeats_its_interval() -> None:
    first = bootstrap_estimate(interquartile_mean, SCORES, seed=3)
    assert bootstrap_estimate(interquartile_mean, SCORES, seed=3) == first
    assert bootstrap_estimate(interquartile_mean, SCORES, seed=np.random.default_rng(3)) == first
    assert bootstrap_estimate(interquartile_mean, SCORES, seed=np.random.SeedSequence(3)) == first
    other = bootstrap_estimate(interquartile_mean, SCORES, seed=4)
    assert other.value == first.value
    assert other.low != first.low
    assert other.high != first.high


def test_a_generator_is_drawn_on() -> None:
    random = np.random.default_rng(0)
    assert bootstrap_estimate(mean_score, SCORES, seed=random) != bootstrap_estimate(
        mean_score, SCORES, seed=random
    )


def test_how_many_are_done_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = bootstrap_estimate(interquartile_mean, SCORES, resamples=300)
    monkeypatch.setattr(module, "_NUMBERS_AT_ONCE", SCORES.size * 7)
    assert bootstrap_estimate(interquartile_mean, SCORES, resamples=300) == at_once


def test_the_scores_stay_as_they_are() -> None:
    kept = SCORES.copy()
    aggregate_estimates(SCORES, resamples=10)
    assert np.array_equal(SCORES, kept)


def test_against_every_possible_resample() -> None:
    # Two tasks of three runs: 27 · 27 resamples, all alike likely.
    scores = np.array([[0.0, 10.0], [1.0, 14.0], [5.0, 11.0]])
    draws = [np.array(draw) for draw in itertools.product(range(3), repeat=3)]
    all_values = np.array(
        [float(mean_score(np.stack([scores[i, 0], scores[j, 1]], 1))) for i in draws for j in draws]
    )
    drawn: list[Floats] = []

    def kept(resampled: Floats) -> Floats:
        drawn.append(mean_score(resampled))
        return drawn[-1]

    found = bootstrap_estimate(kept, scores, resamples=40_000, level=0.8)
    values = np.concatenate([values for values in drawn if values.ndim])
    # The mean of a resample's mean is the mean, and its variance is that of the draws.
    assert values.mean() == pytest.approx(all_values.mean(), abs=4.0 * all_values.std() / 200.0)
    assert values.std() == pytest.approx(all_values.std(), rel=0.02)
    shares = [np.mean(np.isclose(values, value)) for value in np.unique(all_values.round(9))]
    expected = [np.mean(np.isclose(all_values, value)) for value in np.unique(all_values.round(9))]
    assert shares == pytest.approx(expected, abs=0.01)
    low, high = np.quantile(all_values, [0.1, 0.9])
    assert found.low == pytest.approx(low, abs=0.2)
    assert found.high == pytest.approx(high, abs=0.2)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (mean_score, lambda x, axis: np.mean(x, axis=axis)),
        (interquartile_mean, lambda x, axis: stats.trim_mean(x, 0.25, axis=axis)),
        (optimality_gap, lambda x, axis: 1.0 - np.minimum(x, 1.0).mean(axis=axis)),
    ],
    ids=["mean", "iqm", "gap"],
)
def test_one_task_is_the_bootstrap_of_scipy(ours: Any, theirs: Any) -> None:
    runs = np.random.default_rng(2).normal(0.7, 0.3, 25)
    found = bootstrap_estimate(ours, runs[:, None], resamples=20_000, seed=1)
    expected = stats.bootstrap(
        (runs,), theirs, n_resamples=20_000, method="percentile", rng=np.random.default_rng(9)
    ).confidence_interval
    width = expected.high - expected.low
    assert found.low == pytest.approx(expected.low, abs=0.04 * width)
    assert found.high == pytest.approx(expected.high, abs=0.04 * width)


def test_improvement_is_the_bootstrap_of_two_samples() -> None:
    def share(x: Floats, y: Floats, axis: int) -> Floats:
        pairs_x, pairs_y = x[..., :, None], y[..., None, :]
        return np.asarray((pairs_x > pairs_y).mean(axis=(-2, -1)))

    x, y = SCORES[:, 1], OTHERS[:, 1]
    found = improvement_estimate(x[:, None], y[:, None], resamples=10_000)
    expected = stats.bootstrap(
        (x, y), share, n_resamples=10_000, method="percentile", rng=np.random.default_rng(9)
    ).confidence_interval
    assert found.low == pytest.approx(expected.low, abs=0.03)
    # Resamples repeat runs, but x and y have none in common: ties play no part.
    assert found.high == pytest.approx(expected.high, abs=0.03)


def test_each_task_is_drawn_by_itself() -> None:
    # Tasks that cancel each other run by run: drawn together, every resample would have the mean 0.
    noise = np.random.default_rng(0).normal(size=30)
    apart = bootstrap_estimate(mean_score, np.stack([noise, -noise], axis=1))
    assert apart.value == pytest.approx(0.0)
    assert apart.high - apart.low == pytest.approx(4.0 * 0.98 * noise.std() / np.sqrt(60.0), rel=0.1)


def test_runs_stay_with_their_task() -> None:
    constant = np.tile([1.0, 2.0, 9.0], (5, 1))
    assert bootstrap_estimate(mean_score, constant) == (4.0, 4.0, 4.0)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    random = np.random.default_rng(7)
    covered = []
    for simulation in range(400):
        scores = random.normal([1.0, 3.0], [1.0, 0.5], size=(20, 2))
        found = bootstrap_estimate(mean_score, scores, resamples=400, seed=simulation)
        covered.append(found.low <= 2.0 <= found.high)
    assert 0.90 <= np.mean(covered) <= 0.99


def test_all_aggregates_on_the_same_resamples() -> None:
    found = aggregate_estimates(SCORES, target=0.8, seed=2)
    assert list(found) == ["median", "interquartile mean", "mean", "optimality gap"]
    for name in ("median", "interquartile mean", "mean"):
        assert found[name] == pytest.approx(bootstrap_estimate(AGGREGATES[name], SCORES, seed=2))
    gap = bootstrap_estimate(lambda scores: optimality_gap(scores, 0.8), SCORES, seed=2)
    assert found["optimality gap"] == pytest.approx(gap)
    assert all(low < value < high for value, low, high in found.values())


def test_profiles_have_bands_around_them() -> None:
    taus = np.linspace(-0.5, 1.5, 21)
    band = profile_band(SCORES, taus)
    assert np.array_equal(band.value, performance_profile(SCORES, taus))
    assert ((band.low <= band.value) & (band.value <= band.high)).all()
    middle = int(np.argmin(np.abs(band.value - 0.5)))
    assert band.low[middle] < band.value[middle] < band.high[middle]
    # Where all runs are above, or none, there is no doubt left to show.
    assert (band.low[0], band.high[0], band.low[-1], band.high[-1]) == (1.0, 1.0, 0.0, 0.0)


def test_improvement_with_other_numbers_of_runs() -> None:
    found = improvement_estimate(SCORES, OTHERS)
    assert found.value == improvement_probability(SCORES, OTHERS)
    assert 0.0 <= found.low < found.value < found.high <= 1.0
    assert improvement_estimate(SCORES + 10.0, OTHERS) == (1.0, 1.0, 1.0)


def test_a_higher_level_has_a_wider_interval() -> None:
    narrow, wide = (bootstrap_estimate(mean_score, SCORES, level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_one_run_has_no_interval() -> None:
    assert np.isnan([*bootstrap_estimate(mean_score, SCORES[:1])[1:]]).all()
    assert np.isnan([*improvement_estimate(SCORES, OTHERS[:1])[1:]]).all()
    assert np.isnan(profile_band(SCORES[:1], [0.0, 1.0]).high).all()
    assert mean_score(SCORES[:1]) == aggregate_estimates(SCORES[:1])["mean"].value


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"seed": None}, TypeError, "seed must be a whole number"),
        ({"seed": -1}, ValueError, "seed must be a whole number"),
        ({"resamples": 0}, ValueError, "resamples must be"),
        ({"level": 1.0}, ValueError, "level must be"),
    ],
)
def test_refused_in_a_sentence(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        bootstrap_estimate(mean_score, SCORES, **arguments)


def test_scores_refused_in_a_sentence() -> None:
    for scores in ([], [SCORES[0]], [np.stack([SCORES, SCORES])], [SCORES * np.nan]):
        with pytest.raises(ValueError, match="scores must"):
            bootstrap_estimate(mean_score, *scores)


def test_a_statistic_that_mixes_resamples_is_refused() -> None:
    with pytest.raises(ValueError, match="must reduce the last two axes"):
        bootstrap_estimate(np.mean, SCORES)
    with pytest.raises(ValueError, match="statistic must be one number"):
        bootstrap_estimate(lambda scores: scores.mean(axis=-2), SCORES)
    assert bootstrap_band(lambda scores: scores.mean(axis=-2), SCORES).value.shape == (3,)
