from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.core import PartialHistory
from holdfast.envs import GridWorld
from holdfast.envs.maps import CLIFF
from holdfast.mdp import TabularMDP
from holdfast.tabular import PerQLearning


def random_mdp(seed: int = 0, n_states: int = 7, n_actions: int = 3) -> TabularMDP:
    """A random stochastic model with rewards by next state and one terminal state."""
    random = np.random.default_rng(seed)
    P = random.dirichlet(np.full(n_states, 0.4), size=(n_states, n_actions))
    P[P < 0.05] = 0.0
    P /= P.sum(axis=2, keepdims=True)
    r = random.normal(size=(n_states, n_actions, n_states)).round(2)
    return TabularMDP(P, r, 0.9, initial=np.r_[0.5, 0.5, np.zeros(n_states - 2)], terminal=[n_states - 1])


def corridor(length: int = 6) -> TabularMDP:
    """States in a row, actions left and right, +1 for reaching the last one, which is terminal."""
    cells = np.arange(length)
    P = np.stack([np.maximum(cells - 1, 0), np.minimum(cells + 1, length - 1)], axis=1)
    r = np.zeros((length, 2))
    r[length - 2, 1] = 1.0
    return TabularMDP(P, r, 0.5, initial=0, terminal=[length - 1])


@pytest.fixture
def cliff() -> TabularMDP:
    return GridWorld(CLIFF).tabular_mdp(0.99)


def same_episodes(one: Any, other: Any) -> None:
    """Assert that two logs, or results, hold the very same numbers."""
    for name in ("training_returns", "steps", "decisions", "greedy_returns", "greedy_steps", "greedy_decisions"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def after_two_steps(learner: PerQLearning) -> NDArray[np.float64]:
    """The table after one update: states 0, 1, 2 in a row, rewards 4 and 8, and values in state 2 alone."""
    learner.reset(n_states=3, n_actions=2)
    learner.q[2, 0] = [8.0, 4.0, 2.0]
    learner.q[2, 1, 0] = 16.0
    learner.update(PartialHistory(np.array([0, 1, 2]), 0, np.array([4.0, 8.0])))
    return learner.q
