"""Better values that spread through a deterministic model from step to step, in waves.

A better value in one state matters only to the states that can step there. Instead of sweeping over all states,
each wave therefore looks at the predecessors of the states that the last wave changed. From a goal through a grid
it touches each cell once, however far the goal is. Where paths form cycles, waves would circulate forever and
approach the values without reaching them; they are stopped after a while, and the policy that they found is then
evaluated exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.mdp.kernels import DeterministicKernel
from holdfast.mdp.model import TabularMDP

__all__ = ["ROUNDING", "ImprovementWaves", "is_better"]

ROUNDING = 1e-13
"""A relative improvement below this does not count; otherwise policies would cycle."""
_SMALLEST = 1e-300
"""An absolute improvement below this does not count either: it is at the edge of the number range."""
_SWEEPS = 8
"""Limit on the waves' total work, in sweeps over the whole model."""


def is_better(offered: NDArray[np.float64], held: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where ``offered`` values exceed ``held`` ones by more than rounding."""
    return np.greater(offered - held, ROUNDING * np.abs(held) + _SMALLEST)


class ImprovementWaves:
    """The steps (s,a) of a deterministic model, grouped by the state that they enter.

    Args:
        mdp: The model; its kernel must be a ``DeterministicKernel``.
    """

    def __init__(self, mdp: TabularMDP) -> None:
        assert isinstance(mdp.kernel, DeterministicKernel)
        self._gamma = mdp.gamma
        self._n_actions = mdp.n_actions
        self._rewards = mdp.reward.ravel()
        entered = mdp.kernel.table.ravel()
        # Steps s·A + a that enter s' are at positions _first[s'] to _first[s' + 1].
        self._steps = np.argsort(entered, kind="stable")
        self._first = np.concatenate([[0], np.cumsum(np.bincount(entered, minlength=mdp.n_states))])
        self._writer = np.empty(mdp.n_states, dtype=np.int64)

    def spread(self, values: NDArray[np.float64], policy: NDArray[np.int64], changed: NDArray[np.int64]) -> None:
        """Raise ``values`` (S,) and update ``policy`` (S,) until nothing changes or the work limit is reached.

        Args:
            values: At most the values of ``policy``, and in every state at least what any step offers, except for
                steps into ``changed``. Once nothing changes, both also hold for the raised values.
            policy: An action for each state.
            changed: The states from which the first wave starts.
        """
        work_left = _SWEEPS * len(self._steps)
        while len(changed) and work_left > 0:
            steps, counts = self._into(changed)
            work_left -= len(steps)
            origins = steps // self._n_actions
            offered = self._rewards[steps] + self._gamma * np.repeat(values[changed], counts)
            better = np.flatnonzero(is_better(offered, values[origins]))
            better = better[np.argsort(offered[better])]
            origins = origins[better]
            # If several steps are better, the best one is written last and stays.
            numbers = np.arange(len(origins))
            self._writer[origins] = numbers
            best = self._writer[origins] == numbers
            changed, better = origins[best], better[best]
            values[changed] = offered[better]
            policy[changed] = steps[better] % self._n_actions

    def _into(self, states: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All steps into ``states``, state by state, and the number of steps into each."""
        first = self._first[states]
        counts = self._first[states + 1] - first
        ends = np.cumsum(counts)
        places = np.arange(ends[-1]) + np.repeat(first - ends + counts, counts)
        return self._steps[places], counts
