"""Exact results: tabular models, their k-persistent forms, the Bellman operators and their solutions."""

from holdfast.mdp.chains import ChainOperator, persistent_chain, reduced_distribution
from holdfast.mdp.decision_prices import CostInterval, OptionPath, cost_intervals, follow_options
from holdfast.mdp.exploration import ExplorationCurve, exploration_curves
from holdfast.mdp.iteration import FixedPoint, NoConvergenceError, fixed_point
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
from holdfast.mdp.option_model import OptionModel
from holdfast.mdp.paths import fewest_decisions
from holdfast.mdp.persistence import persistent_kernel, persistent_mdp, persistent_reward
from holdfast.mdp.solve import q_star
from holdfast.mdp.solve_options import k_values, q_star_options

__all__ = [
    "ChainOperator",
    "CostInterval",
    "EstimateWithError",
    "ExplorationCurve",
    "FixedPoint",
    "NoConvergenceError",
    "OptionModel",
    "OptionPath",
    "TabularMDP",
    "all_persistence",
    "bellman_optimality",
    "bootstrap",
    "cost_intervals",
    "estimate_kemeny",
    "estimate_row_entropy",
    "exploration_curves",
    "fewest_decisions",
    "fixed_point",
    "follow_options",
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
