"""Tables of rows: columns by name, as arrays of one length."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.errors import InputError
from holdfast.files import make_folders, replace_file

__all__ = ["Table", "matrix", "select", "setting_column", "table_length", "titled_parts", "write_csv"]

Table = dict[str, NDArray[Any]]
"""Columns by name: float64 for numbers, texts otherwise, bools where every value is one."""

Floats = NDArray[np.float64]


def table_length(table: Mapping[str, Any]) -> int:
    """Number of rows."""
    return len(next(iter(table.values()), ()))


def select(table: Table, **where: Any) -> Table:
    """The rows in which every named column has the given value, or one of a list or tuple of values."""
    mask = np.ones(table_length(table), dtype=bool)
    for name, value in where.items():
        if name not in table:
            raise InputError(f"rows must have the column {name!r}, and they have {', '.join(table)}")
        mask &= np.isin(table[name], value) if isinstance(value, list | tuple) else table[name] == value
    return {name: column[mask] for name, column in table.items()}


def titled_parts(table: Table, name: str, titles: Mapping[Any, str]) -> dict[str, Table]:
    """The rows of each value of a column, by the value's title; values without rows are left out."""
    parts = {title: select(table, **{name: value}) for value, title in titles.items()}
    return {title: own for title, own in parts.items() if table_length(own) > 0}


def matrix(table: Table, value: str, over: str, by: str = "seed") -> tuple[Floats, Floats]:
    """One row per run.

    Args:
        table: Rows of one setting.
        value: The column of the values.
        over: The column that counts: episodes, iterations, steps.
        by: The column that tells runs apart.

    Returns:
        What is counted, (n,), and the values, (run, n), runs in the order of ``by``.

    Raises:
        ValueError: The runs do not share what is counted, or have a value of it twice.
    """
    order = np.lexsort((table[over], table[by]))
    runs, counts = np.unique(table[by], return_counts=True)
    if len(runs) == 0:
        raise InputError(f"rows must be at least one to be arranged by {by}")
    if len(set(counts)) != 1:
        raise InputError(f"rows must have as many values of {over} for each {by}")
    shape = len(runs), int(counts[0])
    counted = table[over][order].reshape(shape)
    if (counted != counted[0]).any() or (np.diff(counted[0]) == 0).any():
        raise InputError(f"rows must have the same values of {over} for each {by}, each of them once")
    return counted[0].astype(np.float64), table[value][order].reshape(shape).astype(np.float64)


def setting_column(values: Sequence[Any], lengths: Sequence[int]) -> NDArray[Any]:
    """The column of one name of the settings: each job's value, as often as it has rows; None where it has none.

    Numbers stay numbers, with NaN where there is none, if there is nothing else; so do bools, if all have one.
    Otherwise it is a column of texts.
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


def write_csv(table: Table, path: Path) -> Path:
    """Write a table, as a whole or not at all; reading gives the same numbers, to the last bit."""
    make_folders(path.parent)
    with replace_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*(_cells(column) for column in table.values()), strict=True))
        # The file is closed by who has opened it.
        text.detach()
    return path


def _cells(column: NDArray[Any]) -> Iterable[Any]:
    if column.dtype.kind == "f":
        return ("" if number != number else repr(number).removesuffix(".0") for number in column.tolist())
    if column.dtype.kind == "b":
        return ("true" if value else "false" for value in column.tolist())
    return list(column.tolist())
