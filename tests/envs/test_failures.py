"""Failures of an environment are named, and everything else goes through as it is."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest

from holdfast.envs import EnvironmentFailedError, NamedFailures, make_env


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
        error: Exception | None = None,
        first: Any = 0,
        space: Any = TWO,
    ) -> None:
        self._given = seen, reward, error, first
        self.observation_space = space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if isinstance(self._given[3], Exception):
            raise self._given[3]
        return self._given[3], {"options": options}

    def step(self, action: Any) -> Any:
        if self._given[2] is not None:
            raise self._given[2]
        return self._given[0], self._given[1], False, False, {}


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
        (Odd(seen={"a": np.zeros(1), "b": (np.float32("inf"),)}, space=ANY), "an observation that is NaN"),
    ],
)
def test_what_goes_wrong_in_a_step_is_named(env: Odd, sentence: str) -> None:
    named = NamedFailures(env)
    named.reset()
    with pytest.raises(EnvironmentFailedError, match=sentence):
        named.step(0)


def test_what_goes_wrong_in_a_reset_is_named() -> None:
    with pytest.raises(EnvironmentFailedError, match="its reset raised OSError: gone"):
        NamedFailures(Odd(first=OSError("gone"))).reset()
    with pytest.raises(EnvironmentFailedError, match="an observation that is NaN"):
        NamedFailures(Odd(first=math.nan, space=ANY)).reset()


def test_what_goes_wrong_in_closing_matters_to_nobody() -> None:
    env = Odd()
    env.close = lambda: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    NamedFailures(env).close()


def test_rewards_of_any_kind_of_number_will_do() -> None:
    for reward in (1, np.float32(1.0), np.int64(1), np.array(1.0), True):
        named = NamedFailures(Odd(reward=reward))
        named.reset(options={"a": 1})
        assert named.step(0)[1] == 1


def test_it_is_no_stranger_to_the_others() -> None:
    from holdfast.envs.episode_log import EpisodeLog
    from holdfast.mdp import TabularMDP

    assert TabularMDP.from_gymnasium(NamedFailures(make_env("cliff")), 0.9).n_states == 60
    log = EpisodeLog(NamedFailures(make_env("cliff")))
    log.reset(seed=0)
    assert "refused" not in log.episode_state()
