"""Greedy episodes of any Stable-Baselines3 agent, the same ones at every evaluation.

All episodes are played side by side, so that the network is asked once per step for all of them. Nothing is drawn
at random but what the environments draw from their reset seeds: an evaluation does not disturb the training.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from holdfast.core.clock import OptionClock

__all__ = ["Evaluation", "GreedyEvaluations", "play_greedily"]

_FIRST_SEED = 1_000_000
"""Reset seed of the first evaluation episode; trainings begin with small seeds."""
_LAST = 20
"""Training episodes that a training return is the mean of."""

_ELAPSED = list(OptionClock(1).state()).index("elapsed")


class Evaluation(NamedTuple):
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
        model: Any agent with ``predict``. One whose state is that of an ``OptionClock`` decides where an option
            begins, any other at every step.
        environments: They are reset with fixed seeds.
    """
    n = len(environments)
    seen = [env.reset(seed=_FIRST_SEED + index)[0] for index, env in enumerate(environments)]
    returns, decisions, lengths = np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    playing = np.ones(n, dtype=np.bool_)
    state, starts = None, np.ones(n, dtype=np.bool_)
    while playing.any():
        actions, state = model.predict(np.stack(seen), state, starts, deterministic=True)
        starts = np.zeros(n, dtype=np.bool_)
        decisions += playing & (True if state is None else state[_ELAPSED] == 1)
        for index in np.flatnonzero(playing):
            observation, reward, terminated, truncated, _ = environments[index].step(actions[index])
            seen[index] = observation
            returns[index] += float(reward)
            lengths[index] += 1
            playing[index] = not (terminated or truncated)
    return returns, decisions, lengths


class GreedyEvaluations(BaseCallback):
    """Evaluates greedily every ``every`` steps.

    Args:
        environment: Gymnasium id.
        every: Primitive steps between evaluations.
        episodes: Of each evaluation.
        **env_kwargs: Arguments of the environment.

    Attributes:
        found: The evaluations so far.
    """

    def __init__(self, environment: str, every: int, episodes: int, **env_kwargs: Any) -> None:
        super().__init__()
        self._environments = [gymnasium.make(environment, **env_kwargs) for _ in range(episodes)]
        self._every = every
        self.found: list[Evaluation] = []

    def _on_step(self) -> bool:
        if self.num_timesteps % self._every == 0:
            returns, decisions, lengths = play_greedily(self.model, self._environments)
            trained = [info["r"] for info in list(self.model.ep_info_buffer or ())[-_LAST:]]
            self.found.append(
                Evaluation(
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
