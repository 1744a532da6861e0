import threading
from itertools import combinations
from pathlib import Path
from typing import BinaryIO

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from holdfast.draw import ALGORITHM_COLORS, algorithm_color, look, save_figure
from holdfast.draw.style import CELL_COLORS, OWN_COLORS, PALETTE
from holdfast.envs import grid_picture

TABULAR = ("q", "perq", "msa-q", "temporl-q", "ez-q")
DEEP = ("dqn", "perdqn", "msa-dqn", "temporl-dqn", "ez-dqn")
TWINS = {"td3": "dqn", "pertd3": "perdqn"}
CONTINUOUS = (*TWINS, "sac", "persac")


def figure_with_a_line() -> Figure:
    figure = Figure(figsize=(2, 1))
    figure.add_subplot().plot([0, 1], [1, 0])
    return figure


def test_every_algorithm_has_its_colour_and_shares_it_with_its_twin_only() -> None:
    assert set(ALGORITHM_COLORS) == {*TABULAR, *DEEP, *CONTINUOUS}
    for names in (TABULAR, DEEP, CONTINUOUS):
        assert len({algorithm_color(name) for name in names}) == len(names)
    assert [algorithm_color(name) for name in TABULAR] == [algorithm_color(name) for name in DEEP]
    assert all(algorithm_color(name) == algorithm_color(twin) for name, twin in TWINS.items())


def test_an_agent_of_ones_own_has_a_colour_that_none_of_the_list_has_with_discrete_actions() -> None:
    found = {algorithm_color(f"my_agents:Mine{number}") for number in range(20)}
    assert found == set(OWN_COLORS)
    assert not found & {algorithm_color(name) for name in (*TABULAR, *DEEP)}
    assert algorithm_color("my_agents:Mine1") == algorithm_color("my_agents:Mine1")


def as_seen_without_red_cones(color: str) -> np.ndarray:
    """A colour as a protanope sees it (Viénot, Brettel and Mollon 1999, in linear light)."""
    linear = np.array(to_rgb(color)) ** 2.2
    matrix = np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]])
    return np.clip(matrix @ linear, 0, 1) ** (1 / 2.2)


@pytest.mark.parametrize(
    "colors",
    [
        [algorithm_color(name) for name in TABULAR],
        [algorithm_color(name) for name in CONTINUOUS],
        list(CELL_COLORS.values()),
    ],
)
def test_colours_stay_apart_for_colour_blind_eyes(colors: list[str]) -> None:
    for one, other in combinations(colors, 2):
        assert np.linalg.norm(as_seen_without_red_cones(one) - as_seen_without_red_cones(other)) > 0.12
    red, green = (as_seen_without_red_cones(color) for color in ("#a05050", "#406050"))
    assert np.linalg.norm(red - green) < 0.01  # the test can tell


def test_the_look_leaves_matplotlib_as_it_was() -> None:
    before = dict(mpl.rcParams)
    with look():
        assert mpl.rcParams["axes.spines.top"] is False
    assert dict(mpl.rcParams) == before
    assert len(set(PALETTE.values())) == len(PALETTE)


def test_the_look_leaves_matplotlib_as_it_was_after_several_threads() -> None:
    before = dict(mpl.rcParams)
    inside: list[bool] = []
    first_in, second_tried = threading.Event(), threading.Event()

    def first() -> None:
        with look():
            first_in.set()
            second_tried.wait(timeout=0.2)  # time enough for the second to come in, were it let

    def second() -> None:
        first_in.wait(timeout=10)
        with look():
            second_tried.set()
            one.join(timeout=0.5)
            inside.append(mpl.rcParams["axes.spines.top"])

    one, other = threading.Thread(target=first), threading.Thread(target=second)
    for thread in (one, other):
        thread.start()
    for thread in (one, other):
        thread.join(timeout=10)
    try:
        assert inside == [False]
        assert dict(mpl.rcParams) == before
    finally:
        mpl.rcParams.update(before)  # a failure here is not to fail the tests that follow


def test_the_look_may_be_nested() -> None:
    before = dict(mpl.rcParams)
    with look(), look():
        assert mpl.rcParams["axes.spines.top"] is False
    assert dict(mpl.rcParams) == before


def test_pictures_and_environments_paint_cells_alike() -> None:
    painted = {"free": grid_picture._FREE, "start": grid_picture._START}
    painted |= {"goal": grid_picture._GOAL, "hole": grid_picture._HOLE}
    assert {name: to_hex(np.array(color) / 255) for name, color in painted.items()} == dict(CELL_COLORS)


@pytest.mark.parametrize(
    ("suffix", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml"), ("PNG", b"\x89PNG")]
)
def test_saving_makes_directories_and_leaves_one_file(tmp_path: Path, suffix: str, magic: bytes) -> None:
    path = tmp_path / "new" / "deep" / f"picture.{suffix}"
    before = dict(mpl.rcParams)
    assert save_figure(figure_with_a_line(), str(path)) == path
    assert path.read_bytes().startswith(magic)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_the_same_figure_gives_the_same_bytes(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{number}.{suffix}" for number in range(2)]
    for path, epoch in zip(paths, ("0", "1000000000"), strict=True):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)  # a day that would differ if it were written
        save_figure(figure_with_a_line(), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    path = save_figure(figure_with_a_line(), tmp_path / "picture.png")
    assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"old")

    def torn(self: Figure, target: BinaryIO, **_: object) -> None:
        target.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(Figure, "savefig", torn)
    with pytest.raises(OSError, match="disk full"):
        save_figure(figure_with_a_line(), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["picture", "picture.gif", "picture.png.bak"])
def test_a_format_must_be_known(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"^path must end in \.png, \.pdf or \.svg to save a figure, not"):
        save_figure(figure_with_a_line(), tmp_path / "new" / name)
    assert list(tmp_path.iterdir()) == []
