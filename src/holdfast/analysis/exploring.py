"""How long should actions be held in an environment? The study that suits it, and the advice that follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import gymnasium

from holdfast.analysis.advisor import Advice, advise_from_chain, advise_from_visits
from holdfast.analysis.fixed_skip import ExactSkip, exact_skips
from holdfast.analysis.results import VisitationStudy
from holdfast.analysis.visitation import StudyProgress, study_visitation
from holdfast.core.checks import check_choice, check_discount, check_integer
from holdfast.envs import GridWorld
from holdfast.envs.exploration_chain import HOLES, exploration_kernel
from holdfast.mdp import NoConvergenceError, TabularMDP
from holdfast.mdp.exploration import ExplorationCurve, exploration_curves

__all__ = ["STUDIES", "Exploration", "explore"]

STUDIES = ("auto", "chain", "visits")

DEFAULT_STEPS = 50_000
"""Played for each K_max, unless told."""

LARGEST_CHAIN = 20_000
"""States up to which ``"auto"`` looks at the chain; it is estimated beyond 1,000."""

LARGEST_SKIPS = 100_000
"""States up to which fixed skips are solved."""


@dataclass(frozen=True, eq=False)
class Exploration:
    """What was found, and what follows from it.

    Attributes:
        env_name: Of what.
        advice: A longest hold, and why.
        chain: Kemeny's constant and entropies over K_max; None where episodes were played instead.
        holes: What holes were taken for in the chain; None without one.
        visits: What random options met; None where the chain was looked at instead.
        skips: The exact loss of holding every action for the same number of steps; None without a model.
        gamma: The discount of ``skips``.
        notes: Sentences about what could not be looked at.
    """

    env_name: str
    advice: Advice
    chain: ExplorationCurve | None
    holes: str | None
    visits: VisitationStudy | None
    skips: list[ExactSkip] | None
    gamma: float
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Everything but the visit counts, of plain types that JSON can hold."""
        return {
            "environment": self.env_name,
            "advice": asdict(self.advice),
            "chain": None if self.chain is None else {"holes": self.holes, **_chain_document(self.chain)},
            "visits": None if self.visits is None else self.visits.document(),
            "fixed_skips": None
            if self.skips is None
            else {"gamma": self.gamma, "results": [asdict(skip) for skip in self.skips]},
            "notes": list(self.notes),
        }


def explore(
    env: gymnasium.Env[Any, Any],
    name: str,
    k_values: Sequence[int],
    *,
    study: str = "auto",
    steps: int | None = None,
    fixed: bool = False,
    axes: tuple[int, int] | str | None = None,
    horizon: int = 30,
    holes: str | None = None,
    gamma: float = 0.99,
    seed: int = 0,
    progress: Callable[[StudyProgress], None] | None = None,
) -> Exploration:
    """Look at random options in ``env`` and advise a longest hold.

    Args:
        env: Where.
        name: What to call it.
        k_values: The K_max to compare; the smallest is what the others are compared with.
        study: ``"chain"``: exactly, by the transition table; ``"visits"``: by playing episodes; ``"auto"``: the
            chain where there is a table of at most 20,000 states.
        steps: Visits: steps to play for each K_max; 50,000 if None.
        fixed: Visits: also play options that are always K_max steps long.
        axes: Visits: two numbers of the observations, see ``study_visitation``.
        horizon: Chain: H, the steps that are one step of it.
        holes: Chain: what a hole is, see ``exploration_kernel``; None for ``"wall"`` on a grid and ``"restart"``
            elsewhere.
        gamma: Discount of the fixed skips.
        seed: Of everything that is drawn.
        progress: Told now and then how far the played episodes are.
    """
    check_choice("study", study, STUDIES)
    k_values = sorted({check_integer("k_max", k) for k in k_values})
    check_integer("horizon", horizon)
    gamma, seed = check_discount(gamma), check_integer("seed", seed, 0)
    if holes is not None:
        check_choice("holes", holes, HOLES)
    steps = DEFAULT_STEPS if steps is None else check_integer("budget", steps)
    notes: list[str] = []
    model = _model(env, gamma, must_be=study == "chain")
    curve = None
    if study != "visits" and model is not None:
        holes = holes or ("wall" if isinstance(env.unwrapped, GridWorld) else "restart")
        curve = _chain(env, model, k_values, horizon, holes, seed, study, notes)
    visits = None
    if curve is None:
        modes = ("dynamic", "fixed") if fixed else ("dynamic",)
        visits = study_visitation(env, k_values, modes=modes, steps=steps, seed=seed, axes=axes, progress=progress)
        notes += visits.notes
        advice = advise_from_visits(visits)
    else:
        advice = advise_from_chain(curve)
    return Exploration(
        env_name=name,
        advice=advice,
        chain=curve,
        holes=None if curve is None else holes,
        visits=visits,
        skips=_skips(model, k_values, notes),
        gamma=gamma,
        notes=tuple(notes),
    )


def _model(env: gymnasium.Env[Any, Any], gamma: float, must_be: bool) -> TabularMDP | None:
    try:
        return TabularMDP.from_gymnasium(env, gamma)
    except (TypeError, ValueError) as error:
        if must_be:
            raise ValueError(f"study must be 'visits' or 'auto' without a transition table: {error}") from None
        return None


def _chain(
    env: gymnasium.Env[Any, Any],
    model: TabularMDP,
    k_values: Sequence[int],
    horizon: int,
    holes: str,
    seed: int,
    study: str,
    notes: list[str],
) -> ExplorationCurve | None:
    if study == "auto" and model.n_states > LARGEST_CHAIN:
        notes.append(
            f"Episodes were played, for {model.n_states} states are many for a chain: study='chain' estimates it "
            "all the same."
        )
        return None
    try:
        kernel = exploration_kernel(env, holes).kernel
        (curve,) = exploration_curves(kernel, k_values, H=(horizon,), seed=seed)
    except ValueError as error:
        if study == "chain":
            raise
        notes.append(f"Episodes were played instead of looking at the chain: {error}.")
        return None
    return curve


def _skips(model: TabularMDP | None, k_values: Sequence[int], notes: list[str]) -> list[ExactSkip] | None:
    if model is None or model.initial is None:
        return None
    if model.n_states > LARGEST_SKIPS:
        notes.append(
            f"Fixed frame skips were not solved, for {model.n_states} states are too many for all of them."
        )
        return None
    try:
        return exact_skips(model, k_values)
    except NoConvergenceError:
        notes.append("Fixed frame skips have no values, for without discount the best return is infinite.")
        return None


def _chain_document(curve: ExplorationCurve) -> dict[str, Any]:
    return {
        "horizon": curve.H,
        "is_exact": curve.is_exact,
        "k_max": curve.k_max.tolist(),
        "kemeny": curve.kemeny.tolist(),
        "kemeny_error": curve.kemeny_error.tolist(),
        "normalised_kemeny": curve.normalised_kemeny.tolist(),
        "row_entropy": curve.row_entropy.tolist(),
        "row_entropy_error": curve.row_entropy_error.tolist(),
        "stationary_entropy": curve.stationary_entropy.tolist(),
        "best_k_max": curve.best_k_max,
    }
