from __future__ import annotations

import numpy as np
import pytest

from holdfast.envs import make_env
from holdfast.experiments.grid_cells import cell_columns, cell_layout, cell_letters, on_grid

GRIDS = ("cliff", "bridge", "zigzag", "sync-grid")


@pytest.mark.parametrize("name", GRIDS)
def test_a_map_comes_back_from_its_rows_in_any_order(name: str) -> None:
    columns = cell_columns(name)
    mixed = np.random.default_rng(0).permutation(len(columns["cell"]))
    rows = {column: values[mixed].astype(float) for column, values in columns.items()}
    grid = make_env(name).unwrapped.map  # type: ignore[attr-defined]
    assert "\n".join("".join(line) for line in cell_letters(rows)) == str(grid)
    layout = cell_layout(rows)
    assert layout.shape == grid.shape
    assert layout.start == grid.start
    assert np.array_equal(layout.goals, np.reshape(grid.goals, grid.shape))
    assert np.array_equal(layout.holes, np.reshape(grid.holes, grid.shape))


def test_a_column_on_the_grid() -> None:
    rows = {"row": np.array([1.0, 0.0]), "column": np.array([0.0, 2.0]), "value": np.array([5.0, 7.0])}
    expected = [[np.nan, np.nan, 7.0], [5.0, np.nan, np.nan]]
    np.testing.assert_array_equal(on_grid(rows, "value"), expected)
