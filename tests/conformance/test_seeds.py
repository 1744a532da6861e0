"""A seed decides everything, and nothing else does."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th

from tests.conformance.agents import same, weights
from tests.conformance.worlds import Samples, singles, vector

pytestmark = pytest.mark.filterwarnings("ignore:predict is called repeatedly without the state")


@pytest.mark.parametrize("n_envs", [1, 3])
def test_the_same_seed_gives_the_same_run_and_another_one_another(make, n_envs):
    def run(seed, noise):
        # What was drawn before must not matter.
        np.random.seed(noise)  # noqa: NPY002
        th.manual_seed(noise)
        model = make(vector(n_envs), seed=seed).learn(60)
        return weights(model.policy), [env.done for env in singles(model.env)], model.replay_buffer.rewards

    one, again, other = run(5, noise=1), run(5, noise=2), run(6, noise=1)
    assert same(one[0], again[0])
    assert one[1] == again[1]
    np.testing.assert_array_equal(one[2], again[2])
    assert not same(one[0], other[0])
    assert one[1] != other[1]


def test_evaluation_after_training_is_the_same_too(make):
    def actions():
        model = make("CartPole-v1").learn(80)
        model.exploration_rate = 0.5
        env, found = model.get_env(), []
        observation, state = env.reset(), None
        for _ in range(40):
            action, state = model.predict(observation, state, deterministic=False)
            observation, reward, _, _ = env.step(action)
            found += [int(action[0]), float(reward[0]), *observation[0].tolist()]
        return found

    assert actions() == actions()


def test_without_a_seed_runs_differ(make):
    one, other = (make(vector(), seed=None).learn(30) for _ in range(2))
    assert one.seed is None
    assert not same(weights(one.policy), weights(other.policy))


def test_a_seed_set_later_repeats_environment_and_exploration(make):
    model = make(Samples(), exploration_initial_eps=1.0, exploration_final_eps=1.0)
    model.exploration_rate = 1.0

    def drawn(seed):
        model.set_random_seed(seed)
        observation = model.get_env().reset()
        return observation.tolist(), [int(model.predict(observation)[0][0]) for _ in range(30)]

    assert drawn(7) == drawn(7)
    assert drawn(7)[0] != drawn(8)[0]
    assert drawn(7)[1] != drawn(8)[1]


def test_dictionaries_and_vectors_of_the_same_numbers_give_the_same_run(make):
    from gymnasium import ObservationWrapper, spaces

    class Named(ObservationWrapper):
        def __init__(self, env):
            super().__init__(env)
            self.observation_space = spaces.Dict({"only": env.observation_space})

        def observation(self, observation):
            return {"only": observation}

    flat = make(Samples()).learn(60)
    named = make(Named(Samples()), "MultiInputPolicy").learn(60)
    for mine, other in zip(weights(flat.q_net), weights(named.q_net), strict=True):
        th.testing.assert_close(mine, other, rtol=1e-3, atol=1e-5)
    assert singles(flat.env)[0].done == singles(named.env)[0].done
