"""εz-greedy DQN: how long exploratory actions are held, and that everything else is DQN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from scipy import stats

from holdfast.core.durations import duration_distribution
from holdfast.deep import EZGreedyDQN, PerDQN
from tests.deep.diary import SMALL, Diary, diaries, executed_options, logs, watch_decisions
from tests.deep.probes import Pier

EXPLORING: dict[str, Any] = {**SMALL, "exploration_initial_eps": 1.0, "exploration_final_eps": 1.0}


@pytest.mark.parametrize("durations", ["uniform", "zeta"])
@pytest.mark.parametrize("warm_up", [0, 5000])
def test_exploratory_actions_are_held_as_long_as_was_drawn_and_as_the_distribution_says(durations, warm_up):
    env = diaries(2, lengths=[10**6])
    model = EZGreedyDQN(
        "MlpPolicy", env, k_max=5, durations=durations, **{**EXPLORING, "learning_starts": warm_up}
    )
    decisions = watch_decisions(model)
    model.learn(5000)
    # Before its first step SB3's exploration rate is still 0.
    drawn = [decided for decided in decisions if decided.exploratory]
    assert len(drawn) >= len(decisions) - 2
    for env_index, log in enumerate(logs(env)):
        own = [decided for decided in decisions if decided.env == env_index]
        for option, decided in list(zip(executed_options(log, decisions, env_index), own, strict=True))[:-1]:
            assert len(option) == decided.duration
            assert {entry.action for entry in option} == {decided.action}
    counts = np.bincount([decided.duration for decided in drawn], minlength=6)[1:]
    assert stats.chisquare(counts, len(drawn) * duration_distribution(durations, 5)).pvalue > 0.01
    assert stats.chisquare(np.bincount([decided.action for decided in drawn])).pvalue > 0.01


def test_nothing_is_held_past_the_end_of_an_episode():
    env = diaries(2, lengths=[7, 4, 1, 9])
    model = EZGreedyDQN("MlpPolicy", env, k_max=6, **EXPLORING)
    decisions = watch_decisions(model)
    model.learn(600)
    cut = 0
    for env_index, log in enumerate(logs(env)):
        own = [decided for decided in decisions if decided.env == env_index]
        for option, decided in list(zip(executed_options(log, decisions, env_index), own, strict=True))[:-1]:
            ends = [entry.terminated or entry.truncated for entry in option]
            assert not any(ends[:-1])
            assert len(option) == decided.duration or (len(option) < decided.duration and ends[-1])
            cut += len(option) < decided.duration
    assert cut > 10


def test_greedy_actions_last_one_step():
    model = EZGreedyDQN("MlpPolicy", Diary(), k_max=6, **{**EXPLORING, "exploration_final_eps": 0.0})
    model.exploration_schedule = lambda _: 0.0
    decisions = watch_decisions(model)
    model.learn(50)
    assert [decided.step for decided in decisions] == list(range(50))
    assert {(decided.duration, decided.exploratory) for decided in decisions} == {(1, False)}
    assert model.policy.decide(Diary().reset()[0]).values.shape == (3, 1)


def test_steps_are_learned_from_as_soon_as_they_are_made():
    model = EZGreedyDQN("MlpPolicy", diaries(lengths=[10**6]), k_max=50, durations="uniform", **EXPLORING)
    model.learn(30)
    assert model.clock.left[0] > 0
    assert np.count_nonzero(model.replay_buffer.trees.priorities(0)) == 30
    batch = model.replay_buffer.sample(200)
    assert batch.rows.shape == (1, 200)
    assert (batch.rest == 0).all()
    assert set(batch.discounts.ravel().tolist()) == {np.float32(model.gamma)}


@pytest.mark.parametrize("prioritized", [True, False])
def test_where_nothing_can_be_held_it_is_dqn_bit_for_bit(prioritized):
    settings = {
        **EXPLORING,
        "prioritized": prioritized,
        "gradient_steps": 1,
        "learning_starts": 10,
        "exploration_final_eps": 0.2,
        "target_update_interval": 20,
    }
    one = EZGreedyDQN("MlpPolicy", Pier(), k_max=1, **settings).learn(150)
    other = PerDQN("MlpPolicy", Pier(), k_max=1, **settings).learn(150)
    assert [*map(th.Tensor.tolist, one.q_net.parameters())] == [*map(th.Tensor.tolist, other.q_net.parameters())]
    np.testing.assert_array_equal(one.replay_buffer.actions, other.replay_buffer.actions)


@pytest.mark.parametrize(
    ("arguments", "kind", "sentence"),
    [
        ({"durations": "normal"}, ValueError, "durations must be one of 'uniform', 'zeta', not 'normal'"),
        ({"mu": 0.0}, ValueError, "mu must be a finite number above 0, not 0.0"),
        ({"k_max": 0}, ValueError, "k_max must be a whole number of at least 1, not 0"),
        (
            {"bootstrap": False},
            TypeError,
            "bootstrap must not be given to EZGreedyDQN, which stands for bootstrap=True",
        ),
        (
            {"interrupt_margin": 0.1},
            TypeError,
            "interrupt_margin must not be given to EZGreedyDQN, which stands for interrupt_margin=None",
        ),
    ],
)
def test_bad_arguments_get_one_sentence(arguments, kind, sentence):
    with pytest.raises(kind) as caught:
        EZGreedyDQN("MlpPolicy", Pier(), **arguments)
    assert str(caught.value) == sentence
