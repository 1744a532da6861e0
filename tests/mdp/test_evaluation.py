"""The value of a policy: along paths, around circles, and the same as the linear equations say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from holdfast.mdp.evaluation import path_values, policy_values
from tests.mdp.random_mdps import ANY_GAMMA, RandomMDP, random_mdps


class TestPaths:
    def test_by_hand(self) -> None:
        # 0 → 1 → 2 → 2 with rewards 1, 2, 0 and γ = ½: 1 + ½·2, 2, 0.
        assert path_values(np.array([1, 2, 2]), np.array([1.0, 2.0, 0.0]), 0.5).tolist() == [2.0, 2.0, 0.0]

    def test_a_circle_by_hand(self) -> None:
        # 0 → 1 → 0 with rewards 1 and 0, γ = ½: 1 + ¼ + 1/16 + ... = 4/3, and half of it. 2 → 0 brings 3 first.
        values = path_values(np.array([1, 0, 0]), np.array([1.0, 0.0, 3.0]), 0.5)
        assert values == pytest.approx([4 / 3, 2 / 3, 3 + 2 / 3], rel=1e-15)

    def test_with_no_future(self) -> None:
        assert path_values(np.array([1, 0]), np.array([5.0, -7.0]), 0.0).tolist() == [5.0, -7.0]

    @pytest.mark.parametrize("gamma", [0.9, 0.999, 0.9999999, 1.0 - 2.0**-40])
    def test_for_ever_the_same(self, gamma: float) -> None:
        assert path_values(np.array([0]), np.array([1.0]), gamma)[0] == pytest.approx(1 / (1 - gamma), rel=1e-14)

    @pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 1000, 1024, 1025])
    def test_without_discount_steps_are_counted(self, n: int) -> None:
        # n states in a row, each one step further from the last one, which stays where it is.
        following = np.minimum(np.arange(n) + 1, n - 1)
        counted = path_values(following, (following != np.arange(n)).astype(np.float64), 1.0)
        assert np.array_equal(counted, np.arange(n)[::-1])

    def test_without_discount_a_circle_is_left_after_a_while(self) -> None:
        # Two states that change places: of at least two steps, each brings 1.
        assert path_values(np.array([1, 0]), np.ones(2), 1.0).tolist() == [2.0, 2.0]

    def test_small_values_are_right_too(self) -> None:
        # 6000 steps at γ = .9, the last one brings 1: down to .9^5998 = 3e-275, each a product of powers of .9.
        n = 6000
        following = np.minimum(np.arange(n) + 1, n - 1)
        values = path_values(following, (np.arange(n) == n - 2).astype(np.float64), 0.9)
        assert values[: n - 1] == pytest.approx(0.9 ** np.arange(n - 2, -1, -1.0), rel=1e-13)

    def test_the_arguments_are_left_alone(self) -> None:
        following, reward = np.array([1, 0]), np.array([1.0, 2.0])
        path_values(following, reward, 0.9)
        assert (following.tolist(), reward.tolist()) == ([1, 0], [1.0, 2.0])


@given(
    following=st.integers(1, 12).flatmap(lambda n: hnp.arrays(np.int64, n, elements=st.integers(0, n - 1))),
    gamma=st.one_of(st.sampled_from([0.0, 0.5, 0.99, 0.999999]), st.floats(0.0, 0.9999)),
    data=st.data(),
)
def test_paths_solve_the_linear_equations(following: np.ndarray, gamma: float, data: st.DataObject) -> None:
    n = len(following)
    reward = data.draw(hnp.arrays(np.float64, n, elements=st.integers(-8, 8)), label="reward")
    equations = np.linalg.solve(np.eye(n) - gamma * np.eye(n)[following], reward)
    scale = np.abs(reward).max() / (1.0 - gamma)
    # The equations amplify rounding by 2/(1−γ); the paths do not.
    assert np.abs(path_values(following, reward, gamma) - equations).max() <= 1e-14 * scale / (1.0 - gamma)


@given(random=random_mdps(gamma=ANY_GAMMA, max_states=6, deterministic=True), data=st.data())
def test_a_policy_has_the_same_value_in_every_form(random: RandomMDP, data: st.DataObject) -> None:
    S, A = random.r.shape
    policy = data.draw(hnp.arrays(np.int64, S, elements=st.integers(0, A - 1)), label="policy")
    P, r, gamma = random.plain()
    expected = np.linalg.solve(np.eye(S) - gamma * P[np.arange(S), policy], r[np.arange(S), policy])
    allowed = 1e-14 * (1.0 + np.abs(expected).max()) / (1.0 - gamma)
    for form in random.forms:
        values = policy_values(random.tabular(form), policy)
        assert np.abs(values - expected).max() <= allowed
        assert np.all(values[random.terminal] == 0.0)
