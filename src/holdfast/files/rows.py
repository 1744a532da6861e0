"""Rows of numbers in a CSV file that only ever grows.

A checkpoint records the file's length at that moment. Continuing from a checkpoint cuts the file back to that
length, so that no row is repeated and none is torn.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from holdfast.core.errors import InputError
from holdfast.files.entries import Entry, as_entry
from holdfast.files.hollow import is_hollow
from holdfast.files.named_errors import sync

__all__ = ["Rows", "parse_numbers", "read_last_rows", "read_numbers", "read_row_bytes", "read_rows", "rows_bytes"]

Number = int | float | None

_LARGEST = 2**30
_LONGEST_LINE = 1024
_LONGEST_ANYWHERE = 2**20
"""Bytes within which a line must end; a file of zeros has no line ends at all."""


class Rows:
    """A CSV file to append to; ``begin`` opens it.

    Args:
        path: The file.
        columns: Names of the columns.
        length: Bytes to keep of an existing file; None begins a new one.

    Raises:
        ValueError: The file does not have these columns, or is shorter than ``length``.
    """

    def __init__(self, path: Path | Entry, columns: Sequence[str], length: int | None = None) -> None:
        self._entry = as_entry(path)
        self.path = self._entry.path
        self.columns = tuple(columns)
        self._length = length
        self._file: IO[bytes] | None = None
        if length is not None:
            self._check(length)

    def _check(self, length: int) -> None:
        header = self._header
        with self._entry.open_to_read() as file:
            if not len(header) <= length <= os.fstat(file.fileno()).st_size:
                raise InputError(f"{self.path} is shorter than it was at the last checkpoint")
            begins_right = file.read(len(header)) == header
            file.seek(length - 1)
            ends_right = file.read(1) == b"\n"
        if not (begins_right and ends_right):
            raise InputError(f"{self.path} is damaged: it must have the columns {', '.join(self.columns)}")

    @property
    def _header(self) -> bytes:
        return (",".join(self.columns) + "\n").encode()

    def begin(self) -> None:
        """Cut the file back to the length to keep, or begin a new one."""
        if self._length is None:
            self._file = self._entry.create()
            self._file.write(self._header)
            self._file.flush()
        else:
            self._file = self._entry.open_to_append(self._length)

    @property
    def _open_file(self) -> IO[bytes]:
        if self._file is None:
            raise ValueError("rows must be begun before they are appended")
        return self._file

    def append(self, *values: Number) -> None:
        """Append one row; reading it gives back the same numbers. None becomes an empty cell."""
        if len(values) != len(self.columns):
            raise ValueError(f"a row must have {len(self.columns)} values, not {len(values)}")
        self._open_file.write((",".join(map(_cell, values)) + "\n").encode())

    def flush(self) -> int:
        """Wait until all rows are on disk; return the file's length."""
        sync(self._open_file)
        return self._open_file.tell()

    def show(self) -> None:
        """Make all rows visible to other readers."""
        self._open_file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_rows(
    path: Path | Entry, columns: Sequence[str] | None = None, length: int | None = None
) -> dict[str, list[float]]:
    """The columns of a file of ``Rows``; empty cells become NaN, and a torn last line is left out.

    Args:
        path: The file.
        columns: Columns that it must have, possibly among others.
        length: Bytes to read; None for all.

    Raises:
        ValueError: The file is not of this kind.
    """
    return _columns(read_row_bytes(path, length), path, columns)


def read_row_bytes(path: Path | Entry, length: int | None = None) -> bytes:
    """The contents of a file of ``Rows``; a file that claims to be large but has no rows is not read to its end.

    Args:
        path: The file.
        length: Bytes to read; None for all.

    Raises:
        ValueError: The file is missing, too large, or not of this kind.
    """
    if length is not None and length > _LARGEST:
        raise InputError(f"{path} is too large: rows may have at most {_LARGEST >> 20} MB")
    left = _LARGEST if length is None else length
    parts = []
    has_zeros = False
    with as_entry(path).open_to_read(_LARGEST if length is None else None, "rows") as file:
        if is_hollow(file.fileno()):
            raise InputError(f"{path} is damaged: it consists almost entirely of holes")
        while part := file.read(min(_LONGEST_ANYWHERE, left)):
            if len(part) == _LONGEST_ANYWHERE and b"\n" not in part:
                raise InputError(f"{path} is damaged: it has a line of more than {_LONGEST_ANYWHERE >> 20} MB")
            # A crash may leave zeros at the end; a line of zeros is not a row, however many there are.
            zero = 0 if has_zeros else part.find(b"\0")
            has_zeros = zero >= 0
            if has_zeros and len(part) == _LONGEST_ANYWHERE and b"\n" in part[zero:]:
                raise InputError(f"{path} is damaged: it has zero bytes in its lines")
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


def read_last_rows(path: Path | Entry, columns: Sequence[str], n: int) -> dict[str, list[float]]:
    """The last ``n`` rows of a file of ``Rows``, without reading the others.

    Raises:
        ValueError: The file is not of this kind.
    """
    with as_entry(path).open_to_read() as file:
        header = file.readline(_LONGEST_LINE)
        begin = max(len(header), os.fstat(file.fileno()).st_size - n * _LONGEST_LINE)
        file.seek(begin)
        data = file.read(n * _LONGEST_LINE)
    if begin > len(header):
        data = data[data.find(b"\n") + 1 :]
    found = _columns(header + data, path, columns)
    return {name: values[-n:] for name, values in found.items()}


def read_numbers(path: Path | Entry, columns: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """The columns of a file of ``Rows`` with exactly these columns, as arrays; faster if there are many rows.

    Raises:
        ValueError: The file is not of this kind.
    """
    return parse_numbers(read_row_bytes(path), columns, path)


def parse_numbers(data: bytes, columns: Sequence[str], path: Path | Entry) -> dict[str, NDArray[np.float64]]:
    """Like ``read_numbers``, for bytes that were already read from ``path``.

    Raises:
        ValueError: The file is not of this kind.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # raised for a file without rows
            lines = io.StringIO(data.decode())
            table = np.loadtxt(lines, delimiter=",", skiprows=1, ndmin=2, comments=None)
    except ValueError:
        # Empty cells or damage; the other reader tells them apart.
        table = np.array(list(_columns(data, path, columns).values())).T
    if table.size == 0:
        table = np.empty((0, len(columns)))
    if table.shape[1] != len(columns):
        raise InputError(f"{path} is damaged: it must have the columns {', '.join(columns)}")
    return {name: table[:, index] for index, name in enumerate(columns)}


def rows_bytes(columns: Mapping[str, Sequence[Number]]) -> bytes:
    """The contents of a file of ``Rows`` with these columns, which must have the same length."""
    lines = [",".join(columns)]
    lines += map(",".join, zip(*(map(_cell, values) for values in columns.values()), strict=True))
    return ("\n".join(lines) + "\n").encode()


def _columns(data: bytes, path: Path | Entry, columns: Sequence[str] | None) -> dict[str, list[float]]:
    text = data.decode("utf-8", errors="replace")
    lines = text[: text.rfind("\n") + 1].splitlines()
    if not lines:
        raise InputError(f"{path} is empty")
    names = lines[0].split(",")
    missing = [name for name in columns or () if name not in names]
    if missing or len(set(names)) != len(names):
        raise InputError(f"{path} is damaged: it must have the columns {', '.join(columns or names)}, each once")
    found: dict[str, list[float]] = {name: [] for name in names}
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split(",")
        if len(cells) != len(names):
            raise InputError(f"{path} is damaged: line {number} must have {len(names)} values, not {len(cells)}")
        for name, cell in zip(names, cells, strict=True):
            try:
                found[name].append(float(cell) if cell else float("nan"))
            except ValueError:
                raise InputError(f"{path} is damaged: {cell[:40]!r} in line {number} is not a number") from None
    return found


def _cell(value: Number) -> str:
    if value is None:
        return ""
    # As a float, because NumPy's scalars have their own representation.
    return repr(float(value)).removesuffix(".0")
