"""Which tuples an agent learns from, and a batch of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_integer, check_persistences
from holdfast.core.errors import InputError
from holdfast.core.options import persistence_set
from holdfast.core.user_code import shown

__all__ = ["OptionBatch", "Views", "check_views"]


class Views(NamedTuple):
    """Which tuples of the ring an agent learns from.

    Attributes:
        k_max: K, the longest persistence that has a view.
        bootstrap: Whether a view D_k also holds tuples shorter than k.
        pad_terminal: Whether, without bootstrap, D_k holds those shorter tuples that end the episode.
        persistences: Those that have a view; None for all of 1..k_max.
        shared_draws: Whether one draw of steps serves all views, rather than one draw for each.
    """

    k_max: int
    bootstrap: bool = True
    pad_terminal: bool = False
    persistences: tuple[int, ...] | None = None
    shared_draws: bool = False

    @property
    def durations(self) -> tuple[int, ...]:
        """The persistences, in order."""
        return persistence_set(self.k_max, self.persistences)

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.durations)


def check_views(views: Any, longest: int) -> None:
    """Check what an agent says of its views, since it may be a user's; it holds for ``longest`` steps at most."""
    if not isinstance(views, Views):
        raise InputError(f"views must be a property that returns Views(k_max, ...), not {shown(views)}")
    k_max = check_integer("k_max of views", views.k_max)
    if k_max > longest:
        raise InputError(f"k_max of views must be at most the agent's k_max, which is {longest}, not {k_max}")
    numbers = check_persistences("persistences of views", views.persistences)
    if numbers is not None and numbers[-1] != k_max:
        raise InputError(f"persistences of views must end with its k_max, {k_max}, not with {numbers[-1]}")


class OptionBatch(NamedTuple):
    """B tuples from each of the K views.

    Attributes:
        observations: (K·B, ...) first states, view by view, as tensors on the buffer's device; (B, ...) of a draw
            that all views share.
        actions: (K, B) held actions, as numbers from 0; (K, B, size) continuous ones.
        rewards: (K, B) r^ℓ.
        discounts: (K, B) γ^ℓ.
        dones: (K, B) 1 where the last state is terminal.
        rest: (K, B) k − ℓ, the steps of k that were not seen; 0 where the window is complete.
        next_rows: (K, B) rows of the last states in the observation store.
        weights: (K, B) importance weights, or None under plain uniform sampling; 0 where the view has no tuple.
        rows: (K, B) ring rows, for the priorities.
        is_there: (K, B) whether the view has a tuple that begins at the row.
        is_shared: Whether the rows of all views are the same.
    """

    observations: Any
    actions: NDArray[Any]
    rewards: NDArray[np.float32]
    discounts: NDArray[np.float32]
    dones: NDArray[np.float32]
    rest: NDArray[np.int64]
    next_rows: NDArray[np.int64]
    weights: NDArray[np.float32] | None
    rows: NDArray[np.int64]
    is_there: NDArray[np.bool_]
    is_shared: bool = False

    def numbers(self) -> dict[str, NDArray[Any]]:
        """What a target needs besides the networks' values, by name, each (K, B)."""
        return {name: getattr(self, name) for name in ("actions", "rewards", "discounts", "dones", "rest")}
