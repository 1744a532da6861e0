"""Policies with an actor on their own: saved, read back, evaluated, drawn and exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from matplotlib.figure import Figure

from holdfast.deep import PerSAC, PerTD3
from holdfast.deep.networks.actor_policy import ActorPolicy
from holdfast.policies import load_policy
from holdfast.policies.evaluation import evaluate
from holdfast.policies.export import export_onnx
from holdfast.policies.opened import open_policy
from holdfast.policies.pictures import draw_decisions, draw_policy_over, hold_map, take_trip
from holdfast.policies.policy_files import actor_of, network_state, write_policy
from holdfast.policies.spaces import space_state
from tests.runs.small_runs import ACTOR, trained

SEEN = spaces.Box(-2.0, 3.0, (3,), np.float32)
ACTIONS = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 1.0], np.float32))


AGENTS = {"pertd3": PerTD3, "persac": PerSAC}
agents = pytest.mark.parametrize("algo", AGENTS)


def policy_for(seen: spaces.Space[Any] = SEEN, algo: str = "pertd3", **arguments: Any) -> ActorPolicy:
    torch.manual_seed(0)
    kind: Any = AGENTS[algo].policy_aliases["MultiInputPolicy" if isinstance(seen, spaces.Dict) else "MlpPolicy"]
    settings = {"persistences": (1, 2, 4), "net_arch": {"pi": [16], "qf": [12, 8]}, **arguments}
    policy = kind(seen, ACTIONS, lambda _: 0.0, **settings)
    with torch.no_grad():
        for part in policy.critic.parameters():
            part.mul_(2.0)  # wide enough for its decisions to differ
    return policy


def saved(policy: ActorPolicy, folder: Path) -> Path:
    folder.mkdir()
    write_policy(folder, network_state("pertd3", policy))
    return folder


@agents
@pytest.mark.parametrize("arguments", [{}, {"persistences": None, "k_max": 1}, {"decision_tolerance": 0.05}])
def test_a_policy_that_is_read_back_decides_alike(tmp_path: Path, arguments: dict[str, Any], algo: str) -> None:
    policy = policy_for(algo=algo, **arguments)
    actor = load_policy(saved(policy, tmp_path / "run"))
    observations = np.random.default_rng(1).uniform(-2.0, 3.0, (50, 3)).astype(np.float32)
    for mine, read in zip(policy.decide(observations), actor.decide(observations), strict=True):
        np.testing.assert_array_equal(mine, read)
    assert actor.fits(SEEN, ACTIONS)
    assert not actor.fits(SEEN, spaces.Discrete(2))


@agents
@pytest.mark.parametrize(
    "damage",
    [
        {"k_max": 10**9, "persistences": None},
        {"net_arch": {"pi": [10**9], "qf": [8]}},
        {"net_arch": [8]},
        {"activation_fn": "Sin"},
        {"persistences": [1, 3, 5]},
        {"decision_tolerance": -1.0},
        {"normalize_images": 3},
    ],
)
def test_a_damaged_policy_is_refused_in_a_sentence(damage: dict[str, Any], algo: str) -> None:
    state = network_state(algo, policy_for(algo=algo))
    with pytest.raises(ValueError, match=r"the saved policy|decision_tolerance"):
        actor_of({**state, "arguments": {**state["arguments"], **damage}})


@agents
@pytest.mark.parametrize(
    "seen",
    [
        spaces.Discrete(2_000_000),
        spaces.MultiDiscrete([1_000_000, 1_000_000]),
        spaces.MultiBinary(2_000_000),
        spaces.Dict({"a": spaces.Discrete(2_000_000)}),
        spaces.Dict({str(number): spaces.Box(0, 255, (3, 40, 40), np.uint8) for number in range(50)}),
    ],
    ids=str,
)
def test_no_layer_is_made_for_observations_that_there_are_no_weights_for(seen: Any, algo: str) -> None:
    like = spaces.Dict({"a": SEEN}) if isinstance(seen, spaces.Dict) else SEEN
    state = network_state(algo, policy_for(like, algo))
    with pytest.raises(ValueError, match="weights of its layers, and no others"):
        actor_of({**state, "observation_space": space_state(seen)})


@agents
def test_no_layer_is_made_for_actions_that_there_are_no_weights_for(algo: str) -> None:
    state = network_state(algo, policy_for(algo=algo))
    many = spaces.Box(-1.0, 1.0, (500_000,), np.float32)
    with pytest.raises(ValueError, match="weights of its layers, and no others"):
        actor_of({**state, "action_space": space_state(many)})


@agents
def test_weights_that_are_missing_are_noticed(algo: str) -> None:
    state = network_state(algo, policy_for(algo=algo))
    weights = dict(state["weights"])
    weights.pop("critic.qf0.0.bias")
    with pytest.raises(ValueError, match="weights of its layers"):
        actor_of({**state, "weights": weights})


@agents
@pytest.mark.parametrize(
    ("seen", "arguments"),
    [
        (SEEN, {}),
        (SEEN, {"persistences": None, "k_max": 1}),
        (SEEN, {"decision_tolerance": 0.1, "activation_fn": torch.nn.Tanh}),
        (spaces.Dict({"a": SEEN, "action": spaces.Discrete(4)}), {"k_max": 3, "persistences": None}),
    ],
)
def test_an_exported_policy_decides_alike(tmp_path: Path, seen: Any, arguments: dict[str, Any], algo: str) -> None:
    run = saved(policy_for(seen, algo, **arguments), tmp_path / "run")
    exported = export_onnx(run, tmp_path / "p.onnx", check=300)
    assert exported.check.observations == 300
    assert exported.check.near_ties <= 1
    assert exported.outputs[0].shape == (2,)
    assert "first_action" not in exported.metadata


@agents
def test_a_run_is_evaluated_and_drawn(tmp_path: Path, algo: str) -> None:
    trained(ACTOR, tmp_path / "run", algo=algo)
    shown = open_policy(tmp_path / "run")
    env = shown.make_env()
    found = evaluate(shown.actor, env, [5])
    assert found.lengths[0] == 25
    trip = take_trip(shown.actor, env, 5)
    drawn = hold_map(shown.actor, env, trip, None)
    assert drawn is not None
    assert drawn.action_range == (-1.0, 1.0)
    assert drawn.action_names == ("action",)
    assert np.abs(drawn.actions).max() <= 1.0
    place = np.array([drawn.x[3], drawn.y[7]], np.float32)
    assert drawn.actions[7, 3] == pytest.approx(float(shown.actor.decide(place).action[0]), abs=1e-5)
    picture = draw_policy_over(shown.actor, env, trip)
    assert isinstance(picture, Figure)
    assert [axes.get_title() for axes in picture.axes[:2]] == ["action", "steps held"]
    assert isinstance(draw_decisions(shown.actor, env, trip), Figure)
