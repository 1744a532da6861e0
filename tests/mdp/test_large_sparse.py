"""Sparse models too large for linear systems: policies swept, from where the likeliest outcomes lead."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.envs import GridWorld
from holdfast.mdp import NoConvergenceError, TabularMDP, q_star, solve
from holdfast.mdp.kernels import SparseKernel
from holdfast.mdp.likeliest_outcomes import likeliest_outcomes
from tests.mdp.literal import best_values
from tests.mdp.random_mdps import RandomMDP, random_mdps

LAKE = "S...#...\n..#.....\n.....#..\n.#....#.\n...#...G\n"


@pytest.fixture
def _no_linear_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(solve.LARGEST_LINEAR_SYSTEM, SparseKernel, 0)


class TestLikeliestOutcomes:
    def test_by_hand(self) -> None:
        # From 0 mostly to 1; from 1 to 0 and 2 alike, of which 0 is the first; from 2 nowhere else.
        P = [sp.csr_array([[0.2, 0.5, 0.3], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])]
        model = likeliest_outcomes(TabularMDP(P, [[1.0], [2.0], [3.0]], 0.5, terminal=[2]))
        assert model.P.tolist() == [[1], [0], [2]]
        assert model.r.tolist() == [[1.0], [2.0], [0.0]]
        assert (model.gamma, model.terminal.tolist()) == (0.5, [False, False, True])

    def test_rewards_are_those_of_the_outcome_where_they_are_known(self) -> None:
        P = [sp.csr_array([[0.25, 0.75], [0.0, 1.0]])]
        r = [sp.csr_array([[100.0, 4.0], [0.0, 8.0]])]
        assert likeliest_outcomes(TabularMDP(P, r, 0.5)).r.tolist() == [[4.0], [8.0]]

    def test_a_slippery_grid_without_its_slips(self) -> None:
        slippery, certain = (GridWorld(LAKE, slip=slip).tabular_mdp(0.9) for slip in (0.3, 0.0))
        model = likeliest_outcomes(slippery)
        assert np.array_equal(model.P, certain.P)
        assert np.array_equal(model.r, certain.r)


@pytest.mark.usefixtures("_no_linear_systems")
class TestSweptPolicies:
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        random=random_mdps(gamma=st.sampled_from([0.0, 0.5, 0.9, 0.98]), max_actions=2),
        tolerance=st.sampled_from([1.0, 1e-3, 1e-10]),
    )
    def test_within_the_tolerance_of_the_best_of_all_policies(self, random: RandomMDP, tolerance: float) -> None:
        truth = best_values(*random.plain(), 1)[:, :, 0]
        found = q_star(random.tabular("sparse"), tolerance)
        assert np.abs(found - truth).max() <= tolerance + 1e-12 * (1.0 + np.abs(truth).max())

    @pytest.mark.parametrize("slip", [0.1, 0.7])
    @pytest.mark.parametrize("step_reward", [0.0, -0.1])
    def test_a_slippery_grid(self, slip: float, step_reward: float, monkeypatch: pytest.MonkeyPatch) -> None:
        mdp = GridWorld(LAKE, slip=slip, step_reward=step_reward).tabular_mdp(0.99)
        swept = q_star(mdp, 1e-9)
        monkeypatch.setitem(solve.LARGEST_LINEAR_SYSTEM, SparseKernel, 1000)
        assert np.abs(swept - q_star(mdp)).max() <= 1e-9

    def test_no_convergence_in_time(self) -> None:
        # Likeliest is to stay and be paid 1 for ever, worth 1000: the true 1/(1 − .999·.6) = 2.5 is far from that.
        P = [sp.csr_array([[0.6, 0.4], [0.0, 1.0]])]
        mdp = TabularMDP(P, [[1.0], [0.0]], 0.999, terminal=[1])
        sentence = r"^no optimal policy within 1 improvements: the last step was .*, the tolerance is 1e-10$"
        with pytest.raises(NoConvergenceError, match=sentence):
            q_star(mdp, max_iterations=1)

    def test_a_tolerance_that_is_refused(self) -> None:
        mdp = GridWorld(LAKE, slip=0.1).tabular_mdp(0.99)
        with pytest.raises(ValueError, match=r"^tolerance must be a finite number above 0, not 0\.0$"):
            q_star(mdp, 0.0)
