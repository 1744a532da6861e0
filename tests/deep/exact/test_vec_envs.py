"""Vectorised environments that are made here can be saved in the middle of an episode; all others are refused."""

from __future__ import annotations

import copy
import csv
import inspect
import re
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit, TransformReward
from stable_baselines3.common.env_util import make_vec_env as sb3_make_vec_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecCheckNan,
    VecEnvWrapper,
    VecExtractDictObs,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)

import holdfast
from holdfast.deep import PerDQN, make_vec_env
from holdfast.deep.exact.vec_envs import restore_vec_env, vec_env_state
from holdfast.envs import EpisodeLog, GridWorld, allow_repetition, episode_log
from holdfast.envs.episode_log import episode_seed

# Forking is quick, and what is forked here calls nothing that has threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

PROCESSES = {"vec_env_cls": SubprocVecEnv, "vec_env_kwargs": {"start_method": "fork"}}
EITHER = pytest.mark.parametrize("where", [{}, PROCESSES], ids=["one process", "processes"])


class Pond(gymnasium.Env[Any, int]):
    """Ripples at random, seen as a picture, beside numbers if ``beside``; over after a few steps.

    Args:
        beside: Whether observations are dictionaries.
        length: Steps of an episode.
    """

    def __init__(self, beside: bool = False, length: int = 6) -> None:
        picture = spaces.Box(0, 255, (4, 4, 1), np.uint8)
        depth = spaces.Box(-9.0, 9.0, (2,), np.float32)
        self.observation_space = spaces.Dict({"picture": picture, "depth": depth}) if beside else depth
        self.action_space = spaces.Discrete(3)
        self.beside, self.length = beside, length
        self.last_seed: int | None = None
        self.last_options: Any = None

    def observe(self) -> Any:
        depth = self.np_random.normal(size=2).astype(np.float32)
        picture = self.np_random.integers(256, size=(4, 4, 1), dtype=np.uint8)
        return {"picture": picture, "depth": depth} if self.beside else depth

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.time, self.last_seed, self.last_options = 0, seed, options
        return self.observe(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.time += 1
        reward = float(self.np_random.normal() + action / 3)
        return self.observe(), reward, self.time >= self.length, False, {"time": self.time}


class Restless(Pond):
    """Draws from a generator that nobody seeds."""

    def observe(self) -> Any:
        return np.random.rand(2).astype(np.float32)  # noqa: NPY002 - what such an environment does


class Humming(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper that nobody knows."""


def steps(env: Any, n: int) -> list[Any]:
    """What an environment shows in some steps, without the clock's times."""
    found = []
    for number in range(n):
        observations, rewards, dones, infos = env.step(np.full(env.num_envs, number % 3))
        for info in infos:
            info.get("episode", {}).pop("t", None)
        found.append(copy.deepcopy([observations, rewards, dones, list(infos)]))
    return found


def goes_on(make: Any, n: int = 4) -> None:
    """An environment and one that was brought to where it is show the same."""
    env, fresh = make(seed=3), make(seed=None)
    env.reset()
    steps(env, n)
    restore_vec_env(fresh, vec_env_state(env))
    np.testing.assert_equal(vec_env_state(fresh), vec_env_state(env))
    np.testing.assert_equal(steps(fresh, 9), steps(env, 9))
    np.testing.assert_equal(fresh.reset(), env.reset())
    for each in (env, fresh):
        each.close()


def sentence(call: Any, *arguments: Any) -> str:
    """The one sentence in which something is refused."""
    with pytest.raises(ValueError, match=r"\Aenv must [^\n]*[^.\n]\Z") as error:
        call(*arguments)
    return str(error.value)


# Making ---------------------------------------------------------------------------------------------------------


def test_the_arguments_are_those_of_sb3():
    own, theirs = (inspect.signature(make).parameters for make in (make_vec_env, sb3_make_vec_env))
    assert list(own) == list(theirs)
    assert [parameter.default for parameter in own.values()] == [
        parameter.default for parameter in theirs.values()
    ]
    assert holdfast.make_vec_env is make_vec_env


def test_the_first_episodes_are_those_of_sb3():
    """Seeded alike; later episodes have seeds of their own here."""
    own, theirs = (make(Pond, 2, seed=5) for make in (make_vec_env, sb3_make_vec_env))
    np.testing.assert_equal(own.reset(), theirs.reset())
    np.testing.assert_equal(steps(own, 5), steps(theirs, 5))
    assert [env.action_space.sample() for env in own.envs] == [env.action_space.sample() for env in theirs.envs]
    steps(own, 1)
    assert own.get_attr("last_seed") == [episode_seed(5 + index, index, 1) for index in range(2)]


@EITHER
def test_each_environment_is_logged_under_its_index(where):
    env = make_vec_env(Pond, 2, start_index=3, **where)
    assert env.get_attr("index") == [3, 4]
    assert env.env_is_wrapped(EpisodeLog) == env.env_is_wrapped(Monitor) == [True, True]
    assert type(env) is where.get("vec_env_cls", DummyVecEnv)
    env.close()


def test_environments_are_found_by_name_callable_or_map(tmp_path):
    (tmp_path / "pit.txt").write_text("S.G\n...\n", encoding="utf-8")
    for env_id, kind in (
        ("cliff", GridWorld),
        (tmp_path / "pit.txt", GridWorld),
        (str(tmp_path / "pit.txt"), GridWorld),
    ):
        env = make_vec_env(env_id)
        assert isinstance(env.envs[0].unwrapped, kind), env_id
    assert make_vec_env("CartPole-v1").envs[0].spec.id == "CartPole-v1"
    assert isinstance(make_vec_env(Pond).envs[0].unwrapped, Pond)
    with pytest.raises(ValueError, match="environment 'clif' is unknown"):
        make_vec_env("clif")


def test_environment_wrapper_and_monitor_get_their_arguments():
    env = make_vec_env(
        Pond,
        env_kwargs={"length": 9},
        wrapper_class=TimeLimit,
        wrapper_kwargs={"max_episode_steps": 3},
        monitor_kwargs={"info_keywords": ("time",)},
    )
    log = env.envs[0]
    assert [type(layer) for layer in (log, log.env, log.env.env)] == [EpisodeLog, TimeLimit, Monitor]
    assert (log.unwrapped.length, log.env.env.info_keywords) == (9, ("time",))
    env.reset()
    assert steps(env, 3)[-1][2].all()
    by_function = make_vec_env(
        "cliff", wrapper_class=lambda made, limit: TimeLimit(made, limit), wrapper_kwargs={"limit": 2}
    )
    assert isinstance(by_function.envs[0].env, TimeLimit)
    assert make_vec_env("cliff", env_kwargs={"slip": 0.25}).envs[0].unwrapped.slip == 0.25


def test_monitor_files(tmp_path):
    (tmp_path / "new" / "logs").mkdir(parents=True)
    for folder in ("new", "new/logs", "other/logs"):
        env = make_vec_env(Pond, 2, seed=0, start_index=1, monitor_dir=str(tmp_path / folder))
        env.close()
    assert (tmp_path / "other" / "logs" / "2.monitor.csv").is_file()
    env = make_vec_env(Pond, 2, seed=0, start_index=1, monitor_dir=str(tmp_path / "new" / "logs"))
    env.reset()
    returns = sum(step[1] for step in steps(env, 6))
    env.close()
    files = sorted((tmp_path / "new" / "logs").iterdir())
    assert [file.name for file in files] == ["1.monitor.csv", "2.monitor.csv"]
    for file, expected in zip(files, returns, strict=True):
        rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()[1:]))
        assert [(row["l"], float(row["r"])) for row in rows] == [("6", pytest.approx(expected, abs=1e-5))]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_envs": 0}, ValueError, "n_envs must be a whole number of at least 1, not 0"),
        ({"n_envs": 1.0}, TypeError, "n_envs must be a whole number of at least 1, not 1.0"),
        ({"start_index": -1}, ValueError, "start_index must be a whole number of at least 0, not -1"),
    ],
)
def test_bad_numbers_are_refused(arguments, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        make_vec_env(Pond, **arguments)


# Going on -------------------------------------------------------------------------------------------------------


def monitored(env: Any) -> VecMonitor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The environment is already wrapped with a `Monitor`")
        return VecMonitor(env)


WRAPPERS: dict[str, tuple[Any, ...]] = {
    "none": (),
    "normalized": (VecNormalize,),
    "stacked": (lambda env: VecFrameStack(env, 3),),
    "monitored": (monitored,),
    "checked": (lambda env: VecCheckNan(env, raise_exception=True),),
    "extracted": (lambda env: VecExtractDictObs(env, "depth"),),
    "transposed": (VecTransposeImage,),
    "all": (monitored, lambda env: VecFrameStack(env, 2), VecTransposeImage, VecNormalize, VecCheckNan),
    "rewards only": (lambda env: VecNormalize(env, norm_obs=False),),
    "one key": (lambda env: VecNormalize(env, norm_obs_keys=["depth"]),),
}


FOR_DICTIONARIES = ("extracted", "transposed", "one key", "all")


@pytest.mark.parametrize(
    ("name", "beside"),
    [(name, beside) for name in WRAPPERS for beside in (False, True) if beside or name not in FOR_DICTIONARIES],
)
@pytest.mark.parametrize("n", [0, 4, 8])
def test_it_goes_on_under_all_its_wrappers(name, beside, n):
    def make(seed: int | None) -> Any:
        env: Any = make_vec_env(Pond, 2, seed=seed, env_kwargs={"beside": beside})
        for wrapper in WRAPPERS[name]:
            env = wrapper(env)
        return env

    goes_on(make, n)


def test_it_goes_on_in_processes():
    goes_on(lambda seed: make_vec_env(Pond, 2, seed=seed, **PROCESSES))


def test_from_one_process_to_processes():
    env, fresh = make_vec_env(Pond, 2, seed=1), make_vec_env(Pond, 2, **PROCESSES)
    env.reset()
    steps(env, 9)
    restore_vec_env(fresh, vec_env_state(env))
    for one, other in zip(steps(fresh, 9), steps(env, 9), strict=True):
        np.testing.assert_equal(one[0], other[0])
    fresh.close()


def test_a_normalizer_that_does_not_train_stays_so():
    env = VecNormalize(make_vec_env(Pond, seed=0))
    env.reset()
    steps(env, 3)
    env.training = False
    fresh = VecNormalize(make_vec_env(Pond))
    restore_vec_env(fresh, vec_env_state(env))
    assert fresh.training is False
    np.testing.assert_equal(fresh.get_original_obs(), env.get_original_obs())
    np.testing.assert_equal(fresh.get_original_reward(), env.get_original_reward())
    assert (fresh.obs_rms.count, fresh.ret_rms.count) == (env.obs_rms.count, env.ret_rms.count)


@EITHER
@pytest.mark.parametrize("seed", [11, None, np.int64(4)])
def test_seeds_and_options_that_wait_for_the_reset_survive(where, seed):
    env, fresh = make_vec_env(Pond, 2, **where), make_vec_env(Pond, 2, **where)
    env.seed(seed)
    env.set_options([{"a": 1}, {}])
    state = vec_env_state(env)
    assert all(type(waiting) is int for waiting in state["seeds"])
    restore_vec_env(fresh, state)
    np.testing.assert_equal(fresh.reset(), env.reset())
    assert fresh.get_attr("last_seed") == env.get_attr("last_seed") == state["seeds"]
    assert fresh.get_attr("last_options") == env.get_attr("last_options") == [{"a": 1}, None]
    for each in (env, fresh):
        each.close()


def test_in_the_middle_of_an_episode_the_next_reset_waits_too():
    env, fresh = make_vec_env(Pond, 2, seed=0), make_vec_env(Pond, 2, seed=1)
    env.reset()
    steps(env, 3)
    env.seed(9)
    restore_vec_env(fresh, vec_env_state(env))
    np.testing.assert_equal(steps(fresh, 2), steps(env, 2))
    np.testing.assert_equal(fresh.reset(), env.reset())


def test_a_state_is_a_copy():
    base = make_vec_env(Pond, 2, seed=0)
    env = VecNormalize(VecFrameStack(base, 2))
    env.reset()
    env.set_options({"a": [1]})
    steps(env, 3)
    state = vec_env_state(env)
    before = copy.deepcopy(state)
    base._options[0]["a"].append(2)
    steps(env, 5)
    restore_vec_env(env, state)
    base._options[0]["a"].append(2)
    steps(env, 5)
    np.testing.assert_equal(state, before)


# Agents ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "env",
    [
        "CartPole-v1",
        Pond(),
        Monitor(Pond()),
        EpisodeLog(Pond()),
        EpisodeLog(Monitor(Pond())),
        Monitor(EpisodeLog(Pond())),
        EpisodeLog(Monitor(EpisodeLog(Pond()))),
    ],
    ids=["id", "env", "monitored", "logged", "both", "both the other way round", "more than enough"],
)
def test_a_single_environment_is_logged_by_its_agent(env):
    model = PerDQN("MlpPolicy", env, k_max=2, seed=1, learning_starts=100, buffer_size=50, device="cpu")
    model.learn(15)
    assert type(model.env.envs[0]) is EpisodeLog
    assert is_monitored(model.env.envs[0])
    state = model.state()
    assert state["environment"]["episodes"][0]["run_seed"] == 1
    model.restore(state)


def is_monitored(env: Any) -> bool:
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, Monitor):
            return True
        env = env.env
    return False


# Refusals -------------------------------------------------------------------------------------------------------

FOREIGN = (
    "env must be made by holdfast.make_vec_env to be saved: the outermost wrapper of every environment must be "
    "EpisodeLog"
)
UNKNOWN = (
    "env must be one that can be saved: environment 0: the wrapper Humming cannot be restored by repeating an "
    "episode; if all it remembers comes from the running episode, declare it with holdfast.envs.allow_repetition"
)


def local_wrapper() -> type:
    """A class that no other process can name."""

    class Local(gymnasium.Wrapper[Any, Any, Any, Any]):
        pass

    return Local


@EITHER
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"wrapper_class": TimeLimit, "wrapper_kwargs": {"max_episode_steps": 3}},
        {"wrapper_class": local_wrapper()},
    ],
    ids=["Monitor", "TimeLimit", "a local one"],
)
def test_an_environment_made_by_sb3_is_refused_and_lives_on(where, arguments):
    env = sb3_make_vec_env(Pond, 2, **arguments, **where)
    assert sentence(vec_env_state, env) == FOREIGN
    assert sentence(restore_vec_env, env, vec_env_state(make_vec_env(Pond, 2))) == FOREIGN
    env.reset()
    assert len(steps(env, 2)) == 2
    env.close()


@pytest.mark.parametrize("makers", [[Pond], [lambda: Humming(EpisodeLog(Pond()))]], ids=["bare", "wrapped again"])
def test_an_environment_whose_outermost_wrapper_is_another_is_refused(makers):
    assert sentence(vec_env_state, DummyVecEnv(makers)) == FOREIGN


def test_an_agent_refuses_in_the_same_sentence():
    model = PerDQN("MlpPolicy", sb3_make_vec_env(Pond, 2), k_max=2, buffer_size=10, device="cpu")
    assert sentence(model.state) == FOREIGN


@EITHER
def test_an_unknown_wrapper_is_refused_and_its_process_lives_on(where):
    env, known = make_vec_env(Pond, wrapper_class=Humming, **where), make_vec_env(Pond)
    env.reset()
    assert sentence(vec_env_state, env) == UNKNOWN
    refused = sentence(restore_vec_env, env, vec_env_state(known))
    assert refused == UNKNOWN.replace("saved: environment 0", "restored")
    assert len(steps(env, 2)) == 2
    env.close()


@EITHER
def test_a_wrapper_that_is_declared_is_brought_back(where, monkeypatch):
    """Also if it is declared in this process after the others began."""
    monkeypatch.setattr(episode_log, "_REPEATABLE", set(episode_log.repeatable_wrappers()))
    envs = [make_vec_env(Pond, wrapper_class=Humming, seed=seed, **where) for seed in (0, 1)]
    assert allow_repetition(Humming) is Humming
    envs[0].reset()
    steps(envs[0], 3)
    restore_vec_env(envs[1], vec_env_state(envs[0]))
    np.testing.assert_equal(steps(envs[1], 9), steps(envs[0], 9))
    for env in envs:
        env.close()


@EITHER
def test_an_environment_that_does_not_repeat_itself_is_refused_and_its_process_lives_on(where):
    env = make_vec_env(Restless, 2, seed=0, **where)
    env.reset()
    steps(env, 3)
    assert sentence(restore_vec_env, env, vec_env_state(env)) == (
        "env must be one that can be restored: environment 0 did not repeat its episode: its dynamics must depend "
        "on the reset seed and the actions alone, and its code must not have changed"
    )
    assert len(steps(env, 2)) == 2
    env.close()


@EITHER
def test_a_damaged_episode_is_refused_and_its_process_lives_on(where):
    env = make_vec_env(Pond, seed=0, **where)
    env.reset()
    state = vec_env_state(env)
    for change in ({"actions": np.full((2, 2), 9)}, {"options": {"seed": []}}, {"action_space": {}}):
        damaged = {**state, "episodes": [{**state["episodes"][0], **change}]}
        if "options" in change:
            restore_vec_env(env, damaged)
        else:
            assert sentence(restore_vec_env, env, damaged).startswith("env must be one that can be restored: ")
    restore_vec_env(env, state)
    assert len(steps(env, 2)) == 2
    env.close()


@EITHER
def test_options_that_are_no_json_are_refused(where):
    env = make_vec_env(Pond, **where)
    env.set_options({"a": (1, 2)})
    assert sentence(vec_env_state, env) == "env must be given options of reset that are JSON values to be saved"
    env.reset()
    assert sentence(vec_env_state, env) == (
        "env must be one that can be saved: environment 0: the options of reset must be JSON values for the "
        "environment to be restored"
    )
    env.reset()
    vec_env_state(env)
    env.close()


class Foreign(DummyVecEnv):
    pass


class Unknown(VecEnvWrapper):
    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        return self.venv.step_wait()


class Special(VecNormalize):
    pass


@pytest.mark.parametrize(
    ("make", "refused"),
    [
        (
            lambda: make_vec_env(Pond, vec_env_cls=Foreign),
            "env must be a DummyVecEnv or SubprocVecEnv to be saved, not Foreign; holdfast.make_vec_env makes one",
        ),
        (
            lambda: Unknown(make_vec_env(Pond)),
            "env must have vector wrappers that can be saved, and Unknown is not one",
        ),
        (
            lambda: VecNormalize(Unknown(make_vec_env(Pond))),
            "env must have vector wrappers that can be saved, and Unknown is not one",
        ),
        (
            lambda: Special(make_vec_env(Pond)),
            "env must have vector wrappers that can be saved, and Special is not one",
        ),
    ],
)
def test_what_nobody_knows_is_refused(make, refused):
    assert sentence(vec_env_state, make()) == refused


def test_what_nobody_knows_is_not_restored():
    state = vec_env_state(VecNormalize(make_vec_env(Pond)))
    refused = "env must be wrapped in VecNormalize where the saved one is, not in Special"
    assert sentence(restore_vec_env, Special(make_vec_env(Pond)), state) == refused
    state["layers"][0]["kind"] = "Special"
    refused = "env must have vector wrappers that can be saved, and Special is not one"
    assert sentence(restore_vec_env, Special(make_vec_env(Pond)), state) == refused


@pytest.mark.parametrize(
    ("make", "refused"),
    [
        (
            lambda: make_vec_env(Pond),
            "env must be wrapped in VecNormalize where the saved one is, not in DummyVecEnv",
        ),
        (
            lambda: VecFrameStack(VecNormalize(make_vec_env(Pond)), 2),
            "env must be wrapped in VecNormalize where the saved one is, not in VecFrameStack",
        ),
        (
            lambda: VecNormalize(VecCheckNan(make_vec_env(Pond))),
            "env must not be wrapped in VecCheckNan, which the saved one is not",
        ),
        (
            lambda: VecNormalize(make_vec_env(TransformedPond)),
            "env must be one that can be restored: the wrapper TransformReward cannot be restored",
        ),
        (
            lambda: VecNormalize(make_vec_env(Pond, start_index=1)),
            "env must be one that can be restored: environment 1 must be given its own episode, not that of 0",
        ),
    ],
)
def test_an_environment_made_in_another_way_is_not_restored(make, refused):
    saved = VecNormalize(make_vec_env(Pond, seed=0))
    saved.reset()
    assert sentence(restore_vec_env, make(), vec_env_state(saved)).startswith(refused)


def TransformedPond() -> gymnasium.Env[Any, Any]:  # noqa: N802 - stands for a class
    return TransformReward(Pond(), lambda reward: reward)


def test_another_number_of_environments_is_not_restored():
    state = vec_env_state(make_vec_env(Pond, 2))
    refused = "env must have 2 environments, as the saved one has, not 3"
    assert sentence(restore_vec_env, make_vec_env(Pond, 3), state) == refused


def test_environments_can_be_filmed_as_those_of_sb3():
    env = make_vec_env("cliff", 1, seed=0)
    assert env.render_mode == "rgb_array"
    assert make_vec_env("cliff", 1, env_kwargs={"render_mode": "ansi"}).render_mode == "ansi"
