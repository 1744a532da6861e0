from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from holdfast.draw import CellLayout, save_figure
from holdfast.draw.grid_policy import draw_policy


@pytest.fixture
def q() -> np.ndarray:
    """On the shared layout (start 0, hole 2, goal 5): down once, then right for two steps."""
    q = np.zeros((6, 4, 3))
    q[0, 1] = [0.9, 0.9, 0.8]
    q[3, 2] = [0.95, 0.95, 0.95]
    q[4, 2] = [1.0, 0.0, 0.0]
    return q


def texts(figure: Figure, panel: int) -> list[str]:
    return [text.get_text() for text in figure.axes[panel].texts]


def long_arrows(figure: Figure) -> list[Any]:
    arrows = [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]
    return [arrow for arrow in arrows if arrow.get_linewidth() > 2.0]


def test_each_known_cell_has_an_arrow_and_its_hold(layout: CellLayout, q: np.ndarray) -> None:
    figure = draw_policy(q, layout, title="A policy")
    arrows = [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]
    short = [arrow for arrow in arrows if arrow.get_linewidth() < 2.0]
    assert len(short) == 3  # cell 1 is unknown, 2 a hole, 5 the goal
    assert [text for text in texts(figure, 0) if text != "G"][:3] == ["1", "1", "1"]
    assert figure.get_suptitle() == "A policy"


def test_the_way_has_one_long_arrow_per_decision(layout: CellLayout, q: np.ndarray) -> None:
    assert len(long_arrows(draw_policy(q, layout))) == 3
    figure = draw_policy(q, layout, decision_tolerance=0.0)  # (down, 2) bumps into the border, (right, 3) arrives
    assert len(long_arrows(figure)) == 2
    labels = [label.get_text() for label in figure.axes[1].get_yticklabels()]
    assert labels == ["1  down", "2  right"]


def test_the_chosen_hold_is_framed_among_the_values(layout: CellLayout, q: np.ndarray) -> None:
    figure = draw_policy(q, layout, decision_tolerance=0.0)
    values = figure.axes[1].images[0].get_array()
    np.testing.assert_array_equal(values, [q[0, 1], q[3, 2]])
    frames = [patch for patch in figure.axes[1].patches if isinstance(patch, Rectangle)]
    assert [frame.get_x() + 0.46 for frame in frames] == [1.0, 2.0]  # k = 2 and k = 3


def test_options_may_be_given(layout: CellLayout, q: np.ndarray) -> None:
    figure = draw_policy(q, layout, options=(np.full(6, 2), np.ones(6, dtype=int)))
    # Right from the start, right into the hole.
    assert [label.get_text() for label in figure.axes[1].get_yticklabels()] == ["1  right", "2  right"]


def test_a_policy_that_goes_round_in_circles_ends_where_it_began(layout: CellLayout) -> None:
    q = np.zeros((6, 4, 1))
    q[0, 2] = q[1, 0] = 1.0
    assert len(long_arrows(draw_policy(q, layout))) == 2


def test_without_a_start_there_is_no_way(layout: CellLayout, q: np.ndarray) -> None:
    bare = CellLayout(layout.shape, None, layout.goals, layout.holes)
    assert long_arrows(draw_policy(q, bare)) == []


def test_a_state_outside_the_grid_is_left_out(layout: CellLayout, q: np.ndarray, tmp_path: Any) -> None:
    with_outside = np.concatenate([q, np.zeros((1, 4, 3))])
    one, other = (
        save_figure(draw_policy(table, layout), tmp_path / f"{len(table)}.png") for table in (q, with_outside)
    )
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("shape", [(6, 4), (5, 4, 2), (6, 3, 2)])
def test_values_that_do_not_fit_are_refused(layout: CellLayout, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"q must have shape \(6, 4, K\)"):
        draw_policy(np.zeros(shape), layout)


def test_options_that_do_not_fit_are_refused(layout: CellLayout, q: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"options must be actions and persistences of shape \(6,\)"):
        draw_policy(q, layout, options=([0], [1]))


@pytest.mark.parametrize(
    "options",
    [
        (np.full(6, 4), np.ones(6, dtype=int)),
        (np.full(6, -1), np.ones(6, dtype=int)),
        (np.zeros(6, dtype=int), np.zeros(6, dtype=int)),
        (np.zeros(6, dtype=int), np.full(6, 4)),
        (np.full(6, 0.5), np.ones(6, dtype=int)),
        (np.zeros(6, dtype=int), np.full(6, 1.5)),
    ],
)
def test_options_that_there_are_not_are_refused(layout: CellLayout, q: np.ndarray, options: Any) -> None:
    with pytest.raises(ValueError, match=r"whole numbers: actions in 0\.\.3 and persistences in 1\.\.3"):
        draw_policy(q, layout, options=options)
