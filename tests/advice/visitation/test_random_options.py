"""Random options in any environment, seen from within it."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from holdfast.advice.visitation.random_options import Budget, PythonRoller, RollOut, Setting, option_stream
from holdfast.envs.episode_log import episode_seed
from tests.advice.visitation.diaries import Diary


def rolled(envs: list[Diary], setting: Setting, budget: Budget, seed: int = 0) -> list[RollOut]:
    return list(PythonRoller(envs, np.array, seed).roll(setting, budget))


def runs(actions: list[Any]) -> list[int]:
    """How often in a row each action came."""
    return [len(list(group)) for _, group in groupby(actions)]


# With so many actions, two decisions hardly ever draw the same.
MANY = spaces.Discrete(10**9)


def test_fixed_options_are_held_for_k_steps_or_to_the_end() -> None:
    env = Diary(MANY, longest=12)
    played = rolled([env], Setting(4, "fixed"), Budget(50, "episodes"))
    for actions, record in zip(env.episodes, played, strict=True):
        *whole, last = runs(actions)
        assert whole == [4] * len(whole)
        assert 1 <= last <= 4
        assert record.lengths.tolist() == [len(actions)]
        assert record.decisions.tolist() == [len(whole) + 1]
        assert record.terminated.tolist() == [True]
        assert record.returns.tolist() == [-len(actions)]
        # The first observation and one per step.
        assert record.observations[:, 1].tolist() == list(range(len(actions) + 1))


def test_dynamic_options_are_held_for_1_to_k_steps_all_equally_often() -> None:
    env = Diary(MANY, longest=10_000)
    rolled([env], Setting(4, "dynamic"), Budget(12_000, "steps"))
    held = [length for actions in env.episodes for length in runs(actions)[:-1]]
    counts = np.bincount(held)
    assert len(counts) == 5
    n = counts.sum()
    # Within four standard deviations of a quarter each.
    assert np.abs(counts[1:] - n / 4).max() < 4 * np.sqrt(n * 3 / 16)


def test_actions_are_drawn_from_the_whole_space() -> None:
    env = Diary(spaces.Discrete(3, start=5), longest=10_000)
    rolled([env], Setting(1, "dynamic"), Budget(6_000, "steps"))
    values, counts = np.unique([action for actions in env.episodes for action in actions], return_counts=True)
    assert values.tolist() == [5, 6, 7]
    n = counts.sum()
    assert np.abs(counts - n / 3).max() < 4 * np.sqrt(n * 2 / 9)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-2.0, 3.0, (2,)),
        spaces.MultiDiscrete([3, 4]),
        spaces.MultiBinary(3),
        spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Box(0.0, 1.0)}),
    ],
    ids=lambda space: type(space).__name__,
)
def test_other_spaces_are_sampled_and_left_as_they_were(space: spaces.Space[Any]) -> None:
    env, untouched = (Diary(space, longest=9) for _ in range(2))
    space.seed(3)
    before = [space.sample() for _ in range(3)]
    space.seed(3)
    rolled([env], Setting(5, "fixed"), Budget(5, "episodes"))
    assert all(space.contains(action) for actions in env.episodes for action in actions)
    assert str([space.sample() for _ in range(3)]) == str(before)
    rolled([untouched], Setting(5, "fixed"), Budget(5, "episodes"))
    assert str(env.episodes) == str(untouched.episodes)
    assert runs([str(action) for action in env.episodes[0]])[0] == min(5, len(env.episodes[0]))


def test_an_environment_may_write_into_its_action() -> None:
    class Writing(Diary):
        def step(self, action: Any) -> Any:
            result = super().step(action.copy())
            action += 100.0
            return result

    env = Writing(spaces.Box(0.0, 1.0, (1,)), longest=30)
    rolled([env], Setting(8, "fixed"), Budget(20, "episodes"))
    assert max(float(action[0]) for actions in env.episodes for action in actions) <= 1.0


def test_every_setting_begins_its_episodes_with_the_same_seeds() -> None:
    envs = [Diary() for _ in range(2)]
    rolled([envs[0]], Setting(2, "dynamic"), Budget(5, "episodes"), seed=7)
    rolled([envs[1]], Setting(9, "fixed"), Budget(5, "episodes"), seed=7)
    assert envs[0].resets == envs[1].resets == [episode_seed(7, 0, number) for number in range(5)]
    assert len(set(envs[0].resets)) == 5


def test_the_seed_is_everything() -> None:
    first, again, other = (Diary() for _ in range(3))
    for env, seed in ((first, 1), (again, 1), (other, 2)):
        rolled([env], Setting(3, "dynamic"), Budget(6, "episodes"), seed)
    assert first.episodes == again.episodes
    assert first.episodes != other.episodes


def test_streams_differ_between_settings_but_not_between_modes_of_k_1() -> None:
    drawn = {
        (k_max, mode): option_stream(0, Setting(k_max, mode)).random()
        for k_max in (1, 2, 4)
        for mode in ("dynamic", "fixed")
    }
    assert drawn[1, "dynamic"] == drawn[1, "fixed"]
    assert len(set(drawn.values())) == 5


def test_environments_take_turns() -> None:
    envs = [Diary() for _ in range(3)]
    rolled(envs, Setting(2, "dynamic"), Budget(7, "episodes"))
    assert [len(env.episodes) for env in envs] == [3, 2, 2]


def test_a_budget_of_steps_is_spent_in_whole_episodes() -> None:
    played = rolled([Diary()], Setting(2, "dynamic"), Budget(100, "steps"))
    taken = np.cumsum([record.lengths[0] for record in played])
    assert taken[-1] >= 100
    assert taken[-2] < 100
    assert all(before < after for before, after in pairwise(taken))


def test_a_truncated_episode_has_not_terminated() -> None:
    played = rolled([Diary(truncates=True)], Setting(2, "dynamic"), Budget(3, "episodes"))
    assert [bool(record.terminated[0]) for record in played] == [False] * 3


def test_an_episode_that_does_not_end_is_cut_off_with_the_budget() -> None:
    endless = Diary(longest=10**9)
    (played,) = rolled([endless], Setting(2, "dynamic"), Budget(12_345, "steps"))
    assert played.lengths.tolist() == [12_345]
    assert (played.cut_off.tolist(), played.terminated.tolist()) == ([True], [False])
    (ended,) = rolled([Diary(truncates=True)], Setting(2, "dynamic"), Budget(1, "episodes"))
    assert ended.cut_off.tolist() == [False]


def test_the_longest_episode_by_hand() -> None:
    lengths = {amount: Budget(amount, "steps").longest_episode for amount in (1, 10_000, 50_000, 10**6)}
    assert lengths == {1: 10_000, 10_000: 10_000, 50_000: 50_000, 10**6: 100_000}
    assert Budget(1, "episodes").longest_episode == 100_000


def test_budgets_by_hand() -> None:
    steps, episodes = Budget(100, "steps"), Budget(10, "episodes")
    assert (steps.is_spent(1, 99), steps.is_spent(1, 100)) == (False, True)
    assert (episodes.is_spent(9, 999), episodes.is_spent(10, 10)) == (False, True)
    assert (steps.fraction(1, 25), steps.fraction(1, 130)) == (0.25, 1.0)
    assert steps.episodes_left(1, 39, 20) == 3
    assert episodes.episodes_left(4, 39, 20) == 6


def test_records_of_several_episodes_by_hand() -> None:
    record = RollOut(
        np.zeros(7),
        np.array([1.0, 5.0, 2.0, -1.0]),
        np.array([3, 1]),
        np.array([2, 1]),
        np.array([True, False]),
        np.array([False, False]),
    )
    assert record.returns.tolist() == [8.0, -1.0]
    assert record.best_rewards.tolist() == [5.0, -1.0]
    assert record.last_rewards.tolist() == [2.0, -1.0]
