"""``holdfast evaluate``: numbers, pictures, films, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from holdfast.cli import main
from holdfast.policies import evaluate, load_policy
from holdfast.policies.evaluation import evaluation_seeds
from holdfast.policies.opened import open_policy
from holdfast.policies.tolerance_sweep import sweep_tolerance, sweep_values
from tests.cli.test_main import imported_by
from tests.files.seals import seal_anew
from tests.runs.small_runs import trained_of_each_kind


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_of_each_kind(tmp_path_factory.mktemp("runs"), episodes=200, k_max=6)


def shown_by(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["evaluate", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("kind", ["table", "network", "temporl"])
def test_the_numbers_are_those_of_the_library(kind: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown_by([str(runs / kind), "--episodes", "4", "--seed", "7", "--json"], capsys))
    shown = open_policy(runs / kind)
    expected = evaluate(load_policy(runs / kind), shown.make_env(), evaluation_seeds(7, 0, 4))
    assert found["returns"] == expected.returns.tolist()
    assert found["decisions"] == expected.decisions.tolist()
    assert sum(found["holds"].values()) == sum(found["decisions"])
    assert sum(int(steps) * count for steps, count in found["holds"].items()) == sum(found["lengths"])
    low, high = found["return_interval"]
    assert low <= found["return_mean"] <= high


def test_the_table_on_the_screen(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown_by([str(runs / "table"), "--episodes", "3"], capsys).splitlines()
    assert lines[0].startswith("cliff, perq, policy of step ")
    assert lines[0].endswith(": 3 episodes")
    assert [line.split()[0] for line in lines[2:5]] == ["return", "steps", "decisions"]
    assert lines[6] == "  held for   share of decisions"
    assert all("█" in line for line in lines[7:])
    assert max(map(len, lines)) <= 80
    one = shown_by([str(runs / "table" / "policy"), "--episodes", "1"], capsys)
    assert "interval" not in one


def test_one_is_not_counted_as_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "cliff", "--algo", "q", "--episodes", "1", "--name", "one"]) == 0
    trained = capsys.readouterr().out
    assert " steps, 1 episode, " in trained
    assert "  return, last episode  " in trained
    assert "one every step\n" in shown_by(["one", "--episodes", "1"], capsys)
    assert "1 episode\n" in shown_by(["one", "--episodes", "1"], capsys)
    assert ": 1 episode per tolerance\n" in shown_by(["one", "--episodes", "1", "--sweep-tolerance"], capsys)


def test_more_tolerance_decides_less_often(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(runs / "network")
    strict = json.loads(shown_by([run, "--json", "--episodes", "5", "--decision-tolerance", "0"], capsys))
    loose = json.loads(shown_by([run, "--json", "--episodes", "5", "--decision-tolerance", "1e9"], capsys))
    # With any loss allowed every action is held as long as it can be.
    assert set(map(int, loose["holds"])) <= {1, 2, 3}
    assert np.mean(loose["decisions"]) / np.mean(loose["lengths"]) <= 0.5
    assert sum(strict["decisions"]) / sum(strict["lengths"]) >= sum(loose["decisions"]) / sum(loose["lengths"])


def test_a_margin_of_nothing_drops_what_is_not_the_best(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(runs / "network")
    plain = json.loads(shown_by([run, "--json", "--episodes", "5"], capsys))
    fickle = json.loads(shown_by([run, "--json", "--episodes", "5", "--interrupt-margin", "0"], capsys))
    share = [sum(found["decisions"]) / sum(found["lengths"]) for found in (plain, fickle)]
    assert share[1] >= share[0]


def test_pictures_and_films(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film = tmp_path / "films" / "cliff.gif"
    out = shown_by([str(runs / "table"), "--episodes", "2", "-o", str(tmp_path), "--render", str(film)], capsys)
    pictures = [tmp_path / name for name in ("holds.png", "values.png", "policy.png")]
    assert out.endswith("".join(f"wrote {path}\n" for path in (*pictures, film)))
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    with Image.open(film) as frames:
        env = open_policy(runs / "table").make_env()
        lengths = evaluate(load_policy(runs / "table"), env, evaluation_seeds(0, 0, 2)).lengths
        assert frames.n_frames <= lengths.sum() + 2
        assert frames.n_frames > 4
        assert frames.size[0] >= 240


def test_a_sweep_of_tolerances(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(runs / "table"), "--sweep-tolerance", "--episodes", "2"]
    lines = shown_by([*arguments, "-o", str(tmp_path)], capsys).splitlines()
    assert lines[2].split() == ["tolerance", "decisions", "return"]
    assert lines[-1] == f"wrote {tmp_path / 'tolerance.png'}"
    found = json.loads(shown_by([*arguments, "--json"], capsys))
    points = found["points"]
    assert found["verdict"]["sentence"] in " ".join(" ".join(lines).split())
    assert "Tolerances are in values, discounted as in training; returns are undiscounted." in lines
    assert points[0]["tolerance"] == 0.0
    assert [point["tolerance"] for point in points] == sorted({point["tolerance"] for point in points})
    assert points[-1]["decisions"] <= points[0]["decisions"]


def test_the_largest_tolerance_of_a_sweep_allows_everything(runs: Path) -> None:
    shown = open_policy(runs / "table")
    env = shown.make_env()
    tolerances = sweep_values(shown.actor, env, 0)
    (last,) = sweep_tolerance(shown.actor, env, [0], tolerances[-1:])
    found = evaluate(shown.actor.acting_with(tolerances[-1], None), env, [0])
    assert last.decisions == found.decisions[0]


def test_a_table_is_evaluated_without_torch(runs: Path) -> None:
    modules = imported_by(
        f"from holdfast.cli import main\nassert main(['evaluate', {str(runs / 'table')!r}]) == 0"
    )
    assert "torch" not in modules


def test_a_run_can_be_named_as_it_is_listed(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(runs.parent)
    (runs.parent / "runs").symlink_to(runs, target_is_directory=True)
    assert shown_by(["table", "--json"], capsys) == shown_by(["runs/table", "--json"], capsys)


def test_an_environment_that_fails_is_one_sentence(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "failing_robots.py").write_text(
        "from holdfast.envs import make_env\n"
        "import gymnasium\n"
        "class Broken(gymnasium.Wrapper):\n"
        "    def step(self, action):\n        raise OSError('the robot is off')\n"
        "    def render(self):\n        raise OSError('no lens')\n"
        "def robot(**kwargs):\n    return Broken(make_env('cliff', **kwargs))\n"
    )
    monkeypatch.chdir(tmp_path)
    arguments = ["evaluate", str(runs / "table"), "--env", "failing_robots:robot"]
    assert main(arguments) == 1
    said = capsys.readouterr().err
    place = "in episode 1, at its step 1"
    assert said.startswith(
        f"holdfast evaluate: the environment failed {place}: its step raised OSError: the robot"
    )
    assert said.count("\n") == 1
    assert main([*arguments, "--render", "film.gif"]) == 1
    assert "its render raised OSError: no lens" in capsys.readouterr().err


def test_code_is_run_only_when_it_is_named(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "some_robots.py").write_text(
        f"from pathlib import Path\nPath({str(mark)!r}).touch()\n"
        "from holdfast.envs import make_env\n"
        "def robot():\n    return make_env('cliff')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    state = json.loads((runs / "table/policy/policy.json").read_text())
    state["about"]["environment"] = "some_robots:robot"
    (tmp_path / "run").mkdir()
    (tmp_path / "run/policy.safetensors").write_bytes((runs / "table/policy/policy.safetensors").read_bytes())
    (tmp_path / "run/policy.json").write_text(json.dumps(state))
    seal_anew(tmp_path / "run/policy.json")
    assert main(["evaluate", str(tmp_path / "run")]) == 2
    assert "--env must be given to run some_robots:robot" in capsys.readouterr().err
    assert not mark.exists()
    assert main(["evaluate", str(tmp_path / "run"), "--env", "some_robots:robot"]) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["nowhere"],
            "RUN_OR_POLICY must be the folder of a run or of a policy, and there is no folder 'nowhere'",
        ),
        (["table/config.json"], "with PerDQN.load)"),
        (["table", "--episodes", "0"], "--episodes must be a whole number of at least 1"),
        (["table", "--seed", "-1"], "--seed must be a whole number of at least 0"),
        (["table", "--decision-tolerance", "-1"], "--decision-tolerance must be"),
        (
            ["table", "--decision-tolerance", "2", "--interrupt-margin", "1"],
            ": --interrupt-margin must be at least --decision-tolerance, which is 2, not 1: ",
        ),
        (
            ["network", "--decision-tolerance", "2", "--interrupt-margin", "1"],
            ": --interrupt-margin must be at least --decision-tolerance, which is 2, not 1: ",
        ),
        (
            ["temporl", "--decision-tolerance", "2"],
            ": --decision-tolerance and --interrupt-margin must not be given for",
        ),
        (["table", "--render", "film.avi"], "--render must name a file that ends in .gif or .mp4"),
        (["table", "--env", "MountainCar-v0"], "the policy was trained for other observations"),
        (["network", "--axes", "0,1"], "--axes must be given with --out"),
        (["network", "--sweep-tolerance", "--axes", "0,1"], "--axes must not be given with --sweep-tolerance"),
        (["network", "--sweep-tolerance", "--render", "a.gif"], "--render must not be given with --sweep-tol"),
        (["network", "-o", "there", "--axes", "0," + "9" * 5000], "--axes must be two different ones"),
        (["network", "-o", "network/config.json"], "network/config.json: File exists"),
        (["network", "-o", "there", "--axes", "0,9"], "--axes must be two different ones of cart position"),
        (["table", "-o", "there", "--axes", "0,1"], "--axes must not be given if observations are not vectors"),
        (["network", "--env", "cliff"], "the policy was trained for other observations"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str],
    sentence: str,
    runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(runs)
    assert main(["evaluate", *arguments]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
