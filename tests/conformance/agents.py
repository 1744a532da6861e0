"""The agents that must behave as Stable-Baselines3's users expect: every deep one in the list of algorithms.

Those with continuous actions have a file of their own, ``test_continuous.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch as th
from stable_baselines3 import DQN

from holdfast.deep import OptionDQN, PerSAC, PerTD3
from holdfast.policies import ALGORITHMS, Algorithm

Factory = Callable[..., OptionDQN]
"""``make(env, policy="MlpPolicy", **overrides)``."""

SMALL_ACTOR: dict[str, Any] = {
    "policy_kwargs": {"net_arch": [8]},
    "batch_size": 8,
    "buffer_size": 300,
    "learning_starts": 10,
    "seed": 0,
    "device": "cpu",
}
"""Arguments that TD3 has too, for runs of a few dozen steps."""

SMALL: dict[str, Any] = {
    **SMALL_ACTOR,
    "train_freq": 1,
    "gradient_steps": 1,
    "learning_rate": 1e-2,
    "target_update_interval": 20,
    "exploration_fraction": 0.5,
    "exploration_final_eps": 0.05,
}
"""Arguments that DQN has too, for runs of a few dozen steps."""


SMALL_OWN: dict[str, Any] = {
    "head_arch": [4],
    "k_max": 4,
    "initial_values": "zero",
    "learning_rate_falls_to": 1.0,
}
"""Arguments that DQN does not have: weights move when and as far as DQN's do."""


def _agent(algorithm: Algorithm) -> Factory:
    def make(env: Any, policy: Any = "MlpPolicy", **overrides: Any) -> OptionDQN:
        own = {**SMALL_OWN, **algorithm.stands_for}
        agent: OptionDQN = algorithm.load()(policy, env, **{**SMALL, **own, **overrides})
        return agent

    return make


AGENTS: dict[str, Factory] = {
    name: _agent(found) for name, found in ALGORITHMS.items() if found.is_deep and not found.is_continuous
}


def _continuous_agent(algorithm: Algorithm) -> Callable[..., PerTD3 | PerSAC]:
    def make(env: Any, policy: Any = "MlpPolicy", **overrides: Any) -> PerTD3 | PerSAC:
        agent: PerTD3 | PerSAC = algorithm.load()(
            policy, env, **{**SMALL_ACTOR, **algorithm.stands_for, **overrides}
        )
        return agent

    return make


CONTINUOUS: dict[str, Callable[..., PerTD3 | PerSAC]] = {
    name: _continuous_agent(found) for name, found in ALGORITHMS.items() if found.is_continuous
}


def make_dqn(env: Any, policy: Any = "MlpPolicy", **overrides: Any) -> DQN:
    """SB3's own with the same arguments, to compare with."""
    return DQN(policy, env, **{**SMALL, **overrides})


def decide(model: OptionDQN, action_of: Callable[[Any], int]) -> None:
    """Let an agent hold ``action_of`` an observation for as long as its greedy policy can."""
    depth = model.policy.k_max + (model.valued == "skips")

    def option_values(observations: th.Tensor, averaged: bool = False) -> Any:
        values = np.zeros((len(observations), int(model.action_space.n), depth), np.float32)
        chosen = [action_of(row) for row in observations.tolist()]
        # The longest hold; and of skips the value of the action, which comes first.
        values[np.arange(len(values)), chosen, -1] = 1.0
        values[np.arange(len(values)), chosen, 0] += 0.5
        return values

    model.policy.option_values = option_values  # type: ignore[method-assign]


def weights(network: th.nn.Module) -> list[th.Tensor]:
    """Copies of all parameters and buffers, by name."""
    return [value.detach().clone() for _, value in sorted(network.state_dict().items())]


def same(ours: list[th.Tensor], others: list[th.Tensor]) -> bool:
    """Whether all of them are equal to the last bit."""
    return all(th.equal(mine, other) for mine, other in zip(ours, others, strict=True))
