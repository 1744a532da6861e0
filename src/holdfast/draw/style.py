"""The style of all pictures: colours that are distinguishable to colour-blind readers, fonts, and saving.

Figures are made without pyplot and within ``look``, so that drawing does not change matplotlib's settings.
"""

from __future__ import annotations

import io
import os
import threading
import zlib
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
    "OWN_COLORS",
    "PAGE_SIDE",
    "PALETTE",
    "VALUE_COLORMAP",
    "algorithm_color",
    "figure_bytes",
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
"""Colour of text and axes."""

MISSING = "#d9d9d6"
"""Colour of cells without a value."""

_FAMILIES = {
    "grey": ("q", "dqn", "td3"),
    "blue": ("perq", "perdqn", "pertd3"),
    "orange": ("msa-q", "msa-dqn"),
    "green": ("temporl-q", "temporl-dqn"),
    "purple": ("ez-q", "ez-dqn"),
    "sky": ("sac",),
    "vermilion": ("persac",),
}

ALGORITHM_COLORS: Mapping[str, str] = MappingProxyType(
    {name: PALETTE[color] for color, names in _FAMILIES.items() for name in names}
)
"""Each algorithm's colour; a tabular algorithm and its deep twin share one, since they never share a picture."""

OWN_COLORS = (PALETTE["vermilion"], PALETTE["sky"])
"""Colours that no algorithm of the list with discrete actions has."""

_ACTION_COLORS = tuple(
    PALETTE[name] for name in ("vermilion", "grey", "sky", "green", "purple", "blue", "orange", "yellow")
)

CELL_COLORS: Mapping[str, str] = MappingProxyType(
    {"free": "#f7f7f4", "start": PALETTE["sky"], "goal": PALETTE["green"], "hole": PALETTE["vermilion"]}
)
"""Colours of a map's cells."""

VALUE_COLORMAP = "Blues"
"""For values, higher is darker; none of its colours can be mistaken for a hole's red or a goal's green."""

LARGEST_CELL = 0.42
"""Largest side of a cell, in inches."""

PAGE_SIDE = 11.0
"""Room for the cells of a picture in either direction, in inches."""

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
_UNDATED = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}


# All threads share matplotlib's settings: two threads that change them in turn would restore each other's.
_LOOK_LOCK = threading.RLock()


@contextmanager
def look() -> Iterator[None]:
    """A context in which matplotlib draws in this style; its settings are restored afterwards.

    Only one thread at a time can be inside; others wait. Within one thread it may be nested.
    """
    with _LOOK_LOCK, mpl.rc_context(_LOOK):
        yield


def algorithm_color(name: str) -> str:
    """The colour of an algorithm; one of a user's own has one of ``OWN_COLORS``, by its name."""
    own = OWN_COLORS[zlib.crc32(name.encode()) % len(OWN_COLORS)]
    return ALGORITHM_COLORS.get(name, own)


def told_apart(counts: Sequence[float]) -> dict[int, str]:
    """Colours of the actions that a picture distinguishes, by number: all of up to eight, else the top eight.

    Args:
        counts: (A,) weight of each action; the largest come first.
    """
    numbers = range(len(counts))
    if len(counts) <= len(_ACTION_COLORS):
        return {number: _ACTION_COLORS[number] for number in numbers}
    most = sorted(numbers, key=lambda number: -counts[number])[: len(_ACTION_COLORS)]
    return dict(zip(sorted(most), _ACTION_COLORS, strict=True))


def label_text(text: str) -> str:
    """Text from elsewhere, in a form that matplotlib shows literally: no formulas, never left out of a legend."""
    plain = text.replace("$", " ")
    return f" {plain}" if plain.startswith("_") else plain


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure to ``path``, as a whole or not at all; missing folders are made.

    The same figure gives the same bytes: no date is written into the file.

    Args:
        figure: The figure.
        path: The file; its suffix sets the format: .png, .pdf or .svg.

    Returns:
        The path.
    """
    target = Path(path)
    kind = target.suffix[1:].lower()
    if kind not in _FORMATS:
        raise InputError(f"path must end in .png, .pdf or .svg to save a figure, not {str(target)!r}")
    make_folders(target.parent)
    with replace_file(target) as file, look():
        figure.savefig(file, format=kind, metadata=_UNDATED[kind])
    return target


def figure_bytes(figure: Figure, dots_per_inch: float) -> bytes:
    """A figure as the content of a PNG file, for pages that hold their pictures.

    Args:
        figure: The figure.
        dots_per_inch: How large it is.
    """
    file = io.BytesIO()
    with look():
        figure.savefig(file, format="png", dpi=dots_per_inch, metadata=_UNDATED["png"])
    return file.getvalue()
