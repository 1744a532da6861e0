import copy
import pickle
from pathlib import Path
from typing import Any

import gymnasium
import gymnasium.utils.env_checker
import numpy as np
import pytest
import scipy.sparse as sp
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from holdfast.envs import GridMap, GridWorld
from holdfast.envs.maps import CLIFF, SYNC_GRID

LEFT, DOWN, RIGHT, UP = range(4)
SMALL = "S.#\n..G"
"""States 0 1 2 / 3 4 5: hole 2, goal 5."""


def dense(model: Any) -> np.ndarray:
    """P of a TabularMDP as an (S, A, S) array."""
    if isinstance(model.P, np.ndarray):
        return np.eye(model.n_states)[model.P]
    return np.stack([matrix.toarray() if sp.issparse(matrix) else matrix for matrix in model.P], axis=1)


def test_a_walk_by_hand() -> None:
    env = GridWorld(SMALL, step_reward=-0.5, goal_reward=7.0, hole_reward=-3.0)
    assert env.reset(seed=1) == (0, {})
    assert env.step(DOWN) == (3, -0.5, False, False, {})
    assert env.step(RIGHT) == (4, -0.5, False, False, {})
    assert env.step(UP) == (1, -0.5, False, False, {})
    assert env.step(RIGHT) == (2, -3.0, True, False, {})
    env.reset()
    for action in (RIGHT, DOWN):
        env.step(action)
    assert env.step(RIGHT) == (5, 7.0, True, False, {})


@pytest.mark.parametrize(
    ("cell", "action"),
    [(0, LEFT), (0, UP), (1, UP), (3, LEFT), (3, DOWN), (4, DOWN)],
)
def test_a_blocking_border_leaves_the_agent_where_it_is(cell: int, action: int) -> None:
    env = GridWorld(SMALL, step_reward=-0.25)
    env.reset(options={"state": cell})
    assert env.step(action) == (cell, -0.25, False, False, {})


@pytest.mark.parametrize(
    ("cell", "action"),
    [(0, LEFT), (0, UP), (1, UP), (3, LEFT), (3, DOWN), (4, DOWN)],
)
def test_a_deadly_border_leads_outside(cell: int, action: int) -> None:
    env = GridWorld(SMALL, border="deadly", border_reward=-9.0, step_reward=-0.25)
    assert env.observation_space.n == 7  # type: ignore[attr-defined]
    env.reset(options={"state": cell})
    assert env.step(action) == (6, -9.0, True, False, {})


def test_a_row_does_not_run_on_into_the_next() -> None:
    env = GridWorld("S..\n..G")
    env.reset(options={"state": 2})
    assert env.step(RIGHT)[0] == 2
    env.reset(options={"state": 3})
    assert env.step(LEFT)[0] == 3


def test_the_limit_truncates_but_never_what_terminates() -> None:
    env = GridWorld(SMALL, step_limit=3)
    env.reset()
    assert [env.step(LEFT)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    env.reset()
    outcomes = [env.step(action)[2:4] for action in (RIGHT, DOWN, RIGHT)]
    assert outcomes == [(False, False), (False, False), (True, False)]
    env.reset()
    assert env.step(LEFT)[2:4] == (False, False)  # the count begins anew


def test_without_a_limit_nothing_is_truncated() -> None:
    env = GridWorld(SMALL, step_limit=None)
    env.reset()
    assert not any(env.step(LEFT)[3] for _ in range(1000))


def test_acting_without_an_episode_is_an_error() -> None:
    env = GridWorld(SMALL, step_limit=1)
    sentence = "^reset must be called before step: no episode is running$"
    with pytest.raises(gymnasium.error.ResetNeeded, match=sentence):
        env.step(LEFT)
    env.reset()
    env.step(LEFT)
    with pytest.raises(gymnasium.error.ResetNeeded, match=sentence):
        env.step(LEFT)


@pytest.mark.parametrize(
    ("action", "error"), [(4, ValueError), (-1, ValueError), (1.0, TypeError), ("up", TypeError)]
)
def test_a_wrong_action_is_refused_and_changes_nothing(action: Any, error: type[Exception]) -> None:
    env = GridWorld(SMALL, render_mode="ansi")
    env.reset()
    start = env.render()
    with pytest.raises(error, match=r"^action must be"):
        env.step(action)
    assert env.state == 0
    assert env.render() == start
    assert env.step(np.array(1))[0] == 3  # what a policy's predict returns


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"goal_reward": float("nan")}, ValueError, "goal_reward must be a finite number, not nan"),
        ({"hole_reward": float("inf")}, ValueError, "hole_reward must be a finite number, not inf"),
        ({"step_reward": "0"}, TypeError, "step_reward must be a finite number, not '0'"),
        ({"border_reward": None}, TypeError, "border_reward must be a finite number, not None"),
        ({"border": "soft"}, ValueError, "border must be one of 'block', 'deadly', not 'soft'"),
        ({"slip": 1.5}, ValueError, "slip must be a number in [0, 1], not 1.5"),
        ({"step_limit": 0}, ValueError, "step_limit must be a whole number of at least 1, not 0"),
        ({"step_limit": 1.5}, TypeError, "step_limit must be a whole number of at least 1, not 1.5"),
        ({"render_mode": "human"}, ValueError, "render_mode must be one of 'rgb_array', 'ansi', not 'human'"),
        ({"map": 3}, TypeError, "map must be a GridMap, an ASCII text or a pathlib.Path, not 3"),
    ],
)
def test_wrong_arguments_get_one_sentence(
    arguments: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        GridWorld(**{"map": SMALL, **arguments})
    assert str(caught.value) == sentence


@pytest.mark.parametrize("state", [2, 5, 6, 7])
def test_an_episode_cannot_begin_where_it_ends(state: int) -> None:
    env = GridWorld(SMALL, border="deadly")
    with pytest.raises(ValueError, match=r'^options\["state"\] must be a state that is not terminal, not'):
        env.reset(options={"state": state})


@pytest.mark.parametrize("options", [{"state": 99}, {"state": 2}, {"state": "there"}, {"state": -1}])
def test_a_refused_reset_changes_nothing(options: dict[str, Any]) -> None:
    env, other = (GridWorld(SMALL, slip=0.5, step_limit=3, render_mode="ansi") for _ in range(2))
    for walker in (env, other):
        walker.reset(seed=3, options={"state": 3})
        walker.step(RIGHT)
    with pytest.raises((ValueError, TypeError), match=r'^options\["state"\] must be'):
        env.reset(seed=8, options=options)
    assert (env.state, env.render()) == (other.state, other.render())
    assert env.np_random.bit_generator.state == other.np_random.bit_generator.state
    assert [env.step(LEFT) for _ in range(2)] == [other.step(LEFT) for _ in range(2)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("map", GridMap.parse("SG")),
        ("goal_reward", 5.0),
        ("hole_reward", 5.0),
        ("step_reward", 5.0),
        ("border", "deadly"),
        ("border_reward", 5.0),
        ("slip", 0.5),
        ("step_limit", None),
    ],
)
def test_map_and_rules_can_be_read_and_not_set(name: str, value: Any) -> None:
    env = GridWorld(SMALL)
    before = getattr(env, name)
    with pytest.raises(AttributeError):
        setattr(env, name, value)
    assert getattr(env, name) == before != value
    assert getattr(GridWorld(**{"map": SMALL, name: value}), name) == value


def test_an_environment_survives_copying_and_pickling() -> None:
    env = GridWorld(SMALL, slip=0.1, goal_reward=3.0)
    env.reset(seed=1, options={"state": 3})
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert (twin.map, twin.slip, twin.goal_reward, twin.state) == (env.map, 0.1, 3.0, 3)


def test_a_map_may_be_a_text_a_map_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_text("S.\n#G\n")
    for source in (path, "S.\n#G", GridMap.parse("S.\n#G")):
        env = GridWorld(source)
        env.reset()
        env.step(RIGHT)
        assert env.step(DOWN) == (3, 1.0, True, False, {})


@pytest.mark.parametrize("border", ["block", "deadly"])
@pytest.mark.parametrize("text", [CLIFF, SYNC_GRID, SMALL])
def test_the_model_is_the_environment(border: str, text: str) -> None:
    env = GridWorld(text, border=border, step_reward=-0.1, border_reward=-5.0)
    model = env.tabular_mdp(gamma=0.9)
    assert model.gamma == 0.9
    assert model.n_states == env.map.n_cells + (border == "deadly")
    assert isinstance(model.P, np.ndarray)
    assert model.P.shape == (model.n_states, 4)
    assert np.array_equal(model.initial, env.initial_state_distrib)
    assert np.flatnonzero(model.initial).tolist() == [env.map.start]
    cells = (env.map.goals | env.map.holes).ravel().tolist()
    assert model.terminal.tolist() == ([*cells, True] if border == "deadly" else cells)
    for state in range(model.n_states):
        for action in range(4):
            if model.terminal[state]:
                assert (model.P[state, action], model.r[state, action]) == (state, 0.0)
                continue
            env.reset(options={"state": state})
            next_state, reward, terminated, _, _ = env.step(action)
            assert (model.P[state, action], model.r[state, action]) == (next_state, reward)
            assert model.terminal[next_state] == terminated


def test_slip_probabilities_are_exact() -> None:
    model = GridWorld(SMALL, slip=0.2, step_reward=-1.0, hole_reward=-7.0).tabular_mdp()
    P = dense(model)
    # In the top left corner, right: .8 to cell 1, .1 up (blocked), .1 down to cell 3.
    assert P[0, RIGHT] == pytest.approx([0.1, 0.8, 0, 0.1, 0, 0])
    # In the same corner, left: .8 blocked, and .1 up is blocked as well.
    assert P[0, LEFT] == pytest.approx([0.9, 0, 0, 0.1, 0, 0])
    # From cell 1, up: .8 blocked, .1 left to 0, .1 right into the hole.
    assert P[1, UP] == pytest.approx([0.1, 0.8, 0.1, 0, 0, 0])
    assert model.r[1, UP] == pytest.approx(-1.0 * 0.9 - 7.0 * 0.1)
    assert P[2, UP] == pytest.approx([0, 0, 1, 0, 0, 0])
    assert np.all(model.r[2] == 0.0)


def test_slip_of_one_never_goes_ahead() -> None:
    model = GridWorld(SMALL, slip=1.0).tabular_mdp()
    assert dense(model)[4, RIGHT] == pytest.approx([0, 0.5, 0, 0, 0.5, 0])
    assert sum(matrix.nnz for matrix in model.P) == np.count_nonzero(dense(model))


@pytest.mark.parametrize("slip", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("border", ["block", "deadly"])
def test_the_table_is_the_model(slip: float, border: str) -> None:
    env = GridWorld(SYNC_GRID, slip=slip, border=border, step_reward=-1.0, border_reward=-100.0)
    model = env.tabular_mdp()
    P = np.zeros((model.n_states, 4, model.n_states))
    r = np.zeros((model.n_states, 4))
    for state, actions in env.P.items():
        for action, outcomes in actions.items():
            assert sum(outcome[0] for outcome in outcomes) == pytest.approx(1.0)
            for probability, next_state, reward, terminated in outcomes:
                P[state, action, next_state] += probability
                r[state, action] += probability * reward
                assert terminated == model.terminal[next_state]
    assert np.allclose(dense(model), P)
    assert np.allclose(model.r, r)


def test_slips_are_as_frequent_as_the_model_says() -> None:
    env = GridWorld("...\n.S.\n..G", slip=0.4)
    env.reset(seed=0)
    counts = np.zeros(9)
    n = 4000
    for _ in range(n):
        env.reset()
        counts[env.step(UP)[0]] += 1
    # Four standard deviations of a share are below .032.
    assert counts[[1, 3, 5]] / n == pytest.approx([0.6, 0.2, 0.2], abs=0.032)
    assert counts.sum() == counts[[1, 3, 5]].sum()


def test_the_seed_decides_the_slips_and_nothing_is_drawn_without_them() -> None:
    def walk(seed: int) -> list[int]:
        env = GridWorld("\n".join(["." * 30] * 15 + ["." * 15 + "S" + "." * 13 + "G"]), slip=0.5)
        env.reset(seed=seed)
        return [env.step(UP)[0] for _ in range(10)]

    assert walk(3) == walk(3)
    assert len({tuple(walk(seed)) for seed in range(5)}) > 1
    env = GridWorld(CLIFF)
    env.reset(seed=5)
    before = env.np_random.bit_generator.state
    env.step(DOWN)
    assert env.np_random.bit_generator.state == before


def test_a_large_grid_has_a_model() -> None:
    size = 300
    text = "\n".join(["S" + "." * (size - 1)] + ["." * size] * (size - 2) + ["." * (size - 1) + "G"])
    env = GridWorld(text, border="deadly")
    model = env.tabular_mdp()
    assert model.P.shape == (size**2 + 1, 4)
    assert model.P[size * 7 + 5].tolist() == [size * 7 + 4, size * 8 + 5, size * 7 + 6, size * 6 + 5]


@pytest.mark.parametrize("arguments", [{}, {"slip": 0.3}, {"border": "deadly"}, {"render_mode": "rgb_array"}])
def test_both_checkers_are_content(arguments: dict[str, Any]) -> None:
    env = gymnasium.make("holdfast/Cliff-v0", **arguments)
    gymnasium.utils.env_checker.check_env(env.unwrapped)
    sb3_check_env(env.unwrapped, skip_render_check=False)


def test_the_pixels_show_the_agent_where_it_is() -> None:
    env = GridWorld(SMALL, render_mode="rgb_array")
    env.reset()
    first = env.render()
    env.step(RIGHT)
    second = env.render()
    assert first.shape == second.shape == (2 * 32 + 16, 3 * 32 + 16, 3)
    assert first.dtype == np.uint8
    changed = np.any(first != second, axis=-1)
    rows, columns = np.nonzero(changed)
    assert (rows.min() >= 8, rows.max() < 40) == (True, True)  # the top row of cells
    assert (columns.min() < 40, columns.max() >= 40, columns.max() < 72) == (True, True, True)
    agent = first[24, 24].tolist()
    assert second[24, 56].tolist() == agent
    assert second[24, 24].tolist() != agent


def test_cells_have_their_colours_and_a_new_array_each_time() -> None:
    env = GridWorld(SMALL, render_mode="rgb_array")
    env.reset()
    picture = env.render()
    free, hole, goal = picture[24, 56].tolist(), picture[24, 88].tolist(), picture[56, 88].tolist()
    assert hole == [213, 94, 0]
    assert goal == [0, 158, 115]
    assert min(free) > 240
    picture[:] = 0
    assert env.render().max() == 255


def test_outside_the_agent_is_off_the_map() -> None:
    env = GridWorld(SMALL, border="deadly", render_mode="rgb_array")
    env.reset()
    agent, deadly = env.render()[24, 24].tolist(), env.render()[0, 0].tolist()
    env.step(UP)
    picture = env.render()
    assert picture[24, 24].tolist() != agent
    assert picture[0, 0].tolist() == agent != deadly


@pytest.mark.parametrize("size", [400, 1200])
def test_large_maps_get_small_cells(size: int) -> None:
    env = GridWorld("S" + "." * (size - 2) + "G", render_mode="rgb_array")
    env.reset()
    before = env.render()
    env.step(RIGHT)
    assert max(before.shape) <= 2100
    assert np.any(before != env.render())


def test_text_marks_the_agent() -> None:
    env = GridWorld(SMALL, render_mode="ansi", border="deadly")
    env.reset()
    assert env.render() == "at the start\n[S] .  #\n .  .  G\n"
    env.step(DOWN)
    assert env.render() == "last action: down\n S  .  #\n[.] .  G\n"
    env.step(LEFT)
    assert env.render() == "last action: left, outside the map\n S  .  #\n .  .  G\n"


def test_rendering_without_a_mode_warns() -> None:
    env = GridWorld(SMALL)
    env.reset()
    with pytest.warns(UserWarning, match="^render shows nothing without a render_mode"):
        assert env.render() is None
