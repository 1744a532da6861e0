"""Steps are replayed with goals that their own episode achieved, and everything else of them follows."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from stable_baselines3.her.goal_selection_strategy import GoalSelectionStrategy

from holdfast.core.errors import InputError
from holdfast.core.goals import GOAL_STRATEGIES, goal_window
from holdfast.deep.replay.hindsight import HindsightReplayBuffer, check_strategy, with_goals, without_goals
from holdfast.envs.failures import EnvironmentFailedError
from tests.deep.goals import OWN_GOAL, SPACE, GoalTrial, Quarters, achieved_in, quarters
from tests.deep.literal_replay import EnvChoice, scripts, with_steps


def played(*steps, **arguments):
    """A trial with one environment that has taken these steps: (action, duration, end)."""
    return with_steps(GoalTrial(**arguments), steps, 1)


GOES_ON, TERMINATED, TRUNCATED = "goes on", "terminated", "truncated"


# The replay ≡ whole episodes in lists ----------------------------------------------------------------------


@given(st.data())
@settings(max_examples=150)
def test_what_is_drawn_is_what_whole_episodes_allow(data):
    n_envs = data.draw(st.integers(1, 3), label="n_envs")
    k_max = data.draw(st.integers(1, 4), label="k_max")
    trial = GoalTrial(
        n_envs=n_envs,
        capacity=data.draw(st.integers(6, 14), label="capacity"),
        k_max=k_max,
        goal_selection_strategy=data.draw(st.sampled_from(GOAL_STRATEGIES), label="strategy"),
        bootstrap=data.draw(st.booleans(), label="bootstrap"),
        pad_terminal=data.draw(st.booleans(), label="pad_terminal"),
        prioritized=data.draw(st.booleans(), label="prioritized"),
        shared_draws=data.draw(st.booleans(), label="shared_draws"),
    )
    script = data.draw(scripts(n_envs, k_max))
    for start in range(0, len(script), 8):
        try:
            trial.play(script[start : start + 8])
        except InputError:
            assert not trial.kept()
            return
        trial.check()


@pytest.mark.parametrize("shared_draws", [False, True])
@pytest.mark.parametrize("strategy", GOAL_STRATEGIES)
def test_every_goal_that_is_allowed_is_drawn(strategy, shared_draws):
    ends = [GOES_ON] * 4 + [TERMINATED] + [GOES_ON] * 2 + [TRUNCATED]
    trial = played(
        *((0, 1 + number % 3, end) for number, end in enumerate(ends)),
        goal_selection_strategy=strategy,
        shared_draws=shared_draws,
    )
    views = trial.drawn(4000)
    for view, k in zip(views, (1, 2, 3), strict=True):
        assert set(view) == set().union(*trial.tuples(k).values())


def test_future_goals_are_equally_likely():
    trial = played((0, 1, GOES_ON), (0, 1, GOES_ON), (0, 1, GOES_ON), (0, 1, TERMINATED), k_max=1)
    first = [found for found in trial.drawn(40_000)[0] if found.state == 1 and found.goal != OWN_GOAL]
    shares = [np.mean([found.goal == achieved_in(state) for found in first]) for state in (2, 3, 4, 5)]
    # About 8,000 of them; five standard errors of a share of 1/4 are 0.024.
    assert np.allclose(shares, 0.25, atol=0.024)


@pytest.mark.parametrize(("n_sampled_goal", "share"), [(0, 0.0), (1, 0.5), (4, 0.8)])
@pytest.mark.parametrize("prioritized", [False, True])
def test_the_share_of_new_goals(n_sampled_goal, share, prioritized):
    trial = played(
        (0, 1, GOES_ON), (0, 1, TERMINATED), k_max=1, prioritized=prioritized, n_sampled_goal=n_sampled_goal
    )
    goals = [found.goal for found in trial.drawn(20)[0]]
    assert sum(goal != OWN_GOAL for goal in goals) == share * 20


def test_new_goals_are_not_those_of_one_part_of_the_ring():
    steps = [(0, 1, TERMINATED if number % 2 else GOES_ON) for number in range(8)]
    trial = played(*steps, capacity=8, k_max=2, n_sampled_goal=1)
    kept_goals = [found.state for found in trial.drawn(8000)[0] if found.goal == OWN_GOAL]
    assert len(kept_goals) == 4000
    _, counts = np.unique(kept_goals, return_counts=True)
    # Each of eight steps in one of eight: 500 ± 5 standard errors.
    assert len(counts) == 8
    assert np.all(np.abs(counts - 500) < 110)


# What is drawn by hand ------------------------------------------------------------------------------------


def test_the_rewards_of_a_hold_are_those_of_each_of_its_steps():
    # States 1, 2, 3, 4 achieve 7, 3, 10, 6; the last is the goal.
    trial = played((1, 3, GOES_ON), (1, 3, GOES_ON), (1, 3, TERMINATED), goal_selection_strategy="final")
    found = next(one for one in trial.drawn(30)[2] if one.state == 1 and one.goal != OWN_GOAL)
    assert found.goal == found.next_goal == 6
    # (3 − 6)/4 + ½ (10 − 6)/4 + ¼ (6 − 6)/4
    assert found.reward == -0.75 + 0.5 * 1.0 + 0.0
    assert (found.length, found.discount, found.done, found.next_state) == (3, 0.125, True, 4)


def test_a_hold_goes_on_where_it_passes_the_goal():
    trial = played((0, 3, GOES_ON), (0, 3, GOES_ON), (0, 3, TRUNCATED))
    held = [found for found in trial.drawn(300)[2] if found.state == 1]
    assert {found.goal for found in held} == {OWN_GOAL, 3, 10, 6}
    assert {(found.length, found.done, found.next_state) for found in held} == {(3, False, 4)}


def test_views_that_share_a_draw_share_its_goal():
    trial = played(*[(0, 3, GOES_ON)] * 5, (0, 3, TERMINATED), shared_draws=True)
    batch = trial.buffer.sample(64)
    _, goals = without_goals(batch.next_rows)
    assert batch.next_rows.shape == (3, 64)
    assert (goals == goals[0]).all()
    assert (goals >= 0).sum(axis=1).tolist() == [51] * 3


def test_a_running_episode_cannot_be_drawn():
    trial = played((0, 1, GOES_ON), (0, 1, GOES_ON))
    assert not trial.buffer.drawable.any()
    trial.step([EnvChoice(0, 1, 1, TRUNCATED)])
    assert trial.buffer.drawable.all()


def test_an_episode_leaves_as_a_whole():
    steps = [*[(0, 1, GOES_ON)] * 3, (0, 1, TERMINATED), (0, 1, GOES_ON), (0, 1, TERMINATED)]
    trial = played(*steps, capacity=6, k_max=1, prioritized=False)
    assert len({found.state for found in trial.drawn(500)[0]}) == 6
    trial.step([EnvChoice(0, 1, 1, GOES_ON)])
    # The first episode's first step is overwritten: two steps of the second one are left.
    assert len({found.state for found in trial.drawn(500)[0]}) == 2


def test_rewards_that_were_never_seen_widen_the_range_that_targets_may_have():
    trial = played((0, 1, GOES_ON), (0, 1, TERMINATED))
    assert (trial.buffer.reward_low, trial.buffer.reward_high) == (0.0, 0.25)
    trial.drawn(64)
    # States 1, 2, 3 achieve 7, 3, 10: the goals are 3 or 10 at first and 10 then.
    assert (trial.buffer.reward_low, trial.buffer.reward_high) == ((3 - 10) / 4, 0.25)


def test_rewards_are_normalised_one_by_one():
    trial = played((0, 2, GOES_ON), (0, 2, TERMINATED), k_max=2, goal_selection_strategy="final")
    normalizer = VecNormalize(quarters(), norm_obs=False, clip_reward=1.0, epsilon=0.0)
    normalizer.ret_rms.var = np.array(4.0)
    batch = trial.buffer.sample(512, env=normalizer)
    at_start = (batch.rows[1] == 0) & (batch.rest[1] == 0)
    assert at_start.any()
    _, goals = without_goals(batch.next_rows)
    new = at_start & (goals[1] >= 0)
    # (3 − 10)/4 = −1.75 and 0, over a deviation of 2: −0.875 + ½ · 0.
    assert batch.rewards[1][new] == pytest.approx(-0.875)
    # A quarter each, over 2: 0.125 + ½ · 0.125
    assert batch.rewards[1][at_start & ~new] == pytest.approx(0.1875)


# Parts ----------------------------------------------------------------------------------------------------


def test_where_goals_are_taken_from():
    before, after = np.array([0, 2]), np.array([3, 0])
    found = {
        strategy: [part.tolist() for part in goal_window(strategy, before, after)] for strategy in GOAL_STRATEGIES
    }
    assert found == {
        "future": [[0, 0], [4, 1]],
        "final": [[3, 0], [4, 1]],
        "episode": [[0, -2], [4, 1]],
    }


def test_strategies_by_name_and_by_sb3s_enumeration():
    assert [check_strategy(member) for member in GoalSelectionStrategy] == ["future", "final", "episode"]
    assert check_strategy("FUTURE") == "future"
    with pytest.raises(InputError, match="goal_selection_strategy must be one of 'future', 'final', 'episode'"):
        check_strategy("past")


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(-1, 2**31 - 2)), min_size=1))
def test_numbers_of_states_with_goals_tell_both(pairs):
    rows, goals = np.array(pairs).T
    found = without_goals(with_goals(rows, goals))
    assert np.array_equal(found, (rows, goals))
    assert len(np.unique(with_goals(rows, goals))) == len(set(pairs))


# Bad input ------------------------------------------------------------------------------------------------


def make(space=SPACE, **arguments):
    return HindsightReplayBuffer(10, space, spaces.Discrete(2), device="cpu", **arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"space": spaces.Box(0, 1, (2,))},
            "env must have Dict observations with observation, achieved_goal, desired_goal",
        ),
        (
            {"space": spaces.Dict({**SPACE.spaces, "desired_goal": spaces.Discrete(3)})},
            "env must have goals of one shape and type",
        ),
        ({"n_sampled_goal": -1}, "n_sampled_goal must be"),
        ({"n_sampled_goal": 1.5}, "n_sampled_goal must be"),
    ],
)
def test_bad_arguments(arguments, sentence):
    with pytest.raises((InputError, TypeError), match=sentence):
        make(**arguments)


def test_an_environment_without_compute_reward():
    class Silent(Quarters):
        compute_reward = property()

        def __getattribute__(self, name):
            if name == "compute_reward":
                raise AttributeError(name)
            return super().__getattribute__(name)

    with pytest.raises(InputError, match="env must have a method compute_reward"):
        make(env=DummyVecEnv([Silent]))


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (lambda achieved: 0.0, r"a finite reward for each of the \d+ goals, .* shape \(\)"),
        (lambda achieved: np.full(len(achieved), np.nan), "finite reward"),
        (lambda achieved: achieved["x"], "the environment failed|compute_reward raised"),
        (lambda achieved: "far", "compute_reward raised"),
    ],
)
def test_rewards_that_cannot_be_learned_from(returned, sentence):
    class Odd(Quarters):
        def compute_reward(self, achieved, desired, infos):
            return returned(achieved)

    trial = played((0, 1, GOES_ON), (0, 1, TERMINATED))
    trial.buffer.set_env(DummyVecEnv([Odd]))
    with pytest.raises((InputError, EnvironmentFailedError), match=sentence):
        trial.buffer.sample(8)


def test_what_an_episode_that_never_ends_comes_to():
    with pytest.raises(InputError, match="none finished within buffer_size=4 steps"):
        played(*[(0, 1, GOES_ON)] * 5, capacity=4)


def test_a_longer_episode_than_the_ring_beside_others():
    trial = played((0, 1, TERMINATED), *[(0, 1, GOES_ON)] * 3, (0, 1, TERMINATED), capacity=4, k_max=1)
    trial.check()
    assert {found.state for found in trial.drawn(100)[0]} == {3, 4, 5, 6}


def test_drawing_before_an_episode_is_over():
    trial = played((0, 1, GOES_ON), k_max=1, prioritized=False)
    with pytest.raises(InputError, match="once an episode is over"):
        trial.buffer.sample(3)


def test_info_dictionaries_are_given_back_but_not_saved():
    seen = []

    class Curious(Quarters):
        def compute_reward(self, achieved, desired, infos):
            seen.extend(info.get("TimeLimit.truncated") for info in infos)
            return super().compute_reward(achieved, desired, infos)

    trial = played((0, 1, GOES_ON), (0, 1, TRUNCATED), k_max=1, copy_info_dict=True)
    trial.buffer.set_env(DummyVecEnv([Curious]))
    trial.buffer.sample(64)
    assert set(seen) == {False, True}
    with pytest.raises(InputError, match="copy_info_dict in replay_buffer_kwargs must be False"):
        trial.buffer.state()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("to_end", lambda array: array + 100),
        ("to_end", lambda array: array - 3),
        ("before", lambda array: array - 1),
        ("before", lambda array: array + 2_000_000_000),
    ],
)
def test_damaged_episodes_are_refused(name, change):
    trial = played((0, 1, GOES_ON), (0, 1, TRUNCATED))
    state = trial.buffer.state()
    state["ring"][name] = change(state["ring"][name])
    with pytest.raises(InputError, match="episodes that fit into its replay"):
        trial.new_buffer().restore(state)


def test_damaged_running_episodes_are_refused():
    trial = played((0, 1, GOES_ON))
    state = {**trial.buffer.state(), "running": np.array([2])}
    with pytest.raises(InputError, match="at most as many steps of running episodes"):
        trial.new_buffer().restore(state)


def test_truncating_says_so_once_there_is_something_to_truncate():
    trial = played((0, 1, GOES_ON))
    with pytest.warns(UserWarning, match="The last trajectory in the replay buffer will be truncated"):
        trial.buffer.truncate_last_trajectory()
    assert trial.buffer.drawable.any()
    trial.buffer.truncate_last_trajectory()
