"""Pictures of holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.draw import draw_hold_histogram, draw_holds_over_training, draw_tolerance_sweep, save_figure


def test_shares_by_hand(tmp_path: Path) -> None:
    figure = draw_hold_histogram([0, 1, 0, 3], "a $ sign")
    (axes,) = figure.axes
    assert [bar.get_height() for bar in axes.patches] == [0.25, 0.0, 0.75]
    assert axes.texts[0].get_text() == "mean 2.5"
    assert "$" not in axes.get_title()
    save_figure(figure, tmp_path / "holds.png")


@pytest.mark.parametrize("holds", [[], [0, 0], [[1]]])
def test_nothing_to_count(holds: list[int]) -> None:
    with pytest.raises(ValueError, match="holds must be counts"):
        draw_hold_histogram(holds)


def test_a_sweep_shows_every_point(tmp_path: Path) -> None:
    figure = draw_tolerance_sweep(
        [0.0, 0.1, 1.0], [9, 5, 2], [1.0, 0.9, -1.0], [0.9, 0.8, np.nan], [1.1, 1.0, np.nan]
    )
    (axes,) = figure.axes
    assert axes.get_lines()[0].get_xdata().tolist() == [9, 5, 2]
    assert {text.get_text() for text in axes.texts} == {"tolerance 0", "tolerance 1"}
    save_figure(figure, tmp_path / "sweep.png")
    draw_tolerance_sweep([0.0], [3], [1.0], [1.0], [1.0], "one")


def test_holds_over_training_by_hand(tmp_path: Path) -> None:
    shares = [[1.0, 0.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]
    figure = draw_holds_over_training([100, 300, 400], shares, "a $ sign")
    axes = figure.axes[0]
    assert np.asarray(axes.collections[0].get_array()).T.tolist() == shares
    assert axes.get_lines()[0].get_ydata().tolist() == [1.0, 2.0, 3.0]
    # Each column reaches half-way to the next.
    assert axes.collections[0].get_coordinates()[0, :, 0].tolist() == [0.0, 200.0, 350.0, 450.0]
    assert "$" not in axes.get_title()
    save_figure(figure, tmp_path / "training.png")
    (one,) = draw_holds_over_training([8], [[0.2, 0.8]]).axes[:1]
    assert one.get_lines()[0].get_marker() == "o"
    assert one.collections[0].get_coordinates()[0, :, 0].tolist() == [4.0, 12.0]


@pytest.mark.parametrize(("steps", "shares"), [([1, 2], [[1.0]]), ([], []), ([1], [1.0])])
def test_shares_must_go_with_steps(steps: list[int], shares: list[object]) -> None:
    with pytest.raises(ValueError, match="shares must have shape"):
        draw_holds_over_training(steps, shares)
