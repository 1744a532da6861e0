"""Environments whose episodes never end."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from holdfast.envs import GridWorld, exploration_kernel, make_env
from holdfast.envs.hold_action import HoldAction
from holdfast.mdp import TabularMDP, persistent_chain
from holdfast.mdp.kernels import DenseKernel, DeterministicKernel, SparseKernel

# 0 1 2
# 3 4 5   hole 1, goal 8
# 6 7 8
SMALL = "S#.\n...\n..G"

# Where left, down, right and up lead.
WALL = {
    0: (0, 3, 0, 0),
    2: (2, 5, 2, 2),
    3: (3, 6, 4, 0),
    4: (3, 7, 5, 4),
    5: (4, 8, 5, 2),
    6: (6, 6, 7, 3),
    7: (6, 7, 8, 4),
    8: (7, 8, 8, 5),
}
FREE = WALL | {0: (0, 3, 1, 0), 1: (0, 4, 2, 1), 2: (1, 5, 2, 2), 4: (3, 7, 5, 1)}
RESTART = FREE | {1: (0, 0, 0, 0), 8: (0, 0, 0, 0)}
OUT = 9
DEADLY = RESTART | {
    0: (OUT, 3, 1, OUT),
    2: (1, 5, OUT, OUT),
    3: (OUT, 6, 4, 0),
    5: (4, 8, OUT, 2),
    6: (OUT, OUT, 7, 3),
    7: (6, OUT, 8, 4),
    OUT: (0, 0, 0, 0),
}


def moves(env: Any, holes: str) -> dict[int, tuple[int, ...]]:
    kernel, states = exploration_kernel(env, holes)
    assert isinstance(kernel, DeterministicKernel)
    return {int(s): tuple(states[row].tolist()) for s, row in zip(states, kernel.table, strict=True)}


@pytest.mark.parametrize(
    ("border", "holes", "expected"),
    [
        ("block", "wall", WALL),
        ("block", "free", FREE),
        ("block", "restart", RESTART),
        ("deadly", "wall", WALL),
        ("deadly", "free", FREE),
        ("deadly", "restart", DEADLY),
    ],
)
def test_every_step_of_a_small_grid_by_hand(border: str, holes: str, expected: dict[int, Any]) -> None:
    assert moves(GridWorld(SMALL, border=border), holes) == expected


def test_walls_are_the_default() -> None:
    assert np.array_equal(exploration_kernel(GridWorld(SMALL)).states, list(WALL))


@pytest.mark.parametrize(("holes", "table"), [("wall", WALL), ("free", FREE), ("restart", RESTART)])
def test_slips_go_to_the_sides(holes: str, table: dict[int, tuple[int, ...]]) -> None:
    kernel, states = exploration_kernel(GridWorld(SMALL, slip=0.5), holes)
    assert isinstance(kernel, SparseKernel)
    for action, matrix in enumerate(kernel.table):
        for row, state in enumerate(states):
            expected = np.zeros(9)
            for direction, probability in ((action - 1, 0.25), (action, 0.5), ((action + 1) % 4, 0.25)):
                expected[table[int(state)][direction]] += probability
            assert np.array_equal(matrix.toarray()[row], expected[states])


def test_cells_that_the_start_does_not_lead_to_are_left_out() -> None:
    cut = GridWorld("S.#.\nG.#.")
    assert exploration_kernel(cut, "wall").states.tolist() == [0, 1, 4, 5]
    assert exploration_kernel(cut, "restart").states.tolist() == [0, 1, 2, 4, 5, 6]
    assert exploration_kernel(cut, "free").states.tolist() == list(range(8))


@pytest.mark.parametrize(("name", "n_states"), [("FrozenLake-v1", 16), ("CliffWalking-v1", 38), ("Taxi-v4", 401)])
def test_environments_with_a_table_restart(name: str, n_states: int) -> None:
    env = make_env(name)
    kernel, states = exploration_kernel(env, "restart")
    assert len(states) == kernel.n_states == n_states
    mdp = TabularMDP.from_gymnasium(env, gamma=1.0)
    assert mdp.initial is not None
    rows = persistent_chain(kernel, 1, 1)
    terminal = mdp.terminal[states]
    assert terminal.any()
    assert np.allclose(rows[terminal], mdp.initial[states])
    assert np.allclose(rows[~terminal], persistent_chain(mdp, 1, 1)[states][:, states][~terminal])


def test_a_dense_model_restarts() -> None:
    # 0 → 1 or 2, both terminal; episodes begin in 0, or seldom in 3, which leads to 2.
    P = np.array([[0, 0.5, 0.5, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [1, 0, 0, 0, 0]])
    mdp = TabularMDP(P[:, None], np.zeros((5, 1)), 1.0, initial=[0.75, 0, 0, 0.25, 0], terminal=[1, 2])
    kernel, states = exploration_kernel(mdp, "restart")
    assert isinstance(kernel, DenseKernel)
    assert states.tolist() == [0, 1, 2, 3]
    again = [0.75, 0.0, 0.0, 0.25]
    assert kernel.table[:, 0].tolist() == [[0.0, 0.5, 0.5, 0.0], again, again, [0.0, 0.0, 1.0, 0.0]]


def test_moves_that_are_certain_restart_in_several_places() -> None:
    mdp = TabularMDP([[1], [1], [1]], np.zeros((3, 1)), 1.0, initial=[0.5, 0, 0.5], terminal=[1])
    kernel, _ = exploration_kernel(mdp, "restart")
    assert isinstance(kernel, SparseKernel)
    assert kernel.table[0].toarray().tolist() == [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]]


@pytest.mark.parametrize("holes", ["wall", "free"])
@pytest.mark.parametrize("name", ["Taxi-v4", "FrozenLake-v1"])
def test_without_a_map_there_are_no_walls(name: str, holes: str) -> None:
    with pytest.raises(ValueError, match=r"^holes must be 'restart' for \w+Env: 'wall' and 'free' are defined"):
        exploration_kernel(make_env(name), holes)


def test_what_else_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^holes must be one of 'wall', 'restart', 'free', not 'lava'$"):
        exploration_kernel(GridWorld(SMALL), "lava")
    with pytest.raises(ValueError, match=r"^holes='restart' needs the initial states: env must have"):
        exploration_kernel(TabularMDP([[0]], [[0.0]], 1.0), "restart")
    with pytest.raises(ValueError, match=r"^env must not be wrapped in HoldAction"):
        exploration_kernel(HoldAction(GridWorld(SMALL), k=2))
    with pytest.raises(ValueError, match=r"^env must expose its transition table"):
        exploration_kernel(gymnasium.make("CartPole-v1"), "restart")
    trap = TabularMDP([[1], [1]], np.zeros((2, 1)), 1.0, initial=0)
    with pytest.raises(ValueError, match=r"it has one closed class and 1 state that it leaves for good"):
        exploration_kernel(trap, "restart")
