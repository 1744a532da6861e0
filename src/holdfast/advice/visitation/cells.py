"""What counts as a place, and visits to each: states, cells of a plane, or distinct observations."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.advice.visitation.observation_numbers import number_names, numbers_of
from holdfast.core.array_types import Floats, Integers
from holdfast.core.errors import InputError
from holdfast.envs import place_names

__all__ = [
    "BINS",
    "WIDEST_CHOICE",
    "Cells",
    "Visits",
    "cell_numbers",
    "coverage",
    "entropy",
    "most_telling_axes",
    "visits_in",
]


BINS = 50
"""Number of cells along each axis of a plane."""

WIDEST_CHOICE = 32
"""Largest observation, in numbers, of which two are chosen for a plane."""

Again = Callable[[int], Iterator[NDArray[Any]]]
"""Replays everything that a setting saw, given the setting's number."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The places of a study.

    Attributes:
        kind: ``"plane"``: two of the numbers of an observation (``observation_numbers``), divided into cells;
            ``"states"``: the states of a Discrete space; ``"observations"``: every distinct observation;
            ``"places"``: every distinct place, if the environment itself reports its place.
        names: Names of the plane's axes; a name for the places, if the environment reports them; empty otherwise.
        axes: Numbers of the plane's axes in an observation; empty otherwise.
        edges: Edges of the plane's cells along its two axes, (BINS + 1,) each; empty otherwise.
        counts: How often each setting was in each cell: (n, BINS, BINS) with the plane's first axis before the
            second, (n, S), or (n, observations) in the order in which they were first seen.
    """

    kind: str
    names: tuple[str, ...]
    axes: tuple[int, ...]
    edges: tuple[Floats, ...]
    counts: Integers

    @property
    def are_open(self) -> bool:
        """Whether the number of places is not known in advance, so that every observation may be a new one."""
        return self.kind in ("observations", "places")


class Visits(Protocol):
    """Counts what each setting saw."""

    asks_again: bool
    """Whether ``cells`` needs to see everything a second time."""

    def encode(self, observation: Any) -> Any:
        """The part of an observation to keep."""
        ...

    def add(self, setting: int, seen: NDArray[Any]) -> None:
        """Add more of what a setting saw, encoded."""
        ...

    def cells(self, again: Again | None) -> Cells:
        """The counts; ``again`` replays what was seen if it was not kept."""
        ...


def coverage(counts: Integers) -> tuple[Integers, Floats]:
    """Cells that each setting visited: their number, and their share of the cells that any setting visited.

    Args:
        counts: (n, ...) visits of n settings to the same cells.

    Returns:
        Two arrays of shape (n,).
    """
    visited = np.asarray(counts).reshape(len(counts), -1) > 0
    numbers = visited.sum(axis=1)
    return numbers, numbers / max(int(visited.any(axis=0).sum()), 1)


def entropy(counts: Integers) -> float:
    """−Σ p·ln p of the shares p of ``counts``, in nats; 0 if nothing was counted."""
    seen = np.asarray(counts)[np.asarray(counts) > 0]
    shares = seen / max(int(seen.sum()), 1)
    return float(-(shares * np.log(shares)).sum()) + 0.0


def cell_numbers(values: NDArray[Any], low: float, high: float) -> Integers:
    """The number of each value's cell among BINS equal ones from ``low`` to ``high``, including ``high``."""
    scaled = (np.asarray(values, dtype=np.float64) - low) * (BINS / (high - low))
    return np.clip(scaled.astype(np.int64), 0, BINS - 1)


def most_telling_axes(counts: Integers) -> tuple[int, int]:
    """The two axes along which the settings differ most in how evenly they spread, in order of their numbers.

    The measure is the entropy of the visits along an axis: the largest of all settings minus the smallest. Ties go
    to the first axes.

    Args:
        counts: (n, d, BINS) visits of n settings along each of d axes.
    """
    spread = np.array([[entropy(along) for along in setting] for setting in counts])
    first, second = sorted(np.argsort(-np.ptp(spread, axis=0), kind="stable")[:2])
    return int(first), int(second)


def visits_in(env: gymnasium.Env[Any, Any], n_settings: int, axes: tuple[int, int] | None, keep: bool) -> Visits:
    """The counter that suits the observations of ``env``.

    Args:
        env: The environment.
        n_settings: Number of settings.
        axes: Two numbers of an observation; None chooses them.
        keep: Whether to keep what was seen until all of it is known; otherwise it is replayed.

    Raises:
        ValueError: Axes are given but observations have no numbers to choose from, or not these.
    """
    space, names = env.observation_space, number_names(env)
    width = len(names)
    if axes is not None and not (len(set(axes)) == 2 and all(0 <= axis < width for axis in axes)):
        allowed = (
            f"two different numbers in 0..{width - 1}" if width >= 2 else "None if observations are not vectors"
        )
        raise InputError(f"axes must be {allowed}, not {axes!r}", "axes")
    if isinstance(space, spaces.Discrete):
        return _StateVisits(n_settings, space)
    if (names_of_places := place_names(env)) is not None:
        return _DistinctVisits(n_settings, names_of_places)
    if width == 2 or axes is not None:
        return _PlaneVisits(n_settings, space, names, (0, 1) if axes is None else axes, keep)
    if 2 < width <= WIDEST_CHOICE:
        return _PlaneVisits(n_settings, space, names, None, keep=True)
    return _DistinctVisits(n_settings)


class _StateVisits:
    asks_again = False

    def __init__(self, n_settings: int, space: spaces.Discrete) -> None:
        self._first = int(space.start)
        self._counts = np.zeros((n_settings, int(space.n)), dtype=np.int64)

    def encode(self, observation: Any) -> int:
        return int(observation) - self._first

    def add(self, setting: int, seen: NDArray[Any]) -> None:
        self._counts[setting] += np.bincount(seen, minlength=self._counts.shape[1])

    def cells(self, again: Again | None) -> Cells:
        return Cells("states", (), (), (), self._counts)


class _PlaneVisits:
    """Two numbers of an observation. The edges are known once everything was seen; all of it lies within them."""

    def __init__(
        self,
        n_settings: int,
        space: spaces.Space[Any],
        names: tuple[str, ...],
        axes: tuple[int, int] | None,
        keep: bool,
    ) -> None:
        self.asks_again = not keep
        self._space = space
        self._names = names
        self._axes = axes
        self._low, self._high = np.inf, -np.inf  # (d,) range of the numbers examined, once there are any
        self._kept: list[list[NDArray[Any]]] | None = [[] for _ in range(n_settings)] if keep else None
        self._n_settings = n_settings

    def encode(self, observation: Any) -> NDArray[Any]:
        return numbers_of(self._space, observation)

    def add(self, setting: int, seen: NDArray[Any]) -> None:
        looked_at = self._looked_at(seen)
        self._low = np.minimum(self._low, looked_at.min(axis=0))
        self._high = np.maximum(self._high, looked_at.max(axis=0))
        if self._kept is not None:
            self._kept[setting].append(looked_at)

    def cells(self, again: Again | None) -> Cells:
        low, high = _some_room(np.asarray(self._low, np.float64), np.asarray(self._high, np.float64))
        columns = (0, 1)
        if self._axes is None:
            columns = most_telling_axes(self._along_each_axis(low, high))
        axes = columns if self._axes is None else self._axes
        across, up = columns
        counts = np.zeros((self._n_settings, BINS, BINS), dtype=np.int64)
        for setting in range(self._n_settings):
            for looked_at in self._all(setting, again):
                x = cell_numbers(looked_at[:, across], low[across], high[across])
                y = cell_numbers(looked_at[:, up], low[up], high[up])
                counts[setting] += np.bincount(x * BINS + y, minlength=BINS * BINS).reshape(BINS, BINS)
        edges = tuple(np.linspace(low[column], high[column], BINS + 1) for column in columns)
        return Cells("plane", tuple(self._names[axis] for axis in axes), axes, edges, counts)

    def _all(self, setting: int, again: Again | None) -> Iterator[NDArray[Any]]:
        if self._kept is not None:
            yield from self._kept[setting]
        else:
            assert again is not None
            yield from map(self._looked_at, again(setting))

    def _looked_at(self, seen: NDArray[Any]) -> NDArray[Any]:
        return seen if self._axes is None else seen[:, list(self._axes)]

    def _along_each_axis(self, low: Floats, high: Floats) -> Integers:
        counts = np.zeros((self._n_settings, len(low), BINS), dtype=np.int64)
        for setting in range(self._n_settings):
            for seen in self._all(setting, None):
                for axis in range(len(low)):
                    numbers = cell_numbers(seen[:, axis], low[axis], high[axis])
                    counts[setting, axis] += np.bincount(numbers, minlength=BINS)
        return counts


class _DistinctVisits:
    """Observations or places of any kind, distinguished by their full contents."""

    asks_again = False

    def __init__(self, n_settings: int, names_of_places: str | None = None) -> None:
        self._names_of_places = names_of_places
        self._numbers: dict[int, int] = {}
        self._counts: list[dict[int, int]] = [{} for _ in range(n_settings)]

    def encode(self, observation: Any) -> int:
        digest = hashlib.blake2b(digest_size=8)
        _feed(digest, observation)
        return int.from_bytes(digest.digest(), "little", signed=True)

    def add(self, setting: int, seen: NDArray[Any]) -> None:
        counts = self._counts[setting]
        for code in seen.tolist():
            number = self._numbers.setdefault(code, len(self._numbers))
            counts[number] = counts.get(number, 0) + 1

    def cells(self, again: Again | None) -> Cells:
        table = np.zeros((len(self._counts), len(self._numbers)), dtype=np.int64)
        for row, counts in zip(table, self._counts, strict=True):
            row[list(counts)] = list(counts.values())
        if self._names_of_places is None:
            return Cells("observations", (), (), (), table)
        return Cells("places", (self._names_of_places,), (), (), table)


def _feed(digest: Any, part: Any) -> None:
    if isinstance(part, Mapping):
        for key in sorted(part):
            digest.update(str(key).encode())
            _feed(digest, part[key])
    elif isinstance(part, tuple | list):
        digest.update(f"{len(part)} of".encode())
        for item in part:
            _feed(digest, item)
    elif part is None:
        digest.update(b"None")
    else:
        digest.update(np.asarray(part).tobytes())


def _some_room(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """A range of some width, even if only one number was seen."""
    still = high <= low
    room = np.where(still, 0.5 * np.maximum(np.abs(low), 1.0), 0.0)
    return low - room, high + room
