"""Curves with bands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.draw import Curve, Panel, draw_curve_rows, draw_curves, save_figure

X = np.linspace(0.0, 1000.0, 30)


def panels(n: int) -> list[Panel]:
    plain = Curve("plain", "#0072b2", X, np.sin(X))
    banded = Curve("banded", "#0072b2", X, X, X - 1.0, X + 1.0, dash=5)
    return [Panel(f"panel {number}", [plain, banded]) for number in range(n)]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_one_panel_beside_the_other(n: int, tmp_path: Path) -> None:
    figure = draw_curves(panels(n), "steps", "return")
    assert len(figure.axes) == n
    assert [axes.get_title() for axes in figure.axes] == [f"panel {number}" for number in range(n)]
    assert figure.axes[0].get_ylabel() == "return"
    assert all(axes.get_xlabel() == "steps" for axes in figure.axes)
    save_figure(figure, tmp_path / "curves.png")


def test_curves_are_drawn_as_they_are() -> None:
    (axes,) = draw_curves(panels(1), "steps", "return").axes
    first, second = axes.get_lines()
    assert np.array_equal(first.get_ydata(), np.sin(X))
    assert (first.get_linestyle(), second.get_linestyle()) == ("-", "--")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["plain", "banded"]
    assert len(axes.collections) == 1


def test_a_single_point_is_seen() -> None:
    lonely = Curve("one", "#0072b2", np.array([3.0]), np.array([1.0]))
    (axes,) = draw_curves([Panel("", [lonely])], "steps", "return").axes
    assert axes.get_lines()[0].get_marker() == "o"


def test_titles_are_not_formulas() -> None:
    figure = draw_curves([Panel("a$b$c", panels(1)[0].curves)], "steps", "return")
    assert "$" not in figure.axes[0].get_title()


@pytest.mark.parametrize("given", [[], [Panel("empty", [])]])
def test_nothing_to_draw(given: list[Panel]) -> None:
    with pytest.raises(ValueError, match="at least one curve"):
        draw_curves(given, "steps", "return")


def test_rows_share_a_scale_and_have_a_legend_each(tmp_path: Path) -> None:
    figure = draw_curve_rows({"first": panels(3), "second": panels(3)}, "steps", "return", limits=(-2.0, 3.0))
    grid = np.array(figure.axes).reshape(2, 3)
    assert all(axes.get_ylim() == (-2.0, 3.0) for axes in figure.axes)
    assert [axes.get_title() for axes in figure.axes] == ["panel 0", "panel 1", "panel 2", "", "", ""]
    assert [axes.get_xlabel() for axes in grid[:, 0]] == ["", "steps"]
    assert [axes.get_ylabel() for axes in grid[0]] == ["return", "", ""]
    for title, line in zip(("first", "second"), grid, strict=True):
        assert [axes.get_legend() is not None for axes in line] == [False, False, True]
        legend = line[-1].get_legend()
        assert legend.get_title().get_text() == title
        assert [text.get_text() for text in legend.get_texts()] == ["plain", "banded"]
    save_figure(figure, tmp_path / "rows.png")


def test_a_legend_has_what_any_panel_of_its_row_has() -> None:
    (both,) = panels(1)
    halves = [Panel("a", both.curves[:1]), Panel("b", []), Panel("c", both.curves[1:])]
    legend = draw_curve_rows({"": halves}, "steps", "return").axes[-1].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["plain", "banded"]


@pytest.mark.parametrize("given", [{}, {"": []}, {"": [Panel("empty", [])]}, {"a": panels(1), "b": panels(2)}])
def test_no_rows_to_draw(given: dict[str, list[Panel]]) -> None:
    with pytest.raises(ValueError, match="rows must be at least one"):
        draw_curve_rows(given, "steps", "return")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_far_value_does_not_hide_the_curves_but_far_values_of_a_whole_curve_are_shown(sign: float) -> None:
    near = Curve("near", "#0072b2", np.arange(100.0), np.linspace(0.0, 1.0, 100))
    dip = Curve("dip", "#000000", near.x, np.where(near.x == 3.0, sign * 50.0, 0.5))
    (axes,) = draw_curves([Panel("", [near, dip])], "steps", "return").axes
    assert max(np.abs(axes.get_ylim())) < 3.0
    far = Curve("far", "#000000", near.x, np.full(100, sign * 50.0))
    (axes,) = draw_curves([Panel("", [near, far])], "steps", "return").axes
    assert max(np.abs(axes.get_ylim())) >= 50.0


def test_bands_of_few_runs_do_not_hide_the_curves() -> None:
    x = np.arange(3.0)
    wide = Curve("two runs", "#000000", x, np.array([0.0, 5.0, 10.0]), x - 500.0, x + 500.0)
    low, high = draw_curves([Panel("one", [wide])], "steps", "return").axes[0].get_ylim()
    assert (low, high) == (-6.0, 16.0)
    narrow = Curve("many runs", "#000000", x, np.array([0.0, 5.0, 10.0]), x - 1.0, x + 9.0)
    low, high = draw_curves([Panel("one", [narrow])], "steps", "return").axes[0].get_ylim()
    assert low > -6.0
    assert low <= -1.0
    assert 11.0 <= high < 16.0
    flat = Curve("nothing learnt", "#000000", x, np.zeros(3), x - 5.0, x + 5.0)
    assert draw_curves([Panel("one", [flat])], "steps", "return").axes[0].get_ylim()[0] < -4.0


def test_a_long_legend_does_not_lie_on_the_curves() -> None:
    curves = [Curve(f"setting {number}", "#0072b2", X, np.sin(X + number)) for number in range(7)]
    figure = draw_curves([Panel(f"panel {number}", curves) for number in range(4)], "steps", "return")
    figure.canvas.draw()
    for axes in figure.axes:
        assert axes.get_legend().get_window_extent().y1 < axes.get_window_extent().y0
    left = {round(axes.get_position().x0, 2) for axes in figure.axes}
    assert len(left) == 2
