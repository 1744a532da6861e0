from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from holdfast.envs import make_env
from holdfast.mdp import TabularMDP
from holdfast.tabular.simulator import ModelSteps, draw_outcome, first_state, flat_model
from tests.tabular.conftest import corridor, random_mdp


def test_a_deterministic_model_has_one_outcome_per_row() -> None:
    mdp = corridor(4)
    model = flat_model(mdp)
    assert model.is_deterministic
    np.testing.assert_array_equal(model.successors.reshape(4, 2), mdp.P)
    np.testing.assert_array_equal(model.rewards.reshape(4, 2), mdp.r)
    np.testing.assert_array_equal(model.offsets, np.arange(9))


def test_the_only_outcome_makes_no_draw() -> None:
    random = np.random.default_rng(0)
    before = random.bit_generator.state
    model = flat_model(corridor())
    assert first_state(model, random) == 0
    assert draw_outcome(model, 0, 1, random) == 1
    assert random.bit_generator.state == before


@pytest.mark.parametrize("sparse", [False, True])
def test_a_stochastic_model_keeps_probabilities_and_rewards_by_outcome(sparse: bool) -> None:
    dense = random_mdp()
    mdp = dense
    if sparse:
        P = [sp.csr_array(dense.P[:, a]) for a in range(3)]
        r = [sp.csr_array(dense.outcome_reward[:, a]) for a in range(3)]
        mdp = TabularMDP(P, r, 0.9, initial=dense.initial, terminal=dense.terminal)
    model = flat_model(mdp)
    assert not model.is_deterministic
    for state in range(7):
        for action in range(3):
            row = state * 3 + action
            own = slice(model.offsets[row], model.offsets[row + 1])
            chances = np.zeros(7)
            chances[model.successors[own]] = np.diff(model.cumulative[own], prepend=0.0)
            np.testing.assert_allclose(chances, dense.P[state, action], atol=1e-15)
            expected = dense.outcome_reward[state, action, model.successors[own]]
            np.testing.assert_allclose(model.rewards[own], expected)


def test_both_forms_of_a_model_are_laid_out_alike() -> None:
    dense = random_mdp(seed=3)
    stacked = TabularMDP(
        [sp.csr_array(dense.P[:, a]) for a in range(3)], dense.r, 0.9, dense.initial, dense.terminal
    )
    one, other = flat_model(stacked), flat_model(TabularMDP(dense.P, dense.r, 0.9, dense.initial, dense.terminal))
    for name in one._fields:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_outcomes_are_drawn_as_often_as_the_model_says() -> None:
    mdp = random_mdp(seed=1)
    model = flat_model(mdp)
    random = np.random.default_rng(0)
    n = 20_000
    for state, action in ((0, 0), (3, 2)):
        drawn = [model.successors[draw_outcome(model, state, action, random)] for _ in range(n)]
        np.testing.assert_allclose(np.bincount(drawn, minlength=7) / n, mdp.P[state, action], atol=0.015)
    starts = [first_state(model, random) for _ in range(n)]
    np.testing.assert_allclose(np.bincount(starts) / n, [0.5, 0.5], atol=0.015)


def test_a_draw_at_the_upper_end_takes_the_last_outcome() -> None:
    third = 1.0 / 3.0
    mdp = TabularMDP(np.full((3, 1, 3), third), np.zeros((3, 1)), 0.9, initial=0)
    model = flat_model(mdp)._replace(cumulative=np.tile([third, 2 * third, 1.0 - 1e-9], 3))

    class Last:
        def random(self) -> float:
            return float(np.nextafter(1.0, 0.0))

    number = getattr(draw_outcome, "py_func", draw_outcome)
    helper = number.__globals__["_draw"]
    plain = getattr(helper, "py_func", helper)
    assert plain(model.cumulative, 0, 2, Last()) == 2


def test_stepping_from_python_follows_the_model() -> None:
    steps = ModelSteps(flat_model(corridor(3)), np.random.default_rng(0), np.random.default_rng(1))
    assert steps.begin(0, "training") == 0
    assert steps.step(1) == (1, 0.0, False, False)
    assert steps.step(1) == (2, 1.0, True, False)


def test_a_model_must_say_where_to_start() -> None:
    mdp = TabularMDP(np.array([[0], [1]]), np.zeros((2, 1)), 0.9)
    with pytest.raises(ValueError, match="env must say where episodes start"):
        flat_model(mdp)
    assert len(flat_model(mdp, needs_start=False).initial_states) == 0
    mdp = TabularMDP(np.array([[0], [1]]), np.zeros((2, 1)), 0.9, initial=1, terminal=[1])
    with pytest.raises(ValueError, match="env must not start an episode in a terminal state"):
        flat_model(mdp)


def test_a_slippery_grid_is_a_sparse_model() -> None:
    model = flat_model(make_env("cliff", slip=0.3).unwrapped.tabular_mdp(0.9))
    assert len(model.successors) > len(model.offsets) - 1
    assert model.rewards.min() == -1.0
    assert model.rewards.max() == 1.0
