"""Clock, trees, frames and ring under any sequence of operations, saved and brought back in between.

Beside each stands a model that is too simple to be wrong: a dictionary, or the paper's lists.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.core.clock import OptionClock
from holdfast.deep import OptionReplayBuffer
from holdfast.deep.replay.frame_pool import FramePool
from holdfast.deep.replay.frame_store import FrameStore
from holdfast.deep.replay.priorities import PriorityTrees
from holdfast.files import read_state, write_state
from tests.deep.literal_replay import GAMMA, N_ACTIONS, EnvChoice, Trial

LENGTH = settings(max_examples=25, stateful_step_count=40, deadline=None)


def through_a_file(state: dict[str, Any]) -> dict[str, Any]:
    """A state that was written and read, as a checkpoint does it."""
    with tempfile.TemporaryDirectory() as folder:
        write_state(Path(folder), state, {"arrays.safetensors": ()})
        return read_state(Path(folder), {"arrays.safetensors": ()})


class Clocks(RuleBasedStateMachine):
    """A clock beside a dictionary for each environment."""

    @initialize(n_envs=st.integers(1, 4))
    def make(self, n_envs: int) -> None:
        self.clock = OptionClock(n_envs)
        self.model = [{"action": 0, "planned": 0, "elapsed": 0, "left": 0, "random": False} for _ in range(n_envs)]

    @precondition(lambda self: any(env["left"] == 0 for env in self.model))
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        n_envs = len(self.model)
        mask = [env["left"] == 0 and data.draw(st.booleans()) for env in self.model]
        actions = data.draw(st.lists(st.integers(0, 9), min_size=n_envs, max_size=n_envs))
        durations = data.draw(st.lists(st.integers(1, 5), min_size=n_envs, max_size=n_envs))
        random = data.draw(st.lists(st.booleans(), min_size=n_envs, max_size=n_envs))
        self.clock.begin(mask, actions, durations, random)
        for index in np.flatnonzero(mask):
            self.model[index] = {
                "action": actions[index],
                "planned": durations[index],
                "elapsed": 0,
                "left": durations[index],
                "random": random[index],
            }

    @precondition(lambda self: all(env["left"] > 0 for env in self.model))
    @rule(data=st.data())
    def tick(self, data: st.DataObject) -> None:
        ended = [data.draw(st.booleans()) for _ in self.model]
        over = self.clock.tick(ended)
        for env, is_end in zip(self.model, ended, strict=True):
            env["elapsed"] += 1
            env["left"] = 0 if is_end else env["left"] - 1
        assert over.tolist() == [env["left"] == 0 for env in self.model]

    @rule(data=st.data())
    def cut(self, data: st.DataObject) -> None:
        mask = [data.draw(st.booleans()) for _ in self.model]
        self.clock.cut(mask)
        for env, is_cut in zip(self.model, mask, strict=True):
            if is_cut:
                env["left"] = 0

    @rule()
    def save_and_restore(self) -> None:
        state = through_a_file(self.clock.state())
        self.clock = OptionClock(len(self.model))
        self.clock.restore(state)

    @invariant()
    def is_the_same(self) -> None:
        clock = self.clock
        found = zip(clock.action, clock.planned, clock.elapsed, clock.left, clock.exploratory, strict=True)
        assert [dict(zip(self.model[0], map(int, values), strict=True)) for values in found] == [
            {name: int(value) for name, value in env.items()} for env in self.model
        ]


class Trees(RuleBasedStateMachine):
    """Priority trees beside a dictionary of priorities for each."""

    @initialize(n_trees=st.integers(1, 3), capacity=st.integers(1, 9), alpha=st.sampled_from([0.0, 0.5, 1.0]))
    def make(self, n_trees: int, capacity: int, alpha: float) -> None:
        self.trees = PriorityTrees(n_trees, capacity, alpha)
        self.model: list[dict[int, float]] = [{} for _ in range(n_trees)]
        self.largest = [1.0] * n_trees

    def rows(self, data: st.DataObject) -> list[int]:
        return data.draw(st.lists(st.integers(0, self.trees.capacity - 1), max_size=4, unique=True))

    @rule(data=st.data())
    def enter(self, data: st.DataObject) -> None:
        rows = self.rows(data)
        members = np.array([[data.draw(st.booleans()) for _ in self.model] for _ in rows], dtype=bool)
        self.trees.enter(np.array(rows, dtype=np.int64), members.reshape(len(rows), len(self.model)))
        for row, views in zip(rows, members, strict=True):
            for tree in np.flatnonzero(views):
                self.model[tree][row] = self.largest[tree] ** self.trees.alpha

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        rows = self.rows(data)
        self.trees.remove(np.array(rows, dtype=np.int64))
        for view in self.model:
            for row in rows:
                view.pop(row, None)

    @rule(data=st.data())
    def update(self, data: st.DataObject) -> None:
        rows = self.rows(data)
        priorities = [[data.draw(st.floats(0.001, 100.0)) for _ in rows] for _ in self.model]
        shape = (len(self.model), len(rows))
        self.trees.update(
            np.broadcast_to(np.array(rows, dtype=np.int64), shape).copy(), np.array(priorities).reshape(shape)
        )
        for tree, view in enumerate(self.model):
            for row, priority in zip(rows, priorities[tree], strict=True):
                if row in view:
                    view[row] = priority**self.trees.alpha
                    self.largest[tree] = max(self.largest[tree], priority)

    @rule(data=st.data(), beta=st.floats(0.0, 1.0), batch=st.integers(1, 6))
    def sample(self, data: st.DataObject, beta: float, batch: int) -> None:
        shares = np.array([[data.draw(st.floats(0.0, 0.999)) for _ in range(batch)] for _ in self.model])
        rows, weights = self.trees.sample(shares, beta)
        for tree, view in enumerate(self.model):
            for place in range(batch):
                row = int(rows[tree, place])
                if not view:
                    assert (row, weights[tree, place]) == (0, 0.0)
                    continue
                expected = (view[row] / min(view.values())) ** -beta
                np.testing.assert_allclose(weights[tree, place], expected)
                # Its share of the line on which all priorities lie side by side.
                mass = (place + shares[tree, place]) / batch * sum(view.values())
                before = sum(priority for other, priority in view.items() if other < row)
                slack = 1e-9 * sum(view.values())
                assert before - slack <= mass <= before + view[row] + slack

    @rule()
    def save_and_restore(self) -> None:
        trees = self.trees
        state = through_a_file(trees.state(trees.capacity))
        self.trees = PriorityTrees(len(self.model), trees.capacity, trees.alpha)
        self.trees.restore(state, trees.capacity)
        assert self.trees.sums.tobytes() == trees.sums.tobytes()
        assert self.trees.least.tobytes() == trees.least.tobytes()

    @invariant()
    def is_the_same(self) -> None:
        for tree, view in enumerate(self.model):
            found = self.trees.priorities(tree)
            assert found.tolist() == [view.get(row, 0.0) for row in range(self.trees.capacity)]
            np.testing.assert_allclose(self.trees.totals[tree], sum(view.values()))
        assert self.trees.largest.tolist() == self.largest


SHAPE = (2, 3, 3)


class Frames(RuleBasedStateMachine):
    """A store of frames beside a dictionary of observations, and its pool beside a count of planes."""

    def __init__(self) -> None:
        super().__init__()
        self.n_own = 5
        self.store = FrameStore(self.n_own, SHAPE, np.uint8)
        self.model = {row: np.zeros(SHAPE, np.uint8) for row in range(self.n_own)}

    def observation(self, data: st.DataObject) -> Any:
        """Two planes out of few, so that they are often shared; 0 is black."""
        first, second = (data.draw(st.integers(0, 3)) for _ in range(2))
        return np.stack([np.full(SHAPE[1:], first, np.uint8), np.full(SHAPE[1:], second, np.uint8)])

    @rule(data=st.data())
    def put(self, data: st.DataObject) -> None:
        rows = data.draw(st.lists(st.sampled_from(sorted(self.model)), min_size=1, max_size=3, unique=True))
        observations = [self.observation(data) for _ in rows]
        self.store.put(np.array(rows), np.array(observations))
        self.model.update(zip(rows, observations, strict=True))

    @rule(data=st.data())
    def lend(self, data: st.DataObject) -> None:
        row = self.store.lend()
        assert row >= self.n_own
        assert row not in self.model
        self.model[row] = self.observation(data)
        self.store.put(np.array([row]), self.model[row][None])

    @precondition(lambda self: len(self.model) > self.n_own)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(sorted(set(self.model) - set(range(self.n_own)))))
        self.store.give_back(row)
        del self.model[row]

    @rule()
    def save_and_restore(self) -> None:
        lent = np.array(sorted(set(self.model) - set(range(self.n_own))), dtype=np.int64)
        before = self.store.state(self.n_own)
        self.store = FrameStore(self.n_own, SHAPE, np.uint8)
        self.store.restore(through_a_file(before), self.n_own, lent)
        after = self.store.state(self.n_own)
        assert {name: after[name].tobytes() for name in ("own", "lent", "frames")} == {
            name: before[name].tobytes() for name in ("own", "lent", "frames")
        }

    @rule(data=st.data())
    def compare(self, data: st.DataObject) -> None:
        rows = sorted(self.model)
        asked = np.array([data.draw(st.sampled_from([self.model[row], self.observation(data)])) for row in rows])
        expected = [bool((self.model[row] == one).all()) for row, one in zip(rows, asked, strict=True)]
        assert self.store.same(np.array(rows), asked).tolist() == expected

    @invariant()
    def is_the_same(self) -> None:
        rows = sorted(self.model)
        np.testing.assert_array_equal(self.store.get(np.array(rows)), np.array([self.model[row] for row in rows]))
        planes = Counter(plane.tobytes() for observation in self.model.values() for plane in observation)
        planes.pop(bytes(9), None)
        assert self.store.pool.n_used == len(planes)
        assert int(self.store.pool.uses[1:].sum()) == planes.total()


class Pool(RuleBasedStateMachine):
    """A pool of frames beside a count of them."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = FramePool(2, 8)
        self.model: Counter[int] = Counter()
        self.places: dict[int, int] = {}

    @rule(numbers=st.lists(st.integers(1, 40), min_size=1, max_size=5))
    def use(self, numbers: list[int]) -> None:
        frames = np.array([[number] * 8 for number in numbers], dtype=np.uint8)
        for number, place in zip(numbers, self.pool.use(self.pool.as_words(frames)).tolist(), strict=True):
            assert self.places.setdefault(number, place) == place
            self.model[number] += 1

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.model)))
        self.pool.give_up(np.array([self.places[number]], dtype=np.int32))
        self.model[number] -= 1
        self.model = +self.model
        self.places = {number: place for number, place in self.places.items() if number in self.model}

    @rule()
    def refill(self) -> None:
        numbers = sorted(self.model)
        frames = np.array([[number] * 8 for number in numbers], dtype=np.uint8).reshape(-1, 8)
        self.pool.refill(frames, np.array([self.model[number] for number in numbers], dtype=np.int32))
        self.places = {number: place for place, number in enumerate(numbers, start=1)}

    @invariant()
    def is_the_same(self) -> None:
        assert self.pool.n_used == len(self.model)
        assert len(set(self.places.values())) == len(self.places)
        for number, place in self.places.items():
            assert self.pool.uses[place] == self.model[number]
            assert self.pool.read(np.array([place])).view(np.uint8).tolist() == [[number] * 8]


ENDS = st.sampled_from(["goes on"] * 6 + ["terminated", "truncated"])


class Ring(RuleBasedStateMachine):
    """The ring beside the paper's lists."""

    @initialize(
        n_envs=st.integers(1, 3),
        capacity=st.integers(4, 8),
        k_max=st.integers(1, 3),
        space=st.sampled_from(["box", "image", "discrete", "dict"]),
        prioritized=st.booleans(),
    )
    def make(self, n_envs: int, capacity: int, k_max: int, space: str, prioritized: bool) -> None:
        self.trial = Trial(n_envs, capacity, k_max, space, prioritized=prioritized)
        self.made_of = (capacity * n_envs, n_envs, k_max, prioritized)
        self.mask = st.lists(st.booleans(), min_size=n_envs, max_size=n_envs)

    @rule(data=st.data(), announced=st.booleans(), times=st.integers(1, 4))
    def step(self, data: st.DataObject, announced: bool, times: int) -> None:
        choice = st.builds(
            EnvChoice, st.integers(0, N_ACTIONS - 1), st.integers(1, self.trial.k_max), st.integers(-8, 8), ENDS
        )
        for _ in range(times):
            self.trial.step([data.draw(choice) for _ in range(self.trial.n_envs)], announced)

    @rule(data=st.data())
    def jump(self, data: st.DataObject) -> None:
        self.trial.jump(data.draw(self.mask))

    @rule(data=st.data())
    def interrupt(self, data: st.DataObject) -> None:
        self.trial.interrupt(data.draw(self.mask))

    @rule()
    def save_and_restore(self) -> None:
        size, n_envs, k_max, prioritized = self.made_of
        state = self.trial.buffer.state()
        self.trial.buffer = OptionReplayBuffer(
            size,
            self.trial.space,
            spaces.Discrete(N_ACTIONS),
            device="cpu",
            n_envs=n_envs,
            k_max=k_max,
            gamma=GAMMA,
            prioritized=prioritized,
        )
        self.trial.buffer.restore(through_a_file(state))

    @invariant()
    def is_the_same(self) -> None:
        if hasattr(self, "trial"):
            self.trial.check()


for machine in (Clocks, Trees, Frames, Pool, Ring):
    machine.TestCase.settings = LENGTH

TestClocks = Clocks.TestCase
TestTrees = Trees.TestCase
TestFrames = Frames.TestCase
TestPool = Pool.TestCase
TestRing = Ring.TestCase
