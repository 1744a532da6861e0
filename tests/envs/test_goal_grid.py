"""The grid with goals: where steps lead, what they are worth, and what is seen of it."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_for_sb3

from holdfast.core.errors import InputError
from holdfast.envs import GoalGrid, make_env


def cells(seen, size):
    return {key: tuple(np.round((value + 1) * (size - 1) / 2).astype(int).tolist()) for key, value in seen.items()}


def test_it_is_a_proper_environment():
    check_env(GoalGrid(), skip_render_check=True)
    check_for_sb3(GoalGrid(), warn=False, skip_render_check=True)


def test_it_has_names():
    for name in ("goal-grid", "goalgrid", "holdfast/GoalGrid-v0"):
        assert isinstance(make_env(name, size=4).unwrapped, GoalGrid)


def test_steps_lead_beside_and_the_border_blocks():
    env = GoalGrid(size=3, step_limit=None)
    moves = {0: (0, -1), 1: (1, 0), 2: (0, 1), 3: (-1, 0)}
    n_blocked = 0
    for seed in range(40):
        before = cells(env.reset(seed=seed)[0], 3)
        seen, reward, terminated, _, _ = env.step(seed % 4)
        after = cells(seen, 3)
        meant = tuple(np.add(before["observation"], moves[seed % 4]).tolist())
        inside = all(0 <= number < 3 for number in meant)
        n_blocked += not inside
        assert after["observation"] == after["achieved_goal"] == (meant if inside else before["observation"])
        assert after["desired_goal"] == before["desired_goal"]
        reached = after["observation"] == after["desired_goal"]
        assert (reward, terminated) == ((0.0, True) if reached else (-1.0, False))
    assert 0 < n_blocked < 40


def test_starts_and_goals_are_different_cells_and_all_are_drawn():
    env = GoalGrid(size=3)
    pairs = set()
    for seed in range(600):
        seen = cells(env.reset(seed=seed)[0], 3)
        pairs.add((seen["achieved_goal"], seen["desired_goal"]))
    assert len(pairs) == 9 * 8
    assert all(start != goal for start, goal in pairs)


def test_rewards_of_many_goals_are_those_of_each():
    env = GoalGrid(size=4)
    goals = np.array([[-1.0, 1.0], [-1.0, -1.0], [1.0, 1.0]], dtype=np.float32)
    assert env.compute_reward(goals, goals[[0, 0, 2]], [{}, {}, {}]).tolist() == [0.0, -1.0, 0.0]
    assert float(env.compute_reward(goals[0], goals[0], {})) == 0.0


def test_episodes_end_by_time_or_with_success():
    env = GoalGrid(size=2, step_limit=3)
    ends = set()
    for seed in range(20):
        env.reset(seed=seed)
        for number in range(3):
            _, _, terminated, truncated, info = env.step(number)
            assert not (terminated and truncated)
            if terminated or truncated:
                ends.add((number, terminated))
                assert info == {"is_success": terminated}
                break
        with pytest.raises(gymnasium.error.ResetNeeded, match="reset must be called before step"):
            env.step(0)
    assert {False, True} == {terminated for _, terminated in ends}
    assert all(number == 2 for number, terminated in ends if not terminated)


def test_pictures_show_agent_and_goal():
    env = GoalGrid(size=3, render_mode="ansi")
    env.reset(seed=0)
    text = env.render()
    assert text.startswith("at the start\n")
    assert text.count("[S]") == text.count("G") == 1
    env = GoalGrid(size=3, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first.shape == (3 * 32 + 16, 3 * 32 + 16, 3)
    for action in range(4):
        env.step(action)
        if not np.array_equal(env.render(), first):
            break
    else:
        pytest.fail("no step shows")
    assert GoalGrid().render() is None


@pytest.mark.parametrize("arguments", [{"size": 1}, {"size": 2.5}, {"step_limit": 0}, {"render_mode": "human"}])
def test_bad_arguments(arguments):
    with pytest.raises((InputError, TypeError), match=f"{next(iter(arguments))} must be"):
        GoalGrid(**arguments)


@pytest.mark.parametrize("action", [-1, 4])
def test_bad_actions(action):
    env = GoalGrid()
    env.reset(seed=0)
    with pytest.raises(InputError, match="action must be"):
        env.step(action)
