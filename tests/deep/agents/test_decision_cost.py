"""PerDQN with a cost for each decision: its paths agree, its files remember it, and bad costs are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast import EZGreedyDQN, PerDQN, TempoRLDQN, load_policy
from holdfast.cli import main
from holdfast.deep.speed.shortcuts import plain_path

SMALL: dict[str, Any] = {
    "policy_kwargs": {"net_arch": [12]},
    "learning_starts": 60,
    "buffer_size": 400,
    "target_update_interval": 40,
    "batch_size": 16,
    "seed": 3,
    "persistences": [1, 2, 4],
}


def agent(**arguments: Any) -> PerDQN:
    return PerDQN("MlpPolicy", "CartPole-v1", **{**SMALL, **arguments})


@pytest.mark.parametrize("target_value", ["options", "double"])
def test_all_paths_give_the_same_targets(target_value: str) -> None:
    # Within plain_path the network is asked and PyTorch computes; otherwise values are kept and NumPy does.
    model = agent(target_value=target_value, decision_cost=0.3)
    model.learn(150)
    batch = model._sample(16, 0.5)
    kept = model._targets(batch)
    with plain_path():
        plain = model._targets(batch)
    np.testing.assert_allclose(kept, plain, rtol=1e-5, atol=1e-5)
    parameters = model.q_net.plain_parameters()
    assert parameters is not None
    compiled, _ = model.q_net.compiled_pass.learn(model, batch, parameters, model._target_bounds())
    np.testing.assert_allclose(compiled, plain, rtol=1e-5, atol=1e-5)
    model.decision_cost = 0.0
    free = model._targets(batch)
    is_paid = (batch.rest == 0) & (batch.dones == 0.0) & batch.is_there
    is_clipped = (np.minimum(kept, free) <= model._target_bounds()[0]) | (free >= model._target_bounds()[1])
    expected = np.where(is_paid, free - 0.3 * batch.discounts, free)
    np.testing.assert_allclose(kept[~is_clipped], expected[~is_clipped], rtol=1e-5, atol=1e-5)
    assert is_paid.any()


def test_targets_are_clipped_at_what_rewards_and_costs_allow() -> None:
    # CartPole pays 1 a step; γ = .9, c = .5: from −γc/(1 − γ) = −4.5 to 1/(1 − γ) = 10.
    model = agent(gamma=0.9, decision_cost=0.5, clip_targets=True)
    model.learn(80)
    assert model._target_bounds() == pytest.approx((-4.5, 10.0))


def test_the_policy_of_a_run_remembers_the_cost_and_refuses_a_smaller_margin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["train", "CartPole-v1", "--decision-cost", "0.2", "--quiet", "--set", "learning_starts=50"]
    assert main([*options, "--steps", "300", "--eval-every", "150", "--eval-episodes", "1"]) == 0
    (run,) = Path("runs").iterdir()
    assert run.name == "CartPole-v1-perdqn-c0.2-s0"
    policy: Any = load_policy(run)
    assert policy.policy.decision_cost == 0.2
    capsys.readouterr()
    assert main(["evaluate", str(run), "--interrupt-margin", "0.1"]) == 2
    assert "--interrupt-margin must be at least decision_cost, which is 0.2" in capsys.readouterr().err
    assert main(["evaluate", str(run), "--interrupt-margin", "0.2", "--episodes", "1"]) == 0


@pytest.mark.parametrize("shared_draws", [True, False])
def test_a_restored_agent_goes_on_as_the_one_that_never_stopped(shared_draws: bool) -> None:
    # Draws come from the process's generators, so that the first has to be done before the second is restored.
    model = agent(decision_cost=0.2, shared_draws=shared_draws)
    model.learn(80)
    state = model.state()
    model.learn(80, reset_num_timesteps=False)
    twin = agent(decision_cost=0.2, shared_draws=shared_draws)
    twin.restore(state)
    twin.learn(80, reset_num_timesteps=False)
    for one, other in zip(model.policy.parameters(), twin.policy.parameters(), strict=True):
        assert (one == other).all()


def test_a_state_of_another_cost_is_refused() -> None:
    with pytest.raises(ValueError, match="decision_cost"):
        agent(decision_cost=0.1).restore(agent(decision_cost=0.2).state())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"decision_cost": -0.1}, r"^decision_cost must be a finite number of at least 0, not -0\.1$"),
        ({"decision_cost": np.nan}, r"^decision_cost must be a finite number of at least 0, not nan$"),
        ({"decision_cost": np.inf}, r"^decision_cost must be a finite number of at least 0, not inf$"),
        (
            {"decision_cost": 0.1, "target_value": "primitive"},
            r"^target_value must not be 'primitive' if decision_cost is above 0: ",
        ),
        (
            {"decision_cost": 0.2, "interrupt_margin": 0.1},
            r"^interrupt_margin must be at least decision_cost, which is 0\.2, not 0\.1: ",
        ),
        ({"persistences": [1, 500]}, r"^persistences must be at most buffer_size, which is 400, not 500$"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        agent(**arguments)


@pytest.mark.parametrize("kind", [TempoRLDQN, EZGreedyDQN])
def test_who_has_no_cost(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"^decision_cost must not be given to .*, which stands for "):
        kind("MlpPolicy", "CartPole-v1", decision_cost=0.1)


@pytest.mark.parametrize("algorithm", ["dqn", "temporl-dqn", "ez-dqn"])
def test_who_has_no_cost_on_the_command_line(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "CartPole-v1", "--algo", algorithm, "--decision-cost", "0.1", "--steps", "10"]) == 2
    assert capsys.readouterr().err.startswith(
        f"holdfast train: --decision-cost must not be given for {algorithm}: its values do not choose how long"
    )
