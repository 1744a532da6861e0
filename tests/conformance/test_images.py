"""Images: either order of axes, stacked, beside other observations, and what the target network makes of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecFrameStack, VecTransposeImage, is_vecenv_wrapped

from tests.conformance.agents import same, weights
from tests.conformance.worlds import VECTOR, Samples, singles, vector

SIDE = 36
LAST = spaces.Box(0, 255, (SIDE, SIDE, 2), np.uint8)
FIRST = spaces.Box(0, 255, (2, SIDE, SIDE), np.uint8)
TINY = {"buffer_size": 60, "learning_starts": 8, "train_freq": 4, "batch_size": 4}
SMALL = {"features_extractor_kwargs": {"features_dim": 8}, "net_arch": []}


@pytest.mark.parametrize("space", [LAST, FIRST], ids=["last", "first"])
def test_channels_may_come_last_or_first(make, tmp_path, space):
    env = Samples(space)
    model = make(env, "CnnPolicy", policy_kwargs=SMALL, **TINY).learn(16)
    assert model._n_updates == 2
    assert is_vecenv_wrapped(model.get_env(), VecTransposeImage) == (space is LAST)
    assert model.observation_space.shape == (2, SIDE, SIDE)
    stored = model.replay_buffer.observations
    assert stored.dtype == np.uint8
    seen = env.seen[0] if space is FIRST else np.transpose(env.seen[0], (2, 0, 1))
    np.testing.assert_array_equal(stored[0, 0], seen)

    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model", device="cpu")
    for _ in range(3):
        observation = env.observe()
        action, _ = model.predict(observation, deterministic=True)
        assert loaded.predict(observation, deterministic=True)[0] == action
    again = type(model).load(tmp_path / "model", env=Samples(space), device="cpu").learn(16)
    assert again._n_updates == model._n_updates + 2


def test_either_order_of_axes_gives_the_same_prediction(make):
    env = Samples(LAST)
    model = make(env, "CnnPolicy", policy_kwargs=SMALL, **TINY)
    for _ in range(5):
        image = env.observe()
        turned = np.transpose(image, (2, 0, 1))
        values = [model.policy.option_values(model.policy.obs_to_tensor(seen)[0]) for seen in (image, turned)]
        np.testing.assert_array_equal(*values)
        assert model.predict(image, deterministic=True)[0] == model.predict(turned, deterministic=True)[0]


def test_a_bright_image_is_scaled_to_one_unless_told_otherwise(make):
    model = make(Samples(FIRST), "CnnPolicy", policy_kwargs=SMALL, **TINY)
    raw = make(Samples(FIRST), "CnnPolicy", policy_kwargs={**SMALL, "normalize_images": False}, **TINY)
    raw.q_net.load_state_dict(model.q_net.state_dict())
    image = th.randint(0, 256, (1, 2, SIDE, SIDE), dtype=th.uint8)
    with th.no_grad():
        assert not th.allclose(model.q_net(image), raw.q_net(image.float()))
        th.testing.assert_close(model.q_net(image), raw.q_net(image.float() / 255.0))


def test_images_that_are_fractions_already(make):
    space = spaces.Box(0.0, 1.0, (1, SIDE, SIDE), np.float32)
    extractor = {"features_extractor_kwargs": {"features_dim": 8, "normalized_image": True}}
    model = make(
        Samples(space), "CnnPolicy", policy_kwargs={**SMALL, **extractor, "normalize_images": False}, **TINY
    )
    assert model.learn(16)._n_updates == 2


@pytest.mark.parametrize("space", [LAST, FIRST], ids=["last", "first"])
def test_stacked_frames(make, space):
    env = VecFrameStack(vector(2, space=space, length=5), n_stack=3)
    model = make(env, "CnnPolicy", policy_kwargs=SMALL, **TINY).learn(16)
    assert model.observation_space.shape == (6, SIDE, SIDE)
    frames = [seen if space is FIRST else np.transpose(seen, (2, 0, 1)) for seen in singles(env)[1].seen]
    stored = model.replay_buffer.observations
    np.testing.assert_array_equal(stored[3, 1], np.concatenate(frames[1:4]))
    # Nothing of an episode, which has six observations, is left in the first one of the next.
    np.testing.assert_array_equal(stored[5, 1, 4:], frames[6])
    assert not stored[5, 1, :4].any()


@pytest.mark.parametrize("space", [LAST, FIRST], ids=["last", "first"])
@pytest.mark.parametrize("stacked", [False, True])
def test_images_beside_vectors(make, tmp_path, space, stacked):
    both = spaces.Dict({"image": space, "vector": VECTOR, "number": spaces.Discrete(3)})
    if stacked:
        both = spaces.Dict({"image": space, "vector": VECTOR})
    env = vector(1, space=both)
    env = VecFrameStack(env, n_stack=2) if stacked else env
    kwargs = {"features_extractor_kwargs": {"cnn_output_dim": 8}, "net_arch": [4]}
    model = make(env, "MultiInputPolicy", policy_kwargs=kwargs, **TINY).learn(16)
    assert model._n_updates == 2
    assert model.observation_space["image"].shape == (4 if stacked else 2, SIDE, SIDE)
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model", device="cpu")
    observation = model.get_env().reset()
    assert loaded.predict(observation, deterministic=True)[0] == model.predict(observation, deterministic=True)[0]


def test_a_policy_of_vectors_flattens_images(make):
    model = make(Samples(spaces.Box(0, 255, (6, 6, 3), np.uint8)), **TINY).learn(16)
    assert model._n_updates == 2


def test_the_target_network_has_an_extractor_of_its_own_and_follows_late(make):
    model = make(Samples(LAST), "CnnPolicy", policy_kwargs=SMALL, **{**TINY, "target_update_interval": 5})
    assert model.q_net.features_extractor is not model.q_net_target.features_extractor
    assert same(weights(model.q_net), weights(model.q_net_target))
    model.learn(8)
    started, target = weights(model.q_net), weights(model.q_net_target)
    model.tau = 0.0
    model.train(gradient_steps=1, batch_size=4)
    assert same(target, weights(model.q_net_target))
    # Every layer has learned something.
    for before, after in zip(started, weights(model.q_net), strict=True):
        assert not th.equal(before, after)

    learned = weights(model.q_net)
    model.lr_schedule = lambda _: 0.0
    model.tau, model.target_update_interval = 0.25, 1
    model._on_step()
    model.train(gradient_steps=1, batch_size=4)
    assert same(learned, weights(model.q_net))
    for old, new, online in zip(target, weights(model.q_net_target), learned, strict=True):
        th.testing.assert_close(new, 0.25 * online + 0.75 * old)
