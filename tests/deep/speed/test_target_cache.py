"""Kept target values: computed once, never stale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.deep import PerDQN
from holdfast.deep.speed.target_cache import TargetCache
from tests.deep.earlier_settings import earlier


class Written:
    """Rows as a replay stamps them, and a network that changes."""

    def __init__(self, n_rows):
        self.stamps = np.zeros(n_rows, np.int64)
        self.network = 0
        self.computed = []

    def put(self, rows):
        self.stamps[rows] = self.stamps.max() + 1

    def values(self, rows):
        rows = np.asarray(rows)
        said = 10_000 * self.network + 100 * self.stamps[rows] + rows
        return np.broadcast_to(said[:, None, None], (len(rows), 2, 3)).astype(np.float32)

    def compute(self, rows):
        self.computed += [(row, int(self.stamps[row]), self.network) for row in rows.tolist()]
        return self.values(rows)

    def grow(self, more):
        self.stamps = np.concatenate([self.stamps, np.zeros(more, np.int64)])


@given(st.data())
def test_kept_values_are_what_would_be_computed_now(data):
    world, kept = Written(12), TargetCache((2, 3))
    rows = st.lists(st.integers(0, 11), min_size=1, max_size=6).map(np.array)
    commands = st.sampled_from(["need", "need", "put", "all", "grow"])
    for name, chosen in data.draw(st.lists(st.tuples(commands, rows))):
        match name:
            case "need":
                found = kept.need(chosen, world.stamps, (world.network,), world.compute)
                np.testing.assert_array_equal(found[chosen], world.values(chosen))
            case "put":
                world.put(chosen)
            case "all":
                world.network += 1
            case "grow":
                world.grow(3)
    assert len(world.computed) == len(set(world.computed)), "something was computed twice"


def test_each_distinct_row_is_asked_for_once():
    kept, asked, stamps = TargetCache((1,)), [], np.zeros(8, np.int64)

    def compute(rows):
        asked.append(rows.tolist())
        return 10.0 * rows[:, None]

    for rows in ([[3, 5, 3], [5, 1, 3]], [[1, 7, 7]], [[7, 3, 1]]):
        found = kept.need(np.array(rows), stamps, ("one",), compute)
    assert asked == [[3, 5, 1], [7]]
    assert found[[1, 3, 5, 7], 0].tolist() == [10.0, 30.0, 50.0, 70.0]


def test_rows_are_not_known_after_a_computation_that_failed():
    kept, stamps = TargetCache((1,)), np.zeros(4, np.int64)
    kept.need(np.array([0]), stamps, (), lambda rows: np.full((1, 1), 5.0))

    def fail(rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept.need(np.array([0, 2, 3]), stamps, (), fail)
    asked = []

    def compute(rows):
        asked.extend(rows.tolist())
        return np.full((len(rows), 1), 7.0)

    found = kept.need(np.array([0, 2]), stamps, (), compute)
    assert asked == [2]
    assert found[[0, 2], 0].tolist() == [5.0, 7.0]


def test_another_replay_in_the_place_of_the_first_is_asked_anew():
    model, other = (
        PerDQN(
            "MlpPolicy",
            "CartPole-v1",
            **earlier(PerDQN, {"k_max": 2, "buffer_size": 100, "learning_starts": 10, "seed": seed}),
        )
        for seed in (1, 2)
    )
    model.learn(30)
    other.learn(30)
    assert len(model.target_cache.known(model)) > 0
    model.replay_buffer = other.replay_buffer
    assert len(model.target_cache.known(model)) == 0
    rows = np.arange(5)
    found = model.target_cache.values_of(model, rows)[rows]
    expected = model.q_net_target(other.replay_buffer.observations_at(rows)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_memory_that_is_announced_is_the_memory_that_is_used():
    kept = TargetCache((2, 3))
    kept.need(np.array([1]), np.zeros(40, np.int64), (), lambda rows: np.zeros((len(rows), 2, 3), np.float32))
    assert TargetCache.bytes_needed(40, (2, 3)) == kept.values.nbytes + kept._stamps.nbytes


def test_an_agent_whose_cache_does_not_fit_is_refused(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "holdfast.deep.agents.option_dqn.check_fits", lambda what, n_bytes: asked.append((what, n_bytes))
    )
    model = PerDQN("MlpPolicy", "CartPole-v1", k_max=3, buffer_size=100)
    size = model.replay_buffer.nbytes + 101 * (4 * 2 * 3 + 8)
    assert asked == [("the replay of buffer_size=100", size)]
