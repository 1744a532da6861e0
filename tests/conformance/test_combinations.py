"""Actions that are several dials or switches at once: learned as one choice, taken in their own shape."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env as sb3_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from holdfast import HoldAction, PerDQN, PerQLearning, make_vec_env
from holdfast.deep.argument_checks import UnsupportedActionsError
from tests.conformance.agents import AGENTS, same, weights
from tests.conformance.panels import ACTIONS, Panel


@pytest.mark.parametrize("kind", ACTIONS)
def test_learning_predicting_and_evaluating(make, kind):
    model = make(sb3_vec_env(lambda: Panel(kind), 2, seed=1), seed=3)
    before = weights(model.q_net)
    model.learn(80)
    assert not same(before, weights(model.q_net))
    space = ACTIONS[kind]
    assert model.action_space == space
    actions, _ = model.predict(np.eye(3, dtype=np.float32), deterministic=True)
    assert actions.shape == (3, *space.shape)
    single, _ = model.predict(np.eye(3, dtype=np.float32)[0], deterministic=True)
    assert space.contains(single)
    decision = model.policy.decide(np.eye(3, dtype=np.float32)[0])
    assert space.contains(decision.action)
    assert decision.values.shape[0] == model.policy.choices.n
    mean, _ = evaluate_policy(model, Monitor(Panel(kind)), n_eval_episodes=2)
    assert -12 <= mean <= 12


@pytest.mark.parametrize("kind", ACTIONS)
def test_all_combinations_are_explored_and_stored_as_numbers(kind):
    env = Panel(kind)
    model = AGENTS["perdqn"](env, learning_starts=400, k_max=1).learn(200)
    taken = model.policy.choices.numbers(np.array(env.taken))
    assert set(taken) == set(range(model.policy.choices.n))
    assert np.array_equal(model.replay_buffer.actions[:200].ravel(), taken)


def test_the_right_combinations_are_learned():
    env = Panel("dials")
    model = PerDQN("MlpPolicy", env, k_max=2, seed=0, learning_starts=100, learning_rate=1e-2, gamma=0.5)
    model.learn(1500)
    actions, _ = model.predict(np.eye(3, dtype=np.float32), deterministic=True)
    assert actions.tolist() == [[1, -1], [2, 0], [1, -1]]


def test_a_training_goes_on_exactly(make):
    def made():
        return make(make_vec_env(lambda: Panel("switches"), 2, seed=2))

    whole = made()
    whole.learn(60)
    state = copy.deepcopy(whole.state())
    whole.learn(60, reset_num_timesteps=False)
    again = made()
    again.restore(state)
    again.learn(60, reset_num_timesteps=False)
    assert same(weights(again.policy), weights(whole.policy))
    assert np.array_equal(again.replay_buffer.actions, whole.replay_buffer.actions)


def test_saving_and_loading(make, tmp_path):
    model = make(Panel("dials")).learn(40)
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model", env=Panel("dials"), device="cpu")
    assert same(weights(loaded.policy), weights(model.policy))
    loaded.learn(20)


def test_an_interrupted_hold():
    model = AGENTS["perdqn"](Panel("dials"), interrupt_margin=0.0).learn(60)
    seen = np.eye(3, dtype=np.float32)[0]
    best = model.policy.decide(seen)
    worst = model.policy.choices.all_taken()[int(np.argmin(best.values.max(axis=1)))]
    assert model.policy.interrupts(seen, worst, 1)


def test_holding_a_combination():
    env = HoldAction(Panel("dials"), 4)
    env.reset(seed=0)
    env.step(np.array([2, 1]))
    assert [action.tolist() for action in env.unwrapped.taken] == [[2, 1]] * 4


@pytest.mark.parametrize("space", [spaces.MultiDiscrete([40, 40]), spaces.MultiBinary(12)])
def test_too_many_combinations(make, space):
    class Wide(Panel):
        def __init__(self):
            super().__init__()
            self.action_space = space

    with pytest.raises(UnsupportedActionsError, match="env must have at most 1024 combinations of actions"):
        make(Wide())


def test_tables_learn_them_as_numbers():
    learner = PerQLearning(k_max=2, gamma=0.5, alpha=0.2)
    learner.fit(Panel("dials", discrete=True), episodes=300, seeds=[0])
    # Combinations (1, −1), (1, 0), ..., (2, 1) are 0..5: (1, −1) and (2, 0) are right.
    assert [learner.act(state).action for state in range(3)] == [0, 4, 0]


def test_other_actions_are_still_refused(make):
    class Strange(Panel):
        def __init__(self):
            super().__init__()
            self.action_space = spaces.Tuple((spaces.Discrete(2),))

    with pytest.raises(UnsupportedActionsError, match="env must have discrete actions"):
        make(Strange())


def test_it_is_a_proper_environment():
    check_env(Panel(), skip_render_check=True)
