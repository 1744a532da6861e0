"""The paper's settings make agents."""

from __future__ import annotations

from holdfast.deep import PerDQN
from tests.deep.probes import Pictures


def test_the_papers_settings_make_agents():
    settings = PerDQN.paper_mountain_car()
    model = PerDQN(env="MountainCar-v0", **{**settings, "buffer_size": 100, "k_max": 16}, device="cpu")
    shapes = [tuple(parameter.shape) for parameter in model.q_net.parameters()]
    assert shapes == [(128, 2), (128,), (128, 128), (128,), (16, 64, 128), (16, 64), (16, 3, 64), (16, 3)]
    assert PerDQN.paper_mountain_car() == settings
    assert PerDQN.paper_mountain_car()["policy_kwargs"] is not settings["policy_kwargs"]


def test_the_papers_atari_settings_make_agents():
    model = PerDQN(env=Pictures(shape=(84, 84, 4)), **{**PerDQN.paper_atari(), "buffer_size": 10}, device="cpu")
    shapes = [tuple(parameter.shape) for parameter in model.q_net.parameters()]
    assert shapes[:6] == [(32, 4, 8, 8), (32,), (64, 32, 4, 4), (64,), (64, 64, 3, 3), (64,)]
    assert shapes[6:] == [(4, 128, 3136), (4, 128), (4, 2, 128), (4, 2)]
