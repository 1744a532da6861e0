"""Classic control with time cut finer: Gymnasium's own with n = 1, the same physics with any n."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import gymnasium
import gymnasium.utils.env_checker
import numpy as np
import pytest
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from holdfast.cli import main
from holdfast.envs import GridMap, GridWorld, HoldAction, make_env
from holdfast.mdp import TabularMDP, q_star

OWN = {"MountainCar": "MountainCar-v0", "CartPole": "CartPole-v1", "Acrobot": "Acrobot-v1"}


def fine(name: str, n: int = 1, **arguments: Any) -> Any:
    return gymnasium.make(f"holdfast/{name}Fine-v0", n=n, **arguments)


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("seed", range(3))
def test_one_step_for_one_is_gymnasiums_own_to_the_last_bit(name: str, seed: int) -> None:
    ours, own, rng = fine(name), gymnasium.make(OWN[name]), np.random.default_rng(seed)
    held = 0
    for episode in range(4):
        one, other = ours.reset(seed=seed + episode)[0], own.reset(seed=seed + episode)[0]
        assert one.tobytes() == other.tobytes()
        ended = False
        while not ended:
            # Held actions get the car up the hill, to its bounds, and the acrobot swinging.
            held = int(rng.integers(own.action_space.n)) if rng.random() < 0.1 else held
            one, other = ours.step(held), own.step(held)
            assert one[0].tobytes() == other[0].tobytes()
            assert one[1:4] == other[1:4]
            assert ours.unwrapped.state[0] == own.unwrapped.state[0]
            ended = one[2] or one[3]


def test_a_pendulum_of_one_step_for_one_is_gymnasiums_own_and_a_finer_one_the_same_physics() -> None:
    random = np.random.default_rng(0)
    ours, own = fine("Pendulum"), gymnasium.make("Pendulum-v1")
    assert ours.reset(seed=3)[0].tobytes() == own.reset(seed=3)[0].tobytes()
    for _ in range(200):
        push = random.uniform(-2.0, 2.0, 1).astype(np.float32)
        one, other = ours.step(push), own.step(push)
        assert one[0].tobytes() == other[0].tobytes()
        assert one[1:4] == other[1:4]
    assert one[3]
    gaps, totals = [], []
    for n in (10, 20, 40):
        env = fine("Pendulum", n)
        env.reset(seed=3)
        assert env.unwrapped.time.step_limit == 200 * n
        totals.append(sum(env.step(np.ones(1, np.float32))[1] for _ in range(8 * n)))
        gaps.append(np.array(env.unwrapped.state))
    # The error of the integration is halved with the step.
    errors = [np.abs(one - other).max() for one, other in pairwise(gaps)]
    assert 0.0 < errors[1] < 0.7 * errors[0]
    assert totals[0] == pytest.approx(totals[2], rel=0.05)


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("n", [4, 16])
def test_finer_time_is_the_same_physics(name: str, n: int) -> None:
    # The same push for a while: what is reached differs by the error of the integration alone, which is halved
    # with the step. The reward of a physical step is the same.
    ends = {}
    for steps in (n, 2 * n):
        env = fine(name, steps)
        env.reset(seed=1)
        total = 0.0
        for _ in range(4 * steps):
            _, reward, terminated, truncated, _ = env.step(1)
            total += reward
            assert not terminated
            assert not truncated
        ends[steps] = np.array(env.unwrapped.state, dtype=np.float64)
        assert total == pytest.approx({"CartPole": 4.0}.get(name, -4.0))
    own = gymnasium.make(OWN[name])
    own.reset(seed=1)
    for _ in range(4):
        own.step(1)
    gap = np.abs(np.array(own.unwrapped.state) - ends[n]).max()  # type: ignore[attr-defined]
    assert 0.0 < np.abs(ends[2 * n] - ends[n]).max() < gap + 1e-7
    assert gap < 0.1


@pytest.mark.parametrize(("name", "steps"), [("MountainCar", 200), ("CartPole", 500), ("Acrobot", 500)])
def test_an_episode_lasts_as_long_in_physical_time(name: str, steps: int) -> None:
    env = fine(name, 3)
    assert env.unwrapped.time.step_limit == 3 * steps
    env.reset(seed=0)
    for count in range(1, 3 * steps + 1):
        _, _, terminated, truncated, _ = env.step(count % 2)
        if terminated:
            assert name == "CartPole"
            return
        assert truncated == (count == 3 * steps)


def test_a_skip_of_n_is_the_original_problem() -> None:
    env = HoldAction(fine("MountainCar", 4), 4)
    env.reset(seed=0)
    rewards = [env.step(2)[1] for _ in range(3)]
    assert rewards == pytest.approx([-1.0] * 3)


@pytest.mark.filterwarnings("ignore:.*A Box observation space m.*imum value is -?infinity")  # CartPole's own
@pytest.mark.parametrize("name", OWN)
def test_both_checkers_are_content(name: str) -> None:
    env = fine(name, 2)
    gymnasium.utils.env_checker.check_env(env.unwrapped, skip_render_check=True)
    sb3_check_env(env.unwrapped)


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("n", [0, -2])
def test_less_than_one_step_is_refused(name: str, n: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=rf"^n must be a whole number of at least 1, not {n}$"):
        make_env(f"holdfast/{name}Fine-v0", n=n)
    assert main(["train", f"holdfast/{name}Fine-v0", "--env-kwargs", f"n={n}", "--steps", "10"]) == 2
    error = capsys.readouterr().err
    assert f"n must be a whole number of at least 1, not {n}" in error
    assert error.count("\n") == 1


class TestRefinedMaps:
    def test_by_hand(self) -> None:
        assert str(GridMap.parse("S#\n.G").refined(2)) == "S.##\n..##\n..GG\n..GG"
        assert str(GridMap.parse("S#\n.G").refined(1)) == "S#\n.G"

    @pytest.mark.parametrize("n", [1, 2, 4, 8])
    def test_cliff_is_as_far_in_physical_time(self, n: int) -> None:
        grid = GridWorld(make_env("cliff").unwrapped.map.refined(n))  # type: ignore[attr-defined]
        # Down 3 cells, right 9, and up into the goal, whose nearest row is 2 cells and one step away.
        steps = 14 * n + 1
        assert grid.map.shortest_path_length() == steps
        q = q_star(TabularMDP.from_gymnasium(grid, 0.99 ** (1 / n)))
        assert q[0].max() == pytest.approx(0.99 ** ((steps - 1) / n))

    def test_less_than_one_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"^n must be a whole number of at least 1, not 0$"):
            GridMap.parse("SG").refined(0)
