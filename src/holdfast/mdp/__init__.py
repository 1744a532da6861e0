"""What is known exactly: tabular models, their k-persistent forms, the Bellman operators and their solutions."""

from holdfast.mdp.chains import ChainOperator, persistent_chain, reduced_distribution
from holdfast.mdp.exploration import ExplorationCurve, exploration_curves
from holdfast.mdp.kemeny import (
    kemeny_constant,
    mean_first_passage_times,
    row_entropy,
    stationary_distribution,
    stationary_entropy,
)
from holdfast.mdp.kemeny_estimates import EstimateWithError, estimate_kemeny, estimate_row_entropy
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
    "ChainOperator",
    "EstimateWithError",
    "ExplorationCurve",
    "FixedPoint",
    "NoConvergenceError",
    "TabularMDP",
    "all_persistence",
    "bellman_optimality",
    "bootstrap",
    "estimate_kemeny",
    "estimate_row_entropy",
    "exploration_curves",
    "fewest_decisions",
    "fixed_point",
    "held_returns",
    "k_values",
    "kemeny_constant",
    "mean_first_passage_times",
    "option_expectation",
    "option_optimality",
    "persistent_chain",
    "persistent_kernel",
    "persistent_mdp",
    "persistent_reward",
    "q_star",
    "q_star_options",
    "reduced_distribution",
    "row_entropy",
    "stationary_distribution",
    "stationary_entropy",
]
