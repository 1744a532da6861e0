"""MinAtar's games are those of its package, seeded by us."""

from __future__ import annotations

from typing import Any

import gymnasium.utils.env_checker
import numpy as np
import pytest

from holdfast.core.errors import InputError
from holdfast.envs import MinAtarGame, action_names, make_env, make_minatar, make_scoring_env
from holdfast.envs.game_names import MINATAR_GAMES

minatar = pytest.importorskip("minatar")


@pytest.mark.parametrize("game", MINATAR_GAMES)
@pytest.mark.parametrize("settings", [{}, {"sticky": 0.4, "ramping": False}])
def test_games_are_those_of_the_package(game: str, settings: dict[str, Any]) -> None:
    theirs = minatar.Environment(
        game,
        sticky_action_prob=settings.get("sticky", 0.1),
        difficulty_ramping=settings.get("ramping", True),
    )
    ours = make_minatar(game, full_actions=True, **settings)
    rng = np.random.default_rng(1)
    lengths = []
    for seed in range(4):
        observation, _ = ours.reset(seed=seed)
        theirs.seed(seed)
        theirs.last_action = 0
        theirs.reset()
        length = 0
        for _ in range(400):
            np.testing.assert_array_equal(observation, theirs.state().transpose(2, 0, 1))
            action = int(rng.integers(6))
            observation, reward, terminated, truncated, info = ours.step(action)
            assert (reward, terminated) == theirs.act(action)
            assert (truncated, info) == (False, {})
            length += 1
            if terminated:
                break
        lengths.append(length)
    assert min(lengths) < 400 or game == "freeway"


@pytest.mark.parametrize(
    ("game", "actions"),
    [
        ("Asterix", ("noop", "left", "up", "right", "down")),
        ("Breakout", ("noop", "left", "right")),
        ("Freeway", ("noop", "up", "down")),
        ("Seaquest", ("noop", "left", "up", "right", "down", "fire")),
        ("Space Invaders", ("noop", "left", "right", "fire")),
    ],
)
def test_actions_are_those_that_do_something(game: str, actions: tuple[str, ...]) -> None:
    env = make_env(f"minatar:{game}")
    assert isinstance(env.unwrapped, MinAtarGame)
    assert action_names(env) == actions
    assert action_names(make_env(f"minatar:{game}", full_actions=True)) == (
        "noop",
        "left",
        "up",
        "right",
        "down",
        "fire",
    )


def test_actions_lead_where_their_names_say() -> None:
    env: Any = make_minatar("Breakout", sticky=0.0)
    for action, column in ((0, 4), (1, 3), (2, 5)):
        env.reset(seed=0)
        # The paddle is the first channel, in the last row, and begins in column 4.
        assert np.argwhere(env.step(action)[0][0]).tolist() == [[9, column]]


def test_an_episode_follows_from_its_seed_alone() -> None:
    def played(env: Any, seed: int) -> bytes:
        env.reset(seed=seed)
        return b"".join(env.step(step % 3)[0].tobytes() for step in range(60))

    env = make_minatar("Freeway", sticky=0.5)
    first = played(env, 5)
    assert played(env, 6) != first
    assert played(env, 5) == first
    assert played(make_minatar("Freeway", sticky=0.5), 5) == first
    # Seeds of any size.
    assert played(env, 2**70) == played(env, 2**70) != first


def test_a_long_game_is_cut_short() -> None:
    env = make_minatar("Freeway", max_steps=7)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(7)] == [(False, False)] * 6 + [(False, True)]
    env = make_minatar("Freeway")
    env.reset(seed=0)
    # Freeway ends by itself after 2,500 frames, before the limit.
    assert [env.step(0)[2:4] for _ in range(2501)][-2:] == [(False, False), (True, False)]
    # Breakout's ball can be kept up for ever.
    assert make_minatar("Breakout").unwrapped._max_steps == 5000  # type: ignore[attr-defined]


def test_observations_are_bytes_of_0_and_1() -> None:
    env = make_scoring_env("minatar:Seaquest")
    assert env.observation_space == gymnasium.spaces.Box(0, 1, (10, 10, 10), np.uint8)
    assert set(np.unique(env.reset(seed=0)[0])) == {0, 1}


@pytest.mark.parametrize("game", MINATAR_GAMES)
def test_gymnasiums_checker_is_content(game: str) -> None:
    env = make_minatar(game, render_mode="rgb_array").unwrapped
    gymnasium.utils.env_checker.check_env(env, skip_render_check=True)
    picture: Any = env.render()
    assert (picture.shape, picture.dtype) == ((160, 160, 3), np.uint8)


def test_a_picture_shows_where_things_are() -> None:
    env: Any = make_minatar("Breakout", render_mode="rgb_array")
    env.reset(seed=0)
    env.step(0)
    observation, *_ = env.step(0)
    cells = env.render()[::16, ::16]
    np.testing.assert_array_equal(cells.any(axis=2), observation.any(axis=0))
    # Paddle, ball, its trail and bricks have a colour each, and so has nothing.
    assert len(np.unique(cells.reshape(-1, 3), axis=0)) == 5


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        (
            "minatar:Pong",
            {},
            "game must be a MinAtar game, not 'Pong'; there are Asterix, Breakout, Freeway, Seaquest, "
            "SpaceInvaders",
        ),
        ("minatar:Asterx", {}, "game must be a MinAtar game, not 'Asterx'; did you mean 'Asterix'?"),
        ("minatar:Freeway", {"max_steps": 0}, "max_steps must be a whole number of at least 1, not 0"),
        ("minatar:Freeway", {"ramping": 2}, "ramping must be true or false, not 2"),
        ("minatar:Freeway", {"frame_skip": 4}, "environment 'minatar:Freeway' has no argument 'frame_skip'"),
    ],
)
def test_bad_input_is_a_sentence(name: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        make_env(name, **settings)
    assert str(caught.value) == sentence
