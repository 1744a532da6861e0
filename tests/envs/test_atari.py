"""Atari games are what an independent chain of Gymnasium's and SB3's wrappers makes of them, frame by frame."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium
import gymnasium.utils.env_checker
import numpy as np
import pytest
from gymnasium.wrappers import AtariPreprocessing, ClipReward, FrameStackObservation
from stable_baselines3 import DQN
from stable_baselines3.common.atari_wrappers import EpisodicLifeEnv
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from holdfast.core.errors import InputError
from holdfast.envs import AtariGame, action_names, make_atari, make_env, make_scoring_env

ale_py = pytest.importorskip("ale_py")
cv2 = pytest.importorskip("cv2")
gymnasium.register_envs(ale_py)

KEYS = ("lives", "episode_frame_number", "frame_number")


class FireAtLife(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Presses FIRE after every reset; and after a life was lost, where that does not end the episode."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        meanings = env.unwrapped.get_action_meanings()  # type: ignore[attr-defined]
        self.fire = meanings.index("FIRE") if "FIRE" in meanings else None
        self.lives = 0

    def reset(self, **kwargs: Any) -> tuple[Any, Any]:
        found = self.env.reset(**kwargs)
        if self.fire is not None:
            observation, _, terminated, truncated, info = self.env.step(self.fire)
            assert not terminated
            assert not truncated
            found = observation, info
        self.lives = found[1]["lives"]
        return found

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        lost = 0 < info["lives"] < self.lives and not (terminated or truncated)
        if lost and self.fire is not None:
            observation, more, terminated, truncated, info = self.env.step(self.fire)
            reward += more  # type: ignore[operator]
        self.lives = info["lives"]
        return observation, reward, terminated, truncated, info


def independent(
    game: str, frame_skip: int, training: bool = True, max_frames: int = 108_000, full: bool = False
) -> gymnasium.Env[Any, Any]:
    """The same rules without holdfast; all frames of a step are the emulator's, so that nothing is max-pooled."""
    env: Any = gymnasium.make(
        f"ALE/{game}-v5",
        frameskip=frame_skip,
        repeat_action_probability=0.25,
        max_num_frames_per_episode=max_frames,
        full_action_space=full,
    )
    env = AtariPreprocessing(env, noop_max=30, frame_skip=1, screen_size=84)
    env = FireAtLife(EpisodicLifeEnv(env)) if training else FireAtLife(env)
    if training:
        env = ClipReward(env, -1, 1)
    return FrameStackObservation(env, 4, padding_type="zero")


def assert_the_same(ours: Any, theirs: Any, n_steps: int, seed: int = 3) -> dict[str, int]:
    """Play both; what happened, so that a test can see whether there was anything to compare."""
    rng = np.random.default_rng(seed)
    seen = {"lost": 0, "over": 0, "truncated": 0, "rewards": 0}
    observation, info = ours.reset(seed=seed)
    expected, told = theirs.reset(seed=seed)
    for _ in range(n_steps):
        np.testing.assert_array_equal(observation, expected)
        assert [info[key] for key in KEYS] == [told[key] for key in KEYS]
        action = int(rng.integers(ours.action_space.n))
        observation, reward, terminated, truncated, info = ours.step(action)
        expected, wanted, *ends, told = theirs.step(action)
        assert (reward, terminated, truncated) == (wanted, *ends)
        seen["rewards"] += reward != 0.0
        if not (terminated or truncated):
            continue
        ale = theirs.unwrapped.ale
        is_over = ale.game_over(with_truncation=True)
        if is_over:
            # AtariPreprocessing shows the frame before the last one here.
            expected = np.array(expected)
            expected[-1] = cv2.resize(ale.getScreenGrayscale(), (84, 84), interpolation=cv2.INTER_AREA)
        np.testing.assert_array_equal(observation, expected)
        seen["truncated" if truncated else "over" if is_over else "lost"] += 1
        observation, info = ours.reset()
        expected, told = theirs.reset()
    return seen


@pytest.mark.parametrize(
    ("game", "frame_skip", "expected"),
    [
        ("Breakout", 4, {"lost", "over", "rewards"}),
        ("Seaquest", 4, {"lost", "over", "rewards"}),
        ("Freeway", 4, set()),
        ("SpaceInvaders", 3, {"lost", "over", "rewards"}),
    ],
)
def test_training_sees_what_an_independent_chain_sees(game: str, frame_skip: int, expected: set[str]) -> None:
    seen = assert_the_same(make_atari(game), independent(game, frame_skip), 1200)
    assert {name for name in expected if not seen[name]} == set()


@pytest.mark.slow
@pytest.mark.parametrize("game", ["Alien", "Breakout", "Freeway"])
def test_ten_thousand_steps_are_the_same(game: str) -> None:
    assert assert_the_same(make_atari(game), independent(game, 4), 10_000, seed=8)["over"] > 1


@pytest.mark.parametrize(("game", "frame_skip"), [("Breakout", 4), ("SpaceInvaders", 3)])
def test_results_are_those_of_whole_games(game: str, frame_skip: int) -> None:
    ours = make_scoring_env(f"atari:{game}", episodic_life=True, clip_rewards=True)
    seen = assert_the_same(ours, independent(game, frame_skip, training=False), 1200)
    assert seen["lost"] == 0
    assert seen["over"] > 0


def test_rewards_are_clipped_in_training_alone() -> None:
    def rewards(env: Any) -> set[float]:
        rng = np.random.default_rng(0)
        env.reset(seed=0)
        return {env.step(int(rng.integers(6)))[1] for _ in range(300)}

    assert rewards(make_env("atari:SpaceInvaders", episodic_life=False)) == {0.0, 1.0}
    assert rewards(make_scoring_env("atari:SpaceInvaders")) > {0.0, 5.0}


def test_a_long_game_is_cut_short() -> None:
    ours = make_atari("Breakout", max_frames=600, full_actions=True)
    assert ours.action_space == gymnasium.spaces.Discrete(18)
    seen = assert_the_same(ours, independent("Breakout", 4, max_frames=600, full=True), 1500)
    assert seen["truncated"] > 0
    assert seen["lost"] > 0


def test_settings_do_what_they_say() -> None:
    env: Any = make_atari("Pong", stack=2, size=42, no_ops=0, fire=False, frame_skip=7, sticky=0.0)
    observation, info = env.reset(seed=0)
    assert observation.shape == env.observation_space.shape == (2, 42, 42)
    assert not observation[0].any()
    assert observation[1].any()
    assert info["episode_frame_number"] == 0
    assert env.step(0)[-1]["episode_frame_number"] == 7
    assert env.unwrapped.frame_skip == 7
    # FIRE for one step, and nothing else, before the first observation.
    assert make_atari("Pong", no_ops=0).reset(seed=0)[1]["episode_frame_number"] == 4
    counts = {make_atari("Freeway").reset(seed=seed)[1]["episode_frame_number"] for seed in range(8)}
    assert counts <= set(range(4, 121, 4))
    assert len(counts) > 3


def test_without_sticky_actions_the_seed_of_a_game_does_not_matter() -> None:
    def played(sticky: float, seed: int) -> bytes:
        env = make_atari("Freeway", sticky=sticky, no_ops=0)
        env.reset(seed=seed)
        return b"".join(env.step(step % 3)[0].tobytes() for step in range(40))

    assert played(0.0, 1) == played(0.0, 2)
    assert played(0.25, 1) == played(0.25, 1)
    assert played(0.25, 1) != played(0.25, 2)


def test_a_lost_life_goes_on_and_a_seed_begins_anew() -> None:
    env: Any = make_atari("Breakout")
    env.reset(seed=0)
    terminated = False
    while not terminated:
        *_, terminated, _, info = env.step(0)
    assert env.unwrapped.goes_on
    assert info["lives"] == 4
    observation, told = env.reset()
    # A no-op and FIRE, for four frames each; the stack begins anew.
    assert told["episode_frame_number"] == info["episode_frame_number"] + 8
    assert not observation[:3].any()
    assert not env.unwrapped.goes_on
    assert env.reset(seed=1)[1]["lives"] == 5


def test_observations_are_the_callers() -> None:
    env = make_atari("Freeway")
    observation, _ = env.reset(seed=0)
    observation[:] = 77
    assert not (env.step(0)[0] == 77).all(axis=(1, 2)).any()


@pytest.mark.parametrize("name", ["atari:Freeway", "Atari:freeway", "atari: FREEWAY", "atari:free-way"])
def test_a_game_has_many_names(name: str) -> None:
    env = make_env(name)
    assert isinstance(env.unwrapped, AtariGame)
    assert env.unwrapped.game == "freeway"
    assert action_names(env) == ("noop", "up", "down")


def test_every_game_begins() -> None:
    from holdfast.envs.game_names import atari_games

    assert len(atari_games()) > 100
    for game in ("montezuma_revenge", "ms_pacman", "pong", "video_pinball"):
        env = make_atari(game)
        assert env.observation_space.contains(env.reset(seed=0)[0])


@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
def test_both_checkers_are_content(render_mode: str | None) -> None:
    env = make_atari("Freeway", render_mode=render_mode).unwrapped
    gymnasium.utils.env_checker.check_env(env, skip_render_check=True)
    sb3_check_env(env)
    if render_mode:
        assert env.render().shape == (210, 160, 3)  # type: ignore[union-attr]


def test_sb3s_own_dqn_learns_there() -> None:
    model = DQN("CnnPolicy", make_atari("Pong"), buffer_size=100, learning_starts=20, batch_size=4, seed=0)
    model.learn(30)
    # No transposition: the frames are channels, and come first.
    assert model.observation_space.shape == (4, 84, 84)
    assert model.get_env().observation_space.shape == (4, 84, 84)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("atari:Freway", {}, "game must be an Atari game, not 'Freway'; did you mean 'Freeway'?"),
        (
            "atari:xyzzy",
            {},
            "game must be an Atari game, not 'xyzzy'; there are 104, such as Alien, Breakout and Freeway",
        ),
        (
            "atari:ALE/Freeway-v5",
            {},
            "game must be the name of a game alone, such as Freeway, not 'ALE/Freeway-v5': an environment with "
            "that id may skip frames itself, and frames must be skipped only once",
        ),
        ("atari:Freeway", {"frame_skip": 0}, "frame_skip must be a whole number of at least 1, not 0"),
        ("atari:Freeway", {"frame_skip": [2, 5]}, "frame_skip must be a whole number of at least 1, not [2, 5]"),
        ("atari:Freeway", {"frameskip": 4}, "environment 'atari:Freeway' has no argument 'frameskip'"),
        ("atari:Freeway", {"frame_skip": 10**11}, "frame_skip must be at most 10000, not 100000000000"),
        ("atari:Freeway", {"stack": 2**31}, "stack must be at most 1000, not 2147483648"),
        ("atari:Freeway", {"size": 2**31}, "size must be at most 1000, not 2147483648"),
        ("atari:Freeway", {"no_ops": 2**63}, "no_ops must be at most 10000, not 9223372036854775808"),
        ("atari:Freeway", {"max_frames": 2**31}, "max_frames must be at most 2147483647, not 2147483648"),
        ("atari:Freeway", {"sticky": 1.5}, "sticky must be a number in [0, 1], not 1.5"),
        ("atari:Freeway", {"no_ops": -1}, "no_ops must be a whole number of at least 0, not -1"),
        ("atari:Freeway", {"fire": "yes"}, "fire must be true or false, not 'yes'"),
        ("atari:Freeway", {"render_mode": "x"}, "render_mode must be one of 'rgb_array', 'human', not 'x'"),
    ],
)
def test_bad_input_is_a_sentence(name: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        make_env(name, **settings)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("ALE/SpaceInvaders-v5", "'atari:SpaceInvaders'"),
        ("PongNoFrameskip-v4", "'atari:Pong'"),
        ("Pong-ramDeterministic-v0", "'atari:Pong'"),
        ("MinAtar/Breakout-v1", "'minatar:Breakout'"),
        ("space invaders", "'atari:SpaceInvaders' or 'minatar:SpaceInvaders'"),
    ],
)
def test_other_names_of_a_game_lead_to_its_name_here(
    typed: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Importing ale-py registers its own environments.
    monkeypatch.delitem(gymnasium.registry, typed, raising=False)
    with pytest.raises(InputError, match=f"is unknown: it must be .*; did you mean {meant}\\?$"):
        make_env(typed)


def test_without_ale_py_its_ids_lead_to_the_name_of_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ale_py", None)
    monkeypatch.delitem(gymnasium.registry, "ALE/Freeway-v5", raising=False)
    with pytest.raises(InputError, match=r"did you mean 'atari:Freeway'\?$"):
        make_env("ALE/Freeway-v5")


def test_another_skip_around_a_game_is_refused() -> None:
    with pytest.raises(ValueError, match="Disable frame-skipping in the original env"):
        AtariPreprocessing(make_atari("Freeway"), frame_skip=4)
    with pytest.raises(TypeError, match="game must be the name of a game, such as Freeway, not <"):
        make_atari(gymnasium.make("ALE/Freeway-v5"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "blocked", "sentence"),
    [
        (
            "atari:Freeway",
            "ale_py",
            "atari games need the package ale-py, which is not installed: pip install 'holdfast-rl[atari]'",
        ),
        (
            "atari:Freeway",
            "cv2",
            "atari games need the package opencv-python-headless, which is not installed: "
            "pip install 'holdfast-rl[atari]'",
        ),
        (
            "minatar:Freeway",
            "minatar",
            "minatar games need the package minatar, which is not installed: pip install 'holdfast-rl[minatar]'",
        ),
    ],
)
def test_a_missing_extra_is_a_sentence(name: str, blocked: str, sentence: str) -> None:
    code = (
        f"import sys; sys.modules[{blocked!r}] = None\n"
        f"from holdfast.cli import main; sys.exit(main(['train', {name!r}, '--steps', '10', '-o', 'none']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"holdfast train: {sentence}\n"


def test_nothing_is_imported_that_nobody_asked_for() -> None:
    code = (
        "import sys, holdfast.envs as envs; envs.make_env('cliff').reset()\n"
        "print([name for name in ('ale_py', 'cv2', 'minatar') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["atari:Breakout", "minatar:Breakout"])
@pytest.mark.parametrize("action", [-1, 18])
def test_an_action_that_there_is_not_is_refused(name: str, action: int) -> None:
    if name.startswith("minatar"):
        pytest.importorskip("minatar")
    with make_env(name) as env:
        env.reset(seed=0)
        with pytest.raises(ValueError, match=r"^action must be "):
            env.step(action)
