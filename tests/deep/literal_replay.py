"""The replay of the paper written out: whole histories in lists, every tuple of Algorithm 3 built from them.

``Trial`` plays one script of options on this slow log and on an ``OptionReplayBuffer`` side by side.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from hypothesis import strategies as st

from holdfast.core import PartialHistory, sub_transitions
from holdfast.core.decomposition import SubTransition
from holdfast.deep import OptionReplayBuffer

GAMMA = 0.5  # rewards are quarters, so that every r^ℓ is exact in 32 bits
N_ACTIONS = 3

SPACES = {
    "box": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "image": spaces.Box(0, 255, (2, 2, 1), np.uint8),
    "discrete": spaces.Discrete(100_000),
    "dict": spaces.Dict(
        {"where": spaces.Box(-np.inf, np.inf, (2,), np.float32), "which": spaces.Discrete(100_000)}
    ),
}


def encode(space: spaces.Space[Any], numbers: list[int]) -> Any:
    """A batch of observations, one for each number."""
    column = np.array(numbers)
    if isinstance(space, spaces.Dict):
        return {key: encode(part, numbers) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Discrete):
        return column
    digits = np.stack([column // 256, column % 256], axis=1)
    if space.dtype == np.uint8:
        return np.concatenate([digits, digits[:, ::-1]], axis=1).reshape(-1, 2, 2, 1).astype(np.uint8)
    return digits.astype(np.float32)


def decode(space: spaces.Space[Any], observations: Any) -> list[int]:
    """The numbers behind a batch of observations; parts that contradict each other are an error."""
    if isinstance(space, spaces.Dict):
        found = [decode(part, observations[key]) for key, part in space.spaces.items()]
        assert all(numbers == found[0] for numbers in found)
        return found[0]
    values = np.asarray(observations).astype(np.int64).reshape(len(observations), -1)
    if isinstance(space, spaces.Discrete):
        return values[:, 0].tolist()
    return (values[:, 0] * 256 + values[:, 1]).tolist()


class Tuple(NamedTuple):
    """What D_k holds: (s, a, s', r^ℓ, γ^ℓ, ℓ, done), states by number."""

    state: int
    action: int
    next_state: int
    reward: float
    discount: float
    length: int
    done: bool


class Step(NamedTuple):
    """One primitive step of one environment."""

    time: int
    state: int
    action: int
    reward: float
    next_state: int
    terminated: bool


class LiteralReplay:
    """Options as lists of steps. An option is open until it is closed."""

    def __init__(
        self,
        n_envs: int,
        capacity: int,
        k_max: int,
        bootstrap: bool,
        pad_terminal: bool = False,
        persistences: tuple[int, ...] | None = None,
    ) -> None:
        self.capacity, self.k_max, self.persistences = capacity, k_max, persistences
        self.bootstrap, self.pad_terminal = bootstrap, pad_terminal
        self.open: list[list[Step]] = [[] for _ in range(n_envs)]
        self.closed: list[list[Step]] = []
        self.time = 0

    def close(self, env: int) -> None:
        if self.open[env]:
            self.closed.append(self.open[env])
            self.open[env] = []

    def tuples(self, k: int) -> Counter[Tuple]:
        """D_k: what Algorithm 3 says, less the tuples whose first step is no longer kept."""
        found: Counter[Tuple] = Counter()
        for option in self.closed:
            states = np.array([step.state for step in option] + [option[-1].next_state])
            rewards = np.array([step.reward for step in option])
            history = PartialHistory(states, option[0].action, rewards, option[-1].terminated)
            items = (
                sub_transitions(history, self.k_max, GAMMA)
                if self.persistences is None
                else sparse_sub_transitions(history, self.persistences)
            )
            for item in items:
                if item.k != k or option[item.start].time < self.time - self.capacity:
                    continue
                if not (self.bootstrap or item.length == k or (self.pad_terminal and item.done)):
                    continue
                found[
                    Tuple(
                        int(states[item.start]),
                        option[0].action,
                        int(states[item.end]),
                        item.reward,
                        GAMMA**item.length,
                        item.length,
                        item.done,
                    )
                ] += 1
        return found


def sparse_sub_transitions(history: PartialHistory, persistences: tuple[int, ...]) -> list[SubTransition]:
    """The tuples of a sparse set, as it is defined: one for each step and each persistence that it informs."""
    kappa, found = len(history.rewards), []
    for start in range(kappa):
        left = kappa - start
        for k in persistences:
            if left >= k:
                length = k
            elif history.terminated:
                length = left
            else:
                length = max((seen for seen in range(1, left + 1) if k - seen in persistences), default=0)
            if length > 0:
                reward = sum(GAMMA**step * float(history.rewards[start + step]) for step in range(length))
                done = history.terminated and start + length == kappa
                found.append(SubTransition(k, start, start + length, reward, length, done))
    return found


def drawable_tuples(buffer: OptionReplayBuffer) -> list[Counter[Tuple]]:
    """Everything that ``sample`` can return while all priorities are equal, by view.

    Draws are stratified, so a batch of several times as many tuples as there are rows has each of them.
    """
    durations = buffer.durations.tolist()
    views: list[Counter[Tuple]] = [Counter() for _ in durations]
    if not buffer.drawable.any():
        return views
    stratified = buffer.k_max > 1 or buffer.prioritized
    batch = buffer.sample((4 if stratified else 64) * buffer.n_slots * buffer.n_envs)
    shape = batch.rows.shape
    space = buffer.observation_space
    seen_states = np.array(decode(space, batch.observations))
    states = np.broadcast_to(seen_states, shape) if batch.is_shared else seen_states.reshape(shape)
    next_states = np.array(decode(space, buffer.observations_at(batch.next_rows.ravel()))).reshape(shape)
    for index, k in enumerate(durations):
        seen: dict[int, Tuple] = {}
        for b in range(shape[1]):
            if batch.weights is not None and batch.weights[index, b] == 0.0:
                assert not buffer.drawable[index] or (batch.is_shared and not batch.is_there[index, b])
                continue
            assert batch.is_there[index, b]
            found = Tuple(
                int(states[index, b]),
                int(batch.actions[index, b]),
                int(next_states[index, b]),
                float(batch.rewards[index, b]),
                float(batch.discounts[index, b]),
                k - int(batch.rest[index, b]),
                bool(batch.dones[index, b]),
            )
            assert seen.setdefault(int(batch.rows[index, b]), found) == found
        views[index].update(seen.values())
    return views


class Trial:
    """A script of steps played on the literal replay and on the buffer."""

    def __init__(
        self,
        n_envs: int = 1,
        capacity: int = 8,
        k_max: int = 3,
        space: str = "box",
        same_observation: bool = False,
        timeout_is_terminal: bool = False,
        **settings: Any,
    ) -> None:
        self.space = SPACES[space]
        self.buffer = OptionReplayBuffer(
            capacity * n_envs,
            self.space,
            spaces.Discrete(N_ACTIONS),
            device="cpu",
            n_envs=n_envs,
            handle_timeout_termination=not timeout_is_terminal,
            k_max=k_max,
            gamma=GAMMA,
            **settings,
        )
        shorter = (settings.get("bootstrap", True), settings.get("pad_terminal", False))
        self.literal = LiteralReplay(n_envs, capacity, k_max, *shorter, settings.get("persistences"))
        self.timeout_is_terminal = timeout_is_terminal
        self.same_observation = same_observation
        self.n_envs, self.k_max = n_envs, k_max
        self.numbers = 0
        self.states = [self._new_state() for _ in range(n_envs)]
        self.actions = [0] * n_envs
        self.left = [0] * n_envs
        self.jumped = [False] * n_envs

    def _new_state(self) -> int:
        if self.same_observation:
            return 7
        self.numbers += 1
        return self.numbers

    def step(self, choices: list[EnvChoice], announced: bool = True) -> None:
        """One primitive step in every environment; unannounced, each step is an option of its own."""
        time = self.literal.time
        steps, over = [], []
        for env, choice in enumerate(choices):
            if not announced or self.jumped[env]:
                self._let_go(env)
            if self.left[env] == 0:
                self.actions[env], self.left[env] = choice.action, choice.duration
            terminated = choice.end == "terminated" or (choice.end == "truncated" and self.timeout_is_terminal)
            reward = choice.reward / 4
            steps.append(Step(time, self.states[env], self.actions[env], reward, self._new_state(), terminated))
            self.left[env] = 0 if choice.end != "goes on" or not announced else self.left[env] - 1
            over.append(self.left[env] == 0)
        self.buffer.add(
            encode(self.space, [step.state for step in steps]),
            encode(self.space, [step.next_state for step in steps]),
            np.array([step.action for step in steps]),
            np.array([step.reward for step in steps], dtype=np.float32),
            np.array([choice.end != "goes on" for choice in choices]),
            [{"TimeLimit.truncated": choice.end == "truncated"} for choice in choices],
            over if announced else None,
        )
        self.literal.time += 1
        for env, choice in enumerate(choices):
            self.literal.open[env].append(steps[env])
            if over[env]:
                self.literal.close(env)
            self.states[env] = self._new_state() if choice.end != "goes on" else steps[env].next_state

    def jump(self, envs: list[bool]) -> None:
        """Some environments are elsewhere from now on, and nobody says so."""
        if self.same_observation:
            self.interrupt(envs)  # nothing to see, so somebody has to say so
        for env in np.flatnonzero(envs):
            self.jumped[env] = True  # which shows with the next step
            self.states[env] = self._new_state()

    def interrupt(self, envs: list[bool]) -> None:
        """The options of some environments are over before their time."""
        self.buffer.finish(np.array(envs))
        for env in np.flatnonzero(envs):
            self._let_go(int(env))

    def store_and_load(self) -> None:
        self.buffer = pickle.loads(pickle.dumps(self.buffer))

    def _let_go(self, env: int) -> None:
        self.literal.close(env)
        self.left[env] = 0
        self.jumped[env] = False

    def play(self, script: list[tuple[str, Any]]) -> None:
        for command, details in script:
            if command == "step":
                self.step(details)
            elif command == "unannounced":
                self.step(details, announced=False)
            elif command == "jump":
                self.jump(details)
            elif command == "interrupt":
                self.interrupt(details)
            else:
                self.store_and_load()

    def check(self) -> None:
        """Every view holds what the paper's buffer would hold, as a multiset."""
        views = drawable_tuples(self.buffer)
        for view, k in zip(views, self.buffer.durations.tolist(), strict=True):
            assert view == self.literal.tuples(k), f"k={k}"


class EnvChoice(NamedTuple):
    """What happens in one environment at one step; action and duration count where an option begins."""

    action: int
    duration: int
    reward: int
    end: str


@st.composite
def scripts(draw: st.DrawFn, n_envs: int, k_max: int, unannounced: bool = True) -> list[tuple[str, Any]]:
    """Commands for a ``Trial``; most of them are steps."""
    ends = st.sampled_from(["goes on"] * 6 + ["terminated", "truncated"])
    choice = st.builds(EnvChoice, st.integers(0, N_ACTIONS - 1), st.integers(1, k_max), st.integers(-8, 8), ends)
    choices = st.lists(choice, min_size=n_envs, max_size=n_envs)
    mask = st.lists(st.booleans(), min_size=n_envs, max_size=n_envs)
    step = st.tuples(st.just("step"), choices)
    others = [
        st.tuples(st.just("jump"), mask),
        st.tuples(st.just("interrupt"), mask),
        st.tuples(st.just("store and load"), st.none()),
    ]
    if unannounced:
        others.append(st.tuples(st.just("unannounced"), choices))
    at_least = draw(st.sampled_from([1, 25]))
    return draw(st.lists(st.one_of(*[step] * 8, *others), min_size=at_least, max_size=40))


def with_steps(trial: Any, steps: Iterable[tuple[int, int, str]], reward: int) -> Any:
    """A trial with one environment, after these steps: (action, duration, end); each pays ``reward`` quarters."""
    for action, duration, end in steps:
        trial.step([EnvChoice(action, duration, reward, end)])
    return trial
