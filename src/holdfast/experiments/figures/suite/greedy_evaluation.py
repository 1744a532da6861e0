"""Greedy episodes of any Stable-Baselines3 agent, the same ones at every evaluation.

All episodes are played in parallel, so that the network is called once per step for all of them. The only random
numbers are those that the environments draw from their reset seeds: an evaluation does not disturb training.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

import holdfast.envs  # noqa: F401 - registers its environments
from holdfast.core.clock import OptionClock

__all__ = ["GreedyEvaluation", "GreedyEvaluations", "play_greedily"]

_FIRST_SEED = 1_000_000
"""Reset seed of the first evaluation episode; training uses small seeds."""
_LAST = 20
"""Number of training episodes over which a training return is averaged."""

_ELAPSED = list(OptionClock(1).state()).index("elapsed")


class GreedyEvaluation(NamedTuple):
    """Means over the greedy episodes of one evaluation."""

    step: int
    mean_return: float
    decisions: float
    length: float
    training_return: float


def play_greedily(
    model: BaseAlgorithm, environments: list[gymnasium.Env[Any, Any]]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """One greedy episode in each environment, always the same ones: returns, decisions and lengths.

    Args:
        model: Any agent with ``predict``. If its state is that of an ``OptionClock``, it decides where an option
            begins; any other agent decides at every step.
        environments: The environments; they are reset with fixed seeds.
    """
    n = len(environments)
    seen = [env.reset(seed=_FIRST_SEED + index)[0] for index, env in enumerate(environments)]
    returns, decisions, lengths = np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    playing = np.ones(n, dtype=np.bool_)
    state, starts = None, np.ones(n, dtype=np.bool_)
    while playing.any():
        actions, state = model.predict(_stacked(seen), state, starts, deterministic=True)
        starts = np.zeros(n, dtype=np.bool_)
        decisions += playing & (True if state is None else state[_ELAPSED] == 1)
        for index in np.flatnonzero(playing):
            observation, reward, terminated, truncated, _ = environments[index].step(actions[index])
            seen[index] = observation
            returns[index] += float(reward)
            lengths[index] += 1
            playing[index] = not (terminated or truncated)
    return returns, decisions, lengths


def _stacked(seen: list[Any]) -> Any:
    """Observations of several environments as one, also those that have parts."""
    if isinstance(seen[0], dict):
        return {name: np.stack([parts[name] for parts in seen]) for name in seen[0]}
    return np.stack(seen)


class GreedyEvaluations(BaseCallback):
    """Evaluates greedily every ``every`` steps.

    Args:
        environment: Gymnasium id, or a function that makes the environment.
        every: Primitive steps between evaluations.
        episodes: Number of episodes per evaluation.
        **env_kwargs: Arguments of the environment.

    Attributes:
        found: The evaluations so far.
    """

    def __init__(
        self,
        environment: str | Callable[..., gymnasium.Env[Any, Any]],
        every: int,
        episodes: int,
        **env_kwargs: Any,
    ) -> None:
        super().__init__()
        make = functools.partial(gymnasium.make, environment) if isinstance(environment, str) else environment
        self._environments = [make(**env_kwargs) for _ in range(episodes)]
        self._every = every
        self.found: list[GreedyEvaluation] = []

    def _on_step(self) -> bool:
        if self.num_timesteps % self._every == 0:
            returns, decisions, lengths = play_greedily(self.model, self._environments)
            trained = [info["r"] for info in list(self.model.ep_info_buffer or ())[-_LAST:]]
            self.found.append(
                GreedyEvaluation(
                    self.num_timesteps,
                    float(returns.mean()),
                    float(decisions.mean()),
                    float(lengths.mean()),
                    float(np.mean(trained)) if trained else np.nan,
                )
            )
        return True

    def _on_training_end(self) -> None:
        for env in self._environments:
            env.close()
