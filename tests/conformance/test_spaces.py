"""Every observation space that SB3 knows; other ones, and actions that are not one choice, are refused."""

from __future__ import annotations

import re

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.env_checker import check_env

from tests.conformance.agents import same, weights
from tests.conformance.worlds import OBSERVATIONS, Counting, Echo, Samples, singles, vector

pytestmark = pytest.mark.filterwarnings("ignore:predict is called repeatedly without the state")


def policy_for(space):
    return "MultiInputPolicy" if isinstance(space, spaces.Dict) else "MlpPolicy"


def parts(observations):
    return observations if isinstance(observations, dict) else {"": observations}


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_the_environments_of_these_tests_are_proper_ones(name):
    check_env(Samples(OBSERVATIONS[name]), warn=False, skip_render_check=True)


def test_the_others_too():
    check_env(Counting(), warn=False, skip_render_check=True)
    check_env(Echo(), warn=False, skip_render_check=True)


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_what_is_seen_is_stored_as_it_is_and_learned_from(make, name):
    space = OBSERVATIONS[name]
    env = Samples(space, length=50)
    model = make(env, policy_for(space))
    before = weights(model.q_net)
    model.learn(30)
    assert model._n_updates == 20
    assert not same(before, weights(model.q_net))
    assert all(th.isfinite(value).all() for value in weights(model.policy))

    stored = parts(model.replay_buffer.observations)
    assert stored.keys() == parts(env.seen[0]).keys()
    for key, values in stored.items():
        assert values.dtype == (space[key] if key else space).dtype
        seen = np.array([parts(observation)[key] for observation in env.seen[:30]])
        np.testing.assert_array_equal(values[:30].reshape(seen.shape), seen)


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_predictions_for_one_and_for_several_survive_saving(make, tmp_path, name):
    space = OBSERVATIONS[name]
    model = make(Samples(space), policy_for(space)).learn(20)
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model", device="cpu")
    space.seed(1)
    observations = [space.sample() for _ in range(8)]
    for agent in (model, loaded):
        for observation in observations:
            action, _ = agent.predict(observation, deterministic=True)
            assert action.shape == ()
            assert agent.action_space.contains(action)
    batch = (
        {key: np.stack([observation[key] for observation in observations]) for key in space.spaces}
        if isinstance(space, spaces.Dict)
        else np.stack(observations)
    )
    alone = [int(model.predict(observation, deterministic=True)[0]) for observation in observations]
    assert model.predict(batch, deterministic=True)[0].tolist() == alone
    assert loaded.predict(batch, deterministic=True)[0].tolist() == alone


def test_a_space_of_a_users_own_class(make):
    class OwnBox(spaces.Box):
        pass

    class OwnDiscrete(spaces.Discrete):
        pass

    env = Samples(OwnBox(-1.0, 1.0, (2,), np.float32))
    env.action_space = OwnDiscrete(3)
    model = make(env).learn(20)
    assert env.action_space.contains(model.predict(env.reset()[0])[0])


def test_actions_that_do_not_begin_at_zero(make):
    env = Samples()
    env.action_space = spaces.Discrete(3, start=-1)
    model = make(env).learn(40)
    assert set(env.done) == {-1, 0, 1}
    model.exploration_rate = 1.0
    drawn = {int(model.predict(env.observe())[0]) for _ in range(50)}
    assert drawn == {-1, 0, 1}
    assert int(model.predict(env.observe(), deterministic=True)[0]) in drawn


# Refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1.0, 1.0, (2,), np.float32),
        spaces.Box(-1.0, 1.0, (2, 2), np.float32),
        spaces.MultiDiscrete([40, 30]),
        spaces.MultiBinary(11),
        spaces.Dict({"move": spaces.Discrete(2)}),
        spaces.Tuple([spaces.Discrete(2)]),
    ],
    ids=str,
)
@pytest.mark.parametrize("vectorised", [False, True])
def test_actions_that_are_not_one_choice(make, space, vectorised):
    def env():
        made = Samples()
        made.action_space = space
        return made

    with pytest.raises((ValueError, AssertionError), match=re.escape(str(space))):
        make(vector(1, kind=env, monitored=False) if vectorised else env())


def test_such_actions_of_a_registered_environment(make):
    with pytest.raises((ValueError, AssertionError), match="Box"):
        make("Pendulum-v1")


def test_a_dictionary_in_a_dictionary(make):
    nested = spaces.Dict({"outer": spaces.Dict({"inner": spaces.Discrete(2)})})
    with pytest.raises(NotImplementedError):
        make(Samples(nested), "MultiInputPolicy")


@pytest.mark.parametrize("policy", ["MlpPolicy", "CnnPolicy"])
def test_a_dictionary_for_a_policy_of_vectors_or_images(make, policy):
    with pytest.raises(ValueError, match="MultiInputPolicy"):
        make(Samples(OBSERVATIONS["dict"]), policy)


def test_a_vector_for_a_policy_of_images(make):
    with pytest.raises(AssertionError, match="images"):
        make(Samples(), "CnnPolicy")


def test_a_policy_nobody_knows(make):
    with pytest.raises(ValueError, match="unknown"):
        make(Samples(), "TransformerPolicy")


def test_an_environment_of_other_spaces_cannot_take_the_place(make, tmp_path):
    model = make(Samples())
    model.save(tmp_path / "model")
    for env in (Samples(spaces.Box(-1.0, 1.0, (5,), np.float32)), Samples(n_actions=2)):
        with pytest.raises(ValueError, match="spaces do not match"):
            model.set_env(env)
        with pytest.raises(ValueError, match="spaces do not match"):
            type(model).load(tmp_path / "model", env=env)
    assert isinstance(model.env.envs[0], gym.Env)
    assert singles(model.env)[0].action_space == spaces.Discrete(3)
