"""Probe environments: every learned value Q(s,a,k) is within 2 % of the largest |Q*| that it could have been."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from holdfast.deep import PerDQN
from tests.deep.earlier_settings import earlier
from tests.deep.probes import (
    EAGER,
    Carousel,
    ChosenReward,
    DelayedReward,
    OneReward,
    Pier,
    PricedDelay,
    PricedPier,
    Probe,
    SeenReward,
)


def learned(probe: type[Probe], steps: int, **arguments: Any) -> np.ndarray:
    """Q(s,a,k) after some steps of random options, (S, A, K)."""
    settings = {"k_max": 3, "gamma": probe.gamma, **EAGER, **arguments}
    model = PerDQN("MlpPolicy", probe(), **earlier(PerDQN, settings))
    model.learn(steps)
    return model.policy.decide(probe.every_observation()).values


def assert_close(values: np.ndarray, probe: type[Probe]) -> None:
    expected = probe.values(values.shape[2])
    np.testing.assert_allclose(values, expected, rtol=0.0, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize("probe", [OneReward, SeenReward, DelayedReward, ChosenReward])
def test_the_smallest_probes(probe):
    assert_close(learned(probe, 500), probe)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"target_value": "primitive", "dueling": True},
        {"target_value": "double", "prioritized": False},
    ],
    ids=["paper", "primitive and dueling", "double and uniform"],
)
def test_holding_too_long_overshoots(arguments):
    assert_close(learned(Pier, 700, k_max=4, **arguments), Pier)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"bootstrap": False},
        {"target_value": "primitive", "bootstrap": False, "prioritized": False},
        {"target_value": "double", "dueling": True, "normalize_observations": "space"},
    ],
    ids=["paper", "no bootstrap", "no bootstrap, primitive and uniform", "double, dueling and scaled"],
)
def test_values_go_on_beyond_a_time_limit(arguments):
    assert_close(learned(Carousel, 800, **arguments), Carousel)


def test_a_time_limit_that_is_terminal_ends_the_values():
    class Second(DelayedReward):
        time_limit = 1

    values = learned(Second, 400, timeout_is_terminal=True)
    np.testing.assert_allclose(values[0], 0.0, atol=0.02)


@pytest.mark.parametrize("arguments", [{}, {"target_value": "double", "clip_targets": True}])
def test_decisions_that_cost(arguments):
    assert_close(learned(PricedDelay, 500, decision_cost=PricedDelay.cost, **arguments), PricedDelay)


def test_decisions_that_cost_without_the_bootstrap():
    # As MSA-DQN, which learns nothing of holds that the end of the episode cuts short.
    values = learned(PricedDelay, 500, decision_cost=PricedDelay.cost, bootstrap=False)
    expected = PricedDelay.values(3)
    np.testing.assert_allclose(values[0, :, :2], expected[0, :, :2], atol=0.02)
    np.testing.assert_allclose(values[1, :, 0], expected[1, :, 0], atol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [{}, {"target_value": "double", "prioritized": False}])
def test_a_cost_makes_the_longest_good_hold_the_best(arguments):
    assert_close(learned(PricedPier, 700, k_max=4, decision_cost=PricedPier.cost, **arguments), PricedPier)
