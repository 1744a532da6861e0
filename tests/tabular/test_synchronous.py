from __future__ import annotations

import numpy as np
import pytest

from holdfast.envs import make_env
from holdfast.mdp import TabularMDP, q_star, q_star_options
from holdfast.tabular import learn_synchronously
from tests.tabular.conftest import corridor, random_mdp


@pytest.fixture(scope="module")
def grid() -> TabularMDP:
    mdp = make_env("sync-grid").unwrapped.tabular_mdp(0.99)
    assert isinstance(mdp, TabularMDP)
    return mdp


@pytest.mark.parametrize("rule", ["q", "combined", "all"])
def test_it_converges_to_the_exact_values(grid: TabularMDP, rule: str) -> None:
    result = learn_synchronously(grid, k_max=4, rule=rule, alpha=0.5, iterations=200)
    truth = q_star(grid)[:, :, None] if rule == "q" else q_star_options(grid, 4)
    np.testing.assert_allclose(result.q[0], truth, atol=1e-8)
    assert result.errors.shape == (1, 201)
    assert result.errors_by_k.shape == (1, 201, 1 if rule == "q" else 4)
    np.testing.assert_array_equal(result.errors, result.errors_by_k.max(axis=2))


def test_the_errors_fall_as_the_paper_says(grid: TabularMDP) -> None:
    seeds = range(20)
    q = learn_synchronously(grid, rule="q", iterations=150, seeds=seeds).errors.mean(axis=0)
    perq = learn_synchronously(grid, iterations=150, seeds=seeds)
    both = learn_synchronously(grid, rule="all", iterations=150, seeds=seeds).errors.mean(axis=0)
    by_k = perq.errors_by_k.mean(axis=0)
    assert (by_k[100] < q[100]).all()
    assert by_k[100].argmin() == 5
    assert by_k[100].argmax() == 0
    assert both[100] < perq.errors.mean(axis=0)[100] < q[100]


def test_one_iteration_by_hand() -> None:
    # Corridor of 3, all values 4 but the terminal state's: right from 1 gives 1, right from 0 leads to 1.
    mdp = corridor(3)
    values = {"k_max": 2, "alpha": 1.0, "iterations": 1, "initial_value": 4.0, "initial_std": 0.0}
    combined = learn_synchronously(mdp, rule="combined", **values).q[0]
    np.testing.assert_array_equal(combined[1, 1], [1.0, 1.0])
    np.testing.assert_array_equal(combined[0, 1], [0.5 * 4.0, 0.5 * 1.0])
    np.testing.assert_array_equal(combined[0, 0], [0.5 * 4.0, 0.25 * 4.0])
    everything = learn_synchronously(mdp, rule="all", **values).q[0]
    # k = 2 is updated last by its first step: 0.5 Q(1,right,1) with the old value 4.
    np.testing.assert_array_equal(everything[0, 1], [0.5 * 4.0, 0.5 * 4.0])
    q = learn_synchronously(mdp, rule="q", **values).q[0]
    np.testing.assert_array_equal(q[:, :, 0], [[2.0, 2.0], [2.0, 1.0], [0.0, 0.0]])


def test_seeds_are_runs_of_their_own(grid: TabularMDP) -> None:
    together = learn_synchronously(grid, iterations=5, seeds=(3, 4))
    alone = learn_synchronously(grid, iterations=5, seeds=(4,))
    np.testing.assert_array_equal(together.errors[1], alone.errors[0])


def test_where_chance_rules_samples_are_drawn() -> None:
    mdp = random_mdp()
    result = learn_synchronously(mdp, k_max=3, alpha=0.02, iterations=2500, seeds=(0, 1))
    assert not np.array_equal(result.q[0], result.q[1])
    assert result.errors[:, -1].max() < 0.5 * result.errors[:, 0].min()
    truth = q_star_options(mdp, 3)
    assert np.abs(result.q.mean(axis=0) - truth).mean() < 0.15


def test_a_way_that_comes_back_draws_anew() -> None:
    # One live state, left with probability ½ and reward 1: V = ½ + ½γV, for every k alike.
    P = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
    r = np.array([[[0.0, 1.0]], [[0.0, 0.0]]])
    mdp = TabularMDP(P, r, 0.9, initial=0, terminal=[1])
    truth = 0.5 / (1.0 - 0.45)
    np.testing.assert_allclose(q_star_options(mdp, 4)[0, 0], truth)
    for rule in ("combined", "all"):
        result = learn_synchronously(
            mdp,
            k_max=4,
            rule=rule,
            alpha=0.003,
            iterations=1000,
            seeds=range(5),
            initial_value=0.9,
            initial_std=0.0,
        )
        np.testing.assert_allclose(result.q[:, 0, 0].mean(axis=0), truth, atol=0.04)


def test_bad_input_gets_one_sentence(grid: TabularMDP) -> None:
    with pytest.raises(ValueError, match="rule must be one of 'q', 'combined', 'all', not 'sarsa'"):
        learn_synchronously(grid, rule="sarsa")
    with pytest.raises(ValueError, match="iterations must be a whole number of at least 1, not 0"):
        learn_synchronously(grid, iterations=0)
    with pytest.raises(ValueError, match="k_max must be a whole number of at least 1, not 0"):
        learn_synchronously(grid, k_max=0)
