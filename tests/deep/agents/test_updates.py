"""What an update learns from, and what it changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.vec_env import VecNormalize

from holdfast.core.targets import all_persistence_target, double_state_value, state_value
from holdfast.deep import OptionReplayBuffer, PerDQN
from holdfast.deep.arguments import TARGET_VALUES
from holdfast.deep.speed.shortcuts import SHORT_CUT_TARGET_VALUES, can_keep_targets
from tests.deep.diary import LEARNING, agent, capture_log, diaries, plain_agent, watch_learning
from tests.deep.probes import Pier

# The learning itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("k_max", [1, 3])
@pytest.mark.parametrize("dueling", [False, "heads", "options"])
def test_every_parameter_gets_a_gradient(k_max, dueling):
    model = agent(Pier(), k_max=k_max, dueling=dueling, **LEARNING).learn(30)
    for parameter in model.q_net.parameters():
        parameter.grad = None
    model.train(1, 4)
    assert all(parameter.grad is not None for parameter in model.q_net.parameters())
    assert all(parameter.grad is None for parameter in model.q_net_target.parameters())


def test_the_batch_size_may_change_between_updates():
    model = agent(Pier(), **LEARNING).learn(30)
    rows = capture_log(model)
    model.train(2, 8)
    model.train(1, 5)
    model.dump_logs()
    assert {"train/loss_k1", "train/loss_k3"} <= set(rows[0])


def test_no_updates_are_no_loss():
    model = agent(Pier(), **{**LEARNING, "gradient_steps": 0}).learn(30)
    rows = capture_log(model)
    model.train(0, 4)
    model.dump_logs()
    assert rows[0]["train/n_updates"] == 0
    assert "train/loss" not in rows[0]


def test_training_mode_reaches_every_module_that_learns():
    model = agent(Pier(), normalize_observations="space")
    for mode in (True, False, True, False):
        model.policy.set_training_mode(mode)
        assert {module.training for module in model.q_net.modules()} == {mode}
        assert not any(module.training for module in model.q_net_target.modules())


def test_there_are_no_integer_buffers_in_a_policy():
    model = agent(Pier(), normalize_observations="space")
    assert all(value.is_floating_point() for value in model.policy.buffers())


def test_beta_goes_to_one(monkeypatch):
    seen, sample = [], OptionReplayBuffer.sample

    def spy(self, batch_size, env=None, beta=None):
        seen.append(beta)
        return sample(self, batch_size, env, beta)

    monkeypatch.setattr(OptionReplayBuffer, "sample", spy)
    agent(Pier(), priority_beta0=0.2, **LEARNING).learn(100)
    assert len(seen) == 90
    assert seen[0] == pytest.approx(0.2 + 0.8 * 0.11)
    assert seen[-1] == pytest.approx(1.0)
    assert (np.diff(seen) > 0).all()


def test_td_errors_become_the_priorities_of_what_was_drawn():
    model = plain_agent(diaries(), **{**LEARNING, "gradient_steps": 0}).learn(40)
    learned = watch_learning(model)
    model.train(1, 6)
    ((batch, residuals, _),) = learned
    for index in range(3):
        last = dict(zip(batch.rows[index].tolist(), residuals.td_errors[index].tolist(), strict=True))
        for row, error in last.items():
            expected = (abs(error) + 1e-6) ** 0.6
            assert model.replay_buffer.trees.priorities(index)[row] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_is_the_mean_of_all_weighted_rows(weighted):
    model = plain_agent(diaries(), prioritized=weighted, **{**LEARNING, "gradient_steps": 0}).learn(40)
    if weighted:
        model.train(2, 8)
    batch = model.replay_buffer.sample(6, beta=0.7)
    targets = model._targets(batch)
    result = model._regress(batch, targets)
    values = model.q_net(batch.observations).detach().numpy().reshape(3, 6, 3, 3)
    for index in range(3):
        chosen = values[index, np.arange(6), batch.actions[index], index]
        errors = chosen - targets[index]
        np.testing.assert_allclose(result.td_errors[index], errors, atol=1e-6)
        huber = np.where(np.abs(errors) < 1.0, 0.5 * errors**2, np.abs(errors) - 0.5)
        np.testing.assert_allclose(result.row_losses[index], huber, atol=1e-6)
    each = result.row_losses if batch.weights is None else batch.weights * result.row_losses
    assert (batch.weights is not None) == weighted
    assert result.loss == pytest.approx(each.sum() / 18, rel=1e-6)


# Target values ----------------------------------------------------------------------------------------------


def fresh_targets(model, batch):
    """The targets of a batch by the formula, with what the networks say at this moment."""
    observations = model.replay_buffer.observations_at(batch.next_rows.ravel(), model._vec_normalize_env)
    shape = (*batch.next_rows.shape, model.action_space.n, model.k_max)
    with th.no_grad():
        online, q = (net(observations).numpy().reshape(shape) for net in (model.q_net, model.q_net_target))
    double = model.target_value == "double"
    held = np.take_along_axis(q, batch.actions[..., None, None], axis=2)[:, :, 0]
    remaining = np.maximum(batch.rest, 1) - 1
    return all_persistence_target(
        batch.rewards,
        batch.discounts,
        batch.rest == 0,
        double_state_value(online, q) if double else state_value(q, model.target_value),
        np.take_along_axis(held, remaining[..., None], axis=2)[..., 0],
        batch.dones == 1.0,
    )


def check_targets(model):
    """From now on compare all targets, and all values that are kept, with what the networks say at that moment."""
    used, targets_of = [], model._targets

    def checked(batch):
        found = targets_of(batch)
        np.testing.assert_allclose(found, fresh_targets(model, batch), rtol=1e-5, atol=2e-5)
        kept, known = model.target_cache, model.target_cache.known(model)
        if can_keep_targets(model):
            assert set(batch.next_rows.ravel()) <= set(known)
            now = model.q_net_target(model.replay_buffer.observations_at(known)).detach().numpy()
            np.testing.assert_allclose(kept.values[known], now, rtol=1e-5, atol=2e-5)
        used.append(found.size)
        return found

    model._targets = checked
    return used


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"tau": 0.3, "target_update_interval": 7},
        {"n_envs": 3},
        {"bootstrap": False, "lengths": [2, 1, 2]},
        {"bootstrap": False, "lengths": [2, 1, 2], "k_max": 1},
        {"target_value": "primitive"},
        {"target_value": "double"},
        {"normalised": True, "n_envs": 2},
    ],
    ids=str,
)
def test_target_values_are_never_stale(arguments):
    arguments = dict(arguments)
    env = diaries(arguments.pop("n_envs", 1), lengths=arguments.pop("lengths", [7, 4, 1, 9]))
    if arguments.pop("normalised", False):
        env = VecNormalize(env)
    model = plain_agent(env, **{**LEARNING, "buffer_size": 30, **arguments})
    used = check_targets(model)
    model.learn(200)
    assert sum(used) > 0


def test_target_values_are_new_after_new_weights_or_another_replay(tmp_path):
    model, other = (
        plain_agent(Pier(), **{**LEARNING, "target_update_interval": 10_000, "seed": seed}) for seed in (1, 2)
    )
    model.learn(60)
    other.learn(60)
    other.save_replay_buffer(tmp_path / "replay")
    used = check_targets(model)
    model.set_parameters(other.get_parameters())
    model.train(5, 16)
    model.set_parameters(plain_agent(Pier(), **{**LEARNING, "seed": 5}).get_parameters())
    model.load_replay_buffer(tmp_path / "replay")
    model.train(5, 16)
    assert len(used) == 10


def test_a_view_without_tuples_leaves_the_others_targets_alone():
    # An empty view's rows point at slot 0, which in turn is the ring's head.
    model = plain_agent(
        diaries(lengths=[1]), k_max=2, bootstrap=False, **{**LEARNING, "buffer_size": 7, "gradient_steps": 8}
    )
    used = check_targets(model)
    model.learn(100)
    assert len(used) > 0
    assert model.replay_buffer.drawable.tolist() == [True, False]


@pytest.mark.parametrize("target_value", TARGET_VALUES)
@pytest.mark.parametrize("normalised", [False, True])
def test_the_target_network_is_asked_about_each_distinct_row_once_per_batch(target_value, normalised):
    env = VecNormalize(diaries()) if normalised else diaries()
    model = plain_agent(env, target_value=target_value, **{**LEARNING, "gradient_steps": 0}).learn(12)
    learned, read, asked = watch_learning(model), [], []
    observations_at, values_of = model.replay_buffer.observations_at, model.q_net_target.bootstrap_values

    def reading(rows, *normalizer):
        read.append(rows.tolist())
        return observations_at(rows, *normalizer)

    def asking(observations):
        asked.append(read[-1])
        return values_of(observations)

    model.replay_buffer.observations_at, model.q_net_target.bootstrap_values = reading, asking
    model.train(1, 32)
    ((batch, _, _),) = learned
    (rows,) = asked
    assert len(rows) <= 12 < batch.next_rows.size
    assert sorted(rows) == np.unique(batch.next_rows).tolist()
    model.train(1, 32)
    kept = not normalised and target_value in SHORT_CUT_TARGET_VALUES
    # Between two updates of the target network only what is new has to be asked for.
    new = np.setdiff1d(learned[1].batch.next_rows, rows) if kept else np.unique(learned[1].batch.next_rows)
    assert sorted(asked[1]) == new.tolist() if len(new) else len(asked) == 1


def test_a_target_value_that_short_cuts_do_not_know_takes_the_plain_path(monkeypatch):
    """A new way to read V(s') must be asked for, not be taken for the maximum that compiled code knows."""
    asked = []

    def mean_value(kind, target_q, online_q, decision_cost):
        asked.append(kind)
        return target_q.flatten(1).mean(1)

    model = PerDQN("MlpPolicy", "CartPole-v1", k_max=4, learning_starts=20, batch_size=8, seed=0)
    model.target_value = "mean"
    monkeypatch.setattr("holdfast.deep.agents.per_dqn.state_values", mean_value)
    model.learn(40)
    assert asked == ["mean"] * 20
