"""Games say where they are; everything else is where it is seen."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from holdfast.advice.visitation.study import study_visitation
from holdfast.envs import make_atari, make_minatar, place_names, place_of


def test_most_environments_are_where_they_are_seen() -> None:
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=0)
    assert place_names(env) is None
    assert place_of(env, observation) is observation


def test_an_atari_game_is_where_its_memory_says() -> None:
    env = make_atari("Freeway")
    env.reset(seed=0)
    first = place_of(env, None)
    np.testing.assert_array_equal(first, env.unwrapped.ale.getRAM())
    assert (first.shape, first.dtype) == ((128,), np.uint8)
    assert "RAM" in str(place_names(env))
    env.step(1)
    # A copy: the emulator goes on in its own memory.
    assert (place_of(env, None) != first).any()


def test_a_minatar_game_is_where_the_things_on_its_board_are() -> None:
    env = make_minatar("Breakout", sticky=0.0)
    env.reset(seed=0)
    first = place_of(env, None)
    assert {"ball_x", "ball_y", "pos", "brick_map"} <= set(first)
    assert not {"random", "last_action"} & set(first)
    # The paddle begins at 4 and moves by one cell.
    env.step(1)
    assert (first["pos"], place_of(env, None)["pos"]) == (4, 3)


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: make_atari("Breakout", max_frames=160), lambda env: env.unwrapped.ale.getRAM().tobytes()),
        (
            lambda: make_minatar("Asterix"),
            lambda env: repr(env.unwrapped.place()),
        ),
    ],
)
def test_places_of_a_study_are_those_that_differ(make, place) -> None:
    study = study_visitation(make, (1,), episodes=3, seed=0)
    assert study.cells.kind == "places"
    assert "No heat map: places are the " in study.notes[0]
    (result,) = study.results

    class Diary(gymnasium.Wrapper):
        seen: list[object] = []  # noqa: RUF012 (of this test alone)

        def reset(self, **given):
            found = super().reset(**given)
            self.seen.append(place(self.env))
            return found

        def step(self, action):
            found = super().step(action)
            self.seen.append(place(self.env))
            return found

    diary = Diary(make())
    Diary.seen = []
    study_visitation(diary, (1,), episodes=3, seed=0)
    assert result.visited == len(set(Diary.seen))
    assert int(result.counts.sum()) == len(Diary.seen)
