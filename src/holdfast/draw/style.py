"""The one look of all pictures: colours that colour-blind eyes tell apart, fonts, and how a picture is saved.

Figures are made without pyplot and under ``look``, so that drawing leaves matplotlib's settings as they were.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from holdfast.core.errors import InputError
from holdfast.files import make_folders, replace_file

__all__ = [
    "ALGORITHM_COLORS",
    "CELL_COLORS",
    "INK",
    "LARGEST_CELL",
    "MISSING",
    "PAGE_SIDE",
    "PALETTE",
    "VALUE_COLORMAP",
    "algorithm_color",
    "label_text",
    "look",
    "save_figure",
    "told_apart",
]

PALETTE: Mapping[str, str] = MappingProxyType(
    {
        "grey": "#4d4d4d",
        "blue": "#0072b2",
        "orange": "#e69f00",
        "green": "#009e73",
        "purple": "#cc79a7",
        "sky": "#56b4e9",
        "vermilion": "#d55e00",
        "yellow": "#f0e442",
    }
)
"""Okabe and Ito's colours, by name."""

INK = "#22262a"
"""Text and axes."""

MISSING = "#d9d9d6"
"""Cells without a value."""

_FAMILIES = {
    "grey": ("q", "dqn", "td3"),
    "blue": ("perq", "perdqn", "pertd3"),
    "orange": ("msa-q", "msa-dqn"),
    "green": ("temporl-q", "temporl-dqn"),
    "purple": ("ez-q", "ez-dqn"),
}

ALGORITHM_COLORS: Mapping[str, str] = MappingProxyType(
    {name: PALETTE[color] for color, names in _FAMILIES.items() for name in names}
)
"""Each algorithm's colour; a tabular algorithm and its deep twin share one, they never meet in a picture."""

_ACTION_COLORS = tuple(
    PALETTE[name] for name in ("vermilion", "grey", "sky", "green", "purple", "blue", "orange", "yellow")
)

CELL_COLORS: Mapping[str, str] = MappingProxyType(
    {"free": "#f7f7f4", "start": PALETTE["sky"], "goal": PALETTE["green"], "hole": PALETTE["vermilion"]}
)
"""What the cells of a map are painted with."""

VALUE_COLORMAP = "Blues"
"""For values, the higher the darker: neither a hole's red nor a goal's green can be taken for one of them."""

LARGEST_CELL = 0.42
"""Inches of a cell's side, at most."""

PAGE_SIDE = 11.0
"""Inches that the cells of a picture may take in either direction."""

_LOOK: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.7,
    "axes.grid": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "white",
    "figure.dpi": 100.0,
    "figure.titlesize": 11.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "savefig.bbox": "tight",
    "savefig.dpi": 200.0,
    "savefig.pad_inches": 0.08,
    "savefig.facecolor": "white",
    "pdf.fonttype": 42,
    "svg.hashsalt": "holdfast",
}

_FORMATS = ("png", "pdf", "svg")


# Matplotlib's settings are one for all threads: two that change them by turns would each restore the other's.
_LOOK_LOCK = threading.RLock()


@contextmanager
def look() -> Iterator[None]:
    """A context in which matplotlib draws with this look; its settings are as before afterwards.

    One thread at a time is in it, the others wait; within one thread it may be nested.
    """
    with _LOOK_LOCK, mpl.rc_context(_LOOK):
        yield


def algorithm_color(name: str) -> str:
    """The colour of an algorithm.

    Raises:
        ValueError: There is no such algorithm.
    """
    try:
        return ALGORITHM_COLORS[name]
    except (KeyError, TypeError):
        raise InputError(f"name must be one of {', '.join(ALGORITHM_COLORS)}, not {name!r}") from None


def told_apart(counts: Sequence[float]) -> dict[int, str]:
    """Colours of the actions that a picture tells apart, by number: all of up to eight, else the eight first.

    Args:
        counts: (A,) how much each action counts; the largest come first.
    """
    numbers = range(len(counts))
    if len(counts) <= len(_ACTION_COLORS):
        return {number: _ACTION_COLORS[number] for number in numbers}
    most = sorted(numbers, key=lambda number: -counts[number])[: len(_ACTION_COLORS)]
    return dict(zip(sorted(most), _ACTION_COLORS, strict=True))


def label_text(text: str) -> str:
    """A text from elsewhere as matplotlib shows it as it is: no formulas in it, and none that is left out."""
    plain = text.replace("$", " ")
    return f" {plain}" if plain.startswith("_") else plain


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure to ``path``, as a whole or not at all; directories on the way are made.

    The same figure gives the same bytes: no date is written into the file.

    Args:
        figure: What to save.
        path: Where to; its suffix says the format, .png, .pdf or .svg.

    Returns:
        The path.
    """
    target = Path(path)
    kind = target.suffix[1:].lower()
    if kind not in _FORMATS:
        raise InputError(f"path must end in .png, .pdf or .svg to save a figure, not {str(target)!r}")
    make_folders(target.parent)
    undated = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[kind]
    with replace_file(target) as file, look():
        figure.savefig(file, format=kind, metadata=undated)
    return target
