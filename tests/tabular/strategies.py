"""What hypothesis draws for the updates: short histories in few states, so that states repeat."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from holdfast.core import PartialHistory

Case = tuple[int, int, int, PartialHistory]
"""Numbers of states and actions, k_max, and a history that fits."""


@st.composite
def histories(draw: Any) -> Case:
    """A case with κ in 1..k_max."""
    n_states, n_actions, k_max = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 6))
    kappa = draw(st.integers(1, k_max))
    states = draw(st.lists(st.integers(0, n_states - 1), min_size=kappa + 1, max_size=kappa + 1))
    rewards = draw(st.lists(st.floats(-10, 10, width=32), min_size=kappa, max_size=kappa))
    action = draw(st.integers(0, n_actions - 1))
    history = PartialHistory(np.array(states), action, np.array(rewards), draw(st.booleans()))
    return n_states, n_actions, k_max, history
