"""What is logged beside SB3's own metrics: how actions were held, and how each persistence learns."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.saved_fields import take_array

__all__ = ["HoldStatistics", "UpdateStatistics"]


class HoldStatistics:
    """Decisions per episode, steps per option, and the share of options that were interrupted.

    Args:
        n_envs: Environments.
        window: Episodes (and as many options per decision) that the means cover.
    """

    def __init__(self, n_envs: int, window: int) -> None:
        self.decisions = np.zeros(n_envs, dtype=np.int64)
        self.episode_decisions: deque[int] = deque(maxlen=window)
        self.holds: deque[int] = deque(maxlen=10 * window)
        self.cuts: deque[bool] = deque(maxlen=10 * window)
        self._open = np.zeros(n_envs, dtype=np.int64)

    def step(
        self,
        began: NDArray[np.bool_],
        over: NDArray[np.bool_],
        elapsed: NDArray[np.int64],
        episode_ended: NDArray[np.bool_],
    ) -> None:
        """Count one step of every environment; all arguments (n_envs,)."""
        self.decisions += began
        self._open = elapsed.copy()
        for env in np.flatnonzero(over):
            self._close(int(env), was_cut=False)
        for env in np.flatnonzero(episode_ended):
            self.episode_decisions.append(int(self.decisions[env]))
            self.decisions[env] = 0

    def interrupted(self, mask: NDArray[np.bool_]) -> None:
        """Count options that were dropped before their time."""
        for env in np.flatnonzero(mask):
            self._close(int(env), was_cut=True)

    def drop(self) -> None:
        """Forget unfinished episodes: the environments were reset."""
        self.decisions[:] = 0
        self._open[:] = 0

    def means(self) -> dict[str, float]:
        """Metrics by name; those without data are left out."""
        found: dict[str, deque[Any]] = {
            "rollout/decisions_mean": self.episode_decisions,
            "rollout/hold_mean": self.holds,
            "rollout/interrupted_share": self.cuts,
        }
        return {name: float(np.mean(values)) for name, values in found.items() if values}

    _WINDOWS = (("episode_decisions", np.int64), ("holds", np.int64), ("cuts", np.bool_))

    def state(self) -> dict[str, Any]:
        """A copy of everything that ``restore`` needs."""
        return {
            "decisions": self.decisions.copy(),
            "open": self._open.copy(),
            **{name: np.array(getattr(self, name), dtype=dtype) for name, dtype in self._WINDOWS},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state`` returned."""
        shape = self.decisions.shape
        decisions, running = (take_array(state, name, np.int64, shape) for name in ("decisions", "open"))
        self.decisions, self._open = decisions.copy(), running.copy()
        for name, dtype in self._WINDOWS:
            window: deque[Any] = getattr(self, name)
            window.clear()
            window.extend(take_array(state, name, dtype, (None,), window.maxlen).tolist())

    def _close(self, env: int, was_cut: bool) -> None:
        if self._open[env] > 0:
            self.holds.append(int(self._open[env]))
            self.cuts.append(was_cut)
            self._open[env] = 0


class UpdateStatistics:
    """Mean loss and target of each persistence since they were last asked for.

    Args:
        durations: The persistences.
    """

    def __init__(self, durations: Sequence[int]) -> None:
        self.durations = tuple(durations)
        self._fresh_start()

    def _fresh_start(self) -> None:
        self._losses = np.zeros(len(self.durations))
        self._targets = np.zeros(len(self.durations))
        self._count = np.zeros(len(self.durations), dtype=np.int64)

    def add(
        self, row_losses: NDArray[Any], targets: NDArray[Any], is_there: NDArray[np.bool_] | None = None
    ) -> None:
        """Take in one update, all (K, B), of the tuples that there are."""
        if is_there is None or is_there.all():
            batch = row_losses.shape[1]
            self._losses += row_losses.sum(axis=1, dtype=np.float64) / batch
            self._targets += targets.sum(axis=1, dtype=np.float64) / batch
            self._count += 1
            return
        n_tuples = is_there.sum(axis=1)
        divisor = np.maximum(n_tuples, 1)
        self._losses += np.where(is_there, row_losses, 0.0).sum(axis=1, dtype=np.float64) / divisor
        self._targets += np.where(is_there, targets, 0.0).sum(axis=1, dtype=np.float64) / divisor
        self._count += n_tuples > 0

    _FIELDS = (("losses", np.float64), ("targets", np.float64), ("count", np.int64))

    def state(self) -> dict[str, Any]:
        """A copy of everything that ``restore`` needs."""
        return {name: getattr(self, f"_{name}").copy() for name, _ in self._FIELDS}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state`` returned."""
        for name, dtype in self._FIELDS:
            setattr(self, f"_{name}", take_array(state, name, dtype, (len(self.durations),)).copy())

    def means(self) -> dict[str, float]:
        """Metrics by name, and a fresh start."""
        found = {}
        for index in np.flatnonzero(self._count):
            found[f"train/loss_k{self.durations[index]}"] = float(self._losses[index]) / self._count[index]
            found[f"train/target_k{self.durations[index]}"] = float(self._targets[index]) / self._count[index]
        self._fresh_start()
        return found
