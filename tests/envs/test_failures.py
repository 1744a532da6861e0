"""Failures of an environment are named, and everything else goes through as it is."""

from __future__ import annotations

import math
import os
import pickle
import signal
import sys
from fractions import Fraction
from typing import Any

import gymnasium
import numpy as np
import pytest

from holdfast.envs import EnvironmentFailedError, NamedFailures, make_env
from holdfast.envs.failures import refuse_nonfinite


def test_steps_go_through_as_they_are() -> None:
    plain, named = gymnasium.make("CartPole-v1"), NamedFailures(gymnasium.make("CartPole-v1"))
    one, two = plain.reset(seed=3), named.reset(seed=3)
    assert np.array_equal(one[0], two[0])
    for action in (0, 1, 1, 0):
        expected, found = plain.step(action), named.step(action)
        assert np.array_equal(expected[0], found[0])
        assert expected[1:] == found[1:]
    assert (named.n_resets, named.n_steps) == (1, 4)


TWO = gymnasium.spaces.Discrete(2)
ANY = gymnasium.spaces.Sequence(TWO)
BOX = gymnasium.spaces.Box(-1.0, 1.0, (2,))


class Odd(gymnasium.Env[Any, Any]):
    """Gives what it is told to give."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(
        self,
        seen: Any = 0,
        reward: Any = 0.0,
        error: BaseException | None = None,
        first: Any = 0,
        space: Any = TWO,
        ends: tuple[Any, Any] = (False, False),
        info: Any = None,
    ) -> None:
        self._given = seen, reward, error, first
        self._ends, self._info = ends, {} if info is None else info
        self.observation_space = space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if isinstance(self._given[3], BaseException):
            raise self._given[3]
        return self._given[3], {"options": options}

    def step(self, action: Any) -> Any:
        if self._given[2] is not None:
            raise self._given[2]
        return self._given[0], self._given[1], *self._ends, self._info


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        (Odd(error=KeyError("arm")), "its step raised KeyError: 'arm'"),
        (Odd(error=RuntimeError()), r"its step raised RuntimeError \(test_failures.py, line \d+\)$"),
        (Odd(reward=math.nan), "it gave nan as a reward"),
        (Odd(reward=-math.inf), "it gave -inf as a reward"),
        (Odd(reward="much"), "it gave 'much' as a reward"),
        (Odd(reward=None), "it gave None as a reward"),
        (Odd(seen=2), r"it gave 2 as an observation, which must be in 0\.\.1"),
        (Odd(seen=0.5), "it gave 0.5 as an observation"),
        (Odd(seen=np.zeros(3), first=np.zeros(2), space=BOX), "an observation of shape"),
        (Odd(seen=np.array([0.0, np.nan]), first=np.zeros(2), space=BOX), "an observation that is NaN"),
        (
            Odd(reward=1e308),
            r"it gave 1e\+308 as a reward, which must be a finite number of at most 1e\+30 in size",
        ),
        (Odd(reward=10**400), "it gave 1000"),
        (Odd(reward=1j), "it gave 1j as a reward"),
        (Odd(reward="1.0"), "it gave '1.0' as a reward"),
        (Odd(reward=np.zeros(2)), r"it gave array\(\[0., 0.\]\) as a reward"),
        (Odd(ends=(np.array([True, False]), False)), r"it gave array\(\[ True, False\]\) as terminated"),
        (Odd(ends=(False, None)), "it gave None as truncated, which must be True or False"),
        (Odd(ends=("False", False)), "it gave 'False' as terminated"),
        (Odd(ends=(math.nan, False)), "it gave nan as terminated"),
        (Odd(info=[]), r"it gave \[\] as info, which must be a dictionary"),
        (Odd(error=SystemExit(0)), r"its step raised SystemExit: 0 \(test_failures.py, line \d+\)$"),
        (Odd(error=SystemExit()), r"its step raised SystemExit \("),
        (Odd(error=GeneratorExit()), r"its step raised GeneratorExit \("),
        (Odd(error=BaseException("odd")), r"its step raised BaseException: odd \("),
        (Odd(seen={"a": np.zeros(1), "b": (np.float32("inf"),)}, space=ANY), "an observation that is NaN"),
    ],
)
def test_what_goes_wrong_in_a_step_is_named(env: Odd, sentence: str) -> None:
    named = NamedFailures(env)
    named.reset()
    with pytest.raises(EnvironmentFailedError, match=sentence) as caught:
        named.step(0)
    assert str(caught.value).startswith("the environment failed in episode 1, at its step 1: it")
    assert "\n" not in str(caught.value)


def test_what_goes_wrong_in_a_reset_is_named() -> None:
    with pytest.raises(EnvironmentFailedError, match="its reset raised OSError: gone"):
        NamedFailures(Odd(first=OSError("gone"))).reset()
    with pytest.raises(EnvironmentFailedError, match="an observation that is NaN"):
        NamedFailures(Odd(first=math.nan, space=ANY)).reset()


def test_the_episode_and_its_step_are_named() -> None:
    env = Odd()
    named = NamedFailures(env)
    for steps in (3, 2):
        named.reset()
        for _ in range(steps):
            named.step(0)
    env._given = 0, math.nan, None, SystemExit(0)
    with pytest.raises(
        EnvironmentFailedError, match=r"^the environment failed in episode 2, at its step 3: it gave nan"
    ):
        named.step(0)
    with pytest.raises(
        EnvironmentFailedError, match="in episode 3, before its step 1: its reset raised SystemExit: 0"
    ):
        named.reset()


def test_a_failure_can_be_sent_to_another_process() -> None:
    error = EnvironmentFailedError("its step raised KeyError", "in episode 1, at its step 2")
    again = pickle.loads(pickle.dumps(error))
    assert (
        str(again) == str(error) == "the environment failed in episode 1, at its step 2: its step raised KeyError"
    )
    assert (again.what, again.place) == (error.what, error.place)


@pytest.mark.parametrize("returned", [None, (0, 0.0, False, False), [0] * 6, 3, "abcde", {}])
def test_a_step_that_returns_something_else_is_named(returned: Any) -> None:
    env = Odd()
    named = NamedFailures(env)
    named.reset()
    env.step = lambda action: returned  # type: ignore[method-assign]
    with pytest.raises(
        EnvironmentFailedError, match="its step must return observation, reward, terminated, trunc"
    ):
        named.step(0)


def test_a_signal_is_no_failure() -> None:
    class Interrupted(Odd):
        def step(self, action: Any) -> Any:
            os.kill(os.getpid(), signal.SIGINT if action else signal.SIGUSR1)
            return super().step(action)

    named = NamedFailures(Interrupted())
    named.reset()
    before = [
        signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.signal(signal.SIGUSR1, lambda *_: sys.exit(138)),
    ]
    try:
        with pytest.raises(KeyboardInterrupt):
            named.step(1)
        with pytest.raises(SystemExit):
            named.step(0)
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGUSR1), before, strict=True):
            signal.signal(number, handler)


def test_what_goes_wrong_in_closing_matters_to_nobody() -> None:
    env = Odd()
    env.close = lambda: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    NamedFailures(env).close()
    env.close = sys.exit  # type: ignore[method-assign, assignment]
    NamedFailures(env).close()


def test_rewards_of_any_kind_of_number_will_do() -> None:
    torch = pytest.importorskip("torch")
    tensors = torch.tensor(1.0), torch.tensor(1.0, requires_grad=True)
    for reward in (1, np.float32(1.0), np.int64(1), np.array(1.0), np.ones(1), True, Fraction(1), *tensors):
        named = NamedFailures(Odd(reward=reward))
        named.reset(options={"a": 1})
        assert named.step(0)[1] == 1
        assert isinstance(named.step(0)[1], int | float | np.number)


def test_ends_of_any_kind_will_do() -> None:
    for flag in (True, 1, np.True_, np.array(True), np.array([1])):
        named = NamedFailures(Odd(ends=(flag, 0)))
        named.reset()
        terminated, truncated = named.step(0)[2:4]
        assert bool(terminated) is True
        assert bool(truncated) is False
        assert isinstance(terminated, bool | np.bool_)


def test_spaces_stay_what_they_were() -> None:
    env = Odd()
    named = NamedFailures(env)
    env.observation_space = BOX
    assert named.observation_space is TWO


def test_it_is_no_stranger_to_the_others() -> None:
    from holdfast.envs.episode_log import EpisodeLog
    from holdfast.mdp import TabularMDP

    assert TabularMDP.from_gymnasium(NamedFailures(make_env("cliff")), 0.9).n_states == 60
    log = EpisodeLog(NamedFailures(make_env("cliff")))
    log.reset(seed=0)
    assert "refused" not in log.episode_state()


def test_of_environments_side_by_side_the_one_that_gave_no_number_is_named() -> None:
    given = {"image": np.array([[1], [2]], dtype=np.uint8), "speed": np.array([[0.0, 1.0], [0.0, math.inf]])}
    sentence = r"^env must give finite numbers: environment 1 gave a speed that is NaN or infinite at step 7$"
    with pytest.raises(ValueError, match=sentence):
        refuse_nonfinite("speed", given, 7)
    with pytest.raises(ValueError, match="environment 5 gave a reward that is NaN or infinite at step 0"):
        refuse_nonfinite("reward", np.array([math.nan]), 0, env=5)
    refuse_nonfinite("speed", {"image": given["image"], "speed": given["speed"][:1]}, 7)
