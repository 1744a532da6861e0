import numpy as np
import pytest

from holdfast.draw import CellLayout


@pytest.fixture
def layout() -> CellLayout:
    """Two rows, three columns: the start at 0, a hole at 2, the goal at 5."""
    cells = np.arange(6)
    return CellLayout((2, 3), 0, cells == 5, cells == 2)
