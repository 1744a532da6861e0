"""Heat maps of visits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import LogNorm, to_rgba

from holdfast.draw import CellLayout, save_figure
from holdfast.draw.heat_maps import draw_heat_maps, draw_visit_maps
from holdfast.draw.style import CELL_COLORS, MISSING

COUNTS = np.array([[[0, 1, 5], [0, 0, 70]], [[3, 0, 0], [0, 0, 0]]])
EDGES = np.array([0.0, 1.0, 2.0]), np.array([-1.0, 0.0, 1.0, 2.0])


def test_panels_show_the_counts_on_one_logarithmic_scale(tmp_path: Path) -> None:
    figure = draw_heat_maps(COUNTS, EDGES, ("across $", "up"), ["first", "second"], "A title", goal=1.5)
    assert figure.get_suptitle() == "A title"
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("across  ", "up")
    for axes, counts in zip(figure.axes[:2], COUNTS, strict=True):
        (mesh,) = axes.collections
        shown = mesh.get_array()
        assert np.ma.filled(shown, 0).tolist() == counts.T.tolist()
        assert np.ma.getmaskarray(shown).tolist() == (counts.T == 0).tolist()
        assert isinstance(mesh.norm, LogNorm)
        assert mesh.get_clim() == (1, 70)
        assert (axes.get_xlim(), axes.get_ylim()) == ((0.0, 2.0), (-1.0, 2.0))
        assert axes.get_lines()[0].get_xdata() == [1.5, 1.5]
        assert axes.get_facecolor() == to_rgba(MISSING)
    assert figure.axes[2].get_ylabel() == "visits"
    save_figure(figure, tmp_path / "map.png")


def test_places_may_be_empty_and_panels_go_on_below() -> None:
    counts = np.ones((5, 2, 3), dtype=np.int64)
    titles = ["a", "b", None, "c", "d"]
    figure = draw_heat_maps(counts, EDGES, ("x", "y"), titles, across=3)
    places = figure.axes[:6]
    assert [axes.get_title() for axes in places] == ["a", "b", "", "c", "d", ""]
    assert [axes.axison for axes in places] == [True, True, False, True, True, False]
    assert len({round(axes.get_position().y0, 2) for axes in places}) == 2
    # Numbers stand below the lowest panel of a column, and at the left.
    below = [axes.xaxis.get_tick_params()["labelbottom"] for axes in places if axes.axison]
    assert below == [False, False, True, True]


def test_nothing_visited_is_drawn_too(tmp_path: Path) -> None:
    figure = draw_heat_maps(np.zeros((1, 2, 3), dtype=np.int64), EDGES, ("x", "y"), ["nothing"])
    save_figure(figure, tmp_path / "map.png")


def test_a_grid_has_its_counts_where_its_cells_are(layout: CellLayout, tmp_path: Path) -> None:
    # Six cells and the state outside, which has no place.
    figure = draw_visit_maps(np.array([[9, 3, 0, 1, 0, 2, 50]]), layout, ["only"])
    axes = figure.axes[0]
    shown = axes.images[0].get_array()
    assert np.ma.filled(shown, 0).tolist() == [[9, 3, 0], [1, 0, 2]]
    assert axes.images[0].get_clim() == (1, 9)
    frames = {
        tuple(edge): [path.get_extents().min.round(2).tolist() for path in collection.get_paths()]
        for collection in axes.collections
        for edge in collection.get_edgecolor()
        if len(collection.get_paths()) == 1
    }
    assert frames[to_rgba(CELL_COLORS["hole"])] == [[1.58, -0.42]]
    assert frames[to_rgba(CELL_COLORS["goal"])] == [[1.58, 0.58]]
    save_figure(figure, tmp_path / "map.png")


def test_shapes_must_go_together(layout: CellLayout) -> None:
    with pytest.raises(ValueError, match=r"counts must have shape \(1, 2, 3\) .*, not \(2, 2, 3\)"):
        draw_heat_maps(COUNTS, EDGES, ("x", "y"), ["one"])
    with pytest.raises(ValueError, match=r"counts must have shape \(1, 2, 3\)"):
        draw_visit_maps(np.ones((1, 9)), layout, ["one"])
