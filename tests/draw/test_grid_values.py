from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from holdfast.draw import CellLayout, draw_value_maps, save_figure
from holdfast.draw.style import CELL_COLORS


def panels_of(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_title()]


def color_bar_of(figure: Figure) -> Axes:
    (bar,) = [axes for axes in figure.axes if axes.get_ylabel()]
    return bar


def grid(rows: int, columns: int) -> CellLayout:
    cells = np.arange(rows * columns)
    return CellLayout((rows, columns), 0, cells == rows * columns - 1, cells == 2)


def test_one_panel_per_persistence_with_its_values(layout: CellLayout) -> None:
    values = np.arange(18.0).reshape(3, 2, 3)
    figure = draw_value_maps(values, layout, "A title")
    panels = panels_of(figure)
    assert [axes.get_title() for axes in panels] == ["$k = 1$", "$k = 2$", "$k = 3$"]
    assert figure.get_suptitle() == "A title"
    for panel, expected in zip(panels, values, strict=True):
        shown = panel.images[0].get_array()
        assert np.ma.getmaskarray(shown).tolist() == [[False, False, True], [False, False, True]]
        assert np.array_equal(shown.compressed(), expected.ravel()[[0, 1, 3, 4]])


def test_the_colour_bar_spans_all_panels_but_not_holes_and_goals(layout: CellLayout) -> None:
    values = np.zeros((2, 2, 3))
    values[0, 0, 0], values[1, 1, 1] = -3.0, 4.0
    values[:, 0, 2], values[:, 1, 2] = -1000.0, 1000.0  # the hole and the goal
    figure = draw_value_maps(values, layout, label="worth")
    bar = color_bar_of(figure)
    assert bar.get_ylabel() == "worth"
    assert bar.get_ylim() == (-3.0, 4.0)
    assert [panel.images[0].get_clim() for panel in panels_of(figure)] == [(-3.0, 4.0)] * 2


def test_holes_are_red_and_the_goal_is_green(layout: CellLayout) -> None:
    (panel,) = panels_of(draw_value_maps(np.zeros((1, 2, 3)), layout))
    ends = panel.images[1].get_array()
    assert tuple(ends[0, 2]) == to_rgba(CELL_COLORS["hole"])
    assert tuple(ends[1, 2]) == to_rgba(CELL_COLORS["goal"])
    (frame,) = panel.patches
    assert (frame.get_x() + frame.get_width() / 2, frame.get_y() + frame.get_height() / 2) == (0.0, 0.0)  # type: ignore[attr-defined]


def test_the_start_of_a_large_map_can_be_seen() -> None:
    (panel,) = panels_of(draw_value_maps(np.zeros((1, 400, 400)), grid(400, 400)))
    (frame,) = panel.patches
    # 400 cells share 11 inches: the frame's .07 inches are 2.5 cells.
    assert frame.get_width() == pytest.approx(0.07 * 400 / 11)  # type: ignore[attr-defined]
    assert frame.get_x() + frame.get_width() / 2 == pytest.approx(0.0)  # type: ignore[attr-defined]


def test_cells_smaller_than_a_pixel_are_blended() -> None:
    # Every other one of 600 by 600 cells is a hole. At 20 dots per inch they share 220 by 220 pixels: taken one
    # for each pixel, they would make stripes.
    rows, columns = np.indices((600, 600))
    layout = CellLayout((600, 600), None, np.zeros((600, 600), dtype=np.bool_), (rows + columns) % 2 == 0)
    figure = draw_value_maps(np.ones((1, 600, 600)), layout)
    figure.set_dpi(20)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    middle = np.asarray(canvas.buffer_rgba())[80:160, 80:160, :3]
    assert middle.std(axis=(0, 1)).max() < 10.0
    (panel,) = panels_of(draw_value_maps(np.zeros((1, 40, 40)), grid(40, 40)))
    assert {image.get_interpolation() for image in panel.images} == {"nearest"}


@pytest.mark.parametrize("extra", [0, 1])
def test_values_by_state_are_the_same_picture(layout: CellLayout, extra: int) -> None:
    by_state = np.arange(12.0 + 2 * extra).reshape(6 + extra, 2)
    panels = panels_of(draw_value_maps(by_state, layout))
    assert panels[1].images[0].get_array()[1, 0] == by_state[3, 1]
    assert panels[0].images[0].get_array()[0, 1] == by_state[1, 0]
    assert panels[1].images[0].get_clim() == (0.0, 9.0)


def test_numbers_stand_in_small_grids_only(layout: CellLayout) -> None:
    values = np.array([[[-0.004, 0.5, 9.0], [-0.25, 1.0, 9.0]]])
    (panel,) = panels_of(draw_value_maps(values, layout))
    written = {text.get_position(): text.get_text() for text in panel.texts}
    assert written == {(0, 0): "0", (1, 0): ".50", (0, 1): "−.25", (1, 1): "1.00", (2, 1): "G"}
    (panel,) = panels_of(draw_value_maps(np.zeros((1, 60, 60)), grid(60, 60)))
    assert [text.get_text() for text in panel.texts] == []


def test_the_numbers_can_be_read_on_their_ground(layout: CellLayout) -> None:
    (panel,) = panels_of(draw_value_maps(np.array([[[0.0, 0.0, 0], [100.0, 100.0, 0]]]), layout))
    colors = {text.get_text(): text.get_color() for text in panel.texts}
    assert colors["0"] == "black"
    assert colors["100"] == "white"


def test_missing_values_are_left_out(layout: CellLayout) -> None:
    values = np.array([[[np.nan, -np.inf, 0.0], [1.0, 2.0, 0.0]]])
    (panel,) = panels_of(draw_value_maps(values, layout))
    assert panel.images[0].get_clim() == (1.0, 2.0)
    assert np.ma.getmaskarray(panel.images[0].get_array())[0].all()
    assert sorted(text.get_text() for text in panel.texts) == ["1.00", "2.00", "G"]


@pytest.mark.parametrize("value", [0.0, 7.0, np.nan])
def test_one_value_everywhere_has_limits_around_it(layout: CellLayout, value: float) -> None:
    figure = draw_value_maps(np.full((2, 2, 3), value), layout)
    low, high = color_bar_of(figure).get_ylim()
    assert low < high
    if np.isfinite(value):
        assert (low + high) / 2 == value


@pytest.mark.parametrize(
    ("rows", "columns", "k_max", "across", "down"),
    [(6, 6, 6, 6, 1), (6, 10, 8, 4, 2), (10, 10, 16, 4, 4), (16, 16, 4, 2, 2), (6, 10, 5, 3, 2), (2, 60, 3, 1, 3)],
)
def test_panels_wrap_into_even_rows(rows: int, columns: int, k_max: int, across: int, down: int) -> None:
    figure = draw_value_maps(np.full((k_max, rows, columns), np.nan), grid(rows, columns))  # no numbers: quick
    panels = panels_of(figure)
    assert len(panels) == k_max
    layout_of_panels = panels[0].get_gridspec()
    assert layout_of_panels is not None
    assert (layout_of_panels.ncols, layout_of_panels.nrows) == (across, down)
    assert max(figure.get_size_inches()) < 14


def test_very_many_panels_still_fit_a_page() -> None:
    figure = draw_value_maps(np.zeros((64, 6, 10)), grid(6, 10))
    assert len(panels_of(figure)) == 64
    width, height = figure.get_size_inches()
    assert 10 < width < 16
    assert height < 16


def test_it_can_be_saved(layout: CellLayout, tmp_path: Path) -> None:
    figure = draw_value_maps(np.arange(12.0).reshape(2, 2, 3), layout, "Title")
    assert save_figure(figure, tmp_path / "maps.png").stat().st_size > 5000


@pytest.mark.parametrize("shape", [(2, 3), (3, 3, 2), (0, 2, 3), (6, 0), (8, 2), (6,), (1, 2, 2, 3)])
def test_shapes_must_go_with_the_layout(layout: CellLayout, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="values") as caught:
        draw_value_maps(np.zeros(shape), layout)
    assert str(caught.value) == (f"values must have shape (K, 2, 3) or (6, K) to match the layout, not {shape}")
