"""Frames by content: each is kept once, as long as it is used."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.deep.replay.frame_pool import FramePool, frame_hashes


def frame(number, n_bytes=8):
    """A frame of its own for every number; 0 is black."""
    return np.array([number % 251, number // 251] * (n_bytes // 2), dtype=np.uint8)[:n_bytes]


def use(pool, numbers, n_bytes=8):
    return pool.use(pool.as_words(np.array([frame(number, n_bytes) for number in numbers])))


def test_a_hash_is_a_weighted_sum_of_words():
    frames = np.array([[1, 2, 3], [0, 0, 0], [0, 1, 0]], dtype=np.uint32)
    weights = np.array([10, 100, 2**63], dtype=np.uint64)
    # 1·10 + 2·100 + 3·2^63, of which 2^64 is dropped.
    assert frame_hashes(frames, weights).tolist() == [210 + 2**63, 0, 100]
    assert frame_hashes(np.array([[255, 1]], dtype=np.uint8), weights[:2]).tolist() == [2650]


@pytest.mark.parametrize("weights", ["random", "all alike"])
@pytest.mark.parametrize("n_bytes", [8, 6])
@given(st.data())
def test_a_pool_is_a_count_of_frames(n_bytes, weights, data):
    pool, literal = FramePool(2, n_bytes), Counter()
    if weights == "all alike":  # every frame of the same sum collides, and with 0 all frames do
        pool._weights[:] = data.draw(st.sampled_from([0, 1]))
    known = {}
    for _ in range(data.draw(st.integers(0, 25), label="commands")):
        if data.draw(st.booleans()) or not literal:
            asked = data.draw(st.lists(st.integers(0, 300), min_size=1, max_size=5))
            found = use(pool, asked, n_bytes).tolist()
            for number, place in zip(asked, found, strict=True):
                assert known.setdefault(number, place) == place
                literal[number] += number > 0
        else:
            number = data.draw(st.sampled_from(sorted(literal)))
            pool.give_up(np.array([known[number]], dtype=np.int32))
            literal[number] -= 1
        literal = +literal
        known = {number: place for number, place in known.items() if number in literal or number == 0}
        assert known.get(0, 0) == 0
        assert pool.n_used == len(literal)
        assert len(set(known.values())) == len(known)
        for number, place in known.items():
            words = pool.as_words(frame(number, n_bytes)[None])
            assert pool.read(np.array([place]))[0].tolist() == words[0].tolist()
            assert pool.same(np.array([place], dtype=np.int32), words).all()
            assert number == 0 or pool.uses[place] == literal[number]


def test_frames_that_differ_are_not_the_same():
    pool = FramePool(4, 8)
    places = use(pool, [1, 2, 0])
    words = pool.as_words(np.array([frame(1), frame(1), frame(7)]))
    assert pool.same(places, words).tolist() == [True, False, False]


def test_a_frame_that_is_given_up_makes_room():
    pool = FramePool(8, 8)
    before = len(pool.frames)
    for number in range(1, 400):
        pool.give_up(use(pool, [number, number, number + 500, 0]))
    assert pool.n_used == 0
    assert len(pool.frames) == before


@pytest.mark.parametrize("pickled", [False, True])
def test_growing_keeps_what_there_is(pickled):
    pool = FramePool(3, 8)
    places = {number: use(pool, [number])[0] for number in range(1, 4)}
    if pickled:
        pool = pickle.loads(pickle.dumps(pool, protocol=5))
    places |= {number: use(pool, [number])[0] for number in range(4, 700)}
    assert len(pool.frames) > 700
    for number, place in places.items():
        assert use(pool, [number])[0] == place
        assert pool.uses[place] == 2
    assert 700 * (8 + 20) <= pool.nbytes <= 800 * (8 + 20 + 8)


def test_a_pool_can_be_filled_anew():
    pool = FramePool(3, 8)
    use(pool, [1, 2, 3, 3])
    contents = [9, 2, *range(20, 120)]
    pool.refill(np.array([frame(number) for number in contents]), np.full(len(contents), 2, dtype=np.int32))
    assert pool.n_used == 102
    assert use(pool, [2, 9, 119]).tolist() == [2, 1, 102]
    assert use(pool, [1]).tolist() == [103]
    pool.give_up(np.array([2, 2, 2], dtype=np.int32))
    assert pool.n_used == 102
    assert use(pool, [2, 200]).tolist() == [2, 104]
    assert pool.uses[[1, 2, 104]].tolist() == [3, 1, 1]


def test_the_memory_that_is_announced_is_the_memory_that_is_used():
    for n_frames, n_bytes in ((1, 6), (10, 8), (127, 900), (128, 900)):
        assert FramePool(n_frames, n_bytes).nbytes == FramePool.bytes_needed(n_frames, n_bytes)
