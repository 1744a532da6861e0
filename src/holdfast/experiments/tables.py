"""Tables of rows: columns by name, as arrays of the same length."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.array_types import Floats
from holdfast.core.errors import InputError
from holdfast.files import make_folders, replace_file
from holdfast.stats.estimates import mean_interval

__all__ = [
    "Table",
    "matrix",
    "select",
    "setting_column",
    "table_length",
    "titled_parts",
    "with_interval",
    "write_csv",
]

Table = dict[str, NDArray[Any]]
"""Columns by name: float64 for numbers, bools if every value is one, strings otherwise."""


def table_length(table: Mapping[str, Any]) -> int:
    """Number of rows."""
    return len(next(iter(table.values()), ()))


def select(table: Table, **where: Any) -> Table:
    """The rows in which every named column has the given value, or one of a list or tuple of values."""
    mask = np.ones(table_length(table), dtype=bool)
    for name, value in where.items():
        if name not in table:
            raise InputError(f"rows must have the column {name!r}, but they have {', '.join(table)}")
        mask &= np.isin(table[name], value) if isinstance(value, list | tuple) else table[name] == value
    return {name: column[mask] for name, column in table.items()}


def titled_parts(table: Table, name: str, titles: Mapping[Any, str]) -> dict[str, Table]:
    """The rows for each value of a column, by the value's title; values without rows are left out."""
    parts = {title: select(table, **{name: value}) for value, title in titles.items()}
    return {title: own for title, own in parts.items() if table_length(own) > 0}


def matrix(table: Table, value: str, over: str, by: str = "seed") -> tuple[Floats, Floats]:
    """One row per run.

    Args:
        table: Rows of one setting.
        value: Column of the values.
        over: Column that counts: episodes, iterations, steps.
        by: Column that identifies the runs.

    Returns:
        The counts, (n,), and the values, (run, n), with runs in the order of ``by``.

    Raises:
        ValueError: The runs do not share the same counts, or repeat one.
    """
    order = np.lexsort((table[over], table[by]))
    runs, counts = np.unique(table[by], return_counts=True)
    if len(runs) == 0:
        raise InputError(f"there must be at least one row to arrange by {by}")
    if len(set(counts)) != 1:
        raise InputError(f"rows must have the same number of values of {over} for each {by}")
    shape = len(runs), int(counts[0])
    counted = table[over][order].reshape(shape)
    if (counted != counted[0]).any() or (np.diff(counted[0]) == 0).any():
        raise InputError(f"rows must have the same values of {over} for each {by}, each of them once")
    return counted[0].astype(np.float64), table[value][order].reshape(shape).astype(np.float64)


def setting_column(values: Sequence[Any], lengths: Sequence[int]) -> NDArray[Any]:
    """The column of one name of the settings: each job's value, once per row; None means that it has none.

    If all values are numbers or missing, the column has numbers, with NaN for missing ones; if all are bools,
    bools. Otherwise it is a column of strings.
    """
    if all(isinstance(value, bool) for value in values):
        column = np.array(values, dtype=bool)
    elif all(
        value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values
    ):
        column = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    else:
        column = np.array([_text(value) for value in values], dtype=np.str_)
    return np.repeat(column, lengths)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def with_interval(values: Floats) -> str:
    """The mean of one number per run, with half the width of its 95 % interval where there are several."""
    mean, _, high = map(float, mean_interval(values))
    return f"{mean:.1f}" + ("" if np.isnan(high) else f" ±{high - mean:.1f}")


def write_csv(table: Table, path: Path) -> Path:
    """Write a table, as a whole or not at all; reading it gives the same numbers, to the last bit."""
    make_folders(path.parent)
    with replace_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*(_cells(column) for column in table.values()), strict=True))
        # Whoever opened the file closes it.
        text.detach()
    return path


def _cells(column: NDArray[Any]) -> Iterable[Any]:
    if column.dtype.kind == "f":
        return ("" if number != number else repr(number).removesuffix(".0") for number in column.tolist())
    if column.dtype.kind == "b":
        return ("true" if value else "false" for value in column.tolist())
    return list(column.tolist())
