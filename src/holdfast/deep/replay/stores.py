"""Which store keeps the observations of a space."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from holdfast.deep.replay.frame_store import FrameStore, may_share_frames
from holdfast.deep.replay.observation_store import ArrayStore, DictStore, ObservationStore

__all__ = ["bytes_needed", "make_store"]


def make_store(n_rows: int, space: spaces.Space[Any], shape: Any) -> ObservationStore | DictStore:
    """A store for observations of ``space``; ``shape`` is SB3's shape of it (a dictionary for Dict spaces)."""
    if isinstance(space, spaces.Dict):
        return DictStore({key: _one(n_rows, part, shape[key]) for key, part in space.spaces.items()})
    return _one(n_rows, space, shape)


def bytes_needed(n_rows: int, space: spaces.Space[Any], shape: Any) -> int:
    """Memory of a new store; images that share fewer planes than those of a frame stack come to need more."""
    if isinstance(space, spaces.Dict):
        return sum(bytes_needed(n_rows, part, shape[key]) for key, part in space.spaces.items())
    if may_share_frames(space):
        return FrameStore.bytes_needed(n_rows, shape, space.dtype)
    return n_rows * int(np.prod(shape)) * np.dtype(space.dtype).itemsize


def _one(n_rows: int, space: spaces.Space[Any], shape: Any) -> ObservationStore:
    if may_share_frames(space):
        return FrameStore(n_rows, shape, space.dtype)
    return ArrayStore(n_rows, shape, space.dtype)
