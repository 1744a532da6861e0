"""Profiles of scores, and numbers with intervals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from holdfast.draw import (
    Curve,
    IntervalMark,
    IntervalPanel,
    draw_aggregates,
    draw_profiles,
    save_figure,
)

TAUS = np.linspace(0.0, 1.0, 11)
MARKS = [IntervalMark("first", "#0072b2", 0.5, 0.25, 1.0), IntervalMark("second", "#4d4d4d", 0.75)]


def test_profiles_are_drawn_as_they_are(tmp_path: Path) -> None:
    banded = Curve("banded", "#0072b2", TAUS, 1.0 - TAUS, 0.9 - 0.9 * TAUS, 1.0 - 0.9 * TAUS)
    plain = Curve("plain", "#4d4d4d", TAUS, 1.0 - TAUS**2, dash=1)
    figure = draw_profiles([banded, plain], "normalised score τ", "six games")
    (axes,) = figure.axes
    assert [line.get_ydata().tolist() for line in axes.get_lines()] == [
        (1.0 - TAUS).tolist(),
        (1.0 - TAUS**2).tolist(),
    ]
    assert len(axes.collections) == 1
    assert (axes.get_title(), axes.get_xlabel()) == ("six games", "normalised score τ")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["banded", "plain"]
    low, high = axes.get_ylim()
    assert low < 0.0
    assert high > 1.0
    save_figure(figure, tmp_path / "profiles.png")


@pytest.mark.parametrize("n", [1, 4, 6])
def test_a_panel_for_each_number_and_a_row_for_each_algorithm(n: int, tmp_path: Path) -> None:
    figure = draw_aggregates([IntervalPanel(f"panel {number}", MARKS) for number in range(n)])
    assert [axes.get_title() for axes in figure.axes] == [f"panel {number}" for number in range(n)]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["first", "second"]
    # Beside the first of a line, the names are not said again.
    named = [bool(axes.get_yticklabels()) for axes in figure.axes]
    assert named == [number % 4 == 0 for number in range(n)]
    save_figure(figure, tmp_path / "aggregates.png")


def test_marks_are_drawn_as_they_are_from_top_to_bottom() -> None:
    (axes,) = draw_aggregates([IntervalPanel("", MARKS)]).axes
    assert [list(line.get_xdata()) for line in axes.get_lines()] == [[0.5, 0.5], [0.75, 0.75]]
    assert [float(np.mean(line.get_ydata())) for line in axes.get_lines()] == [0.0, 1.0]
    bottom, top = axes.get_ylim()
    assert bottom > top
    # One mark has no interval.
    (bar,) = axes.patches
    assert (bar.get_x(), bar.get_x() + bar.get_width()) == (0.25, 1.0)
    left, right = axes.get_xlim()
    assert left < 0.25
    assert right > 1.0


def test_a_line_to_compare_with() -> None:
    (axes,) = draw_aggregates([IntervalPanel("P(better)", MARKS, reference=0.5)]).axes
    dashed = [line for line in axes.get_lines() if line.get_linestyle() == "--"]
    assert [list(line.get_xdata()) for line in dashed] == [[0.5, 0.5]]


def test_names_are_not_formulas() -> None:
    (axes,) = draw_aggregates([IntervalPanel("a$b$c", [IntervalMark("$x$", "#0072b2", 1.0)])]).axes
    assert "$" not in axes.get_title() + axes.get_yticklabels()[0].get_text()


@pytest.mark.parametrize(
    ("panels", "words"),
    [
        ([], "at least one mark each"),
        ([IntervalPanel("", [])], "at least one mark each"),
        ([IntervalPanel("", MARKS), IntervalPanel("", MARKS[:1])], "marks of the same labels"),
        ([IntervalPanel("", [IntervalMark("x", "#0072b2", math.nan)])], "finite numbers"),
    ],
)
def test_nothing_to_mark(panels: list[IntervalPanel], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        draw_aggregates(panels)


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="curves must be at least one"):
        draw_profiles([])
