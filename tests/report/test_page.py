"""The page as a file: whole, safe, and honest about what it could not read."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys

import pytest

from holdfast.cli import main
from holdfast.experiments.manifest import Manifest
from holdfast.experiments.spec import Job
from holdfast.files import Entry
from holdfast.report import page
from holdfast.report.finding import find_all
from holdfast.report.page import make_report, safe_json, write_report
from tests.architecture import ROOT
from tests.report.conftest import NASTY
from tests.runs.small_runs import TABLE, trained


def data_of(html):
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])


def test_texts_cannot_end_the_script_they_stand_in():
    document = {"name": "</script><script>alert(1)</script>&\u2028", "number": float("nan")}
    text = str(safe_json(document))
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {**document, "number": None}


def test_runs_and_sweeps_are_found_and_the_damaged_one_is_named(folder):
    findings = find_all([folder])
    names = [os.path.relpath(record.name, folder) for record in findings.records]
    assert len([name for name in names if name.startswith("runs")]) == 7
    assert len([name for name in names if name.startswith("sweep")]) == 4
    (problem,) = findings.problems
    assert problem.name.endswith("damaged")
    assert "episode" in problem.sentence


def test_the_page_answers_in_order_and_names_what_is_damaged(folder, tmp_path):
    html = write_report([folder], tmp_path / "deep" / "report.html").read_text(encoding="utf-8")
    headings = re.findall(r'<h2 id="\w+-title">(.*?)</h2>', html)
    assert headings == [
        "Which agents",
        "How well, and how certain",
        "How fast",
        "How often they decide",
        "What they learned",
        "What exactly was run",
    ]
    assert NASTY not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert f"{folder}/runs/damaged is missing, or shown only in part" in html
    assert not re.search(r'(?:src|href)="(?!data:|#)', html)
    tasks = {task["name"]: task for task in data_of(html)["tasks"]}
    assert set(tasks) == {"cliff", "CartPole-v1"}
    labels = [agent["label"] for agent in tasks["cliff"]["agents"]]
    assert sorted(labels) == [
        "PerQ-learning, k_max=1",
        "PerQ-learning, k_max=3",
        "PerQ-learning, k_max=4",
        "Q-learning",
    ]


def test_kept_rows_of_the_suite_are_a_report():
    report = make_report([ROOT / "results" / "suite"])
    by_task = {task.name: {agent.label: agent for agent in task.agents} for task in report.tasks}
    assert len(by_task) == 4
    # docs/results.md has the same number.
    assert by_task["CartPole-v1"]["PerDQN"].final("greedy").value == pytest.approx(482, abs=1)
    assert len(by_task["CartPole-v1"]["PerDQN"].records) == 10
    assert [exhibit.kind for exhibit in report.findings.exhibits] == ["image", "text"]


def test_a_campaign_without_an_environment_is_called_by_its_title_and_its_agents_by_their_names():
    (task,) = make_report([ROOT / "results" / "her"], pictures=False).tasks
    assert task.name.startswith("Goals chosen in hindsight")
    assert [agent.label for agent in task.agents] == ["PerDQN + HER", "DQN + HER", "PerDQN"]
    assert [agent.family for agent in task.agents] == ["PerDQN", "DQN", "PerDQN"]


def test_rows_that_are_no_curves_are_shown_by_their_own_picture():
    report = make_report([ROOT / "results" / "kem_complete"])
    assert report.tasks == []
    assert [exhibit.kind for exhibit in report.findings.exhibits] == ["image", "text"]
    html = report.html()
    assert "There are no learning curves here" in html
    assert "<h1>Kemeny" in html
    assert 'href="#well"' not in html
    # What exactly was run is there all the same.
    assert "12 jobs without curves" in html
    assert html.count("results/kem_complete, job ") == 12
    settings = html[html.index("What exactly was run") :]
    assert '<tr><th scope="row">H</th><td class="odd">10</td>' in settings


def test_pictures_and_films_of_a_run_are_in_its_page(tmp_path):
    run = tmp_path / "run"
    trained(TABLE, run)
    assert main(["evaluate", str(run), "--episodes", "1", "--render", str(run / "film.gif")]) == 0
    kinds = {exhibit.title: exhibit.content[:22] for exhibit in make_report([run]).findings.exhibits}
    assert kinds[f"film of {run}"] == "data:image/gif;base64,"
    assert any("does, and for how long" in title for title in kinds)
    without = make_report([run], pictures=False).findings.exhibits
    assert [exhibit.title for exhibit in without] == [f"film of {run}"]


@pytest.mark.parametrize("row", ["nan,1,2", "inf,1,2", "0,nan,2", "0,inf,2"])
def test_a_campaign_with_rows_of_no_seed_or_step_is_named(tmp_path, row):
    job = Job("mine", {"algo": "q"}, 0)
    manifest = Manifest("mine", "mine", "a campaign of somebody's", 1, None, ("seed", "step", "return"))
    manifest.plan_jobs([job])
    (tmp_path / "rows").mkdir()
    (tmp_path / f"rows/{job.id}.csv").write_text(f"seed,step,return\n0,0,1\n{row}\n", encoding="utf-8")
    (tmp_path / "manifest.json").write_text(json.dumps(manifest.document()), encoding="utf-8")
    findings = find_all([tmp_path])
    assert findings.records == []
    (problem,) = findings.problems
    assert problem.sentence.endswith(f"{job.id}.csv is damaged: step and seed must be finite numbers")


def test_what_an_unfinished_run_has_reached_is_said(tmp_path):
    run = tmp_path / "run"
    trained(TABLE, run)
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "episodes": 5000}))
    report = make_report([run])
    assert any("Unfinished" in sentence and "12 of 5,000" in sentence for sentence in report.cautions)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["nowhere"],
            "WHAT must be a run, a campaign or a folder that contains some; there is no folder 'nowhere'",
        ),
        (["empty"], "WHAT must contain a run or a campaign; there is none in empty"),
        (["run", "-o", "page.txt"], "--out must name a file that ends in .html, not 'page.txt'"),
        (
            ["run", "-o", "run/config.json/page.html"],
            "--out must be a file that can be written, and 'run/config.json/page.html' is not: ",
        ),
    ],
)
def test_bad_input_is_told_in_one_sentence(tmp_path, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    trained(TABLE, tmp_path / "run")
    assert main(["report", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("holdfast report: ")
    assert sentence in said
    assert said.count("\n") == 1
    assert not list(tmp_path.rglob("*.html*"))


def test_a_missing_library_is_told_with_what_to_install(tmp_path, monkeypatch, capsys):
    trained(TABLE, tmp_path / "run")
    monkeypatch.setattr(page, "_LIBRARIES", ("jinja2", "plotly_of_tomorrow"))
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "page.html")]) == 2
    assert "needs plotly_of_tomorrow: pip install 'holdfast-rl[report]'" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


def test_a_sweep_names_its_report(tmp_path, capsys):
    sweep = ["sweep", "--env", "cliff", "--algo", "perq", "--grid", "k_max=1,2", "--seeds", "1"]
    assert main([*sweep, "--episodes", "3", "-o", str(tmp_path / "a sweep"), "--jobs", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"to look at it: holdfast report '{tmp_path}/a sweep'"


def test_code_that_a_run_names_is_not_imported(tmp_path):
    run = tmp_path / "run"
    trained(TABLE, run)
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "algo": "nobody_has_this:Agent"}))
    # Its checkpoint says that it is another's.
    shutil.rmtree(run / "checkpoint")
    report = make_report([run])
    assert [record.agent for record in report.findings.records] == ["Agent"]
    assert "nobody_has_this" not in sys.modules


def test_the_time_of_a_run_is_that_of_all_its_checkpoints(tmp_path):
    trained(TABLE, tmp_path / "run")
    header = (tmp_path / "run/timing.csv").read_text().splitlines()[0]
    assert header == "step,episode,seconds,checkpoint_seconds"
    (tmp_path / "run/timing.csv").write_text(f"{header}\n10,1,20.5,0.1\n20,2,4.0,0.1\n")
    (record,) = find_all([tmp_path / "run"]).records
    assert record.seconds == 24.5


def test_maps_of_the_same_name_are_not_seeds_of_one_agent(tmp_path):
    for number, rows in enumerate(("S.G", "S..G")):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}/m.txt").write_text(rows + "\n")
        options = {**TABLE, "environment": str(tmp_path / f"{number}/m.txt"), "env_kwargs": {}, "seed": number}
        trained(options, tmp_path / f"runs/{number}")
    first, second = find_all([tmp_path / "runs"]).records
    assert first.setting["map"] != second.setting["map"]


def test_pictures_that_cannot_be_read_are_named_and_the_rest_is_shown(tmp_path, monkeypatch):
    trained(TABLE, tmp_path / "open")
    trained(TABLE, tmp_path / "shut")
    (tmp_path / "shut" / "pictures").mkdir()
    listed = Entry.listed

    def not_everything(self):
        if str(self).endswith("shut/pictures"):
            raise PermissionError(13, "Permission denied", str(self))
        return listed(self)

    monkeypatch.setattr(Entry, "listed", not_everything)
    findings = find_all([tmp_path])
    assert [record.name for record in findings.records] == [str(tmp_path / name) for name in ("open", "shut")]
    (problem,) = findings.problems
    assert problem.name == f"{tmp_path}/shut, its pictures"
    assert "Permission denied" in problem.sentence
