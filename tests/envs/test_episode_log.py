"""An episode that is repeated from its seed and its actions goes on as the first one would have."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.wrappers import (
    FrameStackObservation,
    RecordEpisodeStatistics,
    TimeAwareObservation,
    TimeLimit,
    TransformReward,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.env_checker import check_env as sb3_check_env
from stable_baselines3.common.monitor import Monitor

from holdfast.envs import EpisodeLog, HoldAction, allow_repetition, make_env
from holdfast.envs.episode_log import episode_seed, repeatable_wrappers

ACTIONS: dict[str, spaces.Space[Any]] = {
    "discrete": spaces.Discrete(4, start=1),
    "box": spaces.Box(-1.0, 1.0, (2,), np.float32),
    "long box": spaces.Box(-1.0, 1.0, (2,), np.float64),
    "many": spaces.MultiDiscrete([3, 2]),
    "bits": spaces.MultiBinary(3),
}
SIGHTS = ("vector", "dict", "number", "tuple")


class Wheel(gymnasium.Env[Any, Any]):
    """Turned by its actions and by chance; it shows the same arrays again and again, and overwrites its actions.

    Args:
        actions: Kind of actions.
        sight: Kind of observations.
        length: Steps of an episode.
    """

    def __init__(self, actions: str = "discrete", sight: str = "vector", length: int = 40) -> None:
        self.action_space = copy.deepcopy(ACTIONS[actions])
        vector = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.observation_space = {
            "vector": vector,
            "dict": spaces.Dict({"turn": vector, "late": spaces.Discrete(2)}),
            "number": spaces.Discrete(1000),
            "tuple": spaces.Tuple((vector, spaces.Discrete(1000))),
        }[sight]
        self.sight, self.length = sight, length
        self.shown = np.zeros(2)
        self.seeds: list[int | None] = []
        self.options: list[Any] = []

    def observe(self) -> Any:
        self.shown[:] = self.angle, self.time
        number = int(abs(self.angle) * 100) % 1000
        return {
            "vector": self.shown,
            "dict": {"turn": self.shown, "late": int(self.time > 3)},
            "number": number,
            "tuple": (self.shown, number),
        }[self.sight]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.options.append(copy.deepcopy(options))
        self.angle, self.time = self.np_random.normal() + (options or {}).get("angle", 0.0), 0
        if options is not None:
            options["angle"] = -1.0
        return self.observe(), {"angle": self.angle}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.time += 1
        self.angle = 0.9 * self.angle + float(np.sum(action)) + self.np_random.normal()
        if isinstance(action, np.ndarray):
            action[...] = 0
        return self.observe(), self.angle, self.time >= self.length, False, {"angle": self.angle}


def walk(env: gymnasium.Env[Any, Any], actions: Any) -> list[Any]:
    """What an environment shows for each action, as it was then."""
    return [copy.deepcopy(env.step(copy.deepcopy(action))) for action in actions]


def by_json(state: dict[str, Any]) -> dict[str, Any]:
    """A state that went through a file: arrays apart, all else as JSON."""
    arrays: list[Any] = []

    def written(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            arrays.append(part.copy())
            return {"array": len(arrays) - 1}
        if isinstance(part, dict):
            return {name: written(value) for name, value in part.items()}
        return [written(value) for value in part] if isinstance(part, list) else part

    def read(part: Any) -> Any:
        if isinstance(part, dict):
            return arrays[part["array"]] if "array" in part else {name: read(part[name]) for name in part}
        return [read(value) for value in part] if isinstance(part, list) else part

    return read(json.loads(json.dumps(written(state), allow_nan=False)))


def again(log: EpisodeLog, fresh: EpisodeLog) -> EpisodeLog:
    """Another environment that is brought to where the first one is."""
    assert fresh.repeat_episode(by_json(log.episode_state())) is None
    return fresh


# Seeds ----------------------------------------------------------------------------------------------------------


def test_every_episode_of_every_environment_of_every_run_has_a_seed_of_its_own():
    places = [
        (run, index, episode) for run in (0, 1, 2**64 - 1, 10**40) for index in range(6) for episode in range(30)
    ]
    seeds = [episode_seed(*place) for place in places]
    assert len(set(seeds)) == len(places)
    assert all(type(seed) is int and 0 <= seed < 2**31 for seed in seeds)
    assert seeds == [episode_seed(*place) for place in places]


def test_the_seeds_stay_what_they_were():
    """Else a run that an older version saved would go on with other episodes."""
    assert [episode_seed(0, 0, 1), episode_seed(7, 2, 5)] == [1790637272, 4033199]


@pytest.mark.parametrize("index", [0, 3])
def test_seeds_follow_from_run_index_and_episode(index):
    log = EpisodeLog(Wheel(), index)
    log.reset(seed=7)
    log.reset()
    walk(log, [1, 2])
    log.reset()
    log.reset(seed=np.int64(8))
    log.reset()
    expected = [7, episode_seed(7, index, 1), episode_seed(7, index, 2), 8, episode_seed(8, index, 1)]
    assert log.unwrapped.seeds == expected
    assert {type(seed) for seed in log.unwrapped.seeds} == {int}


def test_without_a_seed_runs_differ():
    logs = [EpisodeLog(Wheel()) for _ in range(2)]
    for log in logs:
        log.reset()
    run_seeds = [log.episode_state()["run_seed"] for log in logs]
    assert [log.unwrapped.seeds for log in logs] == [[episode_seed(seed, 0, 0)] for seed in run_seeds]
    assert run_seeds[0] != run_seeds[1]


@pytest.mark.parametrize(
    ("seed", "error"), [(-1, ValueError), (1.5, TypeError), (True, TypeError), ("1", TypeError)]
)
def test_a_bad_seed_is_refused_and_changes_nothing(seed, error):
    log = EpisodeLog(Wheel())
    log.reset(seed=3)
    with pytest.raises(error, match=r"^seed must be a whole number of at least 0, not "):
        log.reset(seed=seed)
    log.reset()
    assert log.unwrapped.seeds == [3, episode_seed(3, 0, 1)]


@pytest.mark.parametrize(("index", "error"), [(-1, ValueError), (0.0, TypeError), (None, TypeError)])
def test_a_bad_index_is_refused(index, error):
    with pytest.raises(error, match=r"^index must be a whole number of at least 0, not "):
        EpisodeLog(Wheel(), index)


def test_a_run_made_twice_is_the_same_run():
    def run() -> list[Any]:
        log = EpisodeLog(make_env("frozen-lake"), 1)
        log.action_space.seed(2)
        found = [log.reset(seed=5)[0]]
        for _ in range(300):
            observation, _, terminated, truncated, _ = log.step(log.action_space.sample())
            found.append(log.reset()[0] if terminated or truncated else observation)
        return found

    first = run()
    assert len(set(map(int, first))) > 3
    assert first == run()


# What tools see -------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version.*")
@pytest.mark.filterwarnings("ignore:.*Not able to test alternative render modes.*")
@pytest.mark.filterwarnings("ignore:.*A Box observation space .* value is .*infinity.*")
@pytest.mark.filterwarnings("ignore:.*symmetric and normalized.*")
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1", "holdfast/Cliff-v0"])
def test_the_environment_checkers_accept_it(env_id):
    check_env(EpisodeLog(gymnasium.make(env_id)), skip_render_check=True)
    sb3_check_env(EpisodeLog(gymnasium.make(env_id)))


def test_the_spec_makes_it_again():
    env = EpisodeLog(gymnasium.make("holdfast/Cliff-v0", slip=0.1), index=np.int64(3))
    for again in (gymnasium.make(env.spec), gymnasium.make(EnvSpec.from_json(env.spec.to_json()))):
        assert isinstance(again, EpisodeLog)
        assert (again.index, again.unwrapped.slip) == (3, 0.1)
        assert again.spec == env.spec
        assert data_equivalence(again.reset(seed=4), env.reset(seed=4), exact=True)


def test_it_changes_nothing_but_the_seeds():
    plain, log = Wheel(), EpisodeLog(Wheel())
    assert data_equivalence(plain.reset(seed=1), log.reset(seed=1), exact=True)
    actions = [1, 2, 3, 4, 2]
    assert data_equivalence(walk(plain, actions), walk(log, actions), exact=True)
    assert log.observation_space == plain.observation_space
    assert log.action_space == plain.action_space


# Repetition -----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(data=st.data(), kind=st.sampled_from(sorted(ACTIONS)), sight=st.sampled_from(SIGHTS))
def test_from_the_middle_of_an_episode_it_goes_on_the_same(data, kind, sight):
    log = EpisodeLog(Wheel(kind, sight), data.draw(st.integers(0, 3)))
    log.reset(seed=data.draw(st.integers(0, 2**70)))
    space = copy.deepcopy(log.action_space)
    space.seed(data.draw(st.integers(0, 1000)))
    for _ in range(data.draw(st.integers(0, 2))):
        walk(log, [space.sample()])
        log.reset()
    walk(log, [space.sample() for _ in range(data.draw(st.integers(0, 9)))])
    log.action_space.seed(data.draw(st.integers(0, 1000)))
    log.action_space.sample()
    fresh = EpisodeLog(Wheel(kind, sight), log.index)
    if data.draw(st.booleans()):
        fresh.reset(seed=77)
        walk(fresh, [space.sample()])
    again(log, fresh)
    assert data_equivalence(fresh.episode_state(), log.episode_state(), exact=True)
    to_come = [space.sample() for _ in range(3)]
    assert data_equivalence(walk(fresh, to_come), walk(log, to_come), exact=True)
    np.testing.assert_array_equal(fresh.action_space.sample(), log.action_space.sample())
    assert data_equivalence(fresh.reset(), log.reset(), exact=True)
    assert fresh.unwrapped.seeds[-1] == log.unwrapped.seeds[-1]


def test_python_numbers_are_actions_too():
    log = EpisodeLog(Wheel())
    log.reset(seed=1)
    walk(log, [1, 2, np.int64(3)])
    fresh = again(log, EpisodeLog(Wheel()))
    assert data_equivalence(walk(fresh, [2]), walk(log, [2]), exact=True)


def test_repeating_leaves_the_state_as_it_was():
    log = EpisodeLog(Wheel("box"))
    log.reset(seed=1, options={"angle": 2.0})
    walk(log, [np.ones(2, np.float32)] * 3)
    state = log.episode_state()
    before = copy.deepcopy(state)
    fresh = EpisodeLog(Wheel("box"))
    assert fresh.repeat_episode(state) is None
    walk(log, [np.zeros(2, np.float32)])
    walk(fresh, [np.zeros(2, np.float32)] * 2)
    assert data_equivalence(state, before, exact=True)


@pytest.mark.parametrize("seeds", [[], [5]])
def test_what_has_not_begun_is_brought_back_too(seeds):
    log, fresh = EpisodeLog(Wheel(), 2), EpisodeLog(Wheel(), 2)
    for seed in seeds:
        fresh.reset(seed=seed)
        walk(fresh, [1])
    again(log, fresh)
    assert data_equivalence(fresh.episode_state(), log.episode_state(), exact=True)
    assert data_equivalence(fresh.reset(), log.reset(), exact=True)


def test_an_episode_that_is_over_is_brought_back_too():
    log = EpisodeLog(Wheel(length=3))
    log.reset(seed=1)
    assert walk(log, [1, 2, 3])[-1][2]
    fresh = again(log, EpisodeLog(Wheel(length=3)))
    assert data_equivalence(fresh.reset(), log.reset(), exact=True)


def test_wrappers_are_brought_back_with_it():
    def make() -> EpisodeLog:
        env = RecordEpisodeStatistics(TimeLimit(Wheel(), 30))
        return EpisodeLog(Monitor(EpisodeLog(HoldAction(TimeAwareObservation(FrameStackObservation(env, 3)), 2))))

    log = make()
    log.reset(seed=3)
    walk(log, [1, 2, 3])
    fresh = again(log, make())
    steps = [walk(env, [2] * 12) for env in (fresh, log)]
    assert [step[:4] for step in steps[0]][-1][3]
    for one, other in zip(*steps, strict=True):
        assert data_equivalence(one[:4], other[:4], exact=True)
    assert steps[0][-1][4]["episode"]["r"] == steps[1][-1][4]["episode"]["r"]


def test_the_known_wrappers_are_there():
    for name in repeatable_wrappers():
        module, _, kind = name.rpartition(".")
        assert issubclass(getattr(__import__(module, fromlist=[kind]), kind), gymnasium.Wrapper), name


# Options --------------------------------------------------------------------------------------------------------


def test_options_are_given_again():
    log = EpisodeLog(Wheel())
    options = {"angle": 3.0, "more": [1, {"a": None}]}
    log.reset(seed=1, options=options)
    fresh = again(log, EpisodeLog(Wheel()))
    assert fresh.unwrapped.options == log.unwrapped.options == [{"angle": 3.0, "more": [1, {"a": None}]}]
    assert data_equivalence(walk(fresh, [1]), walk(log, [1]), exact=True)
    log.reset()
    assert log.episode_state()["options"] is None


@pytest.mark.parametrize(
    "options", [{"a": object()}, {"a": (1, 2)}, {1: 2}, {"a": np.zeros(2)}, {"a": float("nan")}]
)
def test_options_that_are_no_json_are_refused(options):
    log = EpisodeLog(Wheel())
    log.reset(seed=1, options=options)
    sentence = "the options of reset must be JSON values for the environment to be restored"
    assert log.episode_state() == {"refused": sentence}
    good = EpisodeLog(Wheel())
    good.reset(seed=2)
    again(good, log)
    assert "refused" not in log.episode_state()
    log.reset(seed=1, options=options)
    log.reset()
    assert "refused" not in log.episode_state()


# Refusals -------------------------------------------------------------------------------------------------------


class Humming(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper that nobody knows."""


@pytest.mark.parametrize(
    ("env", "name"),
    [
        (Humming(Wheel()), "Humming"),
        (TimeLimit(Humming(Wheel()), 9), "Humming"),
        (type("Shorter", (TimeLimit,), {})(Wheel(), 9), "Shorter"),
        (TransformReward(Wheel(), lambda reward: reward), "TransformReward"),
    ],
)
def test_an_unknown_wrapper_is_refused(env, name):
    sentence = (
        f"the wrapper {name} cannot be restored by repeating an episode; if all it remembers comes from the "
        "running episode, declare it with holdfast.envs.allow_repetition"
    )
    log, known = EpisodeLog(env), EpisodeLog(Wheel())
    assert log.episode_state() == {"refused": sentence}
    assert log.repeat_episode(known.episode_state()) == sentence


def test_a_wrapper_can_be_declared():
    @allow_repetition
    class Declared(gymnasium.Wrapper[Any, Any, Any, Any]):
        pass

    assert issubclass(Declared, gymnasium.Wrapper)
    log = EpisodeLog(Declared(Wheel()))
    log.reset(seed=1)
    again(log, EpisodeLog(Declared(Wheel())))


def test_a_wrapper_can_be_declared_by_the_one_who_asks():
    log = EpisodeLog(Humming(Wheel()))
    log.reset(seed=1)
    names = {f"{Humming.__module__}.{Humming.__qualname__}"}
    assert EpisodeLog(Humming(Wheel())).repeat_episode(log.episode_state(names), names) is None
    assert "refused" in log.episode_state()


@pytest.mark.parametrize(
    "actions",
    [
        [{"a": 1}],
        [(1, 2)],
        ["text"],
        [None],
        [np.zeros(2), np.zeros(3)],
        [1, np.zeros(2)],
        [np.zeros(2, np.float32), np.zeros(2)],
        [1, 2.5],
        [np.array(["a"])],
        [np.array([None])],
    ],
    ids=repr,
)
def test_actions_that_one_array_does_not_hold_are_refused(actions):
    class Anything(Wheel):
        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
            return super().step(1)

    log = EpisodeLog(Anything())
    log.reset(seed=1)
    walk(log, actions)
    sentence = "the actions must be numbers or arrays of one kind for the environment to be restored"
    assert log.episode_state() == {"refused": sentence}
    log.reset()
    again(log, EpisodeLog(Anything()))


DID_NOT = (
    "environment 0 did not repeat its episode: its dynamics must depend on the reset seed and the actions alone, "
    "and its code must not have changed"
)


class Careless(Wheel):
    """Draws from generators that nobody seeds."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.angle = random.random() + np.random.rand()  # noqa: NPY002 - what such an environment does
        return super().step(action)


def test_an_environment_that_does_not_repeat_itself_is_refused():
    log = EpisodeLog(Careless())
    log.reset(seed=1)
    walk(log, [1, 2])
    assert EpisodeLog(Careless()).repeat_episode(log.episode_state()) == DID_NOT


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 2},
        {"actions": np.array([1, 2])},
        {"actions": np.array([1, 2, 4])},
        {"actions": np.arange(1, 60)},
        {"actions": np.array([])},
        {"digest": 12345},
        {"digest": None},
        {"options": {"angle": 1.0}},
    ],
    ids=repr,
)
def test_another_episode_is_no_repetition(change):
    log = EpisodeLog(Wheel())
    log.reset(seed=1)
    walk(log, [1, 2, 3])
    assert EpisodeLog(Wheel()).repeat_episode({**log.episode_state(), **change}) == DID_NOT


def test_an_environment_of_another_length_is_no_repetition():
    """Even if it looks the same, an episode that was over before its last action is another one."""
    log = EpisodeLog(Wheel(length=9))
    log.reset(seed=1)
    walk(log, [1, 2, 3])
    assert EpisodeLog(Wheel(length=2)).repeat_episode(log.episode_state()) == DID_NOT
    assert EpisodeLog(Wheel(length=3)).repeat_episode(log.episode_state()) is None


@pytest.mark.parametrize("options", [{"angle": "far"}, 3], ids=repr)
def test_options_that_the_environment_does_not_take_are_named(options):
    log = EpisodeLog(Wheel())
    log.reset(seed=1)
    refused = EpisodeLog(Wheel()).repeat_episode({**log.episode_state(), "options": options})
    assert refused.startswith("environment 0 did not repeat its episode: ")
    assert "Error: " in refused


def test_rewards_that_do_not_repeat_are_noticed():
    class Moody(Wheel):
        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
            observation, _, *rest = super().step(action)
            return observation, float(np.random.default_rng().normal()), *rest

    log = EpisodeLog(Moody())
    log.reset(seed=1)
    walk(log, [1, 2])
    assert EpisodeLog(Moody()).repeat_episode(log.episode_state()) == DID_NOT


def test_what_an_environment_says_when_it_breaks_on_the_way_is_passed_on():
    class Breaking(Wheel):
        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
            raise RuntimeError("broken")

    log = EpisodeLog(Wheel())
    log.reset(seed=1)
    walk(log, [1])
    refused = EpisodeLog(Breaking()).repeat_episode(log.episode_state())
    assert refused == "environment 0 did not repeat its episode: RuntimeError: broken"


def test_each_environment_has_an_episode_of_its_own():
    log = EpisodeLog(Wheel(), 1)
    log.reset(seed=1)
    sentence = "environment 0 must be given its own episode, not that of 1"
    assert EpisodeLog(Wheel(), 0).repeat_episode(log.episode_state()) == sentence


def test_a_generator_that_is_none_is_refused():
    log = EpisodeLog(Wheel())
    log.reset(seed=1)
    state = log.episode_state()
    del state["action_space"]["state"]
    sentence = "the saved state must have the state of a PCG64 generator as 'action_space'"
    assert EpisodeLog(Wheel()).repeat_episode(state) == sentence


@pytest.mark.parametrize("wrapper", ["Wheel", Wheel, None], ids=repr)
def test_only_wrappers_are_declared(wrapper):
    with pytest.raises(TypeError, match=r"^wrapper must be a class of Gymnasium wrappers, not"):
        allow_repetition(wrapper)
