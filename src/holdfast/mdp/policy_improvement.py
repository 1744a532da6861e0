"""Better values that run through a model of certain moves, from step to step, as waves.

A better value in one state matters to the states that can step there, and to no others. So, instead of sweeping
over all states, each wave looks at the predecessors of what the wave before it changed: from a goal through a grid
it touches each cell once, however far the goal is. Where ways lead in circles the waves would go round for ever,
closing in on the values; they end after a while, and the policy they have found is to be evaluated exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.mdp.kernels import DeterministicKernel
from holdfast.mdp.model import TabularMDP

__all__ = ["ROUNDING", "ImprovementWaves", "is_better"]

ROUNDING = 1e-13
"""What is better by less than this part of itself is not, or policies would go round in circles."""
_SMALLEST = 1e-300
"""Nor is what is better by less than this: the numbers end there."""
_SWEEPS = 8
"""Sweeps over the whole model that the work of the waves may add up to."""


def is_better(offered: NDArray[np.float64], held: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where ``offered`` values are above ``held`` ones beyond rounding."""
    return np.greater(offered - held, ROUNDING * np.abs(held) + _SMALLEST)


class ImprovementWaves:
    """The steps (s,a) of a deterministic model by the state they enter.

    Args:
        mdp: The model; its kernel must be a ``DeterministicKernel``.
    """

    def __init__(self, mdp: TabularMDP) -> None:
        assert isinstance(mdp.kernel, DeterministicKernel)
        self._gamma = mdp.gamma
        self._n_actions = mdp.n_actions
        self._rewards = mdp.reward.ravel()
        entered = mdp.kernel.table.ravel()
        # The step s·A + a is among the ones from _first[s'] to _first[s' + 1] if it enters s'.
        self._steps = np.argsort(entered, kind="stable")
        self._first = np.concatenate([[0], np.cumsum(np.bincount(entered, minlength=mdp.n_states))])
        self._writer = np.empty(mdp.n_states, dtype=np.int64)

    def spread(self, values: NDArray[np.float64], policy: NDArray[np.int64], changed: NDArray[np.int64]) -> None:
        """Raise ``values`` (S,), and change ``policy`` (S,) with them, until nothing changes or for long enough.

        Args:
            values: At most those of ``policy``, and in every state at least what any step offers, except for
                steps into ``changed``. Both hold for the raised values too, once nothing changes.
            policy: An action for each state.
            changed: The states that the first wave comes from.
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
            # Where several steps are better, the best one is written last, and stays.
            numbers = np.arange(len(origins))
            self._writer[origins] = numbers
            best = self._writer[origins] == numbers
            changed, better = origins[best], better[best]
            values[changed] = offered[better]
            policy[changed] = steps[better] % self._n_actions

    def _into(self, states: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All steps into ``states``, state after state, and how many there are into each."""
        first = self._first[states]
        counts = self._first[states + 1] - first
        ends = np.cumsum(counts)
        places = np.arange(ends[-1]) + np.repeat(first - ends + counts, counts)
        return self._steps[places], counts
