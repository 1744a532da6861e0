"""The map of a policy's choices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from holdfast.draw import HoldMap, draw_hold_map, save_figure
from holdfast.draw.style import told_apart


def small_map(n_actions: int = 2) -> HoldMap:
    return HoldMap(
        x=np.array([0.0, 1.0, 2.0]),
        y=np.array([-1.0, 1.0]),
        actions=np.array([[0, 0, 1], [1, 1, 1]]),
        holds=np.array([[1, 2, 3], [4, 4, 1]]),
        k_max=4,
        names=("position", "velocity"),
        action_names=[f"go {number}" for number in range(n_actions)],
        path=np.array([[0.5, 0.0], [1.0, 0.5], [1.5, 0.5]]),
        decided=np.array([True, False, True]),
    )


def test_it_shows_the_choices_and_the_decisions(tmp_path: Path) -> None:
    figure = draw_hold_map(small_map(), "a $ sign")
    what, how_long = figure.axes[:2]
    assert np.asarray(what.collections[0].get_array()).tolist() == [[0, 0, 1], [1, 1, 1]]
    assert np.asarray(how_long.collections[0].get_array()).tolist() == [[1, 2, 3], [4, 4, 1]]
    assert [text.get_text() for text in what.get_legend().get_texts()] == ["go 0", "go 1"]
    assert (what.get_xlabel(), what.get_ylabel()) == ("position", "velocity")
    for axes in (what, how_long):
        path, dots = axes.get_lines()
        assert path.get_xdata().tolist() == [0.5, 1.0, 1.5]
        assert dots.get_xdata().tolist() == [0.5, 1.5]
    save_figure(figure, tmp_path / "map.png")


def test_of_many_actions_the_commonest_are_told_apart() -> None:
    many = replace(small_map(18), actions=np.array([[9, 9, 1], [2, 3, 17]]))
    listed = {text.get_text() for text in draw_hold_map(many).axes[0].get_legend().get_texts()}
    assert listed == {"go 9", "go 1", "go 2", "go 3", "go 17"}
    crowd = np.tile(np.arange(12), (2, 1))
    wide = replace(many, x=np.arange(12.0), y=np.arange(2.0), actions=crowd, holds=1 + 0 * crowd)
    assert [text.get_text() for text in draw_hold_map(wide).axes[0].get_legend().get_texts()][-1] == "others"
    assert len(draw_hold_map(wide).axes[0].get_legend().get_texts()) == 9


def test_names_are_shown_as_they_are() -> None:
    odd = replace(small_map(), action_names=["_hold", "a $ sign"], note="a $ note")
    figure = draw_hold_map(odd)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [" _hold", "a   sign"]
    assert figure._supxlabel.get_text() == "a   note"  # type: ignore[attr-defined]


def test_without_an_episode() -> None:
    bare = replace(small_map(), path=np.empty((0, 2)), decided=np.empty(0, dtype=np.bool_))
    assert draw_hold_map(bare).axes[0].get_lines() == []


def test_shapes_must_go_together() -> None:
    with pytest.raises(ValueError, match=r"actions and holds must have shape \(2, 3\)"):
        draw_hold_map(replace(small_map(), holds=np.ones((3, 2), dtype=np.int64)))


def test_eight_actions_have_colours_of_their_own() -> None:
    assert len(set(told_apart([0.0] * 8).values())) == 8
    assert sorted(told_apart([0, 5, 1, 9, 8, 7, 6, 4, 3, 2])) == [1, 3, 4, 5, 6, 7, 8, 9]
