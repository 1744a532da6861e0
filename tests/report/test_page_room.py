"""A page stays below 15 MB however much was trained, and says what it has left out."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.core.errors import InputError
from holdfast.report import finding, page_room
from holdfast.report.agents import group_tasks
from holdfast.report.cautions import cautions
from holdfast.report.exhibits import files_of_run, page_bytes
from holdfast.report.finding import find_all
from holdfast.report.page import Report, make_report
from holdfast.report.page_room import LARGEST_PAGE
from holdfast.report.records import Exhibit, Findings, Holds, Problem, Record, Trace
from tests.report.made_records import record
from tests.runs.small_runs import TABLE, trained

pytest.importorskip("jinja2")
pytest.importorskip("plotly")


def many(n_agents: int, n_seeds: int, n_points: int = 300, name: str = "run", **more: Any) -> list[Record]:
    x = np.linspace(1.0, 1e6, n_points)
    values = np.random.default_rng(0).normal(size=(n_seeds, n_points)) / 3.0
    return [
        record(
            [0.0],
            seed=seed,
            setting={"algorithm": "perdqn", "k_max": number},
            traces={
                quantity: Trace(x, values[seed] + number) for quantity in ("greedy", "decisions", "hold", "length")
            },
            **{**more, "name": f"{name}-{number}-{seed}"},
        )
        for number in range(n_agents)
        for seed in range(n_seeds)
    ]


def page_of(findings: Findings) -> str:
    tasks = group_tasks(findings.records)
    return Report("Many", findings, tasks, cautions(findings, tasks)).html()


def left_out(page: str) -> str:
    found = re.findall(r"Left out to keep the page below 15 MB: .*?folders leaves out less", page)
    assert len(found) <= 1
    return found[0] if found else ""


def data_in(page: str) -> Any:
    return json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)[0])


def test_a_page_of_a_few_trainings_has_everything() -> None:
    page = page_of(Findings(many(3, 4), [Exhibit("a", "image", "data:image/png;base64,AAAA", "b")]))
    assert left_out(page) == ""
    (task,) = data_in(page)["tasks"]
    assert [len(agent["curves"]["greedy"]["x"]) for agent in task["agents"]] == [200] * 3
    assert all(len(agent["runs"]["greedy"]) == 4 for agent in task["agents"])


def test_many_large_trainings_fit_and_the_best_agents_are_shown() -> None:
    film = "data:video/mp4;base64," + "A" * 3_000_000
    exhibits = [Exhibit(f"film {number}", "video", film, f"run-{number}") for number in range(20)]
    damaged = [Problem(f"damaged-{number}", "its checksum does not match " * 5) for number in range(20_000)]
    page = page_of(Findings(many(550, 2, 210), exhibits, damaged, n_unread=7))
    assert len(page.encode()) <= LARGEST_PAGE
    told = left_out(page)
    assert "50 of 550 agents, those that end worst" in told
    assert "the curves of single seeds" in told
    assert re.search(r"all but \d+ points of each curve", told)
    assert "25 of 27 pictures, films and lists of numbers" in told
    assert "damaged trainings" in told
    (task,) = data_in(page)["tasks"]
    # The return is larger where k_max is.
    assert {agent["label"] for agent in task["agents"]} == {f"PerDQN, k_max={number}" for number in range(50, 550)}
    assert all(10 <= len(agent["curves"]["greedy"]["x"]) < 200 for agent in task["agents"])


def test_names_that_are_longer_than_expected_make_the_page_shorter() -> None:
    # Each of these letters takes four in HTML.
    page = page_of(Findings(many(2, 2000, 2, "<" * 3000)))
    assert len(page.encode()) <= LARGEST_PAGE
    assert "rows of the table of trainings" in left_out(page)


def test_every_task_keeps_its_best_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_room, "_AGENTS", 7)
    records = [*many(5, 1, 3), *many(5, 1, 3, task="Other-v0"), *many(1, 1, 3, task="Third-v0")]
    told = left_out(page := page_of(Findings(records)))
    assert "4 of 11 agents" in told
    shown = {task["name"]: [agent["label"] for agent in task["agents"]] for task in data_in(page)["tasks"]}
    assert {name: len(labels) for name, labels in shown.items()} == {
        "CartPole-v1": 3,
        "Other-v0": 3,
        "Third-v0": 1,
    }
    assert shown["Other-v0"] == [f"PerDQN, k_max={number}" for number in (4, 3, 2)]


def test_nothing_is_said_to_be_left_out_of_a_page_that_has_everything() -> None:
    assert left_out(page_of(Findings(many(130, 1, 10)))) == ""
    assert left_out(page_of(Findings(many(401, 1, 10)))) == ""


def test_a_page_without_the_agents_that_hold_has_no_place_for_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    holds = Holds(np.array([100.0]), np.array([[0.5, 0.5]]))
    decisions = {name: Trace(np.array([100.0]), np.array([0.0])) for name in ("greedy", "decisions")}
    worst = record([0.0], setting={"k_max": 2}, traces=decisions, holds=holds)
    best = record([1.0], setting={"k_max": 1})
    assert 'id="holds"' in page_of(Findings([best, worst]))
    monkeypatch.setattr(page_room, "_AGENTS", 1)
    page = page_of(Findings([best, worst]))
    assert "1 of 2 agents" in left_out(page)
    assert not re.search(r'id="(holds|held-agent|tradeoffs|often)"|href="#often"', page)


def test_long_names_in_files_are_cut_and_stay_apart(tmp_path: Path) -> None:
    trained(TABLE, tmp_path / "0")
    for number in range(1, 8):
        shutil.copytree(tmp_path / "0", tmp_path / f"{number}")
    for number in range(8):
        path = tmp_path / f"{number}" / "config.json"
        versions = {"holdfast": f"{number}" * 100_000, "y" * 100_000: "1"}
        label = "x" * 700_000 + str(number // 2)
        config = {**json.loads(path.read_text()), "label": label, "seed": number, "versions": versions}
        path.write_text(json.dumps(config))
        shutil.rmtree(tmp_path / f"{number}" / "checkpoint")
    report = make_report([tmp_path], pictures=False)
    page = report.html()
    assert report.findings.problems == []
    assert len(page.encode()) < 3_000_000
    assert left_out(page) == ""
    assert [task["name"][:291] for task in data_in(page)["tasks"]] == ["x" * 291] * 4
    assert all(len(task.name) == 300 and task.name[291] == "…" for task in report.tasks)
    assert len({task.name for task in report.tasks}) == 4
    assert any("Made by different versions" in sentence for sentence in report.cautions)


def test_labels_of_agents_with_long_names_are_cut_and_stay_apart() -> None:
    records = [record([1.0], agent="an agent " * 50, setting={"setting": number}) for number in (2, 3)]
    labels = [agent.label for task in group_tasks(records) for agent in task.agents]
    assert len(set(labels)) == 2
    assert all(len(label) == 300 and label.startswith("an agent an agent ") for label in labels)


def test_a_page_that_stays_too_large_is_refused_in_a_sentence() -> None:
    said = r"^what must contain less: .* still has \d\d\.\d MB, more than the 15 MB that a page may have$"
    with pytest.raises(InputError, match=said):
        page_of(Findings([record([1.0], setting={"x" * 16_000_000: 1})]))


def run_folders(top: Path, monkeypatch: pytest.MonkeyPatch, **files: int) -> Path:
    """Folders that pass for runs, each with files of so many bytes: ``run0_film_mp4=1000``."""
    monkeypatch.setattr(finding, "run_record", lambda path, name: record([1.0], name=name, folder=str(path)))
    for place, n_bytes in files.items():
        run, name, suffix = place.split("_")
        (top / run).mkdir(exist_ok=True)
        for made in ("config.json", "metrics.csv"):
            (top / run / made).touch()
        (top / run / f"{name}.{suffix}").write_bytes(bytes(n_bytes))
    return top


def test_the_largest_film_of_a_run_is_in_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run_folders(tmp_path, monkeypatch, run0_film_mp4=6 * 2**20, run0_map_png=1_600_000)
    report = make_report([folder], pictures=False)
    page = report.html()
    assert left_out(page) == ""
    assert ("data:video/mp4;base64,AAAA" in page, "data:image/png;base64,AAAA" in page) == (True, True)
    assert 10_000_000 < len(page.encode()) <= LARGEST_PAGE
    assert page_bytes(6 * 2**20) == report.findings.exhibits[0].n_bytes


def test_a_film_without_room_takes_none_from_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    films = {"run0_film_mp4": 6 * 2**20, "run1_film_mp4": 6 * 2**20, "run2_film_mp4": 6 * 2**20 + 1}
    pictures = {"run2_map_png": 10_000, "run3_map_png": 10_000}
    page = make_report([run_folders(tmp_path, monkeypatch, **films, **pictures)], pictures=False).html()
    assert "1 of 4 pictures, films and lists of numbers" in left_out(page)
    assert (page.count("data:video/mp4;base64,AAAA"), page.count("data:image/png;base64,AAAA")) == (1, 2)
    assert "1 picture or film is not shown. A picture may have 2 MB and a film 6 MB, and a run 12 such" in page


def test_what_a_run_has_too_much_of_is_not_promised_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = {f"run0_{number:02}_png": 10 for number in range(14)}
    folder = run_folders(tmp_path, monkeypatch, run0_00a_mp4=6 * 2**20, run0_00b_mp4=6 * 2**20, **pictures)
    page = make_report([folder], pictures=False).html()
    assert left_out(page) == ""
    # The film and eleven pictures make twelve.
    assert "4 pictures and films are not shown." in page
    assert (page.count("data:video/mp4;base64,AAAA"), page.count("data:image/png;base64,AAAA")) == (1, 11)


def test_films_that_a_page_has_no_room_for_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_folders(tmp_path, monkeypatch, **{f"run0_film{number}_gif": 999 for number in range(4)})
    monkeypatch.setattr(finding, "EXHIBITS_ROOM", 2 * page_bytes(999) + 1)
    found = find_all([tmp_path])
    assert ([exhibit.title[:5] for exhibit in found.exhibits], found.n_unread) == (["film0", "film1"], 2)
    assert files_of_run(found.records[0], 0).n_unread == 4
