import dataclasses
import pickle
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

from holdfast.envs import GridMap, GridWorld
from holdfast.envs.grid_map import _LARGEST_FILE, connected_cells
from holdfast.envs.maps import BRIDGE, CLIFF, OPEN, SYNC_GRID, ZIGZAG

SMALL = "S.#\n..G"


def test_reads_cells_row_by_row() -> None:
    grid = GridMap.parse(".#S.\nG..#\n...G")
    assert grid.shape == (3, 4)
    assert grid.n_cells == 12
    assert grid.start == 2
    assert np.flatnonzero(grid.goals).tolist() == [4, 11]
    assert np.flatnonzero(grid.holes).tolist() == [1, 7]
    assert grid.goals.shape == grid.holes.shape == (3, 4)


def test_masks_are_read_only_and_the_map_is_frozen() -> None:
    grid = GridMap.parse(SMALL)
    with pytest.raises(ValueError, match="read-only"):
        grid.holes[0, 0] = True
    with pytest.raises(dataclasses.FrozenInstanceError):
        grid.rows = ("SG",)  # type: ignore[misc]


def test_equal_maps_are_equal_and_survive_pickling() -> None:
    grid = GridMap.parse(SMALL)
    assert grid.start == 0  # a derived value was asked for before pickling
    assert pickle.loads(pickle.dumps(grid)) == grid == GridMap(("S.#", "..G"))
    assert len({grid, GridMap.parse(SMALL)}) == 1


@pytest.mark.parametrize(
    "text",
    [
        SMALL + "\n",
        "\n\n" + SMALL + "\n\n\n",
        SMALL.replace("\n", "\r\n") + "\r\n",
        "S.#\r..G",
        "  S.#  \n\t..G\n ",
    ],
)
def test_blank_edges_and_line_endings_do_not_matter(text: str) -> None:
    assert str(GridMap.parse(text)) == SMALL


@pytest.mark.parametrize(
    ("text", "length"),
    [(CLIFF, 15), (BRIDGE, 13), (ZIGZAG, 20), (OPEN, 18), (SYNC_GRID, 10), ("SG", 1), ("GS", 1)],
)
def test_shortest_paths_by_hand(text: str, length: int) -> None:
    assert GridMap.parse(text).shortest_path_length() == length


def test_the_nearest_of_two_goals_counts() -> None:
    assert GridMap.parse("G....S..G").shortest_path_length() == 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the map is empty: it must have at least one row"),
        (" \n\r\n ", "the map is empty: it must have at least one row"),
        ("..G", "the map has no start: exactly one cell must be S"),
        (
            "S.\n.S\nSG",
            "the map has 3 starts, but exactly one cell must be S: there is one in row 0, column 0 "
            "and one in row 1, column 1 (counted from 0)",
        ),
        ("S..", "the map has no goal: at least one cell must be G"),
        (
            "S..\n.\n..G",
            "every row of the map must be as long as row 0 (3 cells), but row 1 (counted from 0) has 1",
        ),
        (
            "S..\n\n..G",
            "every row of the map must be as long as row 0 (3 cells), but row 1 (counted from 0) has 0",
        ),
        (
            "S..\n.x.\n..G",
            "a map may have the letters S, G, # and . only, not 'x' as in row 1, column 1 (counted from 0)",
        ),
        (
            "S.é\n..G",
            "a map may have the letters S, G, # and . only, not 'é' as in row 0, column 2 (counted from 0)",
        ),
    ],
)
def test_wrong_maps_get_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match="map") as caught:
        GridMap.parse(text)
    assert str(caught.value) == sentence


def test_no_rows_and_no_text() -> None:
    with pytest.raises(ValueError, match="the map is empty"):
        GridMap(())
    with pytest.raises(TypeError, match="a map must be a text of the letters"):
        GridMap.parse(b"SG")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("S..G", "rows must be one text for each row, not the single text 'S..G': use GridMap.parse"),
        ((1, 2), "rows must be one text for each row, but row 0 (counted from 0) is 1"),
        (("SG", None), "rows must be one text for each row, but row 1 (counted from 0) is None"),
        (b"SG", "rows must be one text for each row, but row 0 (counted from 0) is 83"),
        (5, "rows must be one text for each row, not 5"),
        (None, "rows must be one text for each row, not None"),
    ],
)
def test_rows_that_are_no_texts_get_one_sentence(rows: Any, sentence: str) -> None:
    with pytest.raises(TypeError) as caught:
        GridMap(rows)
    assert str(caught.value) == sentence


def test_rows_may_come_in_any_sequence() -> None:
    assert GridMap(["S.", ".G"]) == GridMap(row for row in ("S.", ".G")) == GridMap(("S.", ".G"))  # type: ignore[arg-type]


def test_connected_cells_are_those_of_the_starts_region() -> None:
    walkable = np.array([[1, 1, 0, 1], [0, 1, 0, 1], [1, 0, 0, 1]], dtype=bool)
    assert np.flatnonzero(connected_cells(walkable, start=5)).tolist() == [0, 1, 5]
    assert np.flatnonzero(connected_cells(walkable, start=3)).tolist() == [3, 7, 11]


def test_a_goal_behind_holes_warns() -> None:
    with pytest.warns(
        UserWarning, match=r"^the goal in row 0, column 2 .* cannot be reached from the start: [^.]*$"
    ):
        grid = GridMap.parse("S#G\n.#.")
    assert grid.shortest_path_length() is None


def test_one_stranded_goal_of_two_warns() -> None:
    with pytest.warns(UserWarning, match="row 0, column 3"):
        grid = GridMap.parse("GS#G")
    assert grid.shortest_path_length() == 1


def test_a_goal_behind_a_goal_is_fine_and_diagonals_are_no_way() -> None:
    assert GridMap.parse("SGG").shortest_path_length() == 1
    with pytest.warns(UserWarning, match="cannot be reached"):
        GridMap.parse("S#\n#G")


def test_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes("\ufeffS.#\r\n..G\r\n".encode())
    assert GridMap.read(path) == GridMap.read(str(path)) == GridMap.parse(SMALL)


def test_file_errors_are_one_sentence(tmp_path: Path) -> None:
    missing, binary, wrong = (tmp_path / name for name in ("none.txt", "picture.png", "wrong.txt"))
    binary.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    wrong.write_text("S..")
    zeros = tmp_path / "zeros.txt"
    zeros.write_bytes(b"SG\0")
    for path, sentence in [
        (missing, "does not exist"),
        (tmp_path, "is a directory, not a text file"),
        (binary, "is not a text file"),
        (zeros, "is not a text file"),
    ]:
        with pytest.raises(ValueError, match="map file") as caught:
            GridMap.read(path)
        assert str(caught.value) == f"map file {str(path)!r} {sentence}"
    with pytest.raises(ValueError, match="map file") as caught:
        GridMap.read(wrong)
    assert str(caught.value) == f"map file {str(wrong)!r}: the map has no goal: at least one cell must be G"
    with pytest.raises(ValueError, match="cannot be read"):
        GridMap.read("SG\0.txt")


def test_an_endless_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("holdfast.envs.grid_map._LARGEST_FILE", 5)
    path = tmp_path / "long.txt"
    path.write_text("S...\n...G")
    with pytest.raises(ValueError, match=r"is too large: a map may have at most 5 bytes$"):
        GridMap.read(path)


@pytest.mark.parametrize(("slip", "gigabytes"), [(0.0, 1.0), (0.2, 4.0)])
def test_the_largest_map_has_a_model_of_the_size_that_is_said(slip: float, gigabytes: float) -> None:
    side = 150
    text = "S" + ("." * side + "\n") * side
    text = text.replace("S.", "S", 1)[: -len(".\n")] + "G"
    tracemalloc.start()
    try:
        model = GridWorld(text, slip=slip).tabular_mdp()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.n_states == side**2
    assert peak / side**2 * _LARGEST_FILE < 1.5 * gigabytes * 1e9


@st.composite
def map_texts(draw: st.DrawFn) -> str:
    rows, columns = draw(st.integers(1, 7)), draw(st.integers(2, 7))
    letters = draw(st.lists(st.sampled_from(".##G"), min_size=rows * columns, max_size=rows * columns))
    start, goal = draw(st.lists(st.integers(0, rows * columns - 1), min_size=2, max_size=2, unique=True))
    letters[start], letters[goal] = "S", "G"
    return "\n".join("".join(letters[row * columns : (row + 1) * columns]) for row in range(rows))


def graph_length(text: str) -> int | None:
    """Shortest way by Dijkstra's algorithm on the graph of all pairs of neighbours."""
    cells = {
        complex(row, column): letter
        for row, line in enumerate(text.split("\n"))
        for column, letter in enumerate(line)
    }
    number = {cell: index for index, cell in enumerate(cells)}
    edges = sp.lil_array((len(cells), len(cells)))
    for cell in cells:
        for neighbour in (cell + 1, cell - 1, cell + 1j, cell - 1j):
            if cells[cell] != "#" and cells.get(neighbour, "#") != "#":
                edges[number[cell], number[neighbour]] = 1
    start = list(cells.values()).index("S")
    distances = dijkstra(edges.tocsr(), indices=start)
    nearest = min(distances[number[cell]] for cell, letter in cells.items() if letter == "G")
    return int(nearest) if np.isfinite(nearest) else None


@settings(deadline=None)  # the time a loaded machine takes says nothing
@given(map_texts())
def test_any_map_is_printed_as_it_was_read_and_its_way_is_the_shortest(text: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        grid = GridMap.parse(text)
    assert str(grid) == text
    expected = graph_length(text)
    assert grid.shortest_path_length() == expected
    if expected is None:
        assert [warning.category for warning in caught] == [UserWarning]
