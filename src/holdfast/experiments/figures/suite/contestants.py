"""The contestants of the learning suite, with every argument that differs from a default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from holdfast.policies.algorithms import find_algorithm

__all__ = ["CONTESTANTS", "Contestant"]

_ZOO_NETWORK = {"net_arch": [256, 256]}

_ZOO_SWINGING_AND_LANDING: Mapping[str, Any] = {
    "learning_rate": 6.3e-4,
    "batch_size": 128,
    "buffer_size": 50_000,
    "learning_starts": 0,
    "gamma": 0.99,
    "target_update_interval": 250,
    "train_freq": 4,
    "gradient_steps": -1,
    "exploration_fraction": 0.12,
    "exploration_final_eps": 0.1,
    "policy_kwargs": _ZOO_NETWORK,
}

_ZOO: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "CartPole-v1": {
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "buffer_size": 100_000,
            "learning_starts": 1000,
            "gamma": 0.99,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
            "policy_kwargs": _ZOO_NETWORK,
        },
        "Acrobot-v1": _ZOO_SWINGING_AND_LANDING,
        "MountainCar-v0": {
            "learning_rate": 4e-3,
            "batch_size": 128,
            "buffer_size": 10_000,
            "learning_starts": 1000,
            "gamma": 0.98,
            "target_update_interval": 600,
            "train_freq": 16,
            "gradient_steps": 8,
            "exploration_fraction": 0.2,
            "exploration_final_eps": 0.07,
            "policy_kwargs": _ZOO_NETWORK,
        },
        "LunarLander-v3": _ZOO_SWINGING_AND_LANDING,
    }
)
"""The settings for DQN that rl-zoo3 (hyperparams/dqn.yml) uses for each of these environments."""


_EARLIER: Mapping[str, Any] = MappingProxyType(
    {
        "k_max": 8,
        "learning_rate": 5e-4,
        "batch_size": 32,
        "exploration_fraction": 0.2,
        "head_arch": [64],
        "layer_norm": False,
        "dueling": False,
        "target_value": "options",
        "clip_targets": False,
        "initial_values": "zero",
        "learning_rate_falls_to": 1.0,
        "importance": "buffer",
        "shared_draws": False,
        "explore_by": "options",
        "average_rate": 0.0,
        "policy_kwargs": {"net_arch": [64, 64]},
    }
)
"""PerDQN's defaults before the suite chose new ones, where they differed."""


@dataclass(frozen=True)
class Contestant:
    """An agent with its settings.

    Attributes:
        name: Name to show.
        library: ``"holdfast"``, ``"sb3"`` for Stable-Baselines3's own class, or ``"joined"``.
        algorithm: Class name in that library; for an agent that joined, the name of an algorithm.
        arguments: Arguments on every task that differ from the defaults.
        by_task: Arguments on single tasks, by the environment's id.
        seeds: Number of published seeds.
    """

    name: str
    library: str
    algorithm: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    by_task: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seeds: int = 5

    def arguments_for(self, environment: str) -> dict[str, Any]:
        """All arguments on a task; for holdfast's own agents, defaults are written out too."""
        given = {"policy": "MlpPolicy", **self.arguments, **self.by_task.get(environment, {})}
        if self.library == "joined":
            return find_algorithm(self.algorithm).complete(given)
        return _written_out(self.algorithm, given) if self.library == "holdfast" else given


_CAME_LATER = frozenset({"clip_gradients", "decision_cost", "exploration", "initialization"})
"""Arguments that are newer than the first rows, with defaults that change nothing: left out unless given."""


def _written_out(algorithm: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """An agent's arguments with its defaults, so that rows made with other defaults belong to another job."""
    import holdfast.deep
    from holdfast.deep.arguments import DEFAULT_TRUNK, SB3_ARGUMENTS

    defaults = {
        argument.name: list(argument.default) if isinstance(argument.default, tuple) else argument.default
        for argument in (*SB3_ARGUMENTS, *getattr(holdfast.deep, algorithm).own_arguments)
        if argument.identifies and argument.name not in _CAME_LATER
    }
    # Only one of the two may be given.
    defaults.pop("persistences" if "k_max" in given else "k_max", None)
    return {**defaults, "policy_kwargs": {"net_arch": list(DEFAULT_TRUNK)}, **given}


CONTESTANTS = (
    Contestant("DQN, tuned", "sb3", "DQN", by_task=_ZOO, seeds=10),
    Contestant("DQN, SB3's defaults", "sb3", "DQN"),
    Contestant("PerDQN", "holdfast", "PerDQN", seeds=10),
    Contestant("PerDQN, k_max=1", "holdfast", "PerDQN", {"k_max": 1}),
    Contestant("PerDQN, earlier defaults", "holdfast", "PerDQN", _EARLIER),
    # With everything that steadies PerDQN and does not contradict them. TempoRL draws tuples for each skip.
    Contestant("TempoRL", "holdfast", "TempoRLDQN", {"k_max": 8, "batch_size": 32}),
    Contestant("εz-greedy", "holdfast", "EZGreedyDQN", {"k_max": 32}),
)
"""The contestants, in the order of display."""
