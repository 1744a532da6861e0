"""Frames that are kept once, however often they are used: found by their content, given up with their last use.

Every frame has a number. Number 0 is the black one, all zeros, which is always there; the others count their uses.
To find out whether a frame is already kept, the pool looks among those of the same hash and compares every byte: a
collision of hashes costs time, never correctness.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.compiling import compiled

__all__ = ["FramePool", "frame_hashes"]

Numbers = NDArray[np.int32]

_FIELD_BYTES = 4 + 8 + 4 + 4
"""What a frame takes beside its content: uses, hash, the next frame of its bucket, a place among the free ones."""


def frame_hashes(frames: NDArray[np.unsignedinteger], weights: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Σ_i w_i·x_i mod 2^64 of each frame's words x_i, (n, words) -> (n,).

    With random weights, the upper bits of two different frames' hashes agree as rarely as random numbers do.
    """
    return _hashes(frames, weights)


class FramePool:
    """Numbered frames, each of which is kept once.

    Args:
        n_frames: How many are expected. There is room for some more from the start, since making room may take a
            copy of everything; the system gives memory to a frame only when it is first written.
        n_bytes: Bytes of a frame.
    """

    def __init__(self, n_frames: int, n_bytes: int) -> None:
        capacity = _capacity(n_frames)
        self._most_used = n_frames
        self.frames = np.zeros((capacity, n_bytes // _word(n_bytes).itemsize), dtype=_word(n_bytes))
        self.uses = np.zeros(capacity, dtype=np.int32)
        self._weights = np.random.default_rng(0).integers(0, 2**64, self.frames.shape[1], dtype=np.uint64)
        self._hashes = np.zeros(capacity, dtype=np.uint64)
        self._following = np.zeros(capacity, dtype=np.int32)
        self._buckets = np.zeros(_n_buckets(capacity), dtype=np.int32)
        self._free = np.arange(capacity - 1, -1, -1, dtype=np.int32)
        self._n_free = capacity - 1

    @staticmethod
    def bytes_needed(n_frames: int, n_bytes: int) -> int:
        """Memory of a pool with as many frames as are expected."""
        capacity = _capacity(n_frames)
        weights = 8 * (n_bytes // _word(n_bytes).itemsize)
        return (n_frames + 1) * n_bytes + capacity * _FIELD_BYTES + 4 * _n_buckets(capacity) + weights

    @property
    def nbytes(self) -> int:
        """Memory of the frames that were written or are still expected, and of all tables."""
        tables = (self.uses, self._weights, self._hashes, self._following, self._buckets, self._free)
        return (self._most_used + 1) * self.frames[0].nbytes + sum(table.nbytes for table in tables)

    @property
    def n_used(self) -> int:
        """Frames that are kept now, the black one not counted."""
        return len(self.frames) - 1 - self._n_free

    def as_words(self, frames: NDArray[np.uint8]) -> NDArray[np.unsignedinteger]:
        """Frames (n, bytes), contiguous, as the pool keeps them: (n, words)."""
        return frames.view(self.frames.dtype)

    def use(self, words: NDArray[np.unsignedinteger]) -> Numbers:
        """The numbers of frames (n, words), each of which has one use more from now on."""
        if len(words) > self._n_free:
            self._grow(len(words) - self._n_free)
        numbers = np.empty(len(words), dtype=np.int32)
        self._n_free = _use(
            words,
            frame_hashes(words, self._weights),
            numbers,
            self.frames,
            self.uses,
            self._hashes,
            self._following,
            self._buckets,
            self._free,
            self._n_free,
        )
        self._most_used = max(self._most_used, self.n_used)
        return numbers

    def give_up(self, numbers: Numbers) -> None:
        """Each of these has one use less; frames without any are forgotten."""
        self._n_free = _give_up(
            numbers, self.uses, self._hashes, self._following, self._buckets, self._free, self._n_free
        )

    def read(self, numbers: Numbers) -> NDArray[np.unsignedinteger]:
        """A copy of frames, (numbers' shape, words)."""
        return self.frames[numbers]

    def same(self, numbers: Numbers, words: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
        """Whether frames with these numbers are those in ``words``, (n, words) -> (n,)."""
        return _same(numbers, words, self.frames)

    def refill(self, frames: NDArray[np.uint8], uses: Numbers) -> None:
        """Forget everything and keep ``frames`` (n, bytes) as numbers 1..n, used so many times each."""
        count = len(frames)
        if count > len(self.frames) - 1:
            self._n_free = 0
            self._grow(count - (len(self.frames) - 1))
        self.frames[1 : count + 1] = frames.view(self.frames.dtype)
        self.uses[:] = 0
        self.uses[1 : count + 1] = uses
        # In portions: hashing needs room for what it hashes.
        for start in range(1, count + 1, 256):
            portion = slice(start, min(start + 256, count + 1))
            self._hashes[portion] = frame_hashes(self.frames[portion], self._weights)
        self._n_free = len(self.frames) - 1 - count
        self._most_used = max(self._most_used, count)
        self._free[: self._n_free] = np.arange(len(self.frames) - 1, count, -1)
        _link_all(self.uses, self._hashes, self._following, self._buckets)

    def _grow(self, at_least: int) -> None:
        """Make room for ``at_least`` frames more."""
        old = len(self.frames)
        new = old + max(at_least, 64, old // 32)
        if not self.frames.flags.owndata:
            # It came out of a pickle, which keeps the memory to itself.
            self.frames = self.frames.copy()
        # In place: two copies may be more than fits, and on Linux only the first call makes one. No views exist.
        self.frames.resize((new, self.frames.shape[1]), refcheck=False)
        more = np.zeros(new - old, dtype=np.int32)
        self.uses, self._following = np.concatenate([self.uses, more]), np.concatenate([self._following, more])
        self._hashes = np.concatenate([self._hashes, more.astype(np.uint64)])
        # The free ones of before are taken first.
        free = np.arange(new - 1, old - 1, -1, dtype=np.int32)
        self._free = np.concatenate([free, self._free])
        self._n_free += new - old
        if _n_buckets(new) > len(self._buckets):
            self._buckets = np.zeros(_n_buckets(new), dtype=np.int32)
            _link_all(self.uses, self._hashes, self._following, self._buckets)


def _word(n_bytes: int) -> np.dtype[np.unsignedinteger]:
    """What hashes and comparisons take a frame's bytes as."""
    return np.dtype(np.uint32 if n_bytes % 4 == 0 else np.uint8)


def _capacity(n_frames: int) -> int:
    """Room for as many frames as are expected, for the black one, and for an eighth more."""
    return n_frames + 1 + n_frames // 8


def _n_buckets(capacity: int) -> int:
    """A power of two, so that a bucket is the upper bits of a hash, and at least 2."""
    return 1 << max(1, (capacity - 1).bit_length())


@compiled
def _hashes(frames: NDArray[np.unsignedinteger], weights: NDArray[np.uint64]) -> NDArray[np.uint64]:
    hashes = np.empty(len(frames), dtype=np.uint64)
    for index in range(len(frames)):
        hashes[index] = (frames[index] * weights).sum()
    return hashes


@compiled
def _bucket(frame_hash: np.uint64, n_buckets: int) -> int:
    """Which bucket a frame is in: the upper bits of its hash."""
    bits = 0
    while n_buckets > 1:
        n_buckets //= 2
        bits += 1
    return int(frame_hash >> np.uint64(64 - bits))


@compiled
def _equal(one: NDArray[np.unsignedinteger], other: NDArray[np.unsignedinteger]) -> bool:
    # To the end, although a difference may come early: where hashes agree there is hardly ever one, and a loop
    # without a way out is faster.
    differing = one[0] ^ other[0]
    for index in range(1, len(one)):
        differing |= one[index] ^ other[index]
    return differing == 0


@compiled
def _use(
    words: NDArray[np.unsignedinteger],
    word_hashes: NDArray[np.uint64],
    numbers: Numbers,
    frames: NDArray[np.unsignedinteger],
    uses: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    following: NDArray[np.int32],
    buckets: NDArray[np.int32],
    free: NDArray[np.int32],
    n_free: int,
) -> int:
    """Find or keep each of ``words`` and write its number; returns how many frames are still free."""
    for index in range(len(words)):
        if word_hashes[index] == 0 and _equal(words[index], frames[0]):
            numbers[index] = 0
            continue
        bucket = _bucket(word_hashes[index], len(buckets))
        number = buckets[bucket]
        while number != 0:
            if hashes[number] == word_hashes[index] and _equal(frames[number], words[index]):
                break
            number = following[number]
        if number == 0:
            n_free -= 1
            number = free[n_free]
            frames[number] = words[index]
            hashes[number] = word_hashes[index]
            following[number] = buckets[bucket]
            buckets[bucket] = number
        uses[number] += 1
        numbers[index] = number
    return n_free


@compiled
def _give_up(
    numbers: Numbers,
    uses: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    following: NDArray[np.int32],
    buckets: NDArray[np.int32],
    free: NDArray[np.int32],
    n_free: int,
) -> int:
    """Count one use less of each number; returns how many frames are free now."""
    for number in numbers:
        if number == 0:
            continue
        uses[number] -= 1
        if uses[number] > 0:
            continue
        bucket = _bucket(hashes[number], len(buckets))
        if buckets[bucket] == number:
            buckets[bucket] = following[number]
        else:
            before = buckets[bucket]
            while following[before] != number:
                before = following[before]
            following[before] = following[number]
        free[n_free] = number
        n_free += 1
    return n_free


@compiled
def _link_all(
    uses: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    following: NDArray[np.int32],
    buckets: NDArray[np.int32],
) -> None:
    """Put every frame that is used into its bucket, and nothing else."""
    buckets[:] = 0
    for number in range(1, len(uses)):
        if uses[number] > 0:
            bucket = _bucket(hashes[number], len(buckets))
            following[number] = buckets[bucket]
            buckets[bucket] = number


@compiled
def _same(
    numbers: Numbers, words: NDArray[np.unsignedinteger], frames: NDArray[np.unsignedinteger]
) -> NDArray[np.bool_]:
    found = np.empty(len(numbers), dtype=np.bool_)
    for index in range(len(numbers)):
        found[index] = _equal(frames[numbers[index]], words[index])
    return found
