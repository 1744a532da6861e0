"""The tabular figures at their smallest scale: their rows, their pictures and what they print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import trim_mean

from holdfast.draw import save_figure
from holdfast.experiments.figures import find_experiment
from holdfast.experiments.figures.grid_returns import PRINTED
from holdfast.experiments.tables import Table, select, setting_column
from holdfast.experiments.tabular_results import aggregate_lines
from holdfast.experiments.tabular_study import ALL_LEARNERS
from tests.experiments.smoke import check_summary, rows_of

GRIDS = ("cliff", "bridge")
CURVES = ("tabular_perf", "tabular_noboot", "tabular_multi")
AGENTS = {
    "tabular_perf": ["PerQ4", "PerQ8", "PerQ16", "TempoRL8 padded", "Q"],
    "tabular_noboot": ["Q", "TempoRL8 padded", "PerQ8", "MSA8", "MSA8 padded"],
    "tabular_multi": ["PerQ8", "Q", "Q x8", "Q equal to PerQ8"],
}


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    folder = tmp_path_factory.mktemp("figures")
    return {label: rows_of(find_experiment(label), folder / label) for label in (*CURVES, "tabular_times")}


@pytest.mark.parametrize("label", CURVES)
def test_rows_of_curves(label: str, campaigns: dict[str, Table]) -> None:
    rows = campaigns[label]
    assert list(dict.fromkeys(rows["agent"].tolist())) == AGENTS[label]
    assert set(rows["seed"]) == {0.0, 1.0, 2.0}
    assert (rows["episode"].min(), rows["episode"].max()) == (1.0, 60.0)
    n_settings = len(AGENTS[label]) * len(np.unique(rows["initial_std"]))
    assert len(rows["seed"]) == n_settings * 3 * 60
    for name in ("return", "greedy"):
        assert set(rows[name]) <= {-1.0, 0.0, 1.0}  # hole, out of time, goal
    # Somebody reaches the goal, and not everybody does from the start on.
    assert (rows["greedy"] == 1.0).any()
    assert (rows["greedy"] == -1.0).any()


@pytest.mark.parametrize(
    ("label", "legends"),
    [
        ("tabular_perf", [AGENTS["tabular_perf"][:3], ["PerQ8", "TempoRL8 padded", "Q"]]),
        ("tabular_noboot", [AGENTS["tabular_noboot"]]),
        ("tabular_multi", [AGENTS["tabular_multi"]] * 2),
    ],
)
def test_pictures_of_curves(
    label: str, legends: list[list[str]], campaigns: dict[str, Table], tmp_path: Path
) -> None:
    experiment = find_experiment(label)
    figure = experiment.draw(campaigns[label])
    assert [axes.get_title() for axes in figure.axes] == ["Cliff"] + [""] * (len(legends) - 1)
    assert {axes.get_ylabel() for axes in figure.axes} == {"greedy return"}
    assert figure.axes[-1].get_xlabel() == "episode"
    for axes, names in zip(figure.axes, legends, strict=True):
        legend = axes.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == names
        assert len(axes.get_lines()) == len(axes.collections) == len(names)
        assert axes.get_ylim() == (-1.08, 1.08)
    own = select(campaigns[label], agent="PerQ8", initial_std=0.0)["greedy"].reshape(3, 60)
    (drawn,) = [line for line in figure.axes[0].get_lines() if line.get_label() == "PerQ8"]
    np.testing.assert_allclose(drawn.get_ydata(), own.mean(axis=0), atol=1e-12)
    assert save_figure(figure, tmp_path / "curves.png").stat().st_size > 10_000
    check_summary(experiment, campaigns[label])


def test_numbers_over_all_grids(campaigns: dict[str, Table]) -> None:
    rows = campaigns["tabular_perf"]
    cliff = {name: column.copy() for name, column in rows.items()}
    # The same runs once more under another name, a little worse: two grids.
    other = {**cliff, "grid": np.full(len(rows["grid"]), "bridge"), "greedy": cliff["greedy"] - 0.25}
    both = {name: np.concatenate([cliff[name], other[name]]) for name in cliff}
    head, *lines = aggregate_lines(both)
    assert head.split() == ["over", "all", "grids", "interquartile", "mean", "chance", "to", "beat", "Q"]
    found = {line[:21].strip(): line[21:].split() for line in lines}
    assert list(found) == AGENTS["tabular_perf"]
    own = np.stack(
        [select(both, agent="PerQ8", grid=grid)["greedy"].reshape(3, 60).mean(1) for grid in GRIDS[:2]], 1
    )
    plain = np.stack(
        [select(both, agent="Q", grid=grid)["greedy"].reshape(3, 60).mean(1) for grid in GRIDS[:2]], 1
    )
    assert float(found["PerQ8"][0]) == pytest.approx(trim_mean(own, 0.25, axis=None), abs=6e-4)
    wins = [np.mean([a > b for a in own[:, n] for b in plain[:, n]]) for n in range(2)]
    assert float(found["PerQ8"][4]) == pytest.approx(np.mean(wins), abs=6e-3)
    assert len(found["Q"]) == 4  # nobody beats himself
    # Who has not been on every grid yet is left out.
    keep = (both["agent"] != "PerQ16") | (both["grid"] == "cliff")
    some = {name: column[keep] for name, column in both.items()}
    assert [line[:21].strip() for line in aggregate_lines(some)[1:]] == [
        name for name in AGENTS["tabular_perf"] if name != "PerQ16"
    ]


@pytest.mark.parametrize("label", CURVES)
@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_larger_scales_have_four_grids(label: str, scale: str) -> None:
    jobs = find_experiment(label).jobs(scale)
    by_grid = {grid: [job for job in jobs if job.setting["grid"] == grid] for grid in ("cliff", "frozen-lake")}
    assert len({job.setting["grid"] for job in jobs}) == 4
    assert len(jobs) == 4 * len(by_grid["cliff"])
    assert {job.setting["episodes"] for job in by_grid["cliff"]} == {600}
    assert {job.setting["episodes"] for job in by_grid["frozen-lake"]} == {6000}
    assert {job.setting["runs"] for job in jobs} == {50 if scale == "paper" else 10}
    if label != "tabular_perf":
        assert {job.setting.get("k_max") for job in jobs} == {None, 4, 8, 16}


def paper_rows(label: str) -> Table:
    """Rows as those of all jobs at the paper's scale, with two runs and three points each."""
    parts = []
    for number, job in enumerate(find_experiment(label).jobs("paper")):
        for seed in range(2):
            for point in range(3):
                value = {
                    "seed": float(seed),
                    "episode": 3.0 * (point + 1),
                    "greedy": number / 100.0,
                    "return": 0.0,
                }
                parts.append({"k_max": None, "updates_per_step": None, **job.setting, **value})
    return {name: setting_column([part[name] for part in parts], [1] * len(parts)) for name in parts[0]}


@pytest.mark.parametrize(("label", "rows"), [("tabular_noboot", 3), ("tabular_multi", 6)])
def test_a_row_of_panels_for_each_of_the_papers_k(label: str, rows: int) -> None:
    table = paper_rows(label)
    axes = np.reshape(find_experiment(label).draw(table).axes, (rows, 4))
    for line, k in zip(axes, (4, 8, 16) * 2, strict=False):
        names = [drawn.get_label() for drawn in line[-1].get_lines()]
        own = {"tabular_noboot": [f"PerQ{k}", f"MSA{k}"], "tabular_multi": [f"PerQ{k}", f"Q x{k}"]}[label]
        assert {"Q", *own} <= set(names)
        assert not {f"PerQ{other}" for other in (4, 8, 16) if other != k} & set(names)
        legend = line[-1].get_legend()
        assert legend is not None
        assert legend.get_title().get_text().startswith(f"K = {k}")
    # Each job is drawn once, but for plain Q-learning, which is in every row.
    drawn = [
        curve.get_ydata()[0] for panel in axes.ravel() for curve in panel.get_lines() if curve.get_label() != "Q"
    ]
    assert sorted(drawn) == sorted(np.unique(table["greedy"][table["agent"] != "Q"]))


@pytest.mark.parametrize("label", CURVES)
def test_pictures_of_whatever_is_done_first(label: str, campaigns: dict[str, Table]) -> None:
    experiment, rows = find_experiment(label), campaigns[label]
    for agent in AGENTS[label]:
        some = select(rows, agent=agent)
        if agent.startswith("Q"):
            # Settings that none of the jobs has make no column.
            del some["k_max"]
        assert experiment.draw(some).axes
        assert experiment.summary(some)


def test_more_updates_show_only_where_values_do_not_start_at_zero(campaigns: dict[str, Table]) -> None:
    rows = campaigns["tabular_multi"]
    plain = select(rows, agent="Q", initial_std=0.0)
    for more in ("Q x8", "Q equal to PerQ8"):
        np.testing.assert_array_equal(select(rows, agent=more, initial_std=0.0)["greedy"], plain["greedy"])
    settings = [job.setting for job in find_experiment("tabular_multi").jobs("paper")]
    updates = {setting["agent"]: setting.get("updates_per_step") for setting in settings}
    # Σ_κ Σ_{k≤κ} (κ−k+1)(9−k) for κ = 1..8 is 750; 1 + … + 8 = 36.
    assert updates["Q equal to PerQ8"] == pytest.approx(750 / 36)
    assert updates["Q"] == 1.0
    for k in (4, 8, 16):
        assert (updates[f"PerQ{k}"], updates[f"Q x{k}"]) == (None, float(k))
        assert updates[f"Q equal to PerQ{k}"] > k
    assert len(updates) == 10


def test_times(campaigns: dict[str, Table], tmp_path: Path) -> None:
    experiment, rows = find_experiment("tabular_times"), campaigns["tabular_times"]
    assert experiment.alone
    assert rows["k_max"].tolist() == [1.0, 2.0, 4.0] * 3
    assert rows["seed"].tolist() == [0.0] * 3 + [1.0] * 3 + [2.0] * 3
    assert (rows["seconds"] > 0.0).all()
    # Sixty episodes of one step to a hundred.
    assert ((rows["steps"] >= 60) & (rows["steps"] <= 6000)).all()
    figure = experiment.draw(rows)
    assert [axes.get_ylabel() for axes in figure.axes] == ["seconds", "microseconds"]
    for axes, values in zip(figure.axes, (rows["seconds"], 1e6 * rows["seconds"] / rows["steps"]), strict=True):
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "2", "4"]
        (line,) = axes.get_lines()
        np.testing.assert_allclose(line.get_ydata(), values.reshape(3, 3).mean(axis=0))
    save_figure(figure, tmp_path / "times.png")
    lines = check_summary(experiment, rows)
    assert [line.split()[0] for line in lines[2:]] == ["1", "2", "4"]
    assert {tuple(job.setting["k_values"]) for job in experiment.jobs("paper")} == {(1, 2, 4, 8, 16, 32)}
    assert {job.setting["runs"] for job in experiment.jobs("paper")} == {20}


def test_as_printed() -> None:
    jobs, usual = PRINTED.jobs("paper"), find_experiment("tabular_perf").jobs("paper")
    assert len(jobs) == len(usual)
    assert {(job.setting["alpha"], job.setting["initial_std"]) for job in jobs} == {(0.01, 1.0)}
    assert not {job.id for job in jobs} & {job.id for job in usual}
    assert find_experiment("holdfast.experiments.figures.grid_returns:PRINTED").title == PRINTED.title


def test_the_study_has_everybody(tmp_path: Path) -> None:
    jobs = ALL_LEARNERS.jobs("smoke")
    names = [job.setting["agent"] for job in jobs]
    assert len(names) == 1 + 3 * 8 + 3
    chosen = [job for job in jobs if job.setting["agent"] in ("PerQ8", "PerQ8 few decisions", "εz8", "Q")]
    rows = rows_of(ALL_LEARNERS, tmp_path / "study", chosen)
    figure = ALL_LEARNERS.draw(rows)
    legends = [axes.get_legend() for axes in figure.axes]
    shown = [[text.get_text() for text in legend.get_texts()] for legend in legends if legend is not None]
    assert shown == [["Q"], ["PerQ8", "εz8", "Q"], ["Q"], ["PerQ8", "PerQ8 few decisions"]]
    lines = check_summary(ALL_LEARNERS, rows)
    assert [line.split("  ")[0] for line in lines] == [
        "agent",
        "Q",
        "PerQ8",
        "εz8",
        "PerQ8 few decisions",
        "",
        "PerQ8 minus",
        "Q",
        "εz8",
        "PerQ8 few decisions",
    ]
