"""Tiny environments: most have optimal option values Q*(s,a,k) in closed form, one only gives pictures."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

EAGER: dict[str, Any] = {
    "learning_rate": lambda remaining: 1e-4 + 5e-3 * remaining,
    "buffer_size": 2000,
    "learning_starts": 50,
    "batch_size": 16,
    "target_update_interval": 20,
    "exploration_final_eps": 1.0,
    "head_arch": [32],
    "policy_kwargs": {"net_arch": [32]},
    "seed": 1,
    "device": "cpu",
}
"""Arguments of a small agent that learns the values of a probe from random options."""


class Probe(gym.Env[np.ndarray, int]):
    """States by number, shown one-hot; episodes begin in the states of ``starts``, in turn.

    (At random they would follow the actions: SB3 gives environments and action spaces the same seed.)
    """

    n_states = 1
    n_actions = 2
    starts: tuple[int, ...] = (0,)
    gamma = 0.9
    time_limit = 1000

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (self.n_states,), np.float32)
        self.action_space = spaces.Discrete(self.n_actions)
        self.first = itertools.cycle(self.starts)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state = next(self.first)
        self.steps = 0
        return self.observe(self.state), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.state, reward, terminated = self.move(self.state, int(action))
        self.steps += 1
        return self.observe(self.state), reward, terminated, self.steps >= self.time_limit, {}

    @classmethod
    def observe(cls, state: int) -> np.ndarray:
        return np.eye(cls.n_states, dtype=np.float32)[min(state, cls.n_states - 1)]

    @classmethod
    def every_observation(cls) -> np.ndarray:
        return np.eye(cls.n_states, dtype=np.float32)

    def move(self, state: int, action: int) -> tuple[int, float, bool]:
        raise NotImplementedError

    @classmethod
    def q_star(cls, state: int, action: int, k: int) -> float:
        raise NotImplementedError

    @classmethod
    def values(cls, k_max: int) -> np.ndarray:
        """Q*, (S, A, K)."""
        ks = range(1, k_max + 1)
        return np.array(
            [[[cls.q_star(s, a, k) for k in ks] for a in range(cls.n_actions)] for s in range(cls.n_states)]
        )


class OneReward(Probe):
    """One step, reward 1: if this fails, the loss or the optimiser is broken."""

    def move(self, state: int, action: int) -> tuple[int, float, bool]:
        return 0, 1.0, True

    @classmethod
    def q_star(cls, state: int, action: int, k: int) -> float:
        return 1.0


class SeenReward(Probe):
    """One step, the reward is what is seen: the features."""

    n_states = 2
    starts = (0, 1)

    def move(self, state: int, action: int) -> tuple[int, float, bool]:
        return state, 2.0 * state - 1.0, True

    @classmethod
    def q_star(cls, state: int, action: int, k: int) -> float:
        return 2.0 * state - 1.0


class DelayedReward(Probe):
    """Two steps, reward 1 for the second: the discount, and the bootstrap over a terminal inside an option."""

    n_states = 2

    def move(self, state: int, action: int) -> tuple[int, float, bool]:
        return state + 1, float(state), state == 1

    @classmethod
    def q_star(cls, state: int, action: int, k: int) -> float:
        return cls.gamma ** (1 - state)


class ChosenReward(Probe):
    """One step, the reward depends on the action: whether a value belongs to its action."""

    def move(self, state: int, action: int) -> tuple[int, float, bool]:
        return 0, 2.0 * action - 1.0, True

    @classmethod
    def q_star(cls, state: int, action: int, k: int) -> float:
        return 2.0 * action - 1.0


class Pier(Probe):
    """Four planks: walk on, or jump; +1 for jumping off the last one, −1 for walking over the edge.

    Holding *walk* for too long overshoots, so each persistence has its own values.
    """

    n_states = 4
    starts = (0, 1, 2, 3)
    JUMP, WALK = 0, 1

    def move(self, state: int, action: int) -> tuple[int, float, bool]:
        if action == self.JUMP:
            return state, float(state == 3), True
        return state + 1, -float(state == 3), state == 3

    @classmethod
    def q_star(cls, state: int, action: int, k: int) -> float:
        if action == cls.JUMP:
            return float(state == 3)
        to_the_end = 3 - state
        return cls.gamma**to_the_end * (1.0 if k <= to_the_end else -1.0)


class Carousel(Probe):
    """Three seats in a ring: stay, or move on; +1 for every step begun in the last seat; never over.

    A time limit cuts the episodes, and it is no end: the values go on beyond it.
    """

    n_states = 3
    starts = (0, 1, 2)
    gamma = 0.5
    time_limit = 15
    STAY, MOVE = 0, 1

    def move(self, state: int, action: int) -> tuple[int, float, bool]:
        return (state + action) % 3, float(state == 2), False

    @classmethod
    def q_star(cls, state: int, action: int, k: int) -> float:
        seats = [(state + action * i) % 3 for i in range(k + 1)]
        best = cls.gamma ** (2 - seats[k]) / (1.0 - cls.gamma)
        return sum(cls.gamma**i for i in range(k) if seats[i] == 2) + cls.gamma**k * best


class PricedPier(Pier):
    """The pier where each decision costs: to walk to its end in one decision is worth more than in two."""

    cost = 0.2

    @classmethod
    def q_star(cls, state: int, action: int, k: int) -> float:
        to_the_end = 3 - state
        if action == cls.JUMP or k > to_the_end:
            return super().q_star(state, action, k)
        # Behind the walk there is the jump to decide on; before that, if the walk ends too early, the rest of it.
        walked = cls.gamma**to_the_end * (1.0 - cls.cost)
        return walked - (cls.gamma**k * cls.cost if k < to_the_end else 0.0)


class PricedDelay(DelayedReward):
    """The delayed reward where each decision costs: held for one step, the second step has to be decided on."""

    cost = 0.2

    @classmethod
    def q_star(cls, state: int, action: int, k: int) -> float:
        return 1.0 if state == 1 else cls.gamma * (1.0 - (cls.cost if k == 1 else 0.0))


class Pictures(gym.Env[Any, int]):
    """Noise in pictures, alone or with a number beside them."""

    def __init__(self, beside: bool = False, shape: tuple[int, ...] = (36, 36, 1)) -> None:
        picture = spaces.Box(0, 255, shape, np.uint8)
        self.beside, self.shape = beside, shape
        number = spaces.Box(0.0, 5.0, (1,), np.float32)
        self.observation_space = spaces.Dict({"picture": picture, "number": number}) if beside else picture
        self.action_space = spaces.Discrete(2)

    def observe(self) -> Any:
        picture = self.np_random.integers(256, size=self.shape, dtype=np.uint8)
        return {"picture": picture, "number": np.full(1, self.time, np.float32)} if self.beside else picture

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.time = 0
        return self.observe(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.time += 1
        return self.observe(), float(action), self.time == 5, False, {}
