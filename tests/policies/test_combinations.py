"""Policies of dials and switches: trained into a folder, evaluated, drawn, filmed and exported."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast import load_policy
from holdfast.cli.main import main
from holdfast.policies.policy_files import actor_of, read_policy
from tests.conformance.panels import ACTIONS, Panel

PLACE = "tests.conformance.panels:Panel"
SEEN = np.eye(3, dtype=np.float32)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A network's run and a table's."""
    folder = tmp_path_factory.mktemp("runs")
    common = ["--eval-episodes", "2", "--seed", "0"]
    small = [
        "learning_starts=100",
        "gamma=0.5",
        "learning_rate=0.01",
        "k_max=2",
        "policy_kwargs={'net_arch': [16]}",
    ]
    assert main(["train", PLACE, "--steps", "800", "-o", str(folder / "deep"), *common, "--set", *small]) == 0
    table = ["--env-kwargs", "discrete=true", "--algo", "perq", "--k-max", "2", "--set", "gamma=0.5"]
    assert main(["train", PLACE, "--episodes", "150", "-o", str(folder / "table"), *common, *table]) == 0
    return folder


@pytest.mark.parametrize(("name", "seen"), [("deep", list(SEEN)), ("table", [0, 1, 2])])
def test_a_policy_read_from_its_folder_takes_combinations(runs, name, seen):
    policy = load_policy(runs / name)
    decisions = [policy.decide(one) for one in seen]
    assert [decision.action.tolist() for decision in decisions] == [[1, -1], [2, 0], [1, -1]]
    assert all(ACTIONS["dials"].contains(decision.action) for decision in decisions)


@pytest.mark.parametrize("name", ["deep", "table"])
def test_evaluating_with_pictures_and_exporting(runs, name, tmp_path, capsys):
    assert main(["evaluate", str(runs / name), "--env", PLACE, "--episodes", "2", "-o", str(tmp_path)]) == 0
    assert "return            12" in capsys.readouterr().out
    assert (tmp_path / "values.png").exists()
    onnxruntime = pytest.importorskip("onnxruntime")
    assert main(["export", str(runs / name), str(tmp_path / "policy.onnx")]) == 0
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    seen = SEEN if name == "deep" else np.arange(3)
    action, hold, _ = session.run(None, {"observation": seen})
    assert action.tolist() == [[1, -1], [2, 0], [1, -1]]
    assert hold.shape == (3,)


def test_a_policy_does_not_fit_other_dials(runs):
    actor = actor_of(read_policy(runs / "table"))
    fitting, other = Panel("dials", discrete=True), Panel("switches", discrete=True)
    assert actor.fits(fitting.observation_space, fitting.action_space)
    assert not actor.fits(other.observation_space, other.action_space)
