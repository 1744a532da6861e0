"""``holdfast reproduce`` and ``holdfast plot fig:LABEL``: figures from rows, and clear sentences."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from holdfast.cli import main
from holdfast.cli.campaigns import CampaignTable, table_lines
from holdfast.experiments.campaign import Failure, Standing
from holdfast.experiments.figures import LABELS, find_experiment
from holdfast.experiments.spec import Job
from holdfast.experiments.store import read_manifest_and_rows
from holdfast.mdp import q_star_options
from tests.experiments.campaigns import prepare


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(prepare(tmp_path))


def is_picture(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


def test_the_three_grids(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "tabular"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("fig:tabular: 3 of 3 jobs done, in ")
    assert "S.######.G   S.######.G   S.##......\n" in out
    assert "..........   ..######..   ......##.G\n" in out
    assert is_picture(Path("results/reproduce/tabular-smoke/tabular.png"))
    # Once more: nothing is run, all is drawn.
    Path("results/reproduce/tabular-smoke/tabular.png").unlink()
    manifest = Path("results/reproduce/tabular-smoke/manifest.json")
    before = manifest.read_bytes()
    assert main(["reproduce", "fig:TABULAR"]) == 0
    assert capsys.readouterr().out.startswith("fig:tabular: all 3 jobs were done already\n  in results/")
    assert is_picture(Path("results/reproduce/tabular-smoke/tabular.png"))
    assert manifest.read_bytes() == before


def test_the_errors_of_synchronous_learning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "sync", "-o", "sync", "--csv", "flat/sync.csv", "--jobs", "2"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    experiment = find_experiment("sync")
    _, rows = read_manifest_and_rows(Path("sync"), experiment)
    # Before the first iteration: the error of N(0, 1) values, which are those of the runs' seeds.
    from holdfast.envs import make_env
    from holdfast.tabular import learn_synchronously

    mdp = make_env("sync-grid").unwrapped.tabular_mdp(0.99)
    again = learn_synchronously(mdp, k_max=6, iterations=40, seeds=(2,))
    own = (rows["rule"] == "combined") & (rows["seed"] == 2)
    np.testing.assert_array_equal(rows["error"][own].reshape(41, 6), again.errors_by_k[0])
    np.testing.assert_allclose(np.abs(again.q[0] - q_star_options(mdp, 6)).max(), rows["error"][own][-6:].max())
    assert sorted(set(rows["seed"])) == [0, 1, 2]
    # The flat file has the same, for any tool.
    with Path("flat/sync.csv").open(newline="") as file:
        flat = list(csv.DictReader(file))
    assert list(flat[0]) == [
        *("rule", "k_max", "alpha", "gamma", "runs", "iterations", "every"),
        *("seed", "iteration", "k", "error"),
    ]
    assert [float(row["error"]) for row in flat] == rows["error"].tolist()
    figure = experiment.draw(rows)
    left, right = figure.axes
    assert [line.get_label() for line in right.lines] == [f"k = {k}" for k in range(1, 7)]
    assert len(left.lines) == 3
    mean = rows["error"][(rows["rule"] == "q") & (rows["iteration"] == 40)].mean()
    assert left.lines[0].get_ydata()[-1] == pytest.approx(mean)
    # Fewer rules are drawn as far as there are rows.
    some = {name: column[rows["rule"] == "q"] for name, column in rows.items()}
    assert len(experiment.draw(some).axes[0].lines) == 1
    assert is_picture(Path("sync/sync.png"))
    assert main(["plot", "fig:sync", "sync", "-o", "again.png"]) == 0
    assert Path("again.png").read_bytes() == Path("sync/sync.png").read_bytes()
    assert capsys.readouterr().out.startswith("fig:sync at scale smoke, revision 1: rows of 3 of 3 jobs in sync\n")
    manifest = json.loads(Path("sync/manifest.json").read_text())
    assert [entry["setting"]["rule"] for entry in manifest["jobs"].values()] == ["q", "combined", "all"]
    assert {"holdfast", "numpy", "python"} <= set(manifest["sessions"][0]["versions"])


def test_an_experiment_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "ladders:LADDER", "--scale", "laptop", "--jobs", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ladder: 4 of 4 jobs done, in ")
    assert "wrote results/reproduce/ladder-laptop/ladder.png" in out
    jobs = sorted(Path("results/reproduce/ladder-laptop/rows").iterdir())
    jobs[0].unlink()
    assert main(["reproduce", "ladders:LADDER", "--scale", "laptop"]) == 2
    assert "has the rows of 3 of 4 jobs: give --resume to continue it, or" in capsys.readouterr().err
    kept = {path: path.stat().st_mtime_ns for path in jobs[1:]}
    assert main(["reproduce", "ladders:LADDER", "--scale", "laptop", "--resume"]) == 0
    assert capsys.readouterr().out.startswith("ladder: 4 of 4 jobs done, 1 of them now, in ")
    assert {path: path.stat().st_mtime_ns for path in jobs[1:]} == kept
    assert main(["reproduce", "ladders:LADDER", "-o", "results/reproduce/ladder-laptop", "--resume"]) == 2
    err = capsys.readouterr().err
    assert (
        "holds a campaign of ladder at scale laptop, revision 1, not of ladder at scale smoke, revision 1" in err
    )


def test_figures_that_share_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "ladders:STEPS", "--jobs", "2"]) == 0
    assert "taken" not in capsys.readouterr().out
    assert main(["reproduce", "ladders:HIGHER"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("higher: 3 of 3 jobs done, 2 of them taken from steps-smoke, in ")
    for path in Path("results/reproduce/higher-smoke/rows").iterdir():
        path.unlink()
    assert main(["reproduce", "ladders:HIGHER", "-o", "elsewhere"]) == 0
    assert "taken" not in capsys.readouterr().out


def test_a_campaign_piece_by_piece_is_kept_and_found_again(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["reproduce", "ladders:LADDER", "--jobs", "2"]
    assert main([*command, "--only", "rungs=5", "--only", "seed=0", "--only", "seed=2-3"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ladder: 3 of 3 jobs done, in ")
    assert "in results/reproduce/ladder-smoke, with rows of 3 of 8 jobs in all\n" in out
    assert "15 rungs" in out
    assert main(["reproduce", "ladders:LADDER", "--keep", "results/reproduce/ladder-smoke"]) == 0
    assert capsys.readouterr().out == "ladder: 3 of 8 jobs are kept, 3 of them new\n  in results/ladder\n"
    shutil.rmtree("results/reproduce")
    # What is drawn is all that is there.
    assert main(["plot", "ladders:LADDER"]) == 0
    assert "rows of 3 of 3 jobs in results/ladder" in capsys.readouterr().out
    assert main([*command, "--only", "rungs=5"]) == 0
    assert "4 of 4 jobs done, 3 of them taken from results/ladder, in " in capsys.readouterr().out
    assert main([*command, "--only", "rungs=5", "--fresh", "-o", "anew"]) == 0
    assert "taken" not in capsys.readouterr().out


def test_an_experiment_of_ones_own_is_drawn_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "ladders:STEPS", "--jobs", "2"]) == 0
    assert main(["plot", "ladders:STEPS", "-o", "again.png"]) == 0
    assert "wrote again.png" in capsys.readouterr().out
    assert Path("again.png").read_bytes() == Path("results/reproduce/steps-smoke/steps.png").read_bytes()


def test_a_picture_that_fails_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "ladders:BLURRED"]) == 2
    err = capsys.readouterr().err
    assert err == "holdfast reproduce: draw of blurred raised KeyError: 'nothing'; the rows are stored\n"


def test_numbers_have_notes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "sync_env"]) == 0
    out = capsys.readouterr().out
    assert "- The 6x6 map is holdfast's own: the paper's cannot be recovered" in out
    assert "Scale smoke" not in out  # it is the same at every scale
    assert all(len(line) <= 79 for line in out.splitlines())
    assert main(["reproduce", "ladders:STEPS"]) == 0
    assert "\n- " not in capsys.readouterr().out
    path = Path("results/reproduce/steps-smoke/manifest.json")
    manifest = json.loads(path.read_text())
    manifest["sessions"].append({**manifest["sessions"][0], "commit": "another"})
    next(iter(manifest["jobs"].values()))["session"] = 1
    path.write_text(json.dumps(manifest))
    assert main(["plot", "ladders:STEPS"]) == 0
    assert "- The rows come from different commits or versions" in capsys.readouterr().out


def test_rows_that_were_changed_are_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "ladders:STEPS", "-o", "s"]) == 0
    path = sorted(Path("s/rows").iterdir())[0]
    right = path.read_bytes()
    path.write_bytes(right.replace(b"\n0,", b"\n0.5,"))
    assert main(["plot", "ladders:STEPS", "s"]) == 2
    assert f"{path.name} is damaged, it is not what was stored" in capsys.readouterr().err
    assert main(["reproduce", "ladders:STEPS", "-o", "s"]) == 2
    assert "has the rows of 1 of 2 jobs: give --resume" in capsys.readouterr().err
    assert main(["reproduce", "ladders:STEPS", "-o", "s", "--resume"]) == 0
    assert path.read_bytes() == right


def test_every_figure_says_what_it_does_differently() -> None:
    silent = [label for label in LABELS if not find_experiment(label).notes]
    # Drawings, which differ in nothing.
    assert silent == ["fig:all_pers_update", "fig:tabular"]


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "list"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    listed = [line.split()[0] for line in out.splitlines()[1:] if not line.startswith(" ")]
    assert listed == [label.removeprefix("fig:") for label in LABELS]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("reproduce sinc", "not 'sinc'; did you mean sync or sync_val?"),
        ("reproduce all --csv x.csv", "--csv must be given with one label, not with all"),
        ("reproduce fig:freeway_COMB", "did you mean freeway_comp"),
        ("reproduce all --only seed=0", "--only and --keep must be given with one label, not with all"),
        ("reproduce sync --only rule", "--only must be NAME=VALUE, not 'rule'"),
        ("reproduce sync --only rul=q", "--only must name one of seed, rule, k_max, alpha"),
        ("reproduce sync --only rule=w", "--only rule must be one of q; combined; all, not 'w'"),
        ("reproduce sync --only seed=5-9", "--only seed must be one of 0, not '5-9'"),
        ("reproduce sync --keep x --csv x.csv", "--csv must not be given with --keep, which runs nothing"),
        *(
            (
                f"reproduce sync --keep x {option}",
                f"{option.split()[0]} must not be given with --keep, which runs nothing",
            )
            for option in (
                "--scale paper",
                "--jobs 0",
                "--engine ray",
                "--cpus-per-job 2",
                "--gpus-per-job 1",
                "--job-timeout 9",
                "--retries 2",
                "--step-timeout 9",
            )
        ),
        ("reproduce list --resume", "--resume must not be given with list, which runs nothing"),
        ("reproduce list --keep x", "--keep must not be given with list, which runs nothing"),
        ("reproduce list --with q", "--with must not be given with list, which runs nothing"),
        ("reproduce sync --keep x", "x must be the folder of a campaign, but has no manifest.json"),
        ("reproduce sync --csv x.txt", "--csv must name a file that ends in .csv, not 'x.txt'"),
        ("reproduce sync --csv ladders.py/x.csv", "in a writable folder, and ladders.py is not one"),
        ("plot fig:sync -o x.gif", "-o must end in .png, .pdf or .svg, not 'x.gif'"),
        (
            "plot ladders:STEPS",
            "steps has no stored rows yet in results/reproduce: run holdfast reproduce ladders:ST",
        ),
        ("reproduce sync --jobs 0", "--jobs must be a whole number of at least 1, not 0"),
        ("reproduce sync --address x:1", "--address must be given with --engine ray"),
        ("reproduce sync --engine ray --cpus-per-job 0", "--cpus-per-job must be a finite number above 0"),
        ("reproduce sync --engine ray --gpus-per-job -1", "--gpus-per-job must be a finite number of at least 0"),
        ("reproduce sync --scale huge", "--scale must be one of smoke, laptop, paper, not 'huge' (see"),
        ("reproduce sync -o ladders.py", "the campaign's folder must be a folder, but ladders.py is a file"),
        ("reproduce sync -o .", "must be empty or hold a campaign"),
        ("reproduce ladders:NO_EXPERIMENT", "must be a holdfast.experiments.spec.Experiment, but is not"),
        ("reproduce nowhere:AT_ALL", "importing nowhere raised ModuleNotFoundError"),
        ("plot fig:mtcar", "fig:mtcar has no stored rows yet in results/reproduce: run holdfast reproduce mtcar"),
        ("plot fig:sync here", "fig:sync has no stored rows yet in here: run holdfast reproduce sync"),
        ("plot fig:sinc", "did you mean sync or sync_val?"),
        ("plot fig:sync a b", "must be given with at most one folder of rows"),
        ("plot fig:sync --window 5", "--window must not be given with fig:sync"),
    ],
)
def test_clear_sentences(command: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert err.count("\n") == 1
    assert {path.name for path in Path().iterdir()} <= {"ladders.py", "__pycache__"}


def test_the_table_that_changes() -> None:
    job = Job("fig:sync", {"rule": "q"}, 0)
    running = Standing(10, before=1, done=4, began=-100.0, ended=None)
    running.failures.append(Failure(job, "fell", Path("x")))
    over = Standing(3, done=3, began=0.0, ended=75.0)
    lines = table_lines({"sync": running, "tabular": over}, 79, 20)
    assert table_lines({"adv_exploration_fix": over}, 79, 20)[0].endswith("left")
    assert lines[0].split() == ["jobs", "done", "running", "failed", "time", "left"]
    assert lines[2].split() == ["tabular", "3", "3", "0", "0", "1:15", "min"]
    assert lines[1].split()[:5] == ["sync", "10", "4", "0", "1"]
    # Four jobs since the beginning, five to go.
    assert running.seconds_left == pytest.approx(running.seconds * 5 / 4, rel=1e-3)
    running.running |= {f"job {n}": -20.0 for n in range(12)}
    lines = table_lines({"sync": running}, 30, 20)
    assert len(lines) == 2 + 8 + 1
    assert lines[-1].strip() == "and 4 more"
    assert max(map(len, lines)) <= 30
    assert len(table_lines({"sync": running}, 30, 5)) == 5


def test_nothing_is_shown_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    CampaignTable(sys.stderr).close({"sync": Standing(1)})
    assert capsys.readouterr().err == ""
