"""A small environment with continuous actions, and arguments for agents that learn in it for a moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from tests.conformance.agents import SMALL_ACTOR

SMALL: dict[str, Any] = {**SMALL_ACTOR, "buffer_size": 400, "learning_starts": 20}

each_target = pytest.mark.parametrize(
    "target",
    [
        {"target_value": kind, "shared_draws": shared, "k_max": 4, "persistences": persistences}
        for kind in ("options", "primitive")
        for shared in (True, False)
        for persistences in (None, (1, 2, 4))
    ],
    ids=str,
)
"""A test's argument ``target``: what the targets of PerTD3 and PerSAC depend on, in all combinations."""


class Slider(gymnasium.Env):
    """A point that is pushed by two numbers between bounds that differ; pays the negative squared distance."""

    def __init__(self, length: int = 25, low: Any = (-2.0, 0.0), high: Any = (2.0, 1.0)) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = spaces.Box(np.array(low, np.float32), np.array(high, np.float32))
        self._length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._place, self._steps, self.taken = self.np_random.normal(size=2).astype(np.float32), 0, []
        return self._place.copy(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.taken.append(np.array(action))
        self._steps += 1
        self._place = self._place + 0.1 * action
        return self._place.copy(), -float(self._place @ self._place), False, self._steps >= self._length, {}


def target_values(model: Any, row: int, action: Any) -> Any:
    """(C, K) what each target critic says of an action at the observation in a row of the replay."""
    observation = model.replay_buffer.observations_at(np.array([row]))
    action = th.as_tensor(action, dtype=th.float32).reshape(1, -1)
    return np.array([values[0].detach().numpy() for values in model.critic_target(observation, action)])


def actions_of(model: Any, steps: int) -> tuple[list[Any], list[bool]]:
    """What an agent does in some steps of training, and where an option begins."""
    taken: list[Any] = []
    began: list[bool] = []

    def note(local: Any, _: Any) -> bool:
        taken.append(np.array(local["actions"][0]))
        began.append(bool(model.clock.elapsed[0] == 0))
        return True

    model.learn(steps, callback=note)
    return taken, began


def refuse_another_end(agent: Callable[[], Any]) -> tuple[Any, Any]:
    """Two agents, one of which goes on from the other's state: they must be the same in the end, bit for bit."""
    whole = agent().learn(60)
    state = whole.state()
    whole.learn(60, reset_num_timesteps=False)
    other = agent()
    other.restore(state)
    other.learn(60, reset_num_timesteps=False)
    for mine, theirs in zip(whole.policy.parameters(), other.policy.parameters(), strict=True):
        assert th.equal(mine, theirs)
    assert np.array_equal(whole.replay_buffer.actions, other.replay_buffer.actions)
    return whole, other


def reloaded(model: Any, path: Path) -> Any:
    """An agent that SB3 has saved and loaded, which must decide, and explore, as before."""
    model.save(path)
    loaded = type(model).load(path, env=Slider())
    assert loaded.exploration_rate == model.exploration_rate < model.exploration_initial_eps
    observation = np.zeros((3, 2), np.float32)
    assert np.array_equal(loaded.policy.decide(observation).action, model.policy.decide(observation).action)
    return loaded
