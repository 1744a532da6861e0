from typing import Any

import gymnasium
import numpy as np
import pytest

from holdfast.envs import FrozenLake16, random_map


def test_maps_are_solvable_from_corner_to_corner() -> None:
    for seed in range(50):
        grid = random_map(seed=seed)
        assert grid.shape == (16, 16)
        assert grid.start == 0
        assert np.flatnonzero(grid.goals).tolist() == [255]
        assert grid.shortest_path_length() is not None


def test_the_seed_decides_the_map() -> None:
    assert random_map(seed=4) == random_map(seed=4)
    assert len({random_map(seed=seed) for seed in range(20)}) == 20


def test_the_share_of_holes_is_as_asked() -> None:
    share = np.mean([random_map(seed=seed).holes.mean() for seed in range(100)])
    # 254 cells of 256 may be holes; four standard deviations of the mean are .009, solvability takes a little.
    assert share == pytest.approx(0.15 * 254 / 256, abs=0.012)
    assert not random_map(frozen=1.0).holes.any()


def test_scarce_ice_is_still_solvable() -> None:
    grid = random_map(size=6, frozen=0.45, seed=1)
    assert grid.shortest_path_length() is not None
    assert grid.holes.mean() > 0.25


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"size": 1}, ValueError, "size must be a whole number of at least 2, not 1"),
        ({"size": 4.0}, TypeError, "size must be a whole number of at least 2, not 4.0"),
        ({"frozen": 1.1}, ValueError, "frozen must be a number in [0, 1], not 1.1"),
        ({"seed": -1}, ValueError, "seed must be a whole number of at least 0, not -1"),
        ({"seed": None}, TypeError, "seed must be a whole number of at least 0, not None"),
        (
            {"frozen": 0.1},
            ValueError,
            "frozen must be larger for maps of size 16: with 0.1 none of 1000 maps could be solved",
        ),
    ],
)
def test_wrong_arguments_get_one_sentence(
    arguments: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        random_map(**arguments)
    assert str(caught.value) == sentence


def test_the_environment_has_the_map_of_its_seed() -> None:
    env = FrozenLake16(seed=7)
    assert env.map == random_map(seed=7)
    env.reset(seed=1)
    assert env.map == random_map(seed=7)
    assert env.slip == 0.0
    assert FrozenLake16().map == random_map(seed=0)
    assert FrozenLake16(3, frozen=0.95).map == random_map(16, 0.95, 3)


def test_the_environment_takes_what_grids_take() -> None:
    env: Any = gymnasium.make("holdfast/FrozenLake16-v0", seed=2, slip=0.1, step_limit=7).unwrapped
    assert isinstance(env, FrozenLake16)
    assert (env.slip, env.step_limit, env.map) == (0.1, 7, random_map(seed=2))
    assert (env.goal_reward, env.hole_reward, env.step_reward, env.border) == (1.0, -1.0, 0.0, "block")
