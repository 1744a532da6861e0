"""An environment that writes down what is done in it, agents small enough to watch, and what they should store."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from holdfast.deep import PerDQN
from holdfast.deep.agents.regression import Residuals
from holdfast.deep.replay.views import OptionBatch
from tests.deep.earlier_settings import earlier
from tests.deep.literal_replay import GAMMA, LiteralReplay, Step, encode

BOX = spaces.Box(-np.inf, np.inf, (2,), np.float32)
STARTED_AT = 20_000


class Entry(NamedTuple):
    """One step as the environment saw it."""

    state: int
    action: int
    reward: float
    next_state: int
    terminated: bool
    truncated: bool


class Diary(gym.Env[np.ndarray, int]):
    """Every state is seen once; episodes have the given lengths in turn, and end in turn by themselves or by time.

    Args:
        lengths: Of the episodes.
        n_actions: Actions ``start``..``start + n_actions − 1``.
        start: First action.
        first: Number of the first state.
    """

    def __init__(self, lengths: Sequence[int] = (7, 4, 1, 9), n_actions: int = 3, start: int = 0, first: int = 0):
        self.observation_space = BOX
        self.action_space = spaces.Discrete(n_actions, start=start)
        self.lengths: Iterator[int] = itertools.cycle(lengths)
        self.ends = itertools.cycle(["terminated", "truncated", "terminated"])
        self.state = first
        self.log: list[Entry] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state += 1
        self.left, self.end = next(self.lengths), next(self.ends)
        return self.observe(), {}

    def observe(self) -> np.ndarray:
        return encode(BOX, [self.state])[0]

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        assert self.action_space.contains(np.int64(action)), action
        before = self.state
        self.state += 1
        self.left -= 1
        terminated, truncated = (self.left == 0 and self.end == name for name in ("terminated", "truncated"))
        reward = ((before * 7 + int(action)) % 9 - 4) / 4
        self.log.append(Entry(before, int(action), reward, self.state, terminated, truncated))
        return self.observe(), reward, terminated, truncated, {}

    @property
    def actions(self) -> list[int]:
        return [entry.action for entry in self.log]


def diaries(n_envs: int = 1, **arguments: Any) -> DummyVecEnv:
    """Environments side by side whose states have different numbers."""
    makers = [lambda index=index: Monitor(Diary(first=STARTED_AT * index, **arguments)) for index in range(n_envs)]
    return DummyVecEnv(makers)


def logs(env: Any) -> list[list[Entry]]:
    """What each environment wrote down."""
    return [single.unwrapped.log for single in env.unwrapped.envs]


SMALL: dict[str, Any] = {
    "head_arch": [4],
    "policy_kwargs": {"net_arch": [8]},
    "batch_size": 4,
    "buffer_size": 500,
    "learning_starts": 0,
    "gradient_steps": 0,
    "exploration_initial_eps": 0.0,
    "exploration_final_eps": 0.0,
    "seed": 0,
    "device": "cpu",
}
"""Arguments of a small agent that neither learns nor explores unless told to."""

IDLE: dict[str, Any] = {"k_max": 3, "gamma": GAMMA, **SMALL}
"""Those of a small PerDQN."""

LEVERS: dict[str, Any] = {
    "persistences": (1, 2, 4),
    "layer_norm": True,
    "dueling": "options",
    "clip_targets": True,
    "initial_values": "warm_up",
    "importance": "batch",
    "shared_draws": True,
    "explore_by": "steps",
    "average_rate": 0.01,
    "learning_rate_falls_to": 0.1,
}
"""All that makes learning steadier or faster."""


def agent(env: Any, policy: str = "MlpPolicy", **arguments: Any) -> PerDQN:
    """A small PerDQN that does not learn unless told to, otherwise with the defaults."""
    return PerDQN(policy, env, **{**IDLE, **arguments})


def plain_agent(env: Any, policy: str = "MlpPolicy", **arguments: Any) -> PerDQN:
    """The same one without anything beside the paper's update."""
    return PerDQN(policy, env, **earlier(PerDQN, {**IDLE, **arguments}))


class Decided(NamedTuple):
    """An option that began."""

    step: int
    env: int
    action: int
    duration: int
    exploratory: bool


def watch_decisions(model: PerDQN) -> list[Decided]:
    """A list that grows with every option the agent begins; ``step`` counts the environment's steps."""
    found: list[Decided] = []
    begin = model.clock.begin

    def spy(mask: Any, actions: Any, durations: Any, exploratory: Any = False) -> None:
        drawn = np.broadcast_to(exploratory, np.shape(mask))
        step = model.num_timesteps // model.n_envs
        for env in np.flatnonzero(mask):
            found.append(Decided(step, int(env), int(actions[env]), int(durations[env]), bool(drawn[env])))
        begin(mask, actions, durations, exploratory)

    model.clock.begin = spy  # type: ignore[method-assign]
    return found


class Learned(NamedTuple):
    """A batch that was learned from."""

    batch: OptionBatch
    residuals: Residuals
    targets: np.ndarray


def watch_learning(model: PerDQN) -> list[Learned]:
    """A list that grows with every batch the agent learns from."""
    found: list[Learned] = []
    learned = model._learned

    def spy(batch: OptionBatch, targets: np.ndarray, residuals: Residuals) -> float:
        found.append(Learned(batch, residuals, targets))
        return learned(batch, targets, residuals)

    model._learned = spy  # type: ignore[method-assign]
    return found


def executed_options(env_log: list[Entry], decisions: list[Decided], env: int) -> list[list[Entry]]:
    """The steps of each option that was begun in one environment, in order."""
    starts = [decided.step for decided in decisions if decided.env == env]
    assert starts[0] == 0
    return [env_log[start:end] for start, end in itertools.pairwise([*starts, len(env_log)])]


def expected_replay(model: PerDQN, decisions: list[Decided]) -> LiteralReplay:
    """What the paper's buffers hold after the agent did what the environments wrote down."""
    buffer = model.replay_buffer
    assert buffer is not None
    literal = LiteralReplay(model.n_envs, buffer.buffer_size, model.k_max, model.bootstrap)
    start = int(model.action_space.start)
    for env, log in enumerate(logs(model.env)):
        literal.time = len(log)
        time = 0
        for option in executed_options(log, decisions, env):
            for entry in option:
                terminated = entry.terminated or (entry.truncated and model.timeout_is_terminal)
                step = Step(time, entry.state, entry.action - start, entry.reward, entry.next_state, terminated)
                literal.open[env].append(step)
                time += 1
            if time < len(log) or model.clock.left[env] == 0:
                literal.close(env)
    return literal


def by_table(policy: Any, table: Any) -> None:
    """Let a policy value options by a table (A, K), or by a function from a batch of observations to (n, A, K)."""
    values = (
        table
        if callable(table)
        else lambda rows: np.broadcast_to(np.asarray(table), (len(rows), *np.shape(table)))
    )

    def option_values(observation: Any, averaged: bool = False) -> NDArray[np.float32]:
        return np.asarray(values(observation.numpy()), dtype=np.float32)

    policy.option_values = option_values


class Captured(KVWriter):
    """Log rows in memory."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, key_values: dict[str, Any], key_excluded: Any, step: int = 0) -> None:
        self.rows.append({**key_values, "step": step})

    def close(self) -> None:
        pass


def capture_log(model: PerDQN) -> list[dict[str, Any]]:
    """A list that grows with every row the agent logs."""
    writer = Captured()
    model.set_logger(Logger(None, [writer]))
    return writer.rows


LEARNING: dict[str, Any] = {
    "learning_starts": 10,
    "gradient_steps": 1,
    "target_update_interval": 20,
    "exploration_initial_eps": 1.0,
    "exploration_final_eps": 0.1,
    "policy_kwargs": {"net_arch": [16]},
}
"""Arguments of an agent that learns a little, fast."""
