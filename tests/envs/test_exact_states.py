"""Games that were saved and restored elsewhere go on bit for bit, over the ends of their episodes."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import SubprocVecEnv

from holdfast.deep import make_vec_env
from holdfast.deep.exact.vec_envs import restore_vec_env, vec_env_state
from holdfast.envs import EpisodeLog, NamedFailures, make_env
from holdfast.envs.atari import AtariGame
from holdfast.envs.atari_history import NEW_GAME, GameHistory
from holdfast.envs.training_info import TrainingInfo
from tests.envs.test_episode_log import by_json

pytest.importorskip("ale_py")
pytest.importorskip("minatar")

ATARI = ("atari:Breakout", "atari:Seaquest", "atari:SpaceInvaders", "atari:Qbert")
MINATAR = ("minatar:Asterix", "minatar:Breakout", "minatar:Freeway", "minatar:Seaquest", "minatar:SpaceInvaders")


def logged(name: str, index: int = 0, **settings: Any) -> EpisodeLog:
    return EpisodeLog(Monitor(NamedFailures(make_env(name, **settings))), index)


def play(env: Any, rng: np.random.Generator, n_steps: int, needs_reset: bool = False) -> list[Any]:
    """All that was shown in ``n_steps`` steps, and in the resets between them."""
    shown: list[Any] = []
    for _ in range(n_steps):
        if needs_reset:
            shown.append(env.reset())
        observation, reward, terminated, truncated, info = env.step(rng.integers(env.action_space.n))
        # Monitor measures times.
        info = {**info, "episode": {**info["episode"], "t": 0}} if "episode" in info else info
        shown.append((observation, reward, terminated, truncated, info))
        needs_reset = terminated or truncated
    return shown


def assert_equal(one: list[Any], other: list[Any]) -> None:
    assert len(one) == len(other)
    for (seen, *rest), (expected, *wanted) in zip(one, other, strict=True):
        np.testing.assert_array_equal(seen, expected)
        assert rest == wanted


def assert_goes_on(name: str, before: int, after: int, **settings: Any) -> int:
    first, second = logged(name, **settings), logged(name, **settings)
    first.reset(seed=11)
    # What the other one did before does not matter.
    second.reset(seed=99)
    play(second, np.random.default_rng(1), 30)
    last = play(first, np.random.default_rng(2), before)[-1]
    state = by_json(first.episode_state())
    assert second.repeat_episode(state) is None
    needs_reset = last[2] or last[3]
    expected = play(first, np.random.default_rng(3), after, needs_reset)
    assert_equal(play(second, np.random.default_rng(3), after, needs_reset), expected)
    return sum(len(parts) == 2 for parts in expected)


@pytest.mark.parametrize("name", [*ATARI[:2], *(pytest.param(name, marks=pytest.mark.slow) for name in ATARI[2:])])
def test_atari_games_go_on_bit_for_bit(name: str) -> None:
    assert assert_goes_on(name, 700, 2000) > 3


@pytest.mark.parametrize(
    ("name", "sticky"),
    [
        ("atari:Breakout", 0),
        ("atari:Seaquest", 0.25),
        pytest.param("atari:Breakout", 0.25, marks=pytest.mark.slow),
    ],
)
def test_an_atari_game_goes_on_bit_for_bit_from_any_of_its_steps(name: str, sticky: float) -> None:
    """The emulator's state lacks the action that may be repeated: one restored game in ten would show it."""
    first, second = (logged(name, sticky=sticky, size=36, max_frames=400) for _ in range(2))
    first.reset(seed=11)
    rng = np.random.default_rng(2)
    needs_reset = False
    for trial in range(25):
        last = play(first, rng, 5, needs_reset)[-1]
        assert second.repeat_episode(by_json(first.episode_state())) is None
        needs_reset = last[2] or last[3]
        shown = [play(env, np.random.default_rng(trial), 10, needs_reset) for env in (first, second)]
        assert_equal(*shown)
        needs_reset = shown[0][-1][2] or shown[0][-1][3]


@pytest.mark.parametrize("name", MINATAR)
@pytest.mark.parametrize("before", [1, 777])
def test_minatar_games_go_on_bit_for_bit(name: str, before: int) -> None:
    assert assert_goes_on(name, before, 2000, max_steps=600) > 1


@pytest.mark.parametrize("name", ["atari:Breakout", "atari:Qbert"])
def test_a_game_goes_on_from_between_two_lives(name: str) -> None:
    first, second = logged(name), logged(name)
    first.reset(seed=1)
    while not first.step(first.action_space.sample())[2]:
        pass
    game: Any = first.unwrapped
    assert game.goes_on
    assert second.repeat_episode(by_json(first.episode_state())) is None
    rngs = [np.random.default_rng(5) for _ in range(2)]
    assert_equal(play(second, rngs[0], 300, True), play(first, rngs[1], 300, True))


def test_every_new_game_has_the_seed_of_its_number_and_every_new_life_has_none(monkeypatch: Any) -> None:
    seeds: list[int | None] = []
    own = AtariGame.reset

    def reset(self: Any, *, seed: int | None = None, options: Any = None) -> Any:
        seeds.append(seed)
        return own(self, seed=seed, options=options)

    monkeypatch.setattr(AtariGame, "reset", reset)
    env = logged("atari:Breakout")
    env.reset(seed=4)
    play(env, np.random.default_rng(0), 900)
    # Five lives, then a new game.
    given = [seed is not None for seed in seeds]
    assert given[:6] == [True, False, False, False, False, True]
    assert len(set(seeds) - {None}) == sum(given)


def test_nothing_is_recorded_of_games_that_say_where_they_are() -> None:
    env = logged("minatar:Breakout")
    env.reset(seed=0)
    play(env, np.random.default_rng(0), 50)
    state = env.episode_state()
    assert (len(state["actions"]), state["earlier"]["kept"], state["seed"]) == (0, [], None)


@pytest.mark.parametrize("name", ["atari:Breakout", "atari:Qbert", "minatar:Asterix"])
def test_what_has_not_begun_is_brought_back_too(name: str) -> None:
    fresh = logged(name)
    state = by_json(fresh.episode_state())
    other = logged(name)
    assert other.repeat_episode(state) is None
    np.testing.assert_array_equal(other.reset()[0], fresh.reset()[0])


@pytest.mark.parametrize("vec_env_cls", [None, SubprocVecEnv])
def test_vectorised_games_go_on_too(vec_env_cls: Any) -> None:
    def make() -> Any:
        return TrainingInfo(NamedFailures(make_env("minatar:Breakout")))

    kind = {} if vec_env_cls is None else {"vec_env_cls": vec_env_cls, "vec_env_kwargs": {"start_method": "fork"}}
    first, second = (make_vec_env(make, 2, seed=3, **kind) for _ in range(2))
    rng = np.random.default_rng(0)
    first.reset()
    for _ in range(60):
        first.step(rng.integers(3, size=2))
    second.reset()
    restore_vec_env(second, by_json(vec_env_state(first)))
    for _ in range(200):
        actions = rng.integers(3, size=2)
        shown, expected = second.step(actions), first.step(actions)
        for one, other in zip(shown[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(one, other)
    first.close()
    second.close()


def test_a_time_limit_goes_on() -> None:
    first, second = (EpisodeLog(TimeLimit(make_env("minatar:Freeway"), 50)) for _ in range(2))
    first.reset(seed=0)
    play(first, np.random.default_rng(0), 20)
    assert second.repeat_episode(by_json(first.episode_state())) is None
    ends = [step[3] for step in play(second, np.random.default_rng(0), 30)]
    assert ends == [False] * 29 + [True]


def test_a_state_of_the_emulator_alone_is_refused_where_actions_are_sticky() -> None:
    saved, sticky = (logged("atari:Breakout", sticky=probability) for probability in (0.0, 0.25))
    saved.reset(seed=0)
    refused = sticky.repeat_episode(by_json(saved.episode_state()))
    assert refused is not None
    assert "must have its seed and actions: it holds only the emulator's state" in refused


def test_short_games_passed_by_no_ops_do_not_outgrow_the_history() -> None:
    game = AtariGame("Breakout", max_frames=8, no_ops=300)
    for seed in range(4):
        game.reset(seed=seed)
        assert game.exact_state()["seed"] == seed


def test_a_history_that_became_too_long_is_said_to_be_so() -> None:
    game = AtariGame("Breakout", max_frames=8, no_ops=0)
    game.reset(seed=0)
    for _ in range(51):
        game.reset()
    with pytest.raises(
        ValueError, match="reset with a seed again, because its history has become too long, to be"
    ):
        game.exact_state()


class Unknown(gymnasium.Wrapper[Any, Any, Any, Any]):
    pass


class Counting(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A user's wrapper that can say where it is."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.steps = 0

    def step(self, action: Any) -> Any:
        self.steps += 1
        observation, _, *rest = self.env.step(action)
        return observation, self.steps, *rest

    def exact_state(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def restore_exact_state(self, state: Any) -> None:
        self.steps = state["steps"]


def test_a_wrapper_may_say_where_it_is() -> None:
    first, second = (EpisodeLog(Counting(make_env("atari:Breakout"))) for _ in range(2))
    first.reset(seed=0)
    play(first, np.random.default_rng(0), 9)
    assert second.repeat_episode(by_json(first.episode_state())) is None
    assert second.step(0)[1] == 10


def test_a_wrapper_that_cannot_say_it_is_refused_where_episodes_share_a_game() -> None:
    env = EpisodeLog(Unknown(make_env("atari:Breakout")))
    env.reset(seed=0)
    name = f"{Unknown.__module__}.Unknown"
    assert env.episode_state([name]) == {
        "refused": "the wrapper Unknown cannot report its state, and an episode that continues the game of the "
        "one before cannot be repeated: give the wrapper exact_state and restore_exact_state, or the game "
        "episodic_life=False"
    }
    # Whole games are repeated, as other environments are.
    first, second = (EpisodeLog(Unknown(make_env("atari:Breakout", episodic_life=False))) for _ in range(2))
    first.reset(seed=0)
    play(first, np.random.default_rng(0), 40)
    assert second.repeat_episode(by_json(first.episode_state([name])), [name]) is None
    np.testing.assert_array_equal(second.step(2)[0], first.step(2)[0])


def damaged(state: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    state = by_json(state)
    part: Any = state
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    return state


@pytest.mark.parametrize(
    ("name", "path", "value", "sentence"),
    [
        ("atari:Breakout", ("exact",), None, "a plain list as 'exact'"),
        ("atari:Breakout", ("exact", -1, "game"), "pong", "must be one of breakout, not of 'pong'"),
        ("atari:Breakout", ("exact", -1, "lives"), -1, "a whole number of at least 0 as 'lives'"),
        ("atari:Breakout", ("exact", -1, "frames"), np.zeros((4, 3, 3), np.uint8), "shape 4×84×84 as 'frames'"),
        ("atari:Breakout", ("exact", -1, "lost_a_life"), 1, "true or false as 'lost_a_life'"),
        ("atari:Breakout sticky=0", ("exact", -1, "system"), np.arange(9, dtype=np.uint8), "emulator as 'system'"),
        ("atari:Breakout", ("exact", -1, "generator"), {}, "the state of a PCG64 generator as 'generator'"),
        ("atari:Breakout", ("exact", 0, "kind"), "TimeLimit", "must be that of AtariGame in"),
        ("atari:Breakout", ("exact", 0, "needs_reset"), 0, "true or false as 'needs_reset'"),
        ("atari:Qbert", ("exact", -1, "done"), np.array([-1, 9], np.int8), "actions of the game as 'done'"),
        ("minatar:Asterix", ("exact", -1, "game"), "breakout", "must be one of asterix, not of 'breakout'"),
        ("minatar:Asterix", ("exact", -1, "things"), {}, "the objects of asterix as 'things'"),
        (
            "minatar:Asterix",
            ("exact", -1, "things", "player_x"),
            40,
            "positions of objects on the board as 'things'",
        ),
        (
            "minatar:Asterix",
            ("exact", -1, "things", "player_x"),
            True,
            "a whole number, true or false as 'player_x'",
        ),
        ("minatar:Asterix", ("exact", -1, "things", "entities"), [["a"]], "lists of whole numbers as 'entities'"),
        ("minatar:Asterix", ("exact", -1, "random_key"), np.zeros(3, np.uint32), "shape 624 as 'random_key'"),
        ("minatar:Asterix", ("exact", -1, "last_action"), 6, "at most 5 as 'last_action'"),
    ],
)
def test_a_damaged_state_is_a_sentence(name: str, path: tuple[Any, ...], value: Any, sentence: str) -> None:
    name, *sticky = name.split(" sticky=")
    settings = {"sticky": float(sticky[0])} if sticky else {}
    env = logged(name, **settings)
    env.reset(seed=0)
    env.step(0)
    refused = logged(name, **settings).repeat_episode(damaged(env.episode_state(), path, value))
    assert refused is not None
    assert sentence in refused
    assert refused.startswith("environment 0 cannot be restored: the saved state must")
    assert "\n" not in refused


@pytest.mark.slow
def test_the_emulator_goes_on_exactly_in_all_games_but_a_few() -> None:
    """The actions of those named in ``atari.py`` are repeated even without sticky actions."""
    from ale_py import ALEState, AtariEnv

    from holdfast.envs.atari import _NOT_RESTORED
    from holdfast.envs.game_names import atari_games

    different = set()
    for game in atari_games():
        first, second = (AtariEnv(game, obs_type="grayscale", repeat_action_probability=0.0) for _ in range(2))
        first.reset(seed=1)
        rng = np.random.default_rng(0)
        actions = rng.integers(first.action_space.n, size=300)
        for action in actions[:150]:
            first.step(action)
        second.ale.restoreSystemState(ALEState(first.ale.cloneSystemState().serialize()))
        if any(not np.array_equal(first.step(action)[0], second.step(action)[0]) for action in actions[150:]):
            different.add(game)
    assert different <= _NOT_RESTORED


# Histories of games ---------------------------------------------------------------------------------------------


def atari_state(before: int = 20, **settings: Any) -> tuple[AtariGame, dict[str, Any]]:
    game = AtariGame("Breakout", size=36, **settings)
    game.reset(seed=3)
    for _ in range(before):
        game.step(game.action_space.n - 1)
    return game, game.exact_state()


def test_a_game_that_is_not_given_seeds_is_repeated_over_its_games_too() -> None:
    first, _ = atari_state(max_frames=120, no_ops=5)
    for _ in range(4):
        first.reset()
        for _ in range(7):
            first.step(1)
    second = AtariGame("Breakout", size=36, max_frames=120, no_ops=5)
    second.restore_exact_state(by_json(first.exact_state()))
    for _ in range(3):
        np.testing.assert_array_equal(first.reset()[0], second.reset()[0])
        for _ in range(10):
            for one, other in zip(first.step(2), second.step(2), strict=True):
                np.testing.assert_array_equal(one, other)


def test_the_history_of_a_game_without_seeds_does_not_grow_for_ever() -> None:
    history = GameHistory(longest=300, most_games=50)
    history.begin(5)
    for _ in range(3):
        history.note(NEW_GAME)
        for _ in range(99):
            history.note(2)
    assert len(history.state()["done"]) == 300
    history.note(2)
    assert history.seed is None
    history.begin(6)
    for _ in range(51):
        assert history.seed == 6
        history.note(NEW_GAME)
    assert history.seed is None
    game, _ = atari_state(max_frames=120, no_ops=0)
    while game._history.seed is not None:
        if any(game.step(0)[2:4]):
            game.reset()
    with pytest.raises(ValueError, match="again, because its history has become too long, to be restored later"):
        game.exact_state()
    game.reset(seed=4)
    game.exact_state()


def test_a_game_that_never_had_a_seed_cannot_say_where_it_is() -> None:
    game = AtariGame("Breakout", size=36)
    game.reset()
    with pytest.raises(ValueError, match="breakout must be reset with a seed to be restored later"):
        game.exact_state()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"done": np.full(10**7, 1, np.int8)}, "length at most"),
        ({"done": np.zeros(0, np.int8)}, "beginning of a game"),
        ({"done": np.array([0, -1], np.int8)}, "beginning of a game"),
        ({"done": np.array([-1, -2], np.int8)}, "actions of the game"),
        ({"done": np.array([-1, 4], np.int8)}, "actions of the game"),
        ({"done": np.full(81, -1, np.int8)}, "at most 80 games"),
        ({"done": np.zeros((2, 2), np.int8)}, "array of shape"),
        ({"done": np.array([-1, 0], np.int64)}, "array of int8"),
        ({"seed": -1}, "whole number of at least 0"),
        ({"memory": np.zeros(127, np.uint8)}, "array of shape"),
        ({"done": np.array([-1, 0, 0], np.int8)}, "did not come to the same point"),
        ({"seed": 4}, "did not come to the same point"),
    ],
)
def test_histories_that_no_game_has_are_refused_at_once(change: dict[str, Any], sentence: str) -> None:
    game, state = atari_state()
    with pytest.raises(ValueError, match=sentence):
        game.restore_exact_state({**state, **change})


def test_what_a_long_game_adds_to_a_checkpoint_is_a_byte_per_step() -> None:
    _, state = atari_state(before=2000, episodic_life=False, no_ops=0)
    assert state["done"].nbytes <= 2000 + 100
