"""Whatever the networks say of a terminal state, no value is learned from it."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th

from tests.conformance.worlds import Counting, vector


def learned_batches(model, updates=4):
    """The batches of some updates, with their targets."""
    found, learned = [], model._learned

    def spy(batch, targets, residuals):
        found.append((batch, targets))
        return learned(batch, targets, residuals)

    model._learned = spy
    model.train(updates, 16)
    return found


def shout(network, value=1e3):
    """Let a network think very highly of everything."""
    with th.no_grad():
        for name, parameter in network.named_parameters():
            # Those of the heads alone: what is behind a bias may turn it around.
            if "head" in name and name.endswith("bias"):
                parameter += value


@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("ends", ["terminated", "truncated"])
def test_terminal_states_are_never_bootstrapped_from(make, n_envs, ends):
    model = make(
        vector(n_envs, kind=Counting, ends=ends), gradient_steps=0, clip_targets=False, head_arch=[]
    ).learn(80)
    shout(model.q_net_target)
    terminal = 0
    for batch, targets in learned_batches(model):
        last = model.replay_buffer.observations_at(batch.next_rows.ravel())[:, 1].reshape(batch.rows.shape)
        drawn = np.ones(targets.shape, bool) if batch.weights is None else batch.weights > 0.0
        # The second number of an observation is the step of the episode, which has 6.
        at_end = drawn & (last.numpy() == 6)
        np.testing.assert_array_equal(batch.dones[drawn] > 0, at_end[drawn] & (ends == "terminated"))
        if ends == "terminated":
            np.testing.assert_array_equal(targets[at_end], batch.rewards[at_end])
            assert (np.abs(targets[at_end]) <= 6.0).all()
        assert (targets[drawn & (batch.dones == 0)] > 100.0).all()
        terminal += int(at_end.sum())
    assert terminal > 0
