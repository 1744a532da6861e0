"""When random options are compiled, and that this changes nothing."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers

from holdfast import HoldAction
from holdfast.advice.visitation.compiled_rollers import CompiledRoller, find_compiled
from holdfast.advice.visitation.random_options import Budget, PythonRoller, Setting
from holdfast.envs import FrozenLake16, GridWorld, NamedFailures, make_env


@pytest.mark.parametrize("name", ["cliff", "zigzag", "frozen-lake", "sync-grid"])
@pytest.mark.parametrize("budget", [Budget(30, "episodes"), Budget(700, "steps")], ids=lambda budget: budget.unit)
def test_all_episodes_are_those_of_the_environment(name: str, budget: Budget) -> None:
    env = make_env(name)
    compiled = find_compiled(env, seed=3)
    assert compiled is not None
    for setting in (Setting(6, "dynamic"), Setting(3, "fixed"), Setting(1, "dynamic")):
        slow = list(PythonRoller([env], int, 3).roll(setting, budget))
        quick = list(compiled.roll(setting, budget))
        for record in ("observations", "rewards", "lengths", "decisions", "terminated", "cut_off"):
            together = (np.concatenate([getattr(part, record) for part in parts]) for parts in (quick, slow))
            assert np.array_equal(*together)


@pytest.mark.parametrize("limit", [7, 5000])
def test_a_time_limit_is_obeyed(limit: int) -> None:
    env = wrappers.TimeLimit(GridWorld("S..\n...\n..G", step_limit=None), limit)
    compiled = find_compiled(env, seed=0)
    assert compiled is not None
    budget, setting = Budget(40, "episodes"), Setting(9, "dynamic")
    slow = [int(part.lengths[0]) for part in PythonRoller([env], int, 0).roll(setting, budget)]
    quick = np.concatenate([part.lengths for part in compiled.roll(setting, budget)])
    assert quick.tolist() == slow
    assert quick.max() <= limit


FAR = "S" + 3000 * "." + "G"
"""Single steps do not get there in 10,000 steps: their standard deviation is 71 cells."""


@pytest.mark.parametrize(
    ("env", "kept", "is_cut_off"),
    [
        (lambda: GridWorld(FAR, step_limit=None), int, True),
        (lambda: wrappers.TimeLimit(GridWorld(FAR, step_limit=None), 10_000), int, False),
        (lambda: wrappers.TimeLimit(GridWorld(FAR, step_limit=None), 10_001), int, True),
        (lambda: gymnasium.make("MountainCar-v0").unwrapped, np.array, True),
    ],
)
def test_what_does_not_end_is_cut_off_alike(env: Any, kept: Any, is_cut_off: bool) -> None:
    place = env()
    compiled = find_compiled(place, seed=0)
    assert compiled is not None
    budget, setting = Budget(500, "steps"), Setting(1, "dynamic")
    (slow,) = PythonRoller([place], kept, 0).roll(setting, budget)
    (quick,) = compiled.roll(setting, budget)
    assert slow.lengths.tolist() == [10_000]
    assert slow.cut_off.tolist() == [is_cut_off]
    for record in ("observations", "rewards", "lengths", "decisions", "terminated", "cut_off"):
        assert np.array_equal(getattr(quick, record), getattr(slow, record))


@pytest.mark.parametrize(
    "env",
    [
        lambda: make_env("cliff"),
        lambda: FrozenLake16(4),
        lambda: gymnasium.make("MountainCar-v0"),
        lambda: NamedFailures(gymnasium.make("MountainCar-v0").unwrapped),
        lambda: gymnasium.make("MountainCar-v0", render_mode="rgb_array", disable_env_checker=True).unwrapped,
    ],
)
def test_plain_environments_are_compiled(env: Any) -> None:
    assert isinstance(find_compiled(env(), 0), CompiledRoller)


class Sliding(GridWorld):
    """A grid with steps of its own."""

    def step(self, action: Any) -> Any:
        return super().step(2)


@pytest.mark.parametrize(
    "env",
    [
        lambda: GridWorld("S.G", slip=0.2),
        lambda: Sliding("S.G"),
        lambda: HoldAction(make_env("cliff"), 2),
        lambda: wrappers.TransformReward(gymnasium.make("MountainCar-v0"), lambda reward: 2 * reward),
        lambda: HoldAction(gymnasium.make("MountainCar-v0"), 2),
        lambda: gymnasium.make("MountainCarContinuous-v0"),
        lambda: gymnasium.make("FrozenLake-v1", is_slippery=False),
    ],
)
def test_what_may_do_something_else_is_not(env: Any) -> None:
    assert find_compiled(env(), 0) is None
