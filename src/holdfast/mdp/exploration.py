"""How far random options get for each K_max: the numbers that help to choose K_max when the model is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.core.array_types import Floats
from holdfast.core.checks import check_choice, check_integer
from holdfast.core.errors import InputError
from holdfast.mdp.chains import ChainOperator
from holdfast.mdp.kemeny import entropies, kemeny_constant, row_entropy, stationary_distribution
from holdfast.mdp.kemeny_estimates import (
    EstimateWithError,
    estimate_kemeny,
    estimate_row_entropy,
    estimate_stationary_distribution,
)
from holdfast.mdp.kernels import Kernel
from holdfast.mdp.model import TabularMDP

__all__ = ["LARGEST_EXACT_CHAIN", "ExplorationCurve", "exploration_curves"]


LARGEST_EXACT_CHAIN = 1_000
"""Largest number of states for which ``method="auto"`` is exact."""

_ROUNDING = 1e-9
"""Relative difference up to which two constants count as equal."""


@dataclass(frozen=True, eq=False)
class ExplorationCurve:
    """How H steps of random options explore as K_max grows; every array has shape (n,).

    Attributes:
        H: Number of environment steps in one step of the chain.
        k_max: Largest persistences, in increasing order.
        kemeny: Kemeny's constant for each of them.
        kemeny_error: Its standard error; 0 if it is exact.
        kemeny_of_one: Kemeny's constant for K_max = 1, the baseline for the others.
        row_entropy: Mean entropy of the rows of P_H, in nats.
        row_entropy_error: Its standard error; 0 if it is exact.
        stationary_entropy: Entropy of the stationary distribution, in nats.
    """

    H: int
    k_max: NDArray[np.int64]
    kemeny: Floats
    kemeny_error: Floats
    kemeny_of_one: EstimateWithError
    row_entropy: Floats
    row_entropy_error: Floats
    stationary_entropy: Floats

    @property
    def normalised_kemeny(self) -> Floats:
        """Kemeny's constant divided by that for K_max = 1: below 1, holding moves around faster."""
        return np.asarray(self.kemeny / self.kemeny_of_one.value)

    @property
    def normalised_error(self) -> Floats:
        """Standard error of ``normalised_kemeny``, treating the two estimates as independent."""
        one = self.kemeny_of_one
        relative = np.hypot(self.kemeny_error / self.kemeny, one.standard_error / one.value)
        return np.where(self.k_max == 1, 0.0, self.normalised_kemeny * relative)

    @property
    def best(self) -> int:
        """Index in ``k_max`` of the smallest Kemeny constant; ties up to rounding go to the first."""
        return int(np.argmax(self.kemeny <= self.kemeny.min() * (1.0 + _ROUNDING)))

    @property
    def best_k_max(self) -> int:
        """The K_max with the smallest Kemeny constant."""
        return int(self.k_max[self.best])

    @property
    def is_exact(self) -> bool:
        """Whether no number was estimated."""
        return not self.kemeny_error.any() and self.kemeny_of_one.standard_error == 0.0


def exploration_curves(
    model: TabularMDP | Kernel,
    k_max: Iterable[int],
    H: Iterable[int] = (10, 20, 30),
    pi: ArrayLike | None = None,
    *,
    method: str = "auto",
    seed: int = 0,
) -> tuple[ExplorationCurve, ...]:
    """Kemeny's constant and the entropies of P_H over K_max, one curve per H; ω is uniform on 1..K_max.

    Args:
        model: A model or kernel that leads from every state to every other; ``holdfast.envs.exploration_kernel``
            makes one from an environment.
        k_max: Largest persistences.
        H: Numbers of steps.
        pi: π(a|s) as (S,A), or as (A,) if it is the same in every state; None means uniform.
        method: ``"exact"`` forms the matrix P_H; with S states that takes about 45 S² bytes, and time that grows
            with S² · H · min(H,K) for the matrix and S³ for the constant. ``"estimate"`` uses products with P_H
            and gives standard errors. ``"auto"`` is exact up to 1,000 states.
        seed: Seed of the estimates.
    """
    check_choice("method", method, ("auto", "exact", "estimate"))
    persistences = sorted({check_integer("k_max", value) for value in k_max})
    horizons = [check_integer("H", value) for value in H]
    if not persistences or not horizons:
        raise InputError("k_max and H must each have at least one number")
    return tuple(_curve(model, persistences, horizon, pi, method, seed) for horizon in horizons)


@dataclass(frozen=True)
class _Point:
    kemeny: EstimateWithError
    row_entropy: EstimateWithError
    stationary_entropy: float


def _curve(
    model: TabularMDP | Kernel, k_max: list[int], H: int, pi: ArrayLike | None, method: str, seed: int
) -> ExplorationCurve:
    points = {k: _point(ChainOperator(model, H, k, pi), method, seed) for k in sorted({1, *k_max})}
    asked = [points[k] for k in k_max]
    return ExplorationCurve(
        H=H,
        k_max=np.array(k_max, dtype=np.int64),
        kemeny=np.array([point.kemeny.value for point in asked]),
        kemeny_error=np.array([point.kemeny.standard_error for point in asked]),
        kemeny_of_one=points[1].kemeny,
        row_entropy=np.array([point.row_entropy.value for point in asked]),
        row_entropy_error=np.array([point.row_entropy.standard_error for point in asked]),
        stationary_entropy=np.array([point.stationary_entropy for point in asked]),
    )


def _point(chain: ChainOperator, method: str, seed: int) -> _Point:
    if chain.n_states == 1:
        raise InputError("the chain must have two states or more: from a single state there is nowhere to go")
    if method == "estimate" or (method == "auto" and chain.n_states > LARGEST_EXACT_CHAIN):
        return _Point(
            estimate_kemeny(chain, seed=seed),
            estimate_row_entropy(chain, seed=seed),
            float(entropies(estimate_stationary_distribution(chain))),
        )
    P_H = chain.matrix()
    return _Point(
        EstimateWithError(kemeny_constant(P_H, "first_passage"), 0.0),
        EstimateWithError(row_entropy(P_H), 0.0),
        float(entropies(stationary_distribution(P_H))),
    )
