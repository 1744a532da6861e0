"""A training goes on exactly from a state, in a fresh agent."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.deep import make_vec_env
from tests.conformance.agents import AGENTS, same, weights


@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("other", [None, 7])
def test_a_restored_agent_goes_on_as_the_one_that_never_stopped(make, n_envs, other):
    def agent(seed):
        return make(make_vec_env("CartPole-v1", n_envs, seed), seed=seed, schedule_steps=120)

    whole = agent(0)
    whole.learn(60)
    state = whole.state()
    whole.learn(60, reset_num_timesteps=False)
    again = agent(0)
    if other is not None:
        # Whatever it did before is undone.
        again.learn(other * n_envs)
    again.restore(state)
    again.learn(60, reset_num_timesteps=False)
    assert again.num_timesteps == whole.num_timesteps
    assert same(weights(again.policy), weights(whole.policy))
    np.testing.assert_array_equal(again.replay_buffer.actions, whole.replay_buffer.actions)
    np.testing.assert_array_equal(again.replay_buffer.observations, whole.replay_buffer.observations)


@pytest.mark.parametrize("name", AGENTS)
def test_a_state_of_another_agent_is_refused(name):
    state = AGENTS[name]("CartPole-v1").state()
    for other in AGENTS.keys() - {name}:
        with pytest.raises(ValueError, match="the saved state must be of an agent with"):
            AGENTS[other]("CartPole-v1").restore(state)
