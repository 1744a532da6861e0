"""Games that are stepped in C++ are single ones, as far as both follow from the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from stable_baselines3 import DQN

from holdfast.core.errors import InputError
from holdfast.deep import PerDQN, make_atari_vec
from holdfast.deep.exact.vec_envs import vec_env_state
from holdfast.envs import make_atari

pytest.importorskip("ale_py")

BARE: dict[str, Any] = {"no_ops": 0, "fire": False, "episodic_life": False}
"""What begins a game the same way in both."""


def even(start: int, number: int) -> int:
    """A first seed from which ``number`` seeds in a row have 31 bits at the emulator."""
    while any(np.random.SeedSequence(start + n).generate_state(2)[1] >> 31 for n in range(number)):
        start += 1
    return start


@pytest.mark.parametrize(
    ("game", "settings"),
    [
        ("Breakout", {}),
        ("SpaceInvaders", {"clip_rewards": False}),
        ("Freeway", {"sticky": 0.5, "max_frames": 1000}),
        ("Breakout", {"stack": 2, "size": 42, "frame_skip": 5, "full_actions": True, "max_frames": 400}),
    ],
)
def test_a_game_is_the_single_one_until_its_end(game: str, settings: dict[str, Any]) -> None:
    seed = even(3, 3)
    many = make_atari_vec(game, 3, seed, **BARE, **settings)
    single = [make_atari(game, **BARE, **settings) for _ in range(3)]
    rng = np.random.default_rng(0)
    seen = many.reset()
    for place, env in enumerate(single):
        np.testing.assert_array_equal(seen[place], env.reset(seed=seed + place)[0])
    playing = {0, 1, 2}
    ends: set[str] = set()
    for _ in range(1500):
        actions = rng.integers(many.action_space.n, size=3)  # type: ignore[attr-defined]
        seen, rewards, done, infos = many.step(actions)
        for place in sorted(playing):
            expected, reward, terminated, truncated, info = single[place].step(actions[place])
            assert (rewards[place], done[place]) == (reward, terminated or truncated)
            if not done[place]:
                np.testing.assert_array_equal(seen[place], expected)
                assert infos[place]["lives"] == info["lives"]
                continue
            last = infos[place]["terminal_observation"]
            # In C++ the frames of a step end with the game: the last one, and what follows, may differ.
            np.testing.assert_array_equal(last[:-1], expected[:-1])
            if truncated:
                np.testing.assert_array_equal(last, expected)
            assert infos[place]["TimeLimit.truncated"] == (truncated and not terminated)
            assert not seen[place][:-1].any()
            assert seen[place][-1].any()
            ends.add("truncated" if truncated else "terminated")
            playing.remove(place)
        if not playing:
            break
    assert not playing
    assert ends == ({"truncated"} if "max_frames" in settings else {"terminated"})


def test_a_lost_life_ends_an_episode_and_not_the_game() -> None:
    env = make_atari_vec("Breakout", 2, seed=0)
    env.reset()
    rng = np.random.default_rng(0)
    stacks: dict[int, list[Any]] = {}
    lives, n_lost, n_over = [5, 5], 0, 0
    for _ in range(900):
        seen, rewards, done, infos = env.step(rng.integers(4, size=2))
        assert set(rewards) <= {0.0, 1.0}
        for place in range(2):
            told = infos[place]
            assert done[place] == (told["lives"] != lives[place])
            if place in stacks:
                # An episode is seen from its first frame on, as a frame stack of SB3 shows it.
                frames = stacks[place]
                frames.append((told.get("terminal_observation") if done[place] else seen[place])[-1])
                expected = np.zeros_like(seen[place])
                for depth, frame in enumerate(frames[::-1][:4]):
                    expected[3 - depth] = frame
                shown = told["terminal_observation"] if done[place] else seen[place]
                np.testing.assert_array_equal(shown, expected)
            if done[place]:
                over = told["lives"] > lives[place]
                n_lost, n_over = n_lost + (not over), n_over + over
                assert not seen[place][:3].any()
                stacks[place] = [seen[place][-1]]
                assert told["episode"]["l"] > 0
            lives[place] = told["lives"]
    assert n_lost > 8
    assert n_over > 1


def test_the_same_seed_is_the_same_play() -> None:
    def played(seed: int | None) -> bytes:
        env = make_atari_vec("SpaceInvaders", 3, seed, n_threads=2)
        shown = [env.reset()]
        rng = np.random.default_rng(0)
        for _ in range(250):
            observations, rewards, _, _ = env.step(rng.integers(6, size=3))
            shown += [observations, rewards]
        return b"".join(part.tobytes() for part in shown)

    assert played(4) == played(4)
    assert played(4) != played(5)
    assert played(None) != played(None)


@pytest.mark.parametrize("kind", [PerDQN, DQN])
def test_agents_learn_there(kind: Any) -> None:
    env = make_atari_vec("Breakout", 2, seed=0, size=36)
    model = kind("CnnPolicy", env, buffer_size=200, learning_starts=40, batch_size=4, seed=0, device="cpu")
    model.learn(120)
    assert model.num_timesteps == 120
    assert len(model.ep_info_buffer) > 0
    if kind is PerDQN:
        with pytest.raises(
            ValueError, match="must be a DummyVecEnv or SubprocVecEnv to be saved, not AtariVecEnv"
        ):
            vec_env_state(env)


@pytest.mark.parametrize(
    ("arguments", "settings", "sentence"),
    [
        (("Freway",), {}, "game must be an Atari game, not 'Freway'; did you mean 'Freeway'?"),
        (("Freeway", 0), {}, "n_envs must be a whole number of at least 1, not 0"),
        (
            ("Freeway", 1),
            {"skip": 4},
            "there is no setting 'skip' of games: choose from frame_skip, sticky, stack, size, episodic_life, "
            "clip_rewards, no_ops, fire, full_actions, max_frames",
        ),
        (("Freeway", 1, -1), {}, "seed must be a whole number of at least 0, not -1"),
        (("Freeway", 1, "2"), {}, "seed must be a whole number of at least 0, not '2'"),
        (("Freeway",), {"frame_skip": 0}, "frame_skip must be a whole number of at least 1, not 0"),
        (("Freeway",), {"sticky": -1}, "sticky must be a number in [0, 1], not -1"),
        (("Freeway",), {"fire": None}, "fire must be true or false, not None"),
    ],
)
def test_bad_input_is_a_sentence(arguments: tuple[Any, ...], settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        make_atari_vec(*arguments, **settings)
    assert str(caught.value) == sentence


def test_what_sb3_asks_of_a_vector_environment() -> None:
    env = make_atari_vec("Breakout", 2)
    assert env.get_attr("render_mode") == [None, None]
    assert env.get_attr("frame_skip", [1]) == [4]
    assert env.env_method("get_action_meanings", indices=0) == [["NOOP", "FIRE", "RIGHT", "LEFT"]]
    with pytest.raises(InputError, match="frame_skip cannot be set: these games run in C"):
        env.set_attr("frame_skip", 1)
    env.close()
