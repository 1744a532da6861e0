"""The figures of exploration: Kemeny's constant on the grids, visits of MountainCar."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.advice import study_visitation
from holdfast.draw import save_figure
from holdfast.envs import exploration_kernel, make_env
from holdfast.experiments.figures import find_experiment
from holdfast.experiments.tables import Table, select
from holdfast.mdp import kemeny_constant, persistent_chain, row_entropy
from tests.experiments.smoke import check_summary, rows_of


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return rows_of(find_experiment("kem_complete"), tmp_path_factory.mktemp("chains") / "campaign")


def test_constants_are_those_of_the_matrix(chains: Table) -> None:
    assert set(chains["grid"]) == {"open", "cliff", "bridge", "zigzag"}
    assert set(chains["H"]) == {10.0, 20.0, 30.0}
    own = select(chains, grid="bridge", H=20, k_max=4)
    P_H = persistent_chain(exploration_kernel(make_env("bridge"), "wall").kernel, 20, 4)
    assert own["kemeny"] == pytest.approx([kemeny_constant(P_H, "eigenvalues")], rel=1e-9)
    assert own["row_entropy"] == pytest.approx([row_entropy(P_H)], rel=1e-12)
    alone = select(chains, k_max=1)
    assert alone["kemeny"].tolist() == alone["kemeny_of_one"].tolist()


def test_every_grid_has_a_dip(chains: Table) -> None:
    for grid in ("open", "cliff", "bridge", "zigzag"):
        for horizon in (10, 20, 30):
            own = select(chains, grid=grid, H=horizon)
            least = float((own["kemeny"] / own["kemeny_of_one"]).min())
            assert 0.8 < least < 0.985


def test_curves_of_all_horizons(chains: Table, tmp_path: Path) -> None:
    experiment = find_experiment("kem_complete")
    figure = experiment.draw(chains)
    assert [axes.get_title() for axes in figure.axes[:4]] == ["Open", "Cliff", "Bridge", "ZigZag"]
    assert len(figure.axes) == 8
    save_figure(figure, tmp_path / "kemeny.png")
    lines = check_summary(experiment, chains)
    assert len(lines) == 1 + 4 * 3
    assert lines[4].split()[:2] == ["Cliff", "10"]


def test_the_figure_of_the_main_text_has_one_horizon(tmp_path: Path) -> None:
    experiment = find_experiment("Kemeny")
    jobs = [job for job in experiment.jobs("smoke") if job.setting["grid"] == "cliff"]
    rows = rows_of(experiment, tmp_path / "campaign", jobs)
    assert set(rows["H"]) == {30.0}
    figure = experiment.draw(rows)
    assert [axes.get_title() for axes in figure.axes] == ["Cliff"]
    assert "Kemeny" in figure.axes[0].get_ylabel()
    assert check_summary(experiment, rows)[1].split()[:3] == ["Cliff", "30", "0.9625"]


@pytest.mark.parametrize(("label", "mode"), [("adv_exploration", "dynamic"), ("adv_exploration_fix", "fixed")])
def test_visits_are_those_of_the_study(label: str, mode: str, tmp_path: Path) -> None:
    experiment = find_experiment(label)
    rows = rows_of(experiment, tmp_path / "campaign")
    study = study_visitation("MountainCar-v0", [1, 2, 4, 8, 16, 32, 64], modes=[mode], episodes=100, seed=0)
    for k in (1, 32):
        own, expected = select(rows, k_max=k), study.of(k, mode)
        assert own["visits"].reshape(50, 50).tolist() == expected.counts.tolist()
        assert expected.success is not None
        assert set(own["reached"]) == {expected.success.value}
    figure = experiment.draw({name: column[::-1] for name, column in rows.items()})
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert len(titles) == 7
    assert titles[0] == "K = 1 · 0 % reach the flag"
    mesh = figure.axes[5].collections[0]
    drawn = np.ma.filled(mesh.get_array(), 0).reshape(50, 50).T  # type: ignore[union-attr]
    assert drawn.tolist() == study.of(32, mode).counts.tolist()
    x = mesh.get_coordinates()[0, :, 0]  # type: ignore[attr-defined]
    np.testing.assert_allclose(x, study.cells.edges[0], atol=1e-12)
    save_figure(figure, tmp_path / "visits.png")
    assert len(check_summary(experiment, rows)) == 8
