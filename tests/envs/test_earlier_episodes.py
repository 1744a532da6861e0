"""A sample of earlier episodes shows at a resume whether an environment depends on more than seed and actions."""

from __future__ import annotations

import copy
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from stable_baselines3.common.monitor import Monitor

from holdfast.envs import EpisodeLog
from holdfast.envs.earlier_episodes import LONGEST_PART, EarlierEpisodes, PlayedEpisode


class Counting(gymnasium.Env[Any, Any]):
    """Three steps, of which the last is worth more with every episode, or every ``period``-th, if ``counts``."""

    observation_space = spaces.Discrete(10)
    action_space = spaces.Discrete(2)

    def __init__(self, counts: bool = True, length: int = 3, period: int = 1) -> None:
        self.counts, self.length, self.period, self.episodes = counts, length, period, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.episodes += 1
        self.time = 0
        return int(self.np_random.integers(10)), {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.time += 1
        is_over = self.time >= self.length
        is_counted = self.counts and is_over and self.episodes % self.period == 0
        reward = float(self.episodes) if is_counted else 0.0
        return int(self.np_random.integers(10)), reward, is_over, False, {}


def played(log: EpisodeLog, episodes: int, more: int = 1) -> EpisodeLog:
    """So many episodes, and ``more`` steps of another one."""
    log.reset(seed=7)
    for _ in range(episodes):
        while not any(log.step(log.action_space.sample())[2:4]):
            pass
        log.reset()
    for _ in range(more):
        log.step(0)
    return log


@pytest.mark.parametrize("episodes", [12, 40])
@pytest.mark.parametrize("more", [0, 1])
def test_an_environment_that_counts_its_episodes_is_refused(episodes: int, more: int) -> None:
    state = played(EpisodeLog(Counting()), episodes, more).episode_state()
    refused = EpisodeLog(Counting()).repeat_episode(state)
    assert refused is not None
    assert refused.startswith("environment 0 did not repeat its earlier episode ")
    assert refused.endswith(
        ": its dynamics must depend on the reset seed and the actions alone, and its code must not have changed"
    )


@pytest.mark.parametrize("episodes", [0, 1, 4, 7])
def test_while_all_episodes_are_kept_even_a_count_comes_back(episodes: int) -> None:
    log, fresh = played(EpisodeLog(Counting()), episodes), EpisodeLog(Counting())
    assert fresh.repeat_episode(log.episode_state()) is None
    rewards = [[one.step(0)[1] for _ in range(2)] for one in (log, fresh)]
    assert rewards[0] == rewards[1] == [0.0, episodes + 1.0]


def test_what_happens_now_and_then_is_seen_if_it_is_in_the_sample() -> None:
    state = played(EpisodeLog(Counting(period=5)), 30).episode_state()
    numbers = [episode["number"] for episode in state["earlier"]["kept"]]
    assert any((number + 1) % 5 == 0 for number in numbers)
    assert EpisodeLog(Counting(period=5)).repeat_episode(state) is not None


@pytest.mark.parametrize("episodes", [0, 1, 2, 40])
def test_an_environment_that_does_not_is_brought_back(episodes: int) -> None:
    log = played(EpisodeLog(Counting(counts=False)), episodes)
    state = log.episode_state()
    before = copy.deepcopy(state)
    fresh = EpisodeLog(Counting(counts=False))
    assert fresh.repeat_episode(state) is None
    assert data_equivalence(state, before, exact=True)
    assert data_equivalence(fresh.episode_state(), before, exact=True)
    # Both go on with the same sample.
    for one in (fresh, log):
        while not one.step(0)[2]:
            pass
        one.reset()
    assert data_equivalence(fresh.episode_state(), log.episode_state(), exact=True)


def test_the_sample_follows_from_the_number_of_episodes_and_stays_small() -> None:
    sample = EarlierEpisodes()
    for number in range(1000):
        sample.add(PlayedEpisode(number, number, None, np.zeros(1), 0))
        numbers = [episode.number for episode in sample.kept]
        assert len(numbers) <= 8
        assert numbers == sorted(set(numbers))
        assert numbers[-4:] == list(range(max(0, number - 3), number + 1))
    # The others are spread over all that was played.
    assert numbers == [0, 256, 512, 768, 996, 997, 998, 999]
    assert [episode.number for episode in EarlierEpisodes.restored(sample.state()).kept] == numbers


def test_of_long_episodes_the_beginning_is_kept() -> None:
    log = EpisodeLog(Counting(length=LONGEST_PART + 20))
    state = played(log, 3).episode_state()
    assert {len(episode["actions"]) for episode in state["earlier"]["kept"]} == {LONGEST_PART}
    # Their ends are not looked at: only there does this one count.
    assert EpisodeLog(Counting(length=LONGEST_PART + 20)).repeat_episode(state) is None
    assert EpisodeLog(Counting(counts=False, length=LONGEST_PART - 1)).repeat_episode(state) is not None


def test_wrappers_that_keep_books_do_not_see_the_repetition(tmp_path: Path) -> None:
    def wrapped() -> EpisodeLog:
        inner = RecordEpisodeStatistics(Counting(counts=False))
        return EpisodeLog(TimeLimit(Monitor(inner, str(tmp_path / "a"), override_existing=False), 100))

    log, fresh = played(wrapped(), 6), wrapped()
    rows = (tmp_path / "a.monitor.csv").read_text()
    assert rows.count("\n") == 6
    assert fresh.repeat_episode(log.episode_state()) is None
    monitor = fresh.env.env  # type: ignore[attr-defined]
    assert isinstance(monitor, Monitor)
    assert isinstance(monitor.env, RecordEpisodeStatistics)
    assert (monitor.get_episode_rewards(), monitor.get_total_steps()) == ([], 1)
    assert monitor.env.episode_count == 0
    for env in (log, fresh):
        env.close()
    assert (tmp_path / "a.monitor.csv").read_text() == rows


def test_a_step_that_failed_is_not_repeated() -> None:
    class Failing(Counting):
        def step(self, action: Any) -> Any:
            if action == 1:
                raise KeyError("arm")
            return super().step(action)

    log = EpisodeLog(Failing(counts=False))
    log.reset(seed=1)
    log.step(0)
    with pytest.raises(KeyError):
        log.step(1)
    log.reset()
    log.step(0)
    state = log.episode_state()
    assert state["earlier"] == {"played": 1, "kept": []}
    assert EpisodeLog(Failing(counts=False)).repeat_episode(state) is None


def test_episodes_that_cannot_be_written_down_are_left_out() -> None:
    log = EpisodeLog(Counting(counts=False))
    log.reset(seed=1, options={"a": object()})
    log.step(0)
    log.reset()
    log.step(np.int8(0))
    log.step(0)
    log.reset()
    log.step(10**30)
    log.reset()
    assert log.episode_state()["earlier"] == {"played": 3, "kept": []}


@pytest.mark.parametrize(
    "damage",
    [
        {"played": 3},
        {"played": -1},
        {"kept": None},
        {"kept": [1]},
        {"played": 1000},
    ],
)
def test_a_sample_that_is_none_is_refused(damage: dict[str, Any]) -> None:
    state = played(EpisodeLog(Counting(counts=False)), 12).episode_state()["earlier"]
    EarlierEpisodes.restored(state)
    with pytest.raises(ValueError, match="the saved state must have"):
        EarlierEpisodes.restored({**state, **damage})
    first, *others = state["kept"]
    for change in ({"actions": np.zeros(LONGEST_PART + 1)}, {"actions": np.array(["a"])}, {"seed": 1.5}):
        with pytest.raises(ValueError, match="the saved state must have"):
            EarlierEpisodes.restored({**state, "kept": [{**first, **change}, *others]})


def test_numbers_of_any_kind_have_a_fingerprint_that_lasts() -> None:
    class Exact(Counting):
        def step(self, action: Any) -> Any:
            _, _, *ends = super().step(action)
            return {1: 2, "a": Fraction(1, 3)}, Decimal("0.5") + action, *ends

    state = played(EpisodeLog(Exact(counts=False)), 3).episode_state()
    assert EpisodeLog(Exact(counts=False)).repeat_episode(state) is None
