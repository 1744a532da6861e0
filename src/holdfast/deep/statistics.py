"""What is logged beside SB3's own metrics: how actions were held, and how each persistence learns."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray

from holdfast.core.options import duration_at

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

    def _close(self, env: int, was_cut: bool) -> None:
        if self._open[env] > 0:
            self.holds.append(int(self._open[env]))
            self.cuts.append(was_cut)
            self._open[env] = 0


class UpdateStatistics:
    """Mean loss and target of each persistence since they were last asked for."""

    def __init__(self, k_max: int) -> None:
        self.k_max = k_max
        self._losses: Any = 0.0
        self._targets: Any = 0.0
        self._count = np.zeros(k_max, dtype=np.int64)

    def add(self, row_losses: th.Tensor, targets: th.Tensor, drawable: NDArray[np.bool_] | None = None) -> None:
        """Take in one update, both (K, B), of the views (K,) that hold anything."""
        drawable = np.ones(self.k_max, dtype=np.bool_) if drawable is None else drawable
        if not drawable.all():
            seen = th.as_tensor(drawable, device=targets.device)[:, None]
            row_losses, targets = row_losses * seen, targets * seen
        self._losses = self._losses + row_losses.mean(dim=1)
        self._targets = self._targets + targets.mean(dim=1)
        self._count += drawable

    def means(self) -> dict[str, float]:
        """Metrics by name, and a fresh start."""
        found = {}
        for index in np.flatnonzero(self._count):
            found[f"train/loss_k{duration_at(index)}"] = float(self._losses[index]) / self._count[index]
            found[f"train/target_k{duration_at(index)}"] = float(self._targets[index]) / self._count[index]
        self._losses, self._targets = 0.0, 0.0
        self._count = np.zeros(self.k_max, dtype=np.int64)
        return found
