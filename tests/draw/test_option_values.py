"""Values over k at a state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.draw import draw_option_values, save_figure

VALUES = np.array([[1.0, 3.0, 2.0], [0.0, -1.0, -2.0]])


def test_lines_and_the_choice(tmp_path: Path) -> None:
    figure = draw_option_values([VALUES, -VALUES], [(0, 2), (1, 3)], ["left", "right"], ["first", "second"])
    first, second = figure.axes
    assert [line.get_ydata().tolist() for line in first.get_lines()] == [[1, 3, 2], [0, -1, -2], [3]]
    assert first.get_lines()[2].get_xdata().tolist() == [2]
    assert second.get_lines()[2].get_ydata().tolist() == [2]
    assert [first.get_title(), second.get_title()] == ["first", "second"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["left", "right", "chosen"]
    save_figure(figure, tmp_path / "values.png")


def test_a_sparse_set_lies_where_its_persistences_are() -> None:
    (axes,) = draw_option_values([VALUES], [(0, 4)], ["left", "right"], ["here"], persistences=(1, 4, 16)).axes
    *lines, chosen = axes.get_lines()
    assert [line.get_xdata().tolist() for line in lines] == [[1, 4, 16]] * 2
    assert (chosen.get_xdata().tolist(), chosen.get_ydata().tolist()) == ([4], [3])


def test_of_many_actions_the_best_have_names() -> None:
    values = np.arange(20.0)[:, None] * np.ones((1, 3))
    figure = draw_option_values([values], [(19, 1)], [f"_go {number}" for number in range(20)], ["here"], "J")
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["others", *(f" _go {number}" for number in range(12, 20)), "chosen"]
    assert figure.axes[0].get_ylabel() == "J"


def test_one_persistence_alone() -> None:
    (axes,) = draw_option_values([VALUES[:, :1]], [(0, 1)], ["left", "right"], ["here"]).axes
    assert len(axes.get_lines()) == 3


@pytest.mark.parametrize("values", [[], [VALUES[0]], [VALUES.T]])
def test_tables_must_fit(values: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match=r"values must be at least one table of shape \(2, K\)"):
        draw_option_values(values, [(0, 1)] * len(values), ["left", "right"], ["here"] * len(values))
