"""What is known exactly: tabular models, their k-persistent forms, the Bellman operators and their solutions."""

from holdfast.mdp.model import TabularMDP
from holdfast.mdp.operators import (
    all_persistence,
    bellman_optimality,
    bootstrap,
    held_returns,
    option_expectation,
    option_optimality,
)
from holdfast.mdp.paths import fewest_decisions
from holdfast.mdp.persistence import persistent_kernel, persistent_mdp, persistent_reward
from holdfast.mdp.solve import FixedPoint, NoConvergenceError, fixed_point, k_values, q_star, q_star_options

__all__ = [
    "FixedPoint",
    "NoConvergenceError",
    "TabularMDP",
    "all_persistence",
    "bellman_optimality",
    "bootstrap",
    "fewest_decisions",
    "fixed_point",
    "held_returns",
    "k_values",
    "option_expectation",
    "option_optimality",
    "persistent_kernel",
    "persistent_mdp",
    "persistent_reward",
    "q_star",
    "q_star_options",
]
