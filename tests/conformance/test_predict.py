"""Predicting: shapes, with and without what is held, greedy or not, and nothing changes by it."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
import torch as th

from tests.conformance.agents import decide
from tests.conformance.worlds import OBSERVATIONS, VECTOR, Echo, Samples, singles, vector

# One agent for all tests, which look at single observations again and again.
pytestmark = pytest.mark.filterwarnings("ignore:predict is called repeatedly without the state")


def some(count, space=VECTOR):
    space.seed(2)
    return np.stack([space.sample() for _ in range(count)])


@pytest.fixture
def model(make):
    return make(vector()).learn(30)


def test_one_observation_gives_one_action_and_several_give_several(model):
    for who, rate, deterministic in itertools.product((model, model.policy), (0.0, 1.0), (False, True)):
        model.exploration_rate = rate
        action, state = who.predict(some(1)[0], deterministic=deterministic)
        assert isinstance(action, np.ndarray)
        assert action.shape == ()
        assert model.action_space.contains(action)
        for count in (1, 5):
            actions, state = who.predict(some(count), deterministic=deterministic)
            assert actions.shape == (count,)
            assert np.issubdtype(actions.dtype, np.integer)
            assert all(model.action_space.contains(found) for found in actions)
            assert isinstance(state, tuple)
            assert all(len(part) == count for part in state)


def test_a_batch_is_as_good_as_one_after_the_other(model):
    observations = some(12)
    alone = [int(model.predict(observation, deterministic=True)[0]) for observation in observations]
    assert model.predict(observations, deterministic=True)[0].tolist() == alone


def test_without_a_state_every_call_decides_anew(model):
    first, second = some(2)
    before = [int(model.predict(observation, deterministic=True)[0]) for observation in (first, second)]
    for _ in range(6):
        again = [int(model.predict(observation, deterministic=True)[0]) for observation in (first, second)]
        assert again == before


def test_a_state_is_read_and_never_written(model):
    observations = some(4)
    _, state = model.predict(observations, deterministic=True)
    kept = copy.deepcopy(state)
    starts = np.array([True, False, False, True])
    results = [model.predict(observations[::-1], state, starts, deterministic=True) for _ in range(2)]
    for part, before in zip(state, kept, strict=True):
        np.testing.assert_array_equal(part, before)
    np.testing.assert_array_equal(results[0][0], results[1][0])
    for one, other in zip(results[0][1], results[1][1], strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_start_of_an_episode_drops_what_is_held(model):
    decide(model, lambda observation: int(observation[0] > 0) + int(observation[1] > 0))
    observations = some(6)
    _, state = model.predict(observations[::-1], deterministic=True)
    fresh = model.predict(observations, deterministic=True)
    for starts in (np.ones(6, bool), np.ones(6), True):
        dropped = model.predict(observations, state, starts, deterministic=True)
        np.testing.assert_array_equal(dropped[0], fresh[0])
        for one, other in zip(dropped[1], fresh[1], strict=True):
            np.testing.assert_array_equal(one, other)
    if model.policy.k_max > 1:
        held = model.predict(observations, state, np.zeros(6, bool), deterministic=True)[0]
        np.testing.assert_array_equal(held, fresh[0][::-1])
        assert (held != fresh[0]).any()


def test_each_environment_holds_its_own(make):
    model = make(Echo())
    decide(model, lambda observation: int(sum(observation)) % 3)
    rows = np.array([[0, 0], [50, 1], [100, 2], [7, 1]], np.float32)
    together, state = [], None
    alone, states = [[] for _ in rows], [None] * len(rows)
    for step in range(9):
        observations = np.roll(rows, step, axis=0)
        starts = np.arange(len(rows)) == step % 5
        actions, state = model.predict(observations, state, starts, deterministic=True)
        together.append(actions.tolist())
        for env in range(len(rows)):
            action, states[env] = model.predict(
                observations[env : env + 1], states[env], starts[env : env + 1], deterministic=True
            )
            alone[env].append(int(action[0]))
    assert np.transpose(together).tolist() == alone
    assert len({tuple(actions) for actions in alone}) == len(rows)


def test_what_is_held_is_held_for_as_long_as_was_decided(make):
    model, asked = make(Echo()), []
    decide(model, lambda observation: asked.append(observation[0]) or int(observation[0]) % 3)
    k, state, actions = model.policy.k_max, None, []
    for step in range(2 * k):
        action, state = model.predict(np.array([step, 0], np.float32), state, deterministic=True)
        actions.append(int(action))
    assert asked == [0, k]
    assert actions == [0] * k + [k % 3] * k


def test_exploration(model):
    observations = some(300)
    greedy = model.predict(observations, deterministic=True)[0]
    model.exploration_rate = 0.0
    np.testing.assert_array_equal(model.predict(observations, deterministic=False)[0], greedy)
    model.exploration_rate = 1.0
    np.testing.assert_array_equal(model.predict(observations, deterministic=True)[0], greedy)
    np.testing.assert_array_equal(model.policy.predict(observations, deterministic=False)[0], greedy)
    drawn = model.predict(observations, deterministic=False)[0]
    assert np.bincount(drawn, minlength=3).min() > 60
    model.exploration_rate = 0.5
    assert 0.5 < np.mean(model.predict(observations, deterministic=False)[0] == greedy) < 0.85


def test_numbers_may_be_given_as_they_are(make):
    model = make(Samples(OBSERVATIONS["discrete"])).learn(20)
    model.exploration_rate = 1.0
    for deterministic in (True, False):
        for observation in (3, np.int64(3), np.array(3)):
            assert model.predict(observation, deterministic=deterministic)[0].shape == ()
        assert model.predict(np.array([3, 1]), deterministic=deterministic)[0].shape == (2,)
    assert model.predict(3, deterministic=True)[0] == model.predict(np.array([3]), deterministic=True)[0][0]


@pytest.mark.parametrize(
    "observation", [np.zeros(4, np.float32), np.zeros((2, 4), np.float32), np.zeros((1, 2, 3))]
)
def test_an_observation_of_another_shape(model, observation):
    with pytest.raises(ValueError, match="observation shape"):
        model.predict(observation)


def test_what_a_reset_returns_is_no_observation(model):
    with pytest.raises(ValueError, match="reset"):
        model.predict(Samples().reset())


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_devices(make, device):
    model = make(vector(), device=device)
    assert model.policy.device.type == model.device.type
    assert model.device.type == "cpu" or th.cuda.is_available()
    model.learn(20)
    assert model.predict(some(1)[0], deterministic=True)[0].shape == ()


def test_predicting_changes_nothing(model):
    observations = some(5)
    given = observations.copy()
    numpy_state, torch_state = np.random.get_state()[1].copy(), th.get_rng_state()  # noqa: NPY002
    parameters = copy.deepcopy(model.policy.state_dict())
    _, state = model.predict(observations, deterministic=True)
    model.predict(observations, state, np.zeros(5, bool), deterministic=True)
    np.testing.assert_array_equal(observations, given)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    assert th.equal(th.get_rng_state(), torch_state)
    assert all(th.equal(value, parameters[name]) for name, value in model.policy.state_dict().items())
    assert all(parameter.grad is None or parameter.grad.grad_fn is None for parameter in model.policy.parameters())


def test_predicting_between_two_pieces_of_training_leaves_no_trace(make):
    def trained(asked):
        model, state = make(vector()).learn(21), None
        for observation in some(5)[:asked]:
            _, state = model.predict(observation, state, deterministic=True)
        return model.learn(21, reset_num_timesteps=False)

    quiet, asked = trained(0), trained(5)
    assert singles(quiet.env)[0].done == singles(asked.env)[0].done
    assert all(th.equal(*pair) for pair in zip(quiet.q_net.parameters(), asked.q_net.parameters(), strict=True))
