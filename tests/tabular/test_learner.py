from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from holdfast.core import Linear, Option, PartialHistory
from holdfast.envs import make_env
from holdfast.mdp import TabularMDP
from holdfast.tabular import (
    EZGreedyQLearning,
    MSAQLearning,
    PerQLearning,
    QLearning,
    RunState,
    TempoRLQLearning,
)
from tests.tabular.conftest import corridor, random_mdp, same_episodes
from tests.tabular.learners import LEARNERS


def test_the_result_has_a_row_per_seed_and_a_column_per_episode(cliff: TabularMDP) -> None:
    result = PerQLearning(3).fit(cliff, 12, seeds=(7, 3))
    assert result.seeds == (7, 3)
    for name in ("training_returns", "greedy_returns", "steps", "decisions", "greedy_steps", "greedy_decisions"):
        assert getattr(result, name).shape == (2, 12)
    assert result.q.shape == (2, 60, 4, 3)
    assert result.skip_values is None
    assert result.wall_seconds.shape == (2,)
    assert (result.wall_seconds > 0.0).all()


def test_seeds_are_independent_of_each_other(cliff: TabularMDP) -> None:
    together = PerQLearning(3).fit(cliff, 50, seeds=(7, 3))
    alone = PerQLearning(3).fit(cliff, 50, seeds=(3,))
    np.testing.assert_array_equal(together.training_returns[1], alone.training_returns[0])
    np.testing.assert_array_equal(together.q[1], alone.q[0])
    assert not np.array_equal(together.steps[0], together.steps[1])


def test_returns_are_sums_of_rewards() -> None:
    result = PerQLearning(2, gamma=0.5).fit(corridor(), 20)
    arrived = result.steps < 100
    np.testing.assert_array_equal(result.training_returns, arrived.astype(float))


def test_epsilon_is_counted_in_episodes(cliff: TabularMDP) -> None:
    learner = QLearning(epsilon=Linear(1.0, 0.0, 1), initial_std=1.0)
    state = learner.start(cliff)
    first, log = learner.advance(cliff, state, 1)
    state.agent.random(2 * int(log.steps[0]))  # a coin and a random action each
    assert first.agent.bit_generator.state == state.agent.bit_generator.state
    second, log = learner.advance(cliff, first, 1)
    first.agent.random(int(log.steps[0]))  # coins only, nothing ties
    assert second.agent.bit_generator.state == first.agent.bit_generator.state


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("loop", ["compiled", "python"])
def test_a_run_can_be_stopped_stored_and_continued(name: str, loop: str) -> None:
    mdp = random_mdp()
    learner = LEARNERS[name](initial_std=0.3)
    whole = learner.fit(mdp, 23, seeds=(11,), loop=loop)
    state = learner.start(mdp, 11, loop=loop)
    logs = []
    for n in (1, 9, 13):
        stored, arrays = json.dumps(state.document()), state.arrays()
        state, log = learner.advance(mdp, RunState.restore(json.loads(stored), arrays), n, loop=loop)
        logs.append(log)
    pieces = type(logs[0])(*(np.concatenate(parts)[None] for parts in zip(*logs, strict=True)))
    same_episodes(whole, pieces)
    np.testing.assert_array_equal(whole.q[0], state.tables["q"])
    assert state.episode == 23


def test_advancing_leaves_the_state_it_began_with(cliff: TabularMDP) -> None:
    learner = PerQLearning(3)
    state, _ = learner.advance(cliff, learner.start(cliff), 5)
    before, document = state.arrays(), state.document()
    learner.advance(cliff, state, 5)
    assert state.document() == document
    np.testing.assert_array_equal(state.tables["q"], before["q"])


def test_a_state_of_another_learner_is_refused(cliff: TabularMDP) -> None:
    # Their tables are of the same shapes.
    for learner, other in ((MSAQLearning(3), PerQLearning(3)), (QLearning(), EZGreedyQLearning(3))):
        state = learner.start(cliff)
        restored = RunState.restore(json.loads(json.dumps(state.document())), state.arrays())
        further, _ = learner.advance(cliff, restored, 1)
        for each in (state, restored, further):
            sentence = f"state must be of a {type(other).__name__}, not of a {type(learner).__name__}"
            with pytest.raises(ValueError, match=sentence):
                other.advance(cliff, each, 1)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_state_has_a_policy(name: str, cliff: TabularMDP) -> None:
    learner = LEARNERS[name]()
    state, _ = learner.advance(cliff, learner.start(cliff), 40)
    policy = learner.policy_of(state.tables)
    learner.fit(cliff, 40)
    np.testing.assert_array_equal(policy.options(), learner.policy().options())


def test_a_state_of_other_tables_is_refused(cliff: TabularMDP) -> None:
    state = PerQLearning(3).start(cliff)
    with pytest.raises(ValueError, match=r"state must have a table 'q' of shape \(60, 4, 4\)"):
        PerQLearning(4).advance(cliff, state, 1)


def test_progress_is_told_and_changes_nothing(cliff: TabularMDP) -> None:
    told: list[tuple[int, int]] = []
    one = PerQLearning(3).fit(cliff, 130, seeds=(0, 1), progress=lambda done, total: told.append((done, total)))
    other = PerQLearning(3).fit(cliff, 130, seeds=(0, 1))
    same_episodes(one, other)
    np.testing.assert_array_equal(one.q, other.q)
    assert told[-1] == (260, 260)
    assert 20 <= len(told) <= 60
    assert told == sorted(set(told))


def test_initial_values() -> None:
    mdp = corridor()
    learner = PerQLearning(3, initial_value=2.0)
    q = learner.start(mdp).tables["q"]
    assert (q[:-1] == 2.0).all()
    assert (q[-1] == 0.0).all()  # terminal
    spread = PerQLearning(50, initial_value=2.0, initial_std=3.0)
    spread.reset(50, 4)
    assert spread.q.mean() == pytest.approx(2.0, abs=0.15)
    assert spread.q.std() == pytest.approx(3.0, abs=0.15)


def test_after_training_the_learner_acts_with_the_last_runs_values(cliff: TabularMDP) -> None:
    learner = PerQLearning(4)
    result = learner.fit(cliff, 300, seeds=(0, 1))
    np.testing.assert_array_equal(learner.q, result.q[1])
    for index in (0, 1, -1):
        policy = learner.policy(index)
        decision = policy.decide(0)
        assert learner.act(0, index) == (decision.action, decision.hold) == policy.act(0)
        assert decision.values[decision.action, decision.hold - 1] == result.q[index, 0].max()
        np.testing.assert_array_equal(decision.values, result.q[index, 0])
    assert isinstance(learner.act(0), Option)


@pytest.mark.parametrize("loop", ["compiled", "python"])
def test_greedy_ties_are_settled_as_asked(loop: str) -> None:
    # The three actions of the start lead to states whose rewards are 0, 1 and 2; with γ = 0 they tie for ever.
    P = np.array([[1, 2, 3], [4, 4, 4], [4, 4, 4], [4, 4, 4], [4, 4, 4]])
    r = np.array([[0.0], [0.0], [1.0], [2.0], [0.0]]) * np.ones(3)
    mdp = TabularMDP(P, r, 0.0, initial=0, terminal=[4])
    first, random = (
        QLearning(gamma=0.0, epsilon=1.0, greedy_ties=ties).fit(mdp, 900, loop=loop)
        for ties in ("first", "random")
    )
    assert (first.greedy_returns == 0.0).all()
    shares = [(random.greedy_returns == reward).mean() for reward in (0.0, 1.0, 2.0)]
    np.testing.assert_allclose(shares, 1 / 3, atol=0.06)
    np.testing.assert_array_equal(first.training_returns, random.training_returns)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda learner, env: learner.fit(env, 0), "episodes must be a whole number of at least 1, not 0"),
        (lambda learner, env: learner.fit(env, 1.5), "episodes must be a whole number of at least 1, not 1.5"),
        (
            lambda learner, env: learner.fit(env, 1, seeds=()),
            "seeds must be a sequence of at least one whole number, not an empty one",
        ),
        (
            lambda learner, env: learner.fit(env, 1, seeds=3),
            "seeds must be a sequence of at least one whole number, not 3",
        ),
        (
            lambda learner, env: learner.start(env, -1),
            "seed must be a whole number of at least 0, not -1",
        ),
        (lambda learner, env: learner.act(0), "the learner has no values yet: call fit or reset first"),
        (lambda learner, env: learner.reset(0, 2), "n_states must be a whole number of at least 1, not 0"),
    ],
)
def test_bad_calls_get_one_sentence(call: Any, sentence: str, cliff: TabularMDP) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call(PerQLearning(2), cliff)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("history", "sentence"),
    [
        (PartialHistory(np.array([0, 9]), 0, np.zeros(1)), "history must stay in states 0..2"),
        (PartialHistory(np.array([0, 1]), 5, np.zeros(1)), "with an action in 0..1"),
        (PartialHistory(np.array([0.5, 1.0]), 0, np.zeros(1)), "history must have whole numbers as states"),
        (
            PartialHistory(np.zeros(4, dtype=int), 0, np.zeros(3)),
            "history must be of at most k_max = 2 steps",
        ),
    ],
)
def test_a_history_that_does_not_fit_is_refused(history: PartialHistory, sentence: str) -> None:
    learner = PerQLearning(2)
    learner.reset(3, 2)
    with pytest.raises(ValueError, match=sentence):
        learner.update(history)


@pytest.mark.parametrize("k_max", [1, 3])
@pytest.mark.parametrize("kind", [PerQLearning, MSAQLearning, TempoRLQLearning])
def test_a_history_longer_than_k_max_is_refused(kind: Any, k_max: int) -> None:
    learner = kind(k_max)
    learner.reset(2, 1)
    history = PartialHistory(np.zeros(k_max + 2, dtype=int), 0, np.ones(k_max + 1))
    with pytest.raises(ValueError, match=f"history must be of at most k_max = {k_max} steps, not {k_max + 1}"):
        learner.update(history)
    assert not learner.q.any()


@pytest.mark.parametrize("learner", [QLearning(), EZGreedyQLearning(2)])
def test_what_learns_step_by_step_takes_a_history_of_any_length(learner: Any) -> None:
    learner.reset(2, 1)
    learner.update(PartialHistory(np.zeros(10, dtype=int), 0, np.ones(9)))
    assert learner.q[0, 0, 0] > 0.0


def test_states_and_runs_out_of_range_are_refused() -> None:
    learner = PerQLearning(2)
    learner.reset(3, 2)
    with pytest.raises(ValueError, match=r"state must be in 0..2, not 3"):
        learner.act(3)
    with pytest.raises(ValueError, match="seed_index must name one of 1 runs, not 1"):
        learner.act(0, seed_index=1)


def test_a_bad_schedule_is_found_before_anything_runs() -> None:
    with pytest.raises(ValueError, match=r"epsilon must stay in \[0, 1\]"):
        QLearning(epsilon=lambda t: 2.0).fit(make_env("cliff"), 3)


def test_torch_is_not_imported() -> None:
    code = "import sys, holdfast.tabular; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
