"""What an update learns from, and what it changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th

from holdfast.deep import OptionReplayBuffer
from holdfast.deep.option_dqn import clip_gradients
from tests.deep.diary import LEARNING, agent, capture_log, diaries
from tests.deep.probes import Pier

# The learning itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("k_max", [1, 3])
@pytest.mark.parametrize("dueling", [False, True])
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
    model = agent(diaries(), **{**LEARNING, "gradient_steps": 0}).learn(40)
    results, drawn = [], []
    batch_loss = model._batch_loss
    model._batch_loss = lambda batch: drawn.append(batch) or results.append(batch_loss(batch)) or results[-1]
    model.train(1, 6)
    for index in range(3):
        last = dict(zip(drawn[0].rows[index].tolist(), results[0].td_errors[index].tolist(), strict=True))
        for row, error in last.items():
            expected = (abs(error) + 1e-6) ** 0.6
            assert model.replay_buffer.trees.priorities(index)[row] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_is_the_mean_of_all_weighted_rows(weighted):
    model = agent(diaries(), prioritized=weighted, **{**LEARNING, "gradient_steps": 0}).learn(40)
    if weighted:
        model.train(2, 8)
    batch = model.replay_buffer.sample(6, beta=0.7)
    result = model._batch_loss(batch)
    values = model.q_net(batch.observations).detach().numpy().reshape(3, 6, 3, 3)
    for index in range(3):
        chosen = values[index, np.arange(6), batch.actions[index].numpy(), index]
        errors = chosen - result.targets[index].numpy()
        np.testing.assert_allclose(result.td_errors[index], errors, atol=1e-6)
        huber = np.where(np.abs(errors) < 1.0, 0.5 * errors**2, np.abs(errors) - 0.5)
        np.testing.assert_allclose(result.row_losses[index], huber, atol=1e-6)
    each = result.row_losses if batch.weights is None else batch.weights * result.row_losses
    assert (batch.weights is not None) == weighted
    assert result.loss.item() == pytest.approx(each.sum().item() / 18, rel=1e-6)


@pytest.mark.parametrize("max_norm", [1e-3, 1.0, 1e6])
def test_gradients_are_clipped_as_pytorch_does(max_norm):
    th.manual_seed(0)
    ours, theirs = ([th.nn.Parameter(th.zeros(shape)) for shape in ((3, 4), (5,), (2, 2, 2))] for _ in range(2))
    for mine, other in zip(ours, theirs, strict=True):
        mine.grad = th.randn_like(mine)
        other.grad = mine.grad.clone()
    clip_gradients(th.optim.SGD(ours, lr=1.0), max_norm)
    th.nn.utils.clip_grad_norm_(theirs, max_norm)
    for mine, other in zip(ours, theirs, strict=True):
        assert th.equal(mine.grad, other.grad)


# Kept target values -----------------------------------------------------------------------------------------


def check_targets(model):
    """From now on compare all target values with what the target network says at that moment."""
    used, target_values = [], model._target_values

    def checked(rows):
        found = target_values(rows)
        real = rows >= 0
        now = model.q_net_target(model.replay_buffer.observations_at(rows[real], model._vec_normalize_env))
        th.testing.assert_close(found[th.as_tensor(real)], now)
        used.append(len(rows))
        return found

    model._target_values = checked
    return used


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"tau": 0.3, "target_update_interval": 7},
        {"n_envs": 3},
        {"bootstrap": False, "lengths": [2, 1, 2]},
        {"bootstrap": False, "lengths": [2, 1, 2], "k_max": 1},
    ],
    ids=str,
)
def test_target_values_are_never_stale(arguments):
    arguments = dict(arguments)
    env = diaries(arguments.pop("n_envs", 1), lengths=arguments.pop("lengths", [7, 4, 1, 9]))
    model = agent(env, **{**LEARNING, "buffer_size": 30, **arguments})
    used = check_targets(model)
    model.learn(200)
    assert sum(used) > 0


def test_target_values_are_new_after_new_weights_or_another_replay(tmp_path):
    model, other = (
        agent(Pier(), **{**LEARNING, "target_update_interval": 10_000, "seed": seed}) for seed in (1, 2)
    )
    model.learn(60)
    other.learn(60)
    other.save_replay_buffer(tmp_path / "replay")
    check_targets(model)
    model.set_parameters(other.get_parameters())
    model.train(5, 16)
    model.set_parameters(agent(Pier(), **{**LEARNING, "seed": 5}).get_parameters())
    model.load_replay_buffer(tmp_path / "replay")
    model.train(5, 16)


def test_a_view_without_tuples_leaves_the_others_targets_alone():
    # An empty view's rows point at slot 0, which in turn is the ring's head.
    model = agent(
        diaries(lengths=[1]), k_max=2, bootstrap=False, **{**LEARNING, "buffer_size": 7, "gradient_steps": 8}
    )
    check_targets(model)
    model.learn(100)
    assert model.replay_buffer.drawable.tolist() == [True, False]
