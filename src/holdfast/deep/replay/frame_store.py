"""Each frame once: images are kept as frames that the observations share, and put together when they are read.

An observation of a frame stack is the one before it, moved on by one frame. Here an observation is the list of its
planes (the first axis: channels, stacked frames, or both), and a plane that some row of the store already has is
not kept again. Nothing is assumed about the environment: a stack that begins with black frames or with copies of
its first one, the last observation of an episode, several environments and transitions from elsewhere all share
what they have in common. Where there is nothing in common, every plane is kept: correct as well, only larger.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take_array
from holdfast.deep.replay.frame_pool import FramePool
from holdfast.deep.replay.memory import check_fits
from holdfast.deep.replay.observation_store import ArrayStore, Rows

__all__ = ["FrameStore", "may_share_frames"]

_FEWEST_BYTES = 512
"""Of a plane; below, what is written beside each would be worth mentioning."""

_MOST_PLANES = 64

_FIRST_FORECAST = 1024
"""Frames after which memory is forecast for the first time."""


def may_share_frames(space: spaces.Space[Any]) -> bool:
    """Whether observations of ``space`` are images of several planes, with the planes first."""
    if not isinstance(space, spaces.Box) or space.dtype.kind not in "bui" or len(space.shape) < 3:
        return False
    planes = space.shape[0]
    is_first = planes == min(space.shape)
    return 2 <= planes <= _MOST_PLANES and is_first and _plane_bytes(space.shape, space.dtype) >= _FEWEST_BYTES


class FrameStore:
    """Images whose planes are kept once each; rows hold the numbers of their planes.

    Args:
        n_rows: The ring's own rows.
        shape: Shape of an observation, the planes first.
        dtype: Its type, of whole numbers.
    """

    def __init__(self, n_rows: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.numbers = ArrayStore(n_rows, (self.shape[0],), np.int32)
        self.pool = FramePool(_frames_at_first(n_rows, self.shape), _plane_bytes(self.shape, self.dtype))
        self._forecast_at = _FIRST_FORECAST

    @staticmethod
    def bytes_needed(n_rows: int, shape: tuple[int, ...], dtype: Any) -> int:
        """Memory of a store of observations that add one plane each."""
        frames = FramePool.bytes_needed(_frames_at_first(n_rows, shape), _plane_bytes(shape, np.dtype(dtype)))
        return frames + n_rows * shape[0] * np.dtype(np.int32).itemsize

    def put(self, rows: Rows, observations: NDArray[Any]) -> None:
        """Write one observation into each row; the rows must be distinct."""
        if self.pool.n_used >= self._forecast_at:
            self._forecast()
        # The new ones first: what they share with the old ones stays.
        new = self.pool.use(self._words(observations, len(rows)))
        old = self.numbers.get(rows)
        self.numbers.put(rows, new)
        self.pool.give_up(old.ravel())

    def get(self, rows: Rows) -> NDArray[Any]:
        """A copy of the observations in the rows."""
        found = self.pool.read(self.numbers.get(rows))
        return found.view(self.dtype).reshape(*rows.shape, *self.shape)

    def same(self, rows: Rows, observations: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each row holds exactly that observation."""
        words = self._words(observations, len(rows))
        same_planes = self.pool.same(self.numbers.get(rows).ravel(), words)
        return np.logical_and.reduce(same_planes.reshape(len(rows), -1), axis=1)

    def lend(self) -> int:
        """The number of a free row behind the ring's own."""
        return self.numbers.lend()

    def give_back(self, row: int) -> None:
        """A lent row is free again, and black."""
        place = np.array([row])
        self.pool.give_up(self.numbers.get(place).ravel())
        self.numbers.put(place, np.zeros((1, self.shape[0]), dtype=np.int32))
        self.numbers.give_back(row)

    def state(self, n_rows: int) -> dict[str, Any]:
        """A copy of the first ``n_rows`` rows and of all that are lent, with the frames that they use.

        Frames are numbered in the order in which the rows first use them, whatever their numbers were: equal
        observations have equal states.
        """
        state = self.numbers.state(n_rows)
        n_own = state["own"].size
        numbers = np.concatenate([state["own"].ravel(), state["lent"].ravel()])
        order = _by_first_use(numbers, len(self.pool.frames))
        renumbered = np.zeros(len(self.pool.frames), dtype=np.int32)
        renumbered[order] = np.arange(1, len(order) + 1)
        state["own"] = renumbered[numbers[:n_own]].reshape(state["own"].shape)
        state["lent"] = renumbered[numbers[n_own:]].reshape(state["lent"].shape)
        frames = self.pool.read(order).view(self.dtype)
        return {**state, "frames": frames.reshape(len(order), *self.shape[1:])}

    def restore(self, state: Mapping[str, Any], n_rows: int, lent: Rows) -> None:
        """Go on from what ``state`` returned for ``n_rows`` rows, of which the rows in ``lent`` are lent."""
        if "frames" not in state and getattr(state.get("own"), "ndim", 0) > 2:
            self._restore_stacks(state, n_rows, lent)
            return
        own_rows, planes = len(self.numbers.own), self.shape[0]
        restored = ArrayStore(own_rows, (planes,), np.int32)
        restored.restore(state, n_rows, lent)
        numbers = np.concatenate([restored.own.ravel(), restored.lent.ravel()])
        frames = take_array(state, "frames", self.dtype, (None, *self.shape[1:]), len(numbers))
        if restored.lent[restored.free].any():
            raise InputError("the saved state must have no frames in rows that are free")
        if numbers.min() < 0 or numbers.max() > len(frames):
            raise InputError("the saved state must point at frames that it has")
        uses = np.bincount(numbers, minlength=len(frames) + 1)[1:]
        if not uses.all():
            raise InputError("the saved state must have only frames that its replay uses")
        self.numbers = restored
        self.pool.refill(_bytes_of(frames), uses.astype(np.int32))

    def _restore_stacks(self, state: Mapping[str, Any], n_rows: int, lent: Rows) -> None:
        """Go on from a state that has every observation as a whole, as ``ArrayStore`` writes it."""
        whole = ArrayStore(len(self.numbers.own), self.shape, self.dtype)
        whole.restore(state, n_rows, lent)
        restored = ArrayStore(len(self.numbers.own), self.shape[:1], np.int32)
        restored.lent = np.zeros((len(whole.lent), self.shape[0]), dtype=np.int32)
        restored.free = list(whole.free)
        self.numbers = restored
        self.pool.refill(
            np.zeros((0, _plane_bytes(self.shape, self.dtype)), dtype=np.uint8), np.zeros(0, np.int32)
        )
        for row in (*range(n_rows), *lent.tolist()):
            place = np.array([row])
            self.put(place, whole.get(place))

    @property
    def own(self) -> NDArray[Any]:
        """A copy of the observations in the ring's own rows."""
        return self.get(np.arange(len(self.numbers.own)))

    @property
    def lent(self) -> NDArray[Any]:
        """A copy of the observations in the rows behind them."""
        return self.get(np.arange(len(self.numbers.own), self.n_rows))

    @property
    def free(self) -> list[int]:
        """Which of the rows behind the ring's own are free, counted from its end."""
        return self.numbers.free

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return self.numbers.n_rows

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return self.pool.nbytes + self.numbers.nbytes

    def _words(self, observations: NDArray[Any], count: int) -> NDArray[np.unsignedinteger]:
        """Planes of observations, one after the other, as words of the pool."""
        # A copy: an array that somebody else made may be neither contiguous nor writable nor aligned.
        copied = np.array(observations, dtype=self.dtype, order="C")
        return self.pool.as_words(_bytes_of(copied.reshape(count * self.shape[0], *self.shape[1:])))

    def _forecast(self) -> None:
        """Refuse early what will not fit: observations that share less than a stack does need more memory."""
        written = int(np.count_nonzero(self.numbers.own.any(axis=1)))
        expected = self.pool.n_used * len(self.numbers.own) // max(written, 1)
        if expected > len(self.pool.frames):
            more = expected - self.pool.n_used
            what = "at this buffer_size, the rest of a replay of these images"
            check_fits(what, more * _plane_bytes(self.shape, self.dtype))
        self._forecast_at = 2 * self.pool.n_used


def _plane_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return math.prod(shape[1:]) * dtype.itemsize


def _bytes_of(planes: NDArray[Any]) -> NDArray[np.uint8]:
    """(n, ...) planes as (n, bytes)."""
    contiguous = np.ascontiguousarray(planes)
    return contiguous.reshape(len(planes), math.prod(planes.shape[1:])).view(np.uint8)


def _frames_at_first(n_rows: int, shape: tuple[int, ...]) -> int:
    """Each row adds one frame; the oldest one still uses those before it, and the next one needs room."""
    return n_rows + 2 * shape[0]


def _by_first_use(numbers: NDArray[np.int32], n_numbers: int) -> NDArray[np.int32]:
    """The distinct numbers but 0, of ``n_numbers`` that there are, in the order of their first places."""
    never = len(numbers)
    first = np.full(n_numbers, never)
    # Of several places the last one that is written counts: the first one.
    first[numbers[::-1]] = np.arange(never - 1, -1, -1)
    used = np.flatnonzero(first[1:] < never) + 1
    return used[np.argsort(first[used])].astype(np.int32)
