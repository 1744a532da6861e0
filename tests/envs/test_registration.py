import importlib
import subprocess
import sys
from typing import Any

import gymnasium
import gymnasium.utils.env_checker
import pytest
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import holdfast.envs.registration
from holdfast.envs import SHORT_NAMES, GridWorld, register_environments
from holdfast.envs.registration import GRID_ID

IDS = [f"holdfast/{name}-v0" for name in ("Cliff", "Bridge", "ZigZag", "Open", "SyncGrid", "FrozenLake16")]

FINE = [f"holdfast/{name}Fine-v0" for name in ("MountainCar", "CartPole", "Acrobot", "Pendulum")]


@pytest.mark.parametrize("name", IDS)
def test_every_id_makes_its_environment(name: str) -> None:
    env: Any = gymnasium.make(name)
    assert isinstance(env.unwrapped, GridWorld)
    assert env.spec.max_episode_steps is None
    assert env.unwrapped.step_limit == 100
    assert gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()).id == name


@pytest.mark.parametrize("name", [*IDS, GRID_ID])
@pytest.mark.parametrize("render_mode", [None, "rgb_array", "ansi"])
def test_both_checkers_are_content_with_every_id(name: str, render_mode: str | None) -> None:
    arguments = {"map": "S.#\n..G"} if name == GRID_ID else {}
    env = gymnasium.make(name, render_mode=render_mode, **arguments)
    gymnasium.utils.env_checker.check_env(env.unwrapped)
    sb3_check_env(env.unwrapped, skip_render_check=False)


def test_arguments_reach_the_environment() -> None:
    env: Any = gymnasium.make("holdfast/Cliff-v0", slip=0.2, step_limit=50, render_mode="ansi")
    assert (env.unwrapped.slip, env.unwrapped.step_limit, env.unwrapped.render_mode) == (0.2, 50, "ansi")
    assert str(gymnasium.make("holdfast/Grid-v0", map="S.G").unwrapped.map) == "S.G"  # type: ignore[attr-defined]


def test_the_synchronous_grid_is_the_papers_but_for_its_layout() -> None:
    env: Any = gymnasium.make("holdfast/SyncGrid-v0").unwrapped
    assert env.map.shape == (6, 6)
    assert 4 <= env.map.holes.sum() <= 6
    assert (env.goal_reward, env.hole_reward, env.step_reward) == (100.0, -10.0, -1.0)
    assert (env.border, env.border_reward) == ("deadly", -100.0)
    env.reset()
    assert env.step(3)[:3] == (36, -100.0, True)


def test_registering_twice_changes_nothing() -> None:
    # A warning, which Gymnasium gives for an id that is overwritten, would fail here.
    before = {name: gymnasium.registry[name] for name in IDS}
    register_environments()
    importlib.reload(holdfast.envs.registration).register_environments()
    assert all(gymnasium.registry[name] is spec for name, spec in before.items())


def test_importing_the_package_registers() -> None:
    code = "import gymnasium, holdfast.envs; print(sorted(n for n in gymnasium.registry if 'holdfast/' in n))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(
        sorted([*IDS, *(f"holdfast/{name}-v0" for name in ("Grid", "GoalGrid", "Atari", "MinAtar")), *FINE])
    )


def test_short_names_lead_to_registered_ids() -> None:
    assert set(SHORT_NAMES.values()) == {*IDS, "holdfast/GoalGrid-v0"}
    assert {"cliff", "bridge", "zigzag", "open", "sync-grid", "syncgrid", "frozen-lake"} <= set(SHORT_NAMES)


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [({}, 100), ({"max_episode_steps": 7}, 7), ({"step_limit": 130}, 130), ({"step_limit": 5}, 5)],
)
def test_the_shorter_limit_holds(arguments: dict[str, int], limit: int) -> None:
    env = gymnasium.make("holdfast/Open-v0", **arguments)
    env.reset(seed=0)
    steps, truncated = 0, False
    while not truncated:
        _, _, terminated, truncated, _ = env.step(0)
        assert not terminated
        steps += 1
    assert steps == limit
