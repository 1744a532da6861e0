"""The map of a policy's choices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from holdfast.draw import HoldMap, draw_hold_map, save_figure
from holdfast.draw.style import action_color


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


def test_many_actions_are_not_listed() -> None:
    assert draw_hold_map(small_map(18)).axes[0].get_legend() is None


def test_without_an_episode() -> None:
    bare = replace(small_map(), path=np.empty((0, 2)), decided=np.empty(0, dtype=np.bool_))
    assert draw_hold_map(bare).axes[0].get_lines() == []


def test_shapes_must_go_together() -> None:
    with pytest.raises(ValueError, match=r"actions and holds must have shape \(2, 3\)"):
        draw_hold_map(replace(small_map(), holds=np.ones((3, 2), dtype=np.int64)))


def test_the_first_eight_actions_have_colours_of_their_own() -> None:
    assert len({action_color(number) for number in range(8)}) == 8
    assert action_color(8) == action_color(0)
