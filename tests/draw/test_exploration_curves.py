"""Kemeny's constant and entropy over K_max."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.draw import draw_exploration_curves, save_figure

Floats = NDArray[np.float64]
K_MAX = np.array([1, 2, 4, 8, 16])


@dataclass(frozen=True, eq=False)
class Curve:
    H: int
    normalised_kemeny: Floats
    row_entropy: Floats
    k_max: NDArray[np.int64]
    normalised_error: Floats
    row_entropy_error: Floats


def curve(H: int, error: float = 0.0) -> Curve:
    entropy, none = np.array([2.0, 2.1, 2.5, 1.0, 0.5]), np.full(5, error)
    return Curve(H, np.array([1.0, 0.9, 0.95, 1.1, 3.0]), entropy, K_MAX, none, none)


def test_a_column_for_each_environment_and_a_line_for_each_horizon(tmp_path: Path) -> None:
    figure = draw_exploration_curves({"a $ sign": [curve(10), curve(30)], "b": [curve(30)]}, "all of them")
    assert len(figure.axes) == 4
    assert [axes.get_title() for axes in figure.axes[:2]] == ["a   sign", "b"]
    above, below = figure.axes[0], figure.axes[2]
    lines = [line for line in above.get_lines() if line.get_gid() == "curve"]
    assert len(lines) == 2
    assert np.array_equal(lines[0].get_xdata(), K_MAX)
    assert np.array_equal(lines[0].get_ydata(), curve(10).normalised_kemeny)
    assert lines[0].get_color() != lines[1].get_color()
    (other,) = [line for line in figure.axes[1].get_lines() if line.get_gid() == "curve"]
    assert other.get_color() == lines[1].get_color()  # H = 30, as in the first column
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["H = 10", "H = 30"]
    assert above.get_xscale() == "log"
    assert below.get_xticks().tolist() == [1, 2, 4, 8, 16]
    save_figure(figure, tmp_path / "curves.png")


def test_the_best_are_marked() -> None:
    above, below = draw_exploration_curves({"": [curve(10)]}).axes
    (least,) = [line for line in above.get_lines() if line.get_gid() == "best"]
    (largest,) = [line for line in below.get_lines() if line.get_gid() == "best"]
    assert (least.get_xdata()[0], least.get_ydata()[0]) == (2, 0.9)
    assert (largest.get_xdata()[0], largest.get_ydata()[0]) == (4, 2.5)


def test_a_minimum_is_seen_beside_what_is_far_worse() -> None:
    assert draw_exploration_curves({"": [curve(10)]}).axes[0].get_ylim()[1] == pytest.approx(1.2)


def test_noise_is_no_cliff() -> None:
    flat = replace(curve(10), normalised_kemeny=np.array([1.0, 1.0 - 1e-6, 1.0, 1.0 + 1e-6, 1.0]))
    assert draw_exploration_curves({"": [flat]}).axes[0].get_ylim() == (0.98, 1.02)
    bottom, top = draw_exploration_curves({"": [curve(10)]}).axes[0].get_ylim()
    assert bottom < 0.9
    assert top > 1.02


def test_estimates_have_bands(tmp_path: Path) -> None:
    above, below = draw_exploration_curves({"": [curve(10)]}).axes
    assert len(above.collections) == len(below.collections) == 0
    figure = draw_exploration_curves({"": [curve(10, error=0.1)]})
    above, below = figure.axes
    (band,) = above.collections
    corners = band.get_paths()[0].get_extents()
    assert (corners.ymin, corners.ymax) == pytest.approx((0.7, 3.2))
    assert len(below.collections) == 1
    save_figure(figure, tmp_path / "bands.png")


def test_without_entropy_there_is_one_row() -> None:
    (axes,) = draw_exploration_curves({"": [curve(30)]}, entropy=False).axes
    assert axes.get_xlabel() == "$K_{max}$"


@pytest.mark.parametrize("panels", [{}, {"empty": []}])
def test_nothing_to_draw(panels: dict[str, list[Curve]]) -> None:
    with pytest.raises(ValueError, match="panels must be at least one, with at least one curve each"):
        draw_exploration_curves(panels)
