"""Saving and loading, in every form SB3 has for it."""

from __future__ import annotations

import copy
import io
import zipfile

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor

from tests.conformance.agents import make_dqn, same, weights
from tests.conformance.worlds import Samples, singles, vector

OBSERVATIONS = Samples().observation_space


def some_observations():
    OBSERVATIONS.seed(4)
    return np.stack([OBSERVATIONS.sample() for _ in range(20)])


def actions(model):
    return model.predict(some_observations(), deterministic=True)[0].tolist()


def nested_equal(ours, others):
    """Whether state dictionaries, optimisers' included, are equal to the last bit."""
    if isinstance(ours, dict):
        return ours.keys() == others.keys() and all(nested_equal(ours[key], others[key]) for key in ours)
    if isinstance(ours, list | tuple):
        return len(ours) == len(others) and all(map(nested_equal, ours, others))
    return th.equal(ours, others) if isinstance(ours, th.Tensor) else ours == others


# Forms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["path", "string", "suffix", "stream", "file"])
def test_a_loaded_agent_is_the_one_that_was_saved(make, tmp_path, form):
    model = make(Samples()).learn(50)
    if form == "stream":
        place = io.BytesIO()
    elif form == "file":
        place = (tmp_path / "model.zip").open("w+b")
    else:
        place = {"path": tmp_path / "model", "string": str(tmp_path / "model"), "suffix": tmp_path / "model.zip"}[
            form
        ]
    model.save(place)
    if form in ("stream", "file"):
        place.seek(0)
    else:
        assert [found.name for found in tmp_path.iterdir()] == ["model.zip"]
    loaded = type(model).load(place, device="cpu")
    if form == "file":
        assert not place.closed
        place.close()
    assert nested_equal(loaded.get_parameters(), model.get_parameters())
    assert same(weights(loaded.q_net_target), weights(model.q_net_target))
    assert not same(weights(loaded.q_net), weights(loaded.q_net_target))
    assert actions(loaded) == actions(model)
    for name in ("num_timesteps", "exploration_rate", "_n_updates", "gamma", "k_max", "seed", "tau", "batch_size"):
        assert getattr(loaded, name) == getattr(model, name), name


def test_policy_and_networks_are_the_same_objects_after_loading(make, tmp_path):
    make(Samples()).save(tmp_path / "model")
    loaded = type(make(Samples())).load(tmp_path / "model", env=Samples(), device="cpu")
    assert loaded.q_net is loaded.policy.q_net
    assert loaded.q_net_target is loaded.policy.q_net_target
    before = actions(loaded), weights(loaded.policy.q_net)
    loaded.learn(60)
    assert not same(before[1], weights(loaded.policy.q_net))
    assert any(parameter.grad is not None for parameter in loaded.q_net.parameters())


def test_without_an_environment_there_is_nothing_to_learn_in(make, tmp_path):
    make(Samples()).save(tmp_path / "model")
    loaded = type(make(Samples())).load(tmp_path / "model", device="cpu")
    assert loaded.get_env() is None
    with pytest.raises(AssertionError, match="environment"):
        loaded.learn(10)
    loaded.set_env(Samples())
    assert loaded.learn(10).num_timesteps == 10


def test_a_file_that_is_not_there(make, tmp_path):
    with pytest.raises(FileNotFoundError):
        type(make(Samples())).load(tmp_path / "model")


# Going on ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 2)])
def test_loading_with_another_number_of_environments(make, tmp_path, before, after):
    model = make(vector(before), target_update_interval=30, buffer_size=120).learn(30)
    model.save(tmp_path / "model")
    env = vector(after)
    loaded = type(model).load(tmp_path / "model", env=env, device="cpu")
    assert loaded.n_envs == after
    assert loaded.target_update_interval == 30
    assert loaded.replay_buffer.n_envs == after
    assert loaded.replay_buffer.buffer_size == 120 // after
    assert loaded.replay_buffer.size() == 0
    updates, learned = loaded._n_updates, weights(loaded.q_net)
    loaded.learn(60)
    assert loaded.num_timesteps == 60
    assert [len(single.done) for single in singles(env)] == [60 // after] * after
    assert loaded._n_updates > updates
    assert not same(learned, weights(loaded.q_net))


def test_steps_are_counted_on_if_asked(make, tmp_path):
    env = vector()
    model = make(env).learn(20)
    model.save(tmp_path / "model")
    on = type(model).load(tmp_path / "model", env=env, device="cpu", force_reset=False)
    assert on._last_obs is not None
    np.testing.assert_array_equal(on._last_obs, model._last_obs)
    resets = singles(env)[0].resets
    on.learn(2, reset_num_timesteps=False)
    assert on.num_timesteps == 22
    assert singles(env)[0].resets == resets

    anew = type(model).load(tmp_path / "model", env=vector(), device="cpu")
    assert anew._last_obs is None
    anew.learn(20, reset_num_timesteps=False)
    assert anew.num_timesteps == 40


def test_the_optimiser_goes_on_where_it_was(make, tmp_path):
    model = make(Samples()).learn(30)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "replay")
    loaded = type(model).load(tmp_path / "model", env=Samples(), device="cpu")
    loaded.load_replay_buffer(tmp_path / "replay")
    model.load_replay_buffer(tmp_path / "replay")
    for agent in (model, loaded):
        agent.set_logger(configure(None, []))
        agent.set_random_seed(1)
        agent.train(gradient_steps=5, batch_size=8)
    assert same(weights(model.q_net), weights(loaded.q_net))
    assert nested_equal(model.policy.optimizer.state_dict(), loaded.policy.optimizer.state_dict())


# What is saved ----------------------------------------------------------------------------------------------


def test_attributes_can_be_left_out_and_put_in(make, tmp_path):
    model = make(Samples(), verbose=2)
    kind = type(model)
    model.save(tmp_path / "without", exclude=["verbose"])
    assert kind.load(tmp_path / "without", device="cpu").verbose != 2
    model.save(tmp_path / "with", exclude=["verbose"], include=["verbose"])
    assert kind.load(tmp_path / "with", device="cpu").verbose == 2


def test_no_environment_no_replay_and_nothing_held_is_in_the_file(make, tmp_path):
    model = make(Samples()).learn(30)
    model.save(tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "model.zip") as archive:
        assert {"data", "policy.pth", "policy.optimizer.pth"} <= set(archive.namelist())
        data = archive.read("data").decode()
    for name in ('"env"', '"replay_buffer"', '"clock"', '"policy"', '"logger"', '"_logger"'):
        assert f"    {name}:" not in data
    assert '    "gamma":' in data
    assert (tmp_path / "model.zip").stat().st_size < 200_000


def test_objects_can_be_replaced_at_loading(make, tmp_path):
    model = make(Samples(), learning_rate=lambda progress: progress)
    model.save(tmp_path / "model")
    loaded = type(model).load(
        tmp_path / "model", device="cpu", custom_objects={"learning_rate": 2e-5, "never_heard_of": 1.0}
    )
    assert loaded.learning_rate == 2e-5
    assert not hasattr(loaded, "never_heard_of")


def test_arguments_can_be_given_at_loading(make, tmp_path):
    model = make(Samples())
    model.save(tmp_path / "model")
    loaded = type(model).load(
        tmp_path / "model", env=Samples(), device="cpu", learning_rate=0.5, train_freq=(2, "step")
    )
    loaded.learn(20)
    assert loaded.policy.optimizer.param_groups[0]["lr"] == 0.5
    assert loaded.num_timesteps == 20
    assert loaded._n_updates == 5


def test_other_policy_arguments_at_loading_are_refused(make, tmp_path):
    model = make(Samples())
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="policy kwargs"):
        type(model).load(tmp_path / "model", device="cpu", policy_kwargs={"net_arch": [5]})
    same_again = type(model).load(tmp_path / "model", device="cpu", policy_kwargs={"net_arch": [8]})
    assert actions(same_again) == actions(model)


def test_versions_are_saved_and_shown_on_request(make, tmp_path, capsys):
    model = make(Samples())
    model.save(tmp_path / "model")
    type(model).load(tmp_path / "model", device="cpu")
    assert "Stable-Baselines3" not in capsys.readouterr().out
    type(model).load(tmp_path / "model", device="cpu", print_system_info=True)
    shown = capsys.readouterr().out
    assert "CURRENT SYSTEM INFO" in shown
    assert "SAVED MODEL SYSTEM INFO" in shown
    assert shown.count("Stable-Baselines3") == 2


def test_schedules_and_training_frequencies_survive(make, tmp_path):
    model = make(
        Samples(length=5), learning_rate=lambda progress: 0.25 * progress + 0.5, train_freq=(2, "episode")
    ).learn(20)
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model", env=Samples(length=5), device="cpu")
    assert loaded.train_freq == model.train_freq
    assert loaded.lr_schedule(0.5) == 0.625
    assert isinstance(loaded.lr_schedule(1.0), float)
    assert loaded.learn(11).num_timesteps == 20


def test_net_arch_may_be_none(make, tmp_path):
    make(Samples(), policy_kwargs={"net_arch": None}).save(tmp_path / "model")
    assert type(make(Samples())).load(tmp_path / "model", device="cpu").policy.net_arch is not None


# Parameters -------------------------------------------------------------------------------------------------


def test_parameters_come_back_exactly(make):
    model, other = make(Samples()).learn(30), make(Samples(), seed=9).learn(25)
    kept = copy.deepcopy(model.get_parameters())
    assert not nested_equal(other.get_parameters(), kept)
    other.set_parameters(kept, exact_match=True)
    assert nested_equal(other.get_parameters(), kept)
    assert actions(other) == actions(model)


def test_parameters_can_be_read_from_a_file(make, tmp_path):
    model, other = make(Samples()).learn(30), make(Samples(), seed=9)
    model.save(tmp_path / "model")
    other.set_parameters(tmp_path / "model", device="cpu")
    assert nested_equal(other.get_parameters(), model.get_parameters())


def test_training_repeats_itself_after_going_back(make):
    model = make(Samples()).learn(30)
    start = copy.deepcopy(model.get_parameters())
    replay, n_updates = copy.deepcopy(model.replay_buffer), model._n_updates
    ends = []
    for _ in range(2):
        model.set_parameters(copy.deepcopy(start))
        # The average of the weights follows them faster while updates are few.
        model._n_updates = n_updates
        model.replay_buffer = copy.deepcopy(replay)
        model.set_random_seed(3)
        model.train(gradient_steps=4, batch_size=8)
        ends.append(copy.deepcopy(model.get_parameters()))
    assert nested_equal(*ends)
    assert not nested_equal(ends[0], start)


def test_parameters_that_do_not_match(make):
    model = make(Samples())
    right = copy.deepcopy(model.get_parameters())
    assert set(right) == {"policy", "policy.optimizer"}
    for exact in (True, False):
        with pytest.raises(ValueError, match="nobody"):
            model.set_parameters({**right, "nobody": right["policy"]}, exact_match=exact)
    with pytest.raises(ValueError, match="do not match"):
        model.set_parameters({"policy": right["policy"]}, exact_match=True)
    some = dict(list(right["policy"].items())[:-1])
    with pytest.raises(RuntimeError, match="Missing key"):
        model.set_parameters({**right, "policy": some}, exact_match=True)

    last = list(right["policy"])[-1]
    changed = {name: th.full_like(value, 3.0) for name, value in some.items()}
    model.set_parameters({"policy": changed}, exact_match=False)
    now = model.get_parameters()["policy"]
    assert all((now[name] == 3.0).all() for name in some)
    assert th.equal(now[last], right["policy"][last])


# Policy and networks alone ----------------------------------------------------------------------------------


def test_a_policy_alone(make, tmp_path):
    model = make(Samples()).learn(30)
    model.policy.save(tmp_path / "policy.pkl")
    loaded = type(model.policy).load(tmp_path / "policy.pkl", device="cpu")
    assert same(weights(loaded), weights(model.policy))
    expected = model.predict(some_observations(), deterministic=True)
    found = loaded.predict(some_observations(), deterministic=True)
    np.testing.assert_array_equal(found[0], expected[0])
    for mine, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_array_equal(mine, other)


def test_a_network_alone(make, tmp_path):
    model = make(Samples()).learn(30)
    model.q_net.save(tmp_path / "q_net.pkl")
    loaded = type(model.q_net).load(tmp_path / "q_net.pkl", device="cpu")
    assert same(weights(loaded), weights(model.q_net))
    found = loaded.predict(some_observations(), deterministic=True)[0]
    np.testing.assert_array_equal(found, model.q_net.predict(some_observations(), deterministic=True)[0])


# Replay -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "n_envs"), [("path", 2), ("string", 1), ("stream", 1)])
def test_the_replay_alone(make, tmp_path, form, n_envs):
    model = make(vector(n_envs)).learn(40)
    place = {"path": tmp_path / "replay", "string": str(tmp_path / "replay"), "stream": io.BytesIO()}[form]
    model.save_replay_buffer(place)
    if form == "stream":
        place.seek(0)
    other = make(vector(n_envs), seed=9)
    other.load_replay_buffer(place)
    if form == "stream":
        assert not place.closed
    assert other.replay_buffer is not model.replay_buffer
    for name in ("observations", "actions", "rewards", "dones", "timeouts"):
        np.testing.assert_array_equal(getattr(other.replay_buffer, name), getattr(model.replay_buffer, name))
    assert other.replay_buffer.size() == model.replay_buffer.size() == 40 // n_envs
    assert other.replay_buffer.device == other.device
    before = weights(other.q_net)
    other.learn(20 * n_envs)
    assert other.replay_buffer.size() == 40 // n_envs + 20
    assert not same(before, weights(other.q_net))


def test_a_replay_can_be_loaded_where_there_is_none(make, tmp_path):
    model = make(Samples()).learn(30)
    rewards = model.replay_buffer.rewards.copy()
    model.save_replay_buffer(tmp_path / "replay")
    model.replay_buffer = None
    model.load_replay_buffer(tmp_path / "replay")
    np.testing.assert_array_equal(model.replay_buffer.rewards, rewards)
    model.learn(20, reset_num_timesteps=False)
    assert model.replay_buffer.size() == 50


def test_a_replay_can_be_put_into_a_loaded_agent_without_an_environment(make, tmp_path):
    model = make(Samples()).learn(30)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "replay")
    loaded = type(model).load(tmp_path / "model", device="cpu")
    loaded.load_replay_buffer(tmp_path / "replay")
    assert loaded.replay_buffer.size() == 30


def test_a_replay_can_be_extended_with_what_another_one_holds(make):
    model, other = make(Samples()).learn(30), make(Samples(), seed=9).learn(30)
    given, size = other.replay_buffer, model.replay_buffer.size()
    rows = np.arange(20)
    infos = [[{"TimeLimit.truncated": bool(given.timeouts[row, 0])}] for row in rows]
    observations = given.observations
    model.replay_buffer.extend(
        observations[rows],
        observations[rows + 1],
        given.actions[rows],
        given.rewards[rows],
        given.dones[rows],
        infos,
    )
    assert model.replay_buffer.size() == size + 20
    np.testing.assert_array_equal(model.replay_buffer.observations[size : size + 20], observations[rows])
    np.testing.assert_array_equal(model.replay_buffer.rewards[size : size + 20], given.rewards[rows])
    before = weights(model.q_net)
    model.train(gradient_steps=1, batch_size=8)
    assert not same(before, weights(model.q_net))


def test_a_replay_of_another_algorithm_is_refused(make, tmp_path):
    dqn = make_dqn(Monitor(Samples())).learn(15)
    dqn.save_replay_buffer(tmp_path / "replay")
    model = make(Samples())
    own = model.replay_buffer
    with pytest.raises(ValueError, match="replay"):
        model.load_replay_buffer(tmp_path / "replay")
    assert model.replay_buffer is own
    model.learn(20)
