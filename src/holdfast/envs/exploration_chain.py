"""Environments whose episodes never end, to study how far random options get.

The chain of a random walk must lead from every state to every other, but a model whose episodes end never leaves
its terminal states. What a hole is instead has to be decided: the paper does not say.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from holdfast.core.checks import check_choice
from holdfast.core.errors import InputError
from holdfast.envs.grid_moves import move_matrix, neighbours
from holdfast.envs.grid_rules import ACTION_NAMES
from holdfast.envs.grids import GridWorld
from holdfast.mdp import TabularMDP
from holdfast.mdp.kemeny import check_irreducible
from holdfast.mdp.kernels import DenseKernel, DeterministicKernel, Kernel, SparseKernel, kernel_from
from holdfast.mdp.toy_text import without_harmless_wrappers

__all__ = ["HOLES", "ExplorationKernel", "exploration_kernel"]

HOLES = ("wall", "restart", "free")
"""What a hole may be treated as."""


class ExplorationKernel(NamedTuple):
    """Moves that never end.

    Attributes:
        kernel: The moves among the states that are kept.
        states: (n,) the numbers of the kept states in the environment, in increasing order.
    """

    kernel: Kernel
    states: NDArray[np.int64]


def exploration_kernel(env: Any, holes: str = "wall") -> ExplorationKernel:
    """The moves of an environment without its ends; states that cannot be reached from the start are left out.

    Args:
        env: A ``GridWorld``; with ``holes="restart"`` also any environment with a transition table, or a
            ``TabularMDP`` with an initial distribution. It may be in wrappers that change nothing.
        holes: ``"wall"``: a step into a hole stays where it is, and holes are not states. ``"free"``: holes are
            ordinary cells. In both cases goals are ordinary cells, and the border blocks even if it is deadly.
            ``"restart"``: every terminal state (goal, hole, outside) is a state, and the next step from it leads
            to the start, whatever the action.

    Raises:
        ValueError: ``"wall"`` or ``"free"`` without a map: a table does not say what bumping into a terminal
            state, or passing it, would be. Or some states can never be left.
    """
    check_choice("holes", holes, HOLES)
    world = env if isinstance(env, TabularMDP) else without_harmless_wrappers(env)
    if holes == "restart":
        model = world if isinstance(world, TabularMDP) else TabularMDP.from_gymnasium(world, gamma=1.0)
        kernel, starts = _restarting(model)
    elif isinstance(world, GridWorld):
        kernel, starts = _endless(world, holes), np.array([world.map.start])
    else:
        raise InputError(
            f"holes must be 'restart' for {type(world).__name__}: 'wall' and 'free' are defined only on the map "
            "of a GridWorld",
            "holes",
        )
    states = _reached(kernel, starts)
    kept = _among(kernel, states)
    check_irreducible(_steps(kept))
    return ExplorationKernel(kept, states)


def _endless(env: GridWorld, holes: str) -> Kernel:
    """All cells of a grid, none of them terminal."""
    next_states = neighbours(env.map)
    if holes == "wall":
        own = np.arange(env.map.n_cells)[:, None]
        next_states = np.where(env.map.holes.ravel()[next_states], own, next_states)
    if env.slip == 0.0:
        return kernel_from(next_states)
    return kernel_from(
        [move_matrix(next_states, env.rules.outcomes(action)) for action in range(len(ACTION_NAMES))]
    )


def _restarting(model: TabularMDP) -> tuple[Kernel, NDArray[np.int64]]:
    """The model in which terminal states lead to the initial states, and these states."""
    if model.initial is None:
        raise InputError(
            "holes='restart' needs the initial states: env must have initial_state_distrib, "
            "or the TabularMDP must have an initial distribution",
            "holes",
            "env",
        )
    starts = np.flatnonzero(model.initial)
    kernel = model.kernel
    if isinstance(kernel, DeterministicKernel) and len(starts) == 1:
        return DeterministicKernel(np.where(model.terminal[:, None], starts[0], kernel.table)), starts
    if isinstance(kernel, DenseKernel):
        return DenseKernel(np.where(model.terminal[:, None, None], model.initial, kernel.table)), starts
    live = sp.diags_array((~model.terminal).astype(np.float64))
    again = sp.csr_array(model.terminal[:, None] * 1.0) @ sp.csr_array(model.initial[None, :])
    return SparseKernel(tuple(sp.csr_array(live @ matrix + again) for matrix in _matrices(kernel))), starts


def _reached(kernel: Kernel, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The states that can be reached from ``starts``, in increasing order."""
    # One additional state, which leads to every start.
    first = sp.csr_array((np.ones(len(starts)), (np.zeros(len(starts), dtype=int), starts)), (1, kernel.n_states))
    steps = sp.block_array([[_steps(kernel), None], [first, sp.csr_array((1, 1))]], format="csr")
    order = breadth_first_order(steps, kernel.n_states, return_predecessors=False)
    return np.sort(order[1:]).astype(np.int64)


def _among(kernel: Kernel, states: NDArray[np.int64]) -> Kernel:
    """The kernel restricted to ``states``, which no step leaves."""
    if isinstance(kernel, DeterministicKernel):
        number = np.zeros(kernel.n_states, dtype=np.int64)
        number[states] = np.arange(len(states))
        return DeterministicKernel(number[kernel.table[states]])
    if isinstance(kernel, DenseKernel):
        return DenseKernel(kernel.table[states][:, :, states])
    return SparseKernel(tuple(sp.csr_array(matrix[states][:, states]) for matrix in _matrices(kernel)))


def _steps(kernel: Kernel) -> Any:
    """The chain (S,S) of single random steps."""
    matrices = _matrices(kernel)
    return sp.csr_array(sum(matrices[1:], start=matrices[0]) / len(matrices))


def _matrices(kernel: Kernel) -> list[Any]:
    """One sparse matrix (S,S) per action."""
    return [sp.csr_array(kernel.under(np.full(kernel.n_states, a))) for a in range(kernel.n_actions)]
