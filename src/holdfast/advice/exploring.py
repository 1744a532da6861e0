"""How long should actions be held in an environment? The study that suits it, and the resulting advice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import gymnasium

from holdfast.advice.advisor import Advice, advise_from_chain, advise_from_visits
from holdfast.advice.fixed_skips.skip_verdict import skip_verdict
from holdfast.advice.fixed_skips.skips import ExactSkip, exact_skips
from holdfast.advice.visitation.results import VisitationStudy
from holdfast.advice.visitation.study import StudyProgress, study_visitation
from holdfast.core.checks import check_choice, check_integer, check_real
from holdfast.core.errors import InputError
from holdfast.envs import GridWorld
from holdfast.envs.choices import MOST_COMBINATIONS, can_be_learned
from holdfast.envs.exploration_chain import HOLES, exploration_kernel
from holdfast.mdp import NoConvergenceError, TabularMDP
from holdfast.mdp.exploration import ExplorationCurve, exploration_curves

__all__ = ["STUDIES", "EnvironmentAdvice", "check_numbers", "explore"]

STUDIES = ("auto", "chain", "visits")

ADVISING_STEPS = 50_000
"""Default number of steps to play for each K_max."""

LARGEST_BUDGET = 1_000_000_000
"""Largest number of steps to play for each K_max."""

HORIZON, GAMMA = 30, 0.99
"""Defaults: the chain's horizon, and the discount factor of the fixed skips."""

_ABOUT_PLAY = "must be given with study='visits', which plays episodes"

LARGEST_CHAIN = 20_000
"""Largest number of states for which ``"auto"`` uses the chain; beyond 1,000 states it is estimated."""

LARGEST_SKIPS = 100_000
"""Largest number of states for which fixed skips are solved."""


@dataclass(frozen=True, eq=False)
class EnvironmentAdvice:
    """What was found, and the advice that follows from it.

    Attributes:
        env_name: Environment's name.
        advice: A longest hold, and the reason for it.
        chain: Kemeny's constant and entropies over K_max; None if episodes were played instead.
        holes: How the chain treats holes; None without a chain.
        visits: What random options met; None if the chain was studied instead.
        skips: The exact loss of holding every action for the same number of steps; None without a model.
        gamma: Discount factor of ``skips``.
        notes: Sentences about what could not be studied.
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
        """Everything but the visit counts, as plain types that JSON can hold."""
        return {
            "environment": self.env_name,
            "advice": asdict(self.advice),
            "chain": None if self.chain is None else {"holes": self.holes, **_chain_document(self.chain)},
            "visits": None if self.visits is None else self.visits.document(),
            "fixed_skips": None
            if self.skips is None
            else {
                "gamma": self.gamma,
                "results": [asdict(skip) for skip in self.skips],
                "verdict": asdict(skip_verdict(self.skips)),
            },
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
    horizon: int | None = None,
    holes: str | None = None,
    gamma: float | None = None,
    seed: int = 0,
    progress: Callable[[StudyProgress], None] | None = None,
) -> EnvironmentAdvice:
    """Study random options in ``env`` and advise a longest hold.

    An argument that would have no effect is rejected before anything is played.

    Args:
        env: The environment.
        name: Its name in the results.
        k_values: The K_max to compare; all are compared with the smallest.
        study: ``"chain"`` computes from the transition table; ``"visits"`` plays episodes; ``"auto"`` uses the
            chain if there is a table of at most 20,000 states.
        steps: Visits: number of steps to play for each K_max (default: 50,000).
        fixed: Visits: also play options that always last K_max steps.
        axes: Visits: two components of the observations, see ``study_visitation``.
        horizon: Chain: H, the number of environment steps in one step of the chain (default: 30).
        holes: Chain: what a hole is, see ``exploration_kernel`` (default: ``"wall"`` on a grid, ``"restart"``
            elsewhere).
        gamma: Discount factor of the fixed skips, which need a transition table (default: 0.99).
        seed: Random seed.
        progress: Called now and then with the progress of the played episodes.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, or has no effect here.
    """
    check_choice("study", study, STUDIES)
    k_values = sorted({check_integer("k_values", k) for k in k_values})
    check_numbers(steps, horizon, gamma, seed)
    if holes is not None:
        check_choice("holes", holes, HOLES)
    of_play = {"steps": steps is not None, "fixed": fixed, "axes": axes is not None}
    of_chain = {"horizon": horizon is not None, "holes": holes is not None}
    notes: list[str] = []
    if study == "visits":
        _refuse(of_chain, "is about the chain, but study='visits' plays episodes")
    if study == "chain":
        _refuse(of_play, _ABOUT_PLAY)
    model = _model(env, GAMMA if gamma is None else gamma, must_be=study == "chain")
    if model is None:
        _refuse(of_chain, "is about the chain, but there is no transition table here")
        _refuse({"gamma": gamma is not None}, "is about exact frame skips, but there is no transition table here")
    curve = None
    if study != "visits" and model is not None:
        holes = holes or ("wall" if isinstance(env.unwrapped, GridWorld) else "restart")
        asked = _Asked(study, of_play, of_chain)
        curve = _chain(env, model, k_values, horizon or HORIZON, holes, seed, asked, notes)
    visits = None
    if curve is None:
        modes = ("dynamic", "fixed") if fixed else ("dynamic",)
        visits = study_visitation(
            env, k_values, modes=modes, steps=steps or ADVISING_STEPS, seed=seed, axes=axes, progress=progress
        )
        notes += visits.notes
        advice = advise_from_visits(visits)
    else:
        advice = advise_from_chain(curve)
    if not can_be_learned(env.action_space):
        notes.append(
            f"holdfast's agents learn continuous actions and choices among up to {MOST_COMBINATIONS} "
            f"combinations, but these are {env.action_space}: the advice is about exploration only."
        )
    return EnvironmentAdvice(
        env_name=name,
        advice=advice,
        chain=curve,
        holes=None if curve is None else holes,
        visits=visits,
        skips=_skips(model, k_values, notes),
        gamma=GAMMA if gamma is None else gamma,
        notes=tuple(notes),
    )


def check_numbers(steps: int | None, horizon: int | None, gamma: float | None, seed: int) -> None:
    """Check the numbers; None means that an argument was not given.

    Raises:
        TypeError: An argument is not a number.
        ValueError: An argument is out of range.
    """
    if steps is not None and check_integer("steps", steps) > LARGEST_BUDGET:
        raise InputError(f"steps must be at most {LARGEST_BUDGET:,}, not {steps:,}", "steps")
    if horizon is not None:
        check_integer("horizon", horizon)
    if gamma is not None:
        check_real("gamma", gamma, 0.0, 1.0)
    check_integer("seed", seed, at_least=0)


@dataclass(frozen=True)
class _Asked:
    """What the user asked for.

    Attributes:
        study: The requested study.
        of_play: Whether each argument about played episodes was given.
        of_chain: Whether each argument about the chain was given.
    """

    study: str
    of_play: Mapping[str, bool]
    of_chain: Mapping[str, bool]


def _refuse(arguments: Mapping[str, bool], why: str) -> None:
    """Raise an InputError that names the first argument that was given."""
    for name, is_given in arguments.items():
        if is_given:
            raise InputError(f"{name} {why}", name, "study")


def _model(env: gymnasium.Env[Any, Any], gamma: float, must_be: bool) -> TabularMDP | None:
    try:
        return TabularMDP.from_gymnasium(env, gamma)
    except InputError as error:
        if must_be:
            raise InputError(
                f"study must be 'visits' or 'auto' without a transition table: {error}", "study"
            ) from None
        return None


def _chain(
    env: gymnasium.Env[Any, Any],
    model: TabularMDP,
    k_values: Sequence[int],
    horizon: int,
    holes: str,
    seed: int,
    asked: _Asked,
    notes: list[str],
) -> ExplorationCurve | None:
    if asked.study == "auto" and model.n_states > LARGEST_CHAIN:
        many = f"{model.n_states} states are many for a chain"
        _refuse(asked.of_chain, f"is about the chain, and {many}: give study='chain' with it")
        notes.append(f"Episodes were played because {many}; the study 'chain' estimates it anyway.")
        return None
    try:
        kernel, states = exploration_kernel(env, holes)
        # A single state is not a chain: episodes are played then, and arguments about them take effect.
        is_refused = len(states) > 1 and any(asked.of_play.values())
        curves = () if is_refused else exploration_curves(kernel, k_values, H=(horizon,), seed=seed)
    except InputError as error:
        if asked.study == "chain" or any(asked.of_chain.values()):
            raise
        notes.append(f"Episodes were played because the chain could not be studied: {error}.")
        return None
    if is_refused:
        _refuse(asked.of_play, _ABOUT_PLAY)
    return curves[0]


def _skips(model: TabularMDP | None, k_values: Sequence[int], notes: list[str]) -> list[ExactSkip] | None:
    if model is None or model.initial is None:
        return None
    if model.n_states > LARGEST_SKIPS:
        notes.append(f"Fixed frame skips were not solved: {model.n_states} states are too many to solve them all.")
        return None
    try:
        return exact_skips(model, k_values)
    except NoConvergenceError:
        notes.append("Fixed frame skips have no values: without a discount the best return is infinite.")
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
