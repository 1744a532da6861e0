"""``holdfast tradeoff``: exact where there is a table, trained elsewhere."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from holdfast.cli import main
from holdfast.envs import make_env
from holdfast.mdp import OptionModel, TabularMDP, cost_intervals, follow_options
from holdfast.runs import find_runs


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_exact_policies(capsys: pytest.CaptureFixture[str]) -> None:
    costs, persistences = (0.02, 0.1, 1.0), (1, 2, 4, 8, 16, 32)
    command = "tradeoff cliff --env-kwargs step_reward=-0.01 --episodes 2 --jobs 1 --csv all.csv"
    assert main([*command.split(), "--costs", "1,0.02,0.1"]) == 0
    out = capsys.readouterr().out
    rows = rows_of("all.csv")
    assert len(rows) == 3 * 2 * 2
    # The best policy by cost, found from where lines of R - cN meet, and its path followed in the model.
    mdp = TabularMDP.from_gymnasium(make_env("cliff", step_reward=-0.01), 0.99)
    intervals = cost_intervals(mdp, persistences=persistences)
    assert mdp.initial is not None
    for cost in costs:
        best = next(found for found in intervals if found.low <= cost < found.high)
        path = follow_options(OptionModel(mdp, persistences), best.policy, int(np.argmax(mdp.initial)))
        assert path is not None
        own = [row for row in rows if float(row["decision_cost"]) == cost and float(row["is_tolerant"]) == 0.0]
        found = [[float(row[name]) for name in ("return", "decisions", "length")] for row in own]
        np.testing.assert_allclose(found, [[path.total, path.decisions, path.steps]] * 2, rtol=1e-12)
    assert "At 5 decisions per episode the return is 0.86; 1 fewer costs 0.02." in " ".join(out.split())
    assert Path("results/tradeoff/cliff/tradeoff.png").read_bytes().startswith(b"\x89PNG")
    # Another cost is one more job; the others stay.
    assert main([*command.split(), "--costs", "1,0.02,0.1,0.3"]) == 2
    assert "give --resume" in capsys.readouterr().err
    assert main([*command.split(), "--costs", "1,0.02,0.1,0.3", "--resume"]) == 0
    assert capsys.readouterr().out.startswith("tradeoff: 4 of 4 jobs done, 1 of them now")


def test_trained_policies(capsys: pytest.CaptureFixture[str]) -> None:
    command = "tradeoff CartPole-v1 --costs 0,5 --steps 250 --seeds 2 --episodes 2 --persistences 1,2,4 --jobs 1"
    options = ["--set", "learning_starts=60", "policy_kwargs={'net_arch': [8]}", "--csv", "all.csv"]
    assert main([*command.split(), *options]) == 0
    rows = rows_of("all.csv")
    # Costs, seeds, with and without a tolerance, episodes.
    assert len(rows) == 2 * 2 * 2 * 2
    assert [status.status for status in find_runs(Path("results/tradeoff/CartPole-v1"))] == ["finished"] * 4
    lines = capsys.readouterr().out.splitlines()
    line = next(line for line in lines if line.split()[:2] == ["5", "none"])
    own = [row for row in rows if float(row["decision_cost"]) == 5.0 and float(row["is_tolerant"]) == 0.0]
    means = [np.mean([float(row["return"]) for row in own if row["seed"] == seed]) for seed in ("0", "1")]
    assert line.split()[2] == f"{np.mean(means):.4g}"
    assert any(line.startswith("At ") and "per episode the return is" in line for line in lines)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("cliff --costs=-1", "--costs must be a finite number of at least 0, not -1.0"),
        ("cliff --costs nan", "--costs must be a finite number of at least 0, not nan"),
        ("cliff --costs 0,0", "--costs must be different numbers of at least 0, not [0.0, 0.0]"),
        ("cliff --costs x", "--costs must be a list of numbers, not 'x' (see holdfast tradeoff --help)"),
        ("cliff --steps 10", "--steps must not be given for cliff, which is solved, not trained"),
        ("cliff --gamma 1", "--gamma must be a number in [0, 1), not 1"),
        ("cliff --episodes 0", "--episodes must be a whole number of at least 1, not 0"),
        ("CartPole-v1 --seeds 0", "--seeds must be a whole number of at least 1, not 0"),
        ("CartPole-v1 --set gamma=.9", "--set must not name gamma: give --gamma"),
        ("CartPole-v1 --set decision_cost=1", "--set must not name decision_cost: give --costs"),
    ],
)
def test_bad_input(typed: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tradeoff", *typed.split()]) == 2
    assert capsys.readouterr().err == f"holdfast tradeoff: {sentence}\n"
    assert list(Path().iterdir()) == []


def test_an_environment_that_hides_its_table_is_trained(capsys: pytest.CaptureFixture[str]) -> None:
    # Nothing is solved here, so that arguments of the training are looked at.
    assert main(["tradeoff", "CartPole-v1", "--set", "nothing=1"]) == 2
    assert "nothing" in capsys.readouterr().err
