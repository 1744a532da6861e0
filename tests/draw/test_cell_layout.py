import dataclasses
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from holdfast.draw import CellLayout, draw_map
from holdfast.draw.style import CELL_COLORS

NONE = np.zeros((2, 3), dtype=bool)


def test_masks_may_be_flat_and_are_the_layouts_own(layout: CellLayout) -> None:
    assert layout.holes.tolist() == [[False, False, True], [False, False, False]]
    assert layout.goals.shape == (2, 3)
    assert layout.n_cells == 6
    mine = np.zeros((2, 3), dtype=bool)
    other = CellLayout((2, 3), 4, mine, mine)
    mine[:] = True
    assert not other.holes.any()
    assert other.start_cell == (1, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        layout.start = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (((0, 3), 0, NONE, NONE), "rows must be a whole number of at least 1, not 0"),
        (((2, 3), 6, NONE, NONE), "start must be a cell in 0..5, not 6"),
        (((2, 3), 0, NONE.T, NONE), "goals must be a mask of bools of shape (2, 3), not bool of (3, 2)"),
        (((2, 3), 0, NONE, NONE * 1), "holes must be a mask of bools of shape (2, 3), not int64 of (2, 3)"),
    ],
)
def test_wrong_layouts_get_one_sentence(arguments: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        CellLayout(*arguments)
    assert str(caught.value) == sentence


def test_a_map_shows_holes_goal_and_start(layout: CellLayout) -> None:
    figure = draw_map(layout, "A small map")
    (axes,) = figure.axes
    assert axes.get_title() == "A small map"
    ground, ends = (image.get_array() for image in axes.images)
    assert tuple(ground[0, 0]) == to_rgba(CELL_COLORS["start"])
    assert tuple(ground[0, 1]) == to_rgba(CELL_COLORS["free"])
    assert tuple(ends[0, 2]) == to_rgba(CELL_COLORS["hole"])
    assert tuple(ends[1, 2]) == to_rgba(CELL_COLORS["goal"])
    assert ends[..., 3].sum() == 2  # the rest is clear
    assert {(text.get_text(), *text.get_position()) for text in axes.texts} == {("S", 0, 0), ("G", 2, 1)}


def test_a_map_may_have_no_start_and_no_title() -> None:
    figure = draw_map(CellLayout((2, 3), None, NONE, NONE))
    assert [text.get_text() for text in figure.axes[0].texts] == []
    assert figure.axes[0].get_title() == ""


def test_a_large_map_is_not_ruled() -> None:
    empty = np.zeros((300, 300), dtype=bool)
    figure = draw_map(CellLayout((300, 300), 0, empty, empty))
    assert len(figure.axes[0].collections) == 0
    assert len(figure.axes[0].texts) == 0
    assert max(figure.get_size_inches()) < 13
