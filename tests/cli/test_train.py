"""``holdfast train``: what it prints, what it imports, and what it says of bad input."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.cli.train import _HABITS
from holdfast.files import read_rows
from holdfast.runs import RunFolder
from tests.cli.test_main import imported_by

TABLE = "cliff --algo perq --k-max 3 --episodes 12 --eval-every 5 --eval-episodes 2"
NETWORK = (
    "CartPole-v1 --k-max 3 --steps 60 --eval-every 0 --set batch_size=4 learning_starts=10 head_arch=[4] "
    "policy_kwargs=\"{'net_arch': [8]}\" buffer_size=100"
)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def train(line: str) -> int:
    return main(["train", *shlex.split(line)])


def refusal(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The one sentence about bad input."""
    capsys.readouterr()
    before = sorted(Path.cwd().rglob("*"))
    assert train(line) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("holdfast train: ")
    assert shown.err.count("\n") == 1
    assert sorted(Path.cwd().rglob("*")) == before
    return shown.err.removeprefix("holdfast train: ").rstrip("\n")


def test_a_table_is_trained_without_torch() -> None:
    modules = imported_by(
        f"from holdfast.cli import main\nassert main(['train', *{TABLE.split()}, '--quiet']) == 0"
    )
    assert not modules & {"torch", "stable_baselines3", "tensorflow"}
    assert {"numba", "tensorboard"} <= modules


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert train(TABLE) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("finished: ")
    assert " steps, 12 episodes, " in shown[0]
    assert shown[1].startswith("  return, last 12 episodes  ")
    assert shown[2].startswith("  return, best evaluation   ")
    assert shown[3] == "  folder                    runs/cliff-perq-k3-s0"
    assert train(TABLE) == 0
    assert "already finished" in capsys.readouterr().out


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert train(f"{TABLE} --quiet") == 0
    assert capsys.readouterr() == ("", "")


def test_json_is_an_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert train(f"{NETWORK} --json") == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert events[-1]["event"] == "result"
    assert events[-1]["status"] == "finished"
    assert events[-1]["steps"] == 60


def test_names_of_folders(tmp_path: Path) -> None:
    for line, folder in {
        TABLE: "runs/cliff-perq-k3-s0",
        f"{TABLE} --seed 4": "runs/cliff-perq-k3-s4",
        "cliff --algo q --episodes 3": "runs/cliff-q-s0",
        f"{TABLE} --name mine": "runs/mine",
        f"{TABLE} --out here/there": "here/there",
        "holdfast/Cliff-v0 --algo q --episodes 3": "runs/holdfast-Cliff-v0-q-s0",
    }.items():
        assert train(f"{line} --quiet") == 0
        assert RunFolder(tmp_path / folder).is_run


def test_a_map_file_becomes_part_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "my_map.txt").write_text("S..\n.#.\n..G\n")
    assert train("my_map.txt --algo perq --k-max 2 --episodes 5 --quiet") == 0
    (tmp_path / "my_map.txt").unlink()
    assert train("--config runs/my_map-perq-k2-s0/config.json --out again --quiet") == 0
    one, two = (tmp_path / "runs/my_map-perq-k2-s0/metrics.csv", tmp_path / "again/metrics.csv")
    assert one.read_bytes() == two.read_bytes()


def test_options_come_from_a_file_and_the_command_line_counts_more(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(
        'env = "cliff"\nalgo = "perq"\nk-max = 5\nepisodes = 7\n[set]\nalpha = 0.3\nepsilon = 0.2\n'
        "[env_kwargs]\nslip = 0.1\n"
    )
    assert train("--config my.toml --out run --k-max 2 --set alpha=0.4 --quiet") == 0
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert (config["episodes"], config["env_kwargs"]) == (7, {"slip": 0.1})
    assert {name: config["set"][name] for name in ("k_max", "alpha", "epsilon")} == {
        "k_max": 2,
        "alpha": 0.4,
        "epsilon": 0.2,
    }


def test_resume_needs_nothing_but_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert train(f"{TABLE} --out run --quiet") == 0
    assert train("--resume run --episodes 20") == 0
    shown = capsys.readouterr()
    assert "continuing in run from step" in shown.err
    assert "20 episodes" in shown.out
    # The command that it began with still means this run.
    assert train(f"{TABLE} --out run") == 0
    assert "already finished" in capsys.readouterr().out
    assert train(f"{TABLE} --quiet") == 0
    assert train("--resume cliff-perq-k3-s0 --quiet") == 0
    assert "must not be given with --out" in refusal("--resume run --out x", capsys)
    assert "--algo must be that of the run, perq, not q" in refusal("--resume run --algo q", capsys)
    assert "contains a run with seed=0, not 3" in refusal("--resume run --seed 3", capsys)
    assert "--resume must name the folder of a run, and nowhere is not one" in refusal("--resume nowhere", capsys)


ROBOT = """
from holdfast.envs import make_env

def robot(slip=0.0):
    return make_env("cliff", slip=slip)
"""


def test_environments_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "own_robots.py").write_text(ROBOT)
    line = "own_robots:robot --algo perq --episodes 4 --env-kwargs slip=0.2 --quiet --out run"
    program = [sys.executable, "-c", "import sys; from holdfast.cli import main; sys.exit(main())", "train"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*program, *line.split()], check=True, env=environment)
    assert len(read_rows(tmp_path / "run/metrics.csv")["episode"]) == 4


def test_a_sparse_set_and_every_lever(capsys: pytest.CaptureFixture[str]) -> None:
    levers = (
        "layer_norm=true dueling=options clip_targets=true importance=batch shared_draws=true explore_by=steps "
        "average_rate=0.01 learning_rate_falls_to=0.5 initial_values=warm_up"
    )
    line = f"{NETWORK} {levers}".replace("--k-max 3", "--persistences 1,2,4")
    assert train(line) == 0
    (run,) = Path("runs").iterdir()
    assert run.name == "CartPole-v1-perdqn-k1-2-4-s0"
    assert "k in {1,2,4}" in capsys.readouterr().err
    arguments = json.loads((run / "config.json").read_text("utf-8"))["set"]
    assert (arguments["k_max"], arguments["persistences"]) == (4, [1, 2, 4])
    for pair in levers.split():
        name, _, value = pair.partition("=")
        assert str(arguments[name]).lower() == value
    # The same again from its file, and on from where it stopped.
    assert train(f"--config {run}/config.json --out again --quiet") == 0
    assert train(f"--resume {run} --steps 80 --quiet") == 0
    assert json.loads(Path("again/config.json").read_text("utf-8"))["set"] == arguments
    assert main(["runs", "runs"]) == 0
    assert "1,2,4" in capsys.readouterr().out
    assert main(["evaluate", str(run), "--episodes", "2", "--sweep-tolerance"]) == 0


def test_a_set_on_the_command_line_takes_the_place_of_a_files_k_max() -> None:
    Path("my.toml").write_text('env = "CartPole-v1"\nk-max = 5\nsteps = 30\neval_every = 0\n', "utf-8")
    assert train("--config my.toml --persistences 1,3 --set learning_starts=100 --out run --quiet") == 0
    assert json.loads(Path("run/config.json").read_text("utf-8"))["set"]["persistences"] == [1, 3]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "ENV must be given"),
        ("clif", "environment 'clif' is unknown"),
        ("cliff --algo perdq", "did you mean perdqn or"),
        ("cliff --algo perq --k-max 0", "--k-max must be a whole number of at least 1"),
        (f"cliff --algo perq --k-max {10**22}", "--k-max must be less than 2147483648"),
        ("CartPole-v1 --set learning_rate=1e400", "--set: learning_rate must be a number or a falling rate"),
        (f"CartPole-v1 --set stats_window_size={10**22}", "--set: stats_window_size must be less than 461168601"),
        (
            "CartPole-v1 --set \"policy_kwargs={'net_arch':[0]}\"",
            "--set: a layer width in net_arch in policy_kwargs must",
        ),
        ("cliff --algo dqn --set k_max=1", "--set must not name 'k_max': --algo dqn stands for k_max=1"),
        (
            "cliff --algo perq --env-kwargs slip={1:2}",
            "--env-kwargs must be made of JSON values, not {'slip': {1: 2}}",
        ),
        ("cliff --algo q --k-max 3", "--k-max must not be given for q"),
        ("cliff --algo perq --k-max 3 --set k_max=4", "--k-max must be given once, not as 3 and in --set as 4"),
        ("cliff --algo dqn --set k_max=3", "--algo dqn stands for k_max=1"),
        ("CartPole-v1 --persistences 1,2 --k-max 2", "argument --k-max: not allowed with argument --persistences"),
        ("CartPole-v1 --persistences 2,4", "--persistences must begin with 1 and increase, as [1, 2, 4, 8] does"),
        ("CartPole-v1 --persistences 1,4,2", "--persistences must begin with 1 and increase"),
        ("CartPole-v1 --persistences 1,2,2", "--persistences must begin with 1 and increase"),
        ("CartPole-v1 --persistences 1,0", "each of --persistences must be a whole number of at least 1, not 0"),
        ("CartPole-v1 --persistences 1,two", "--persistences must be a list of whole numbers, not '1,two'"),
        (f"CartPole-v1 --persistences 1,{10**22}", "less than 2147483648"),
        ("CartPole-v1 --persistences 1,60 --set buffer_size=50", "--persistences must be at most buffer_size"),
        ("CartPole-v1 --set persistences=[1,2] k_max=4", "k_max and persistences say the same thing"),
        ("CartPole-v1 --persistences 1,2 --set k_max=4", "persistences say the same thing"),
        ("CartPole-v1 --persistences 1,2 --set persistences=[1,4]", "--persistences must be given once"),
        ("CartPole-v1 --algo ez-dqn --persistences 1,2", "--persistences must not be given for ez-dqn"),
        ("cliff --algo q --persistences 1,2", "--persistences must not be given for q"),
        ("CartPole-v1 --algo dqn --set persistences=[1,2]", "--algo dqn stands for persistences=None"),
        ("CartPole-v1 --set dueling=both", "dueling must be False, True, 'heads' or 'options', not 'both'"),
        ("CartPole-v1 --set explore_by=episodes", "explore_by must be one of 'options', 'steps'"),
        ("CartPole-v1 --set importance=all", "importance must be one of 'buffer', 'batch'"),
        ("CartPole-v1 --set average_rate=2", "average_rate must be a number in [0, 1]"),
        ("CartPole-v1 --set learning_rate_falls_to=2", "learning_rate_falls_to must be a number in [0, 1]"),
        ("CartPole-v1 --set initial_values=one", "initial_values must be one of 'zero', 'warm_up'"),
        ("cliff --algo perq --steps 0", "--steps must be a whole number of at least 1"),
        ("cliff --algo perq --seed -1", "--seed must be a whole number of at least 0"),
        ("cliff --algo perq --n-envs 2", "--n-envs must be 1 for perq"),
        ("CartPole-v1 --set lr=0.1", "--set names 'lr', which perdqn does not have; did you mean learning_rate?"),
        ("cliff --algo perq --set lr=0.1", "--set names 'lr', which perq does not have; did you mean alpha?"),
        ("cliff --algo q --set discount=0.9", "which q does not have; did you mean gamma?"),
        ("cliff --algo perq --set alhpa=3", "'alhpa', which perq does not have; did you mean alpha"),
        ("cliff --algo perq --set alpha=much", "--set: alpha must be a number, not 'much'"),
        ("cliff --algo perq --set alpha", "--set must be pairs NAME=VALUE"),
        ("cliff --algo perq --set epsilon=cosine(1)", "--set: epsilon must be a number or a schedule"),
        ("CartPole-v1 --set learning_rate=fast", "learning_rate must be a number or a falling rate"),
        (
            "CartPole-v1 --set policy_kwargs=\"{'activation_fn': 'system'}\"",
            "activation_fn in policy_kwargs must be",
        ),
        ("CartPole-v1 --set policy_kwargs=big", "--set: policy_kwargs must be None or a mapping, not 'big'"),
        ("CartPole-v1 --episodes 4", "--steps must be given for perdqn"),
        ("CartPole-v1 --algo perq", "ENV must have discrete observations for perq"),
        ("CartPole-v1 --set train_freq=0", "--set: train_freq must be a whole number of at least 1"),
        ("CartPole-v1 --set train_freq=[1]", "--set: train_freq must be a whole number of at least 1"),
        ("CartPole-v1 --n-envs 2 --set \"train_freq=[1, 'episode']\"", "--set: train_freq must count steps"),
        ("CartPole-v1 --set policy=CnnPolicy", "--set: policy must be MlpPolicy for CartPole-v1, not 'CnnPolicy'"),
        ("CartPole-v1 --set policy=MultiInputPolicy", "--set: policy must be MlpPolicy for CartPole-v1"),
        ("CartPole-v1 --set policy=Linear", "--set: policy must be MlpPolicy for CartPole-v1"),
        (
            "CartPole-v1 --set head_arch=[1000000000000]",
            "the agent cannot be made from the arguments in --set for this environment: ",
        ),
        ("CartPole-v1 --set policy_kwargs=\"{'optimizer_kwargs': {'capturable': True}}\"", "optimizer_kwargs in"),
        ("CartPole-v1 --set tau=5", "tau must be a number in [0, 1], not 5"),
        ("CartPole-v1 --set exploration_final_eps=-5", "exploration_final_eps must be a number in [0, 1]"),
        ("CartPole-v1 --set stats_window_size=-1", "stats_window_size must be a whole number of at least 1"),
        ("CartPole-v1 --device cuda:99", "--device must be auto, cpu"),
        ("CartPole-v1 --steps 1k", "--steps must be a whole number, not '1k' (see"),
        ("my_env.py:Drift", "is code: give it as module:callable, such as my_env:make"),
        ("CartPole-v1 --device meta", "--device must be auto, cpu"),
        ("CartPole-v1 --n-envs 1000000000", "--n-envs must be less than 10001"),
        ("CartPole-v1 --threads 4294967296", "--threads must be less than 1025"),
        ("cliff --algo perq --eval-episodes 100000000000000", "--eval-episodes must be less than 1000001"),
        (f"cliff --algo perq --set gamma={'-' * 4000}1", "--set: gamma must be a number"),
        ("Pendulum-v1", "ENV must have discrete actions for perdqn"),
        ("no_such_module:env", "importing no_such_module raised ModuleNotFoundError"),
        ("cliff --algo perq --device cpu --out /proc/run", "/proc/run"),
        ("cliff --algo perq --name ../up", "--name must be made of letters"),
        ("cliff --algo perq --name a --out b", "--name must not be given with --out"),
        ("cliff --algo perq --config no.toml", "no.toml is missing"),
        ("cliff --algo perq --config no.yml", "a file of options must end in .toml or .json"),
        ("cliff --algo perq --checkpoint-every -1", "--checkpoint-every must be a finite number of at least 0"),
        ("cliff --algo perq --env-kwargs slip=7", "--env-kwargs: slip must be a number in [0, 1]"),
    ],
)
def test_bad_input_is_one_sentence(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sentence in refusal(line, capsys)


def test_a_folder_of_the_same_name_does_not_hide_an_environment(tmp_path: Path) -> None:
    (tmp_path / "cliff").mkdir()
    (tmp_path / "FrozenLake-v1").write_text("S.G")
    for name in ("cliff", "FrozenLake-v1"):
        assert train(f"{name} --algo q --episodes 2 --out {name}-run --quiet") == 0
        assert json.loads((tmp_path / f"{name}-run/config.json").read_text())["environment"] == name


def test_what_a_terminal_would_take_for_an_order_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("'\x1b[31mred'") == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("flag", _HABITS)
def test_the_options_of_other_tools_are_answered_with_ours(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([flag], [flag, "3"], [flag, "3", "--seed", "1"]):
        assert main(["train", "cliff", *arguments]) == 2
        said = capsys.readouterr().err
        assert f"there is no {flag} here: {_HABITS[flag]}" in said
        assert said.count("\n") == 1


def test_options_are_not_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("cliff --epi 3") == 2
    assert "unrecognized arguments: --epi 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("cliff --kmax 4", "did you mean --k-max?"),
        ("cliff --episode 200", "did you mean --episodes"),
        ("cliff --seeds 1", "did you mean --seed?"),
        ("cliff --alpha 0.2", "arguments of the algorithm are given with --set; see holdfast train --help"),
        ("cliff perq", "see holdfast train --help"),
    ],
)
def test_unknown_options_get_a_hint(line: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert hint in refusal(line, capsys)


def test_a_file_with_wrong_options_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my.toml"
    for text, sentence in {
        'env = "cliff"\nalgorithm = "perq"': "names 'algorithm', which is not an option; did you mean",
        "env = 3": "ENV must be a text, not 3",
        'env = "cliff"\nset = 3': "--set must be names and values, not 3",
        'env = "cliff"\nenv-kwargs = {}\nenv_kwargs = {}': "must name each option once",
        "env = ": "is damaged",
        'env = "cliff"\nformat = 9': "has format 9, and this version of holdfast reads 1",
    }.items():
        path.write_text(text)
        assert sentence in refusal("--config my.toml", capsys)


PROGRAM = [sys.executable, "-c", "import sys; from holdfast.cli import main; sys.exit(main())", "train"]
LONG = shlex.split("FrozenLake-v1 --algo perq --k-max 4 --episodes 100000000 --eval-every 0 --out run")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_leave_a_checkpoint_and_one_line(number: signal.Signals, code: int, tmp_path: Path) -> None:
    # A shell's background jobs begin with Ctrl-C switched off, and so may this test.
    child = subprocess.Popen(
        [*PROGRAM, *LONG],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    metrics = tmp_path / "run/metrics.csv"
    deadline = time.monotonic() + 100
    while not metrics.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(number)
    _, said = child.communicate(timeout=100)
    assert child.returncode == code
    header, stopped = said.splitlines()
    assert header == "FrozenLake-v1, perq, K=4, seed 0: 100,000,000 episodes, into run"
    assert stopped.startswith("holdfast train: stopped at step ")
    assert stopped.endswith("; to continue, type holdfast train --resume run")
    assert RunFolder(tmp_path / "run").status().status == "resumable"


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path: Path) -> None:
    subprocess.run([*PROGRAM, *TABLE.split(), "--out", "run", "--quiet"], check=True)
    before = (tmp_path / "run/checkpoint/state.json").read_bytes()

    def small_files_only() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    line = [*TABLE.replace("12", "900").split(), "--out", "run"]
    full = subprocess.run(
        [*PROGRAM, *line], preexec_fn=small_files_only, capture_output=True, text=True, check=False
    )
    assert full.returncode == 2
    assert re.search(r"^holdfast train: run/\S+: File too large$", full.stderr, re.MULTILINE)
    assert "Traceback" not in full.stderr
    assert (tmp_path / "run/checkpoint/state.json").read_bytes() == before
    assert not list((tmp_path / "run").glob(".checkpoint*"))


def test_an_environment_that_fails_ends_with_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "broken_robots.py").write_text(
        "from holdfast.envs import make_env\n"
        "def robot():\n"
        "    env = make_env('FrozenLake-v1')\n"
        "    env.unwrapped.P = {}\n"
        "    env.unwrapped.close = lambda: 1 / 0\n"
        "    return env\n"
    )
    line = "broken_robots:robot --algo perq --episodes 4 --out run --quiet"
    run = subprocess.run([*PROGRAM, *line.split()], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.startswith("holdfast train: the environment failed in episode 1, at step 1: its step raised")
    assert run.stderr.count("\n") == 1


def test_a_file_of_options_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text('{"environment": "cliff", "algo": "q", "episodes": 5}')
    (tmp_path / "link.json").symlink_to("real.json")
    assert main(["train", "--config", str(tmp_path / "link.json"), "--out", str(tmp_path / "run"), "--quiet"]) == 0
    assert len((tmp_path / "run/metrics.csv").read_text().splitlines()) == 6


def test_a_cost_and_a_sparse_set_in_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--persistences", "1,2,4", "--decision-cost", "0.01", "--episodes", "60", "--quiet"]
    assert main(["train", "cliff", "--algo", "perq", *options]) == 0
    run = Path("runs/cliff-perq-k1-2-4-c0.01-s0")
    config = json.loads((run / "config.json").read_text())
    assert config["set"]["persistences"] == [1, 2, 4]
    assert config["set"]["decision_cost"] == 0.01
    capsys.readouterr()
    assert main(["evaluate", str(run), "--episodes", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # Returns are those of the environment; no hold is longer than the longest of the set.
    assert set(found["returns"]) <= {-1.0, 0.0, 1.0}
    assert max(int(k) for k in found["holds"]) <= 4
    assert main(["evaluate", str(run), "--interrupt-margin", "0.001"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("holdfast evaluate: --interrupt-margin must be at least decision_cost, which is 0.01")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--algo", "perq", "--decision-cost", "-1"], "--decision-cost must be a finite number of at least 0"),
        (["--algo", "perq", "--decision-cost", "nan"], "--decision-cost must be a finite number of at least 0"),
        (["--algo", "perq", "--decision-cost", "inf"], "--decision-cost must be a finite number of at least 0"),
        (["--algo", "q", "--decision-cost", "1"], "--decision-cost must not be given for q: its values do not"),
        (["--algo", "temporl-q", "--decision-cost", "1"], "--decision-cost must not be given for temporl-q: its"),
        (["--algo", "perq", "--persistences", "1,4,2"], "--persistences must begin with 1 and increase"),
        (["--algo", "q", "--persistences", "1,2"], "--persistences must not be given for q"),
        (
            ["--algo", "perq", "--decision-cost", "1", "--set", "target_value=primitive"],
            "--set: target_value must not be 'primitive' if",
        ),
        (
            ["--algo", "perq", "--decision-cost", "1", "--set", "interrupt_margin=0.5"],
            "--set: interrupt_margin must be at least",
        ),
    ],
)
def test_costs_and_sets_that_are_refused(
    options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "cliff", *options, "--quiet"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"holdfast train: {sentence}")
    assert error.count("\n") == 1
    assert not Path("runs").exists()
