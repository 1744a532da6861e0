"""What hypothesis draws for the updates: short histories in few states, so that states repeat."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from holdfast.core import PartialHistory
from tests.tabular.literal import Setting


class Case(NamedTuple):
    """A learner's setting, its number of states and its seed, and a history that fits."""

    by: Setting
    n_states: int
    seed: int
    history: PartialHistory

    def learner(self, kind: Any, **arguments: Any) -> Any:
        """A learner of this ``kind`` with random values."""
        learner = kind(self.by.k_max, alpha=self.by.alpha, gamma=self.by.gamma, initial_std=1.0, **arguments)
        learner.reset(self.n_states, self.by.n_actions, self.seed)
        return learner


@st.composite
def cases(draw: Any) -> Case:
    """A case with κ in 1..k_max."""
    n_states, n_actions, k_max = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 6))
    kappa = draw(st.integers(1, k_max))
    states = draw(st.lists(st.integers(0, n_states - 1), min_size=kappa + 1, max_size=kappa + 1))
    rewards = draw(st.lists(st.floats(-10, 10, width=32), min_size=kappa, max_size=kappa))
    action = draw(st.integers(0, n_actions - 1))
    history = PartialHistory(np.array(states), action, np.array(rewards), draw(st.booleans()))
    alpha, gamma = draw(st.sampled_from([0.1, 0.5, 1.0])), draw(st.sampled_from([0.0, 0.9, 1.0]))
    by = Setting(alpha, gamma, n_actions, k_max, draw(st.booleans()))
    return Case(by, n_states, draw(st.integers(0, 99)), history)
