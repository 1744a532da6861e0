"""The paper's settings make agents."""

from __future__ import annotations

import pytest

from holdfast.deep import PerDQN
from tests.deep.diary import SMALL, diaries, watch_decisions
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


def test_where_the_text_is_silent_baselines_is_a_reading_of_its_own():
    text, baselines = PerDQN.paper_mountain_car(), PerDQN.paper_mountain_car("baselines")
    assert text == PerDQN.paper_mountain_car(reading="text")
    assert {name: value for name, value in baselines.items() if text.get(name) != value} == {
        "timeout_is_terminal": True,
        "target_value": "double",
        "clip_gradients": "each",
        "initialization": "baselines",
    }
    atari = PerDQN.paper_atari("baselines")
    assert (atari["target_value"], atari["policy_kwargs"]) == ("double", PerDQN.paper_atari()["policy_kwargs"])
    with pytest.raises(ValueError, match=r"^reading must be one of 'text', 'baselines', not 'code'$"):
        PerDQN.paper_atari("code")


def test_without_held_exploration_random_actions_last_one_step_and_all_persistences_are_learned():
    settings = {**SMALL, "gradient_steps": 1, "exploration_initial_eps": 0.5, "exploration_final_eps": 0.5}
    model = PerDQN("MlpPolicy", diaries(1, lengths=[10**6]), k_max=5, exploration="primitive", **settings)
    decisions = watch_decisions(model)
    before = model.q_net.heads.layers[-1].weight.clone()
    model.learn(400)
    random = [decided for decided in decisions if decided.exploratory]
    assert len(random) > 50
    assert {decided.duration for decided in random} == {1}
    assert max(decided.duration for decided in decisions) > 1
    assert model._mean_random_hold() == 1.0
    changed = (model.q_net.heads.layers[-1].weight != before).any(dim=2).any(dim=1)
    assert changed.all()
