"""Pictures of studies."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from holdfast.advice import draw_visitation, study_visitation


def test_mountain_car_has_a_row_per_mode_with_the_flag() -> None:
    study = study_visitation("MountainCar-v0", [1, 8, 32], modes=("dynamic", "fixed"), episodes=50)
    figure = draw_visitation(study)
    assert figure is not None
    assert figure.get_suptitle() == "MountainCar-v0"
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title().split("\n")[0] for axes in panels] == [
        f"k {sign} {k_max}" for sign in ("≤", "=") for k_max in (1, 8, 32)
    ]
    for axes, result in zip(panels, study.results, strict=True):
        shown = axes.collections[0].get_array()
        assert np.array_equal(np.ma.filled(shown, 0), result.counts.T)
        assert axes.get_lines()[0].get_xdata() == [0.5, 0.5]
        assert result.success is not None
        assert axes.get_title().endswith(f"{100 * result.success.value:.3g} % succeed")


def test_a_mode_that_does_not_fill_its_last_row_leaves_it_empty() -> None:
    study = study_visitation("cliff", [1, 2, 3, 4, 5], modes=("dynamic", "fixed"), episodes=5)
    figure = draw_visitation(study, "A title")
    assert figure is not None
    assert figure.get_suptitle() == "A title"
    titles = [axes.get_title().split("\n")[0] for axes in figure.axes[:12]]
    one, other = ([f"k {sign} {k_max}" for k_max in range(1, 6)] for sign in ("≤", "="))
    assert titles == [*one, "", *other, ""]


def test_without_success_the_coverage_is_told() -> None:
    study = study_visitation("CartPole-v1", [4], episodes=3)
    figure = draw_visitation(study)
    assert figure is not None
    assert figure.axes[0].get_title() == "K = 4\n100 % covered"
    assert figure.get_supxlabel() == study.cells.names[0]


def test_there_is_no_picture_of_states_without_a_map() -> None:
    assert draw_visitation(study_visitation("Taxi-v4", [2], episodes=1)) is None


def test_counting_loads_nothing_that_draws_or_learns() -> None:
    code = (
        "import sys\nfrom holdfast.advice import study_visitation\nstudy_visitation('cliff', [1], episodes=1)\n"
        "assert not {'torch', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
