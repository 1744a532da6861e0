"""Hindsight replay written out: whole episodes in lists, and every tuple that some goal of theirs allows.

``GoalTrial`` plays one script of options on this slow log and on a ``HindsightReplayBuffer`` side by side.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from holdfast.core import PartialHistory, sub_transitions
from holdfast.deep.replay.hindsight import HindsightReplayBuffer
from tests.deep.literal_replay import GAMMA, N_ACTIONS, EnvChoice, Step

SPACE = spaces.Dict(
    {
        "observation": spaces.Box(0, np.inf, (1,), np.float32),
        "achieved_goal": spaces.Box(-np.inf, np.inf, (2,), np.float32),
        "desired_goal": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    }
)
OWN_GOAL = 100


class Quarters(gymnasium.Env[Any, Any]):
    """An environment that is only asked for rewards: a quarter of how far the goals are apart."""

    observation_space = SPACE
    action_space = spaces.Discrete(N_ACTIONS)

    def compute_reward(self, achieved: Any, desired: Any, infos: Any) -> Any:
        assert achieved.shape == desired.shape == (len(infos), 2)
        return (achieved[:, 0] - desired[:, 0]) / 4


def quarters() -> DummyVecEnv:
    return DummyVecEnv([Quarters])


def achieved_in(state: int) -> int:
    """What a state achieves: different ones may achieve the same."""
    return state * 7 % 11


def shown(states: list[int], goals: list[int]) -> dict[str, Any]:
    def pair(numbers: list[int]) -> Any:
        return np.array([[number, -number] for number in numbers], dtype=np.float32)

    return {
        "observation": np.array(states, dtype=np.float32)[:, None],
        "achieved_goal": pair([achieved_in(state) for state in states]),
        "desired_goal": pair(goals),
    }


class GoalTuple(NamedTuple):
    """(s, goal, a, s', goal there, r^ℓ, γ^ℓ, ℓ, done), states by number."""

    state: int
    goal: int
    action: int
    next_state: int
    next_goal: int
    reward: float
    discount: float
    length: int
    done: bool


@dataclass
class Episode:
    """The options of one episode, each a list of steps; over once it has ended."""

    options: list[list[Step]] = field(default_factory=lambda: [[]])
    ended: int | None = None

    @property
    def steps(self) -> list[Step]:
        return [step for option in self.options for step in option]


class GoalTrial:
    """A script of steps played on the literal episodes and on the buffer."""

    def __init__(self, n_envs: int = 1, capacity: int = 8, k_max: int = 3, **settings: Any) -> None:
        self.n_envs, self.capacity, self.k_max = n_envs, capacity, k_max
        self.settings = settings
        self.strategy = settings.get("goal_selection_strategy", "future")
        self.bootstrap, self.pad = settings.get("bootstrap", True), settings.get("pad_terminal", False)
        self.time = 0
        self.numbers = 0
        self.buffer = self.new_buffer()
        self.episodes: list[list[Episode]] = [[Episode()] for _ in range(n_envs)]
        self.states = [self._new_state() for _ in range(n_envs)]
        self.actions, self.left = [0] * n_envs, [0] * n_envs
        self.jumped = [False] * n_envs

    def new_buffer(self) -> HindsightReplayBuffer:
        return HindsightReplayBuffer(
            self.capacity * self.n_envs,
            SPACE,
            spaces.Discrete(N_ACTIONS),
            device="cpu",
            n_envs=self.n_envs,
            k_max=self.k_max,
            gamma=GAMMA,
            env=quarters(),
            **self.settings,
        )

    def _new_state(self) -> int:
        self.numbers += 1
        return self.numbers

    def _close_option(self, env: int) -> None:
        episode = self.episodes[env][-1]
        if episode.options[-1]:
            episode.options.append([])
        self.left[env] = 0

    def _end(self, env: int) -> None:
        self._close_option(env)
        if self.episodes[env][-1].steps:
            self.episodes[env][-1].ended = self.time
            self.episodes[env].append(Episode())
        self.jumped[env] = False

    def step(self, choices: list[EnvChoice], announced: bool = True) -> None:
        steps, over = [], []
        for env, choice in enumerate(choices):
            if self.jumped[env]:
                self._end(env)
            if not announced:
                self._close_option(env)
            if self.left[env] == 0:
                self._close_option(env)
                self.actions[env], self.left[env] = choice.action, choice.duration
            ends = choice.end == "terminated"
            steps.append(
                Step(self.time, self.states[env], self.actions[env], choice.reward / 4, self._new_state(), ends)
            )
            self.left[env] = 0 if choice.end != "goes on" or not announced else self.left[env] - 1
            over.append(self.left[env] == 0)
        done = [choice.end != "goes on" for choice in choices]
        goals = [OWN_GOAL] * self.n_envs
        self.buffer.add(
            shown([step.state for step in steps], goals),
            shown([step.next_state for step in steps], goals),
            np.array([step.action for step in steps]),
            np.array([step.reward for step in steps], dtype=np.float32),
            np.array(done),
            [{"TimeLimit.truncated": choice.end == "truncated"} for choice in choices],
            over if announced else None,
        )
        self.time += 1
        for env, step in enumerate(steps):
            self.episodes[env][-1].options[-1].append(step)
            self.states[env] = step.next_state
            if over[env]:
                self._close_option(env)
            if done[env]:
                self._end(env)
                self.states[env] = self._new_state()

    def play(self, script: list[tuple[str, Any]]) -> None:
        for command, details in script:
            if command in ("step", "unannounced"):
                self.step(details, announced=command == "step")
            elif command == "jump":
                for env in np.flatnonzero(details):
                    self.jumped[env] = True
                    self.states[env] = self._new_state()
            elif command == "interrupt":
                self.buffer.finish(np.array(details))
                for env in np.flatnonzero(details):
                    self._close_option(int(env))
            else:
                self.store_and_load()

    def store_and_load(self) -> None:
        """By pickle, and then by its state."""
        self.buffer = pickle.loads(pickle.dumps(self.buffer))
        state = self.buffer.state()
        self.buffer = self.new_buffer()
        self.buffer.restore(state)

    # What there should be ----------------------------------------------------------------------------------

    def kept(self) -> list[Episode]:
        """Episodes that are over and of which nothing was overwritten since."""
        found = []
        for episode in (episode for each in self.episodes for episode in each if episode.ended is not None):
            first = max(episode.steps[0].time, episode.ended - self.capacity)
            if first >= self.time - self.capacity:
                found.append(episode)
        return found

    def tuples(self, k: int) -> dict[int, set[GoalTuple]]:
        """By first state, what D_k may hold: with the own goal, or with one of those that the strategy allows."""
        found: dict[int, set[GoalTuple]] = defaultdict(set)
        for episode in self.kept():
            steps = [step for step in episode.steps if step.time >= episode.ended - self.capacity]
            for option in episode.options:
                for start, step in enumerate(option):
                    if step not in steps:
                        continue
                    at = steps.index(step)
                    candidates = {
                        "future": steps[at:],
                        "final": steps[-1:],
                        "episode": steps,
                    }[self.strategy]
                    goals = [OWN_GOAL, *(achieved_in(candidate.next_state) for candidate in candidates)]
                    for goal in goals:
                        found[step.state] |= self._tuples_from(option[start:], goal, k)
        return found

    def _tuples_from(self, option: list[Step], goal: int, k: int) -> set[GoalTuple]:
        rewards = [
            step.reward if goal == OWN_GOAL else (achieved_in(step.next_state) - goal) / 4 for step in option
        ]
        states = np.array([step.state for step in option] + [option[-1].next_state])
        history = PartialHistory(states, option[0].action, np.array(rewards), option[-1].terminated)
        return {
            GoalTuple(
                int(states[0]),
                goal,
                option[0].action,
                int(states[item.end]),
                goal,
                item.reward,
                GAMMA**item.length,
                item.length,
                item.done,
            )
            for item in sub_transitions(history, self.k_max, GAMMA)
            if item.k == k and item.start == 0 and (self.bootstrap or item.length == k or (self.pad and item.done))
        }

    # What there is -----------------------------------------------------------------------------------------

    def drawn(self, batch_size: int) -> list[list[GoalTuple]]:
        """A batch, by view."""
        batch = self.buffer.sample(batch_size)
        shape = batch.rows.shape
        first, last = batch.observations, self.buffer.observations_at(batch.next_rows.ravel())

        def numbers(values: Any) -> Any:
            found = values[:, 0].numpy().astype(int)
            return np.broadcast_to(found, shape) if len(found) < batch.rows.size else found.reshape(shape)

        states, goals = numbers(first["observation"]), numbers(first["desired_goal"])
        next_states, next_goals = numbers(last["observation"]), numbers(last["desired_goal"])
        return [
            [
                GoalTuple(
                    int(states[view, b]),
                    int(goals[view, b]),
                    int(batch.actions[view, b]),
                    int(next_states[view, b]),
                    int(next_goals[view, b]),
                    float(batch.rewards[view, b]),
                    float(batch.discounts[view, b]),
                    int(k - batch.rest[view, b]),
                    bool(batch.dones[view, b]),
                )
                for b in range(shape[1])
                if batch.weights is None or batch.weights[view, b] > 0
            ]
            for view, k in enumerate(self.buffer.durations)
        ]

    def check(self) -> None:
        """Every start that should be drawn is, no other, and each tuple is one that its goal allows."""
        expected = [self.tuples(int(k)) for k in self.buffer.durations]
        assert self.buffer.drawable.any() == any(any(view.values()) for view in expected)
        if not self.buffer.drawable.any():
            return
        stratified = self.buffer.trees is not None
        batch_size = (4 if stratified else 64) * self.buffer.n_slots * self.n_envs
        for view, allowed in zip(self.drawn(batch_size), expected, strict=True):
            assert {found.state for found in view} == {state for state, some in allowed.items() if some}
            assert all(found in allowed[found.state] for found in view)
