"""A policy to look at: what is loaded, where it plays, and how it does with other settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from holdfast.core.errors import InputError
from holdfast.core.saved import take, take_integer, take_mapping
from holdfast.envs import NamedFailures, is_code, make_env
from holdfast.runs.evaluation import LONGEST_EPISODE, Actor, Evaluation, evaluate
from holdfast.runs.policy_files import actor_of, read_policy
from holdfast.runs.statistics import mean_interval

__all__ = ["Shown", "SweepPoint", "open_policy", "sweep_tolerance", "sweep_values"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Shown:
    """A policy and the environment it was trained in.

    Attributes:
        actor: Who decides.
        environment: Name of the environment, as ``make_env`` takes it.
        env_kwargs: Its arguments.
        label: What it is called in headings.
        algo: Name of the algorithm.
        step: Step of the training that the policy is from.
        longest: Steps after which the training cut an episode.
    """

    actor: Actor
    environment: str
    env_kwargs: dict[str, Any]
    label: str
    algo: str
    step: int
    longest: int = LONGEST_EPISODE

    def make_env(self, **kwargs: Any) -> gymnasium.Env[Any, Any]:
        """The environment, with further arguments.

        Raises:
            ValueError: The policy cannot play there.
        """
        env = NamedFailures(make_env(self.environment, **{**self.env_kwargs, **kwargs}))
        if not self.actor.fits(env.observation_space, env.action_space):
            env.close()
            raise InputError(
                "environment must be like the one of the training: the policy was trained for other observations "
                f"or actions than those of {self.label}",
                "environment",
            )
        return env


def open_policy(
    path: str | os.PathLike[str], environment: str | None = None, env_kwargs: Mapping[str, Any] | None = None
) -> Shown:
    """The policy of a run, or of a folder that holds one.

    Args:
        path: The folder.
        environment: Another environment than the one that it was trained in; code must be named here.
        env_kwargs: Arguments of it that are not those of the training.

    Raises:
        ValueError: There is none, it is damaged, or its environment is code that nobody has named.
    """
    state = read_policy(Path(path))
    actor = actor_of(state)
    about = take_mapping(state, "about")
    named, kwargs, label, step = (take(about, name) for name in ("environment", "env_kwargs", "label", "step"))
    longest = take_integer(about, "longest_episode", 1)
    if not (isinstance(named, str) and isinstance(kwargs, dict) and isinstance(label, str) and type(step) is int):
        raise InputError(f"{path} is damaged: it must say where the policy was trained")
    if environment is None and is_code(named):
        raise InputError(
            f"environment must be given to run {named}: it is code, and files do not choose the code that is run",
            "environment",
        )
    if environment is not None and environment != named:
        named, kwargs, label = environment, {}, environment
    return Shown(
        actor, named, {**kwargs, **(env_kwargs or {})}, label, str(take(state, "algorithm")), step, longest
    )


@dataclass(frozen=True)
class SweepPoint:
    """What one tolerance comes to.

    Attributes:
        tolerance: In value, discounted as the agent discounts.
        mean_return: Undiscounted.
        low: Lower end of its 95 % interval.
        high: Upper end.
        decisions: Mean number per episode.
        lost: How much lower the mean return is than with the first tolerance.
        lost_high: Upper end of the 95 % interval of that, episode by episode; NaN with one episode.
    """

    tolerance: float
    mean_return: float
    low: float
    high: float
    decisions: float
    lost: float = 0.0
    lost_high: float = 0.0


def sweep_values(
    actor: Actor, env: gymnasium.Env[Any, Any], seed: int, longest: int = LONGEST_EPISODE, n: int = 12
) -> list[float]:
    """Tolerances worth trying: none, and ``n`` more up to where every option is within the tolerance.

    They are quantiles of what holding the best action longer gives up, over the decisions of one episode.
    """
    losses: list[Floats] = []

    class Watched:
        """Notes the values it decides by."""

        def decide(self, observation: Any) -> Any:
            decision = actor.decide(observation)
            values = np.asarray(decision.values, dtype=np.float64)
            best = int(np.argmax(values.max(axis=1)))
            losses.append(values.max() - values[best])
            return decision

        def interrupts(self, observation: Any, action: int, left: int) -> bool:
            return actor.interrupts(observation, action, left)

    evaluate(Watched(), env, [seed], longest)
    known = np.concatenate(losses)
    # What is next to nothing differs from nothing by chance.
    known = known[known > 1e-4 * known.max()] if known.max() > 0.0 else known[:0]
    if len(known) == 0:
        return [0.0]
    found = np.quantile(known, np.linspace(0.0, 1.0, n))
    # A little more than the loss itself, so that it is within the tolerance.
    return [0.0, *dict.fromkeys(float(f"{1.001 * tolerance:.3g}") for tolerance in found)]


def sweep_tolerance(
    actor: Actor,
    env: gymnasium.Env[Any, Any],
    seeds: Sequence[int],
    tolerances: Sequence[float],
    longest: int = LONGEST_EPISODE,
    told: Callable[[int, int], None] = lambda done, all_of_them: None,
) -> list[SweepPoint]:
    """How a policy does with each of several decision tolerances, on the same episodes."""
    points: list[SweepPoint] = []
    first = None
    for number, tolerance in enumerate(tolerances):
        told(number, len(tolerances))
        found: Evaluation = evaluate(actor.acting_with(tolerance, None), env, seeds, longest)
        first = found.returns if first is None else first
        mean, low, high = (float(part[0]) for part in mean_interval(found.returns[:, None]))
        lost, _, lost_high = (float(part[0]) for part in mean_interval((first - found.returns)[:, None]))
        points.append(SweepPoint(tolerance, mean, low, high, float(found.decisions.mean()), lost, lost_high))
    return points
