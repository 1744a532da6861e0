from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from holdfast.envs import GridWorld
from holdfast.envs.maps import CLIFF
from holdfast.mdp import TabularMDP


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
