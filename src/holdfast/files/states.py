"""A nested state in a folder: one JSON document, and its arrays beside it; reading it executes nothing.

The document has the state's shape. Where the state has an array it says under which name it is in a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.errors import InputError, InputTypeError
from holdfast.files.arrays import read_arrays, write_arrays
from holdfast.files.documents import read_json, to_json
from holdfast.files.entries import Entry, as_entry
from holdfast.files.named_errors import sync

__all__ = ["read_document", "read_state", "write_state"]

DOCUMENT = "state.json"

_ARRAY, _FLOAT = "$array", "$float"
_SPECIAL = ("nan", "inf", "-inf")

Places = Mapping[str, tuple[str, ...]]
"""For each file of arrays, the part of the state that it holds, as the names that lead there.

The part of one file may be within that of another; ``()`` is everything.
"""


def write_state(folder: Path | Entry, state: Mapping[str, Any], places: Places, name: str = DOCUMENT) -> None:
    """Write ``state`` into ``folder``, onto the disk.

    Args:
        folder: An existing folder.
        state: Nested mappings and lists of arrays and JSON values.
        places: Which arrays go to which file.
        name: Of the document.

    Raises:
        TypeError: There is something else in the state.
    """
    arrays: dict[str, dict[str, NDArray[Any]]] = {name: {} for name in places}

    def packed(value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, np.ndarray):
            place = "/".join(path)
            found = arrays.get(_file_of(path, places))
            if found is None:
                raise InputTypeError(f"state must not have an array {place}: there is no file for it")
            if place in found:
                raise InputTypeError(f"state must not have two arrays that are both called {place}")
            found[place] = value
            return {_ARRAY: place}
        if isinstance(value, Mapping):
            names = {str(key) for key in value}
            if len(names) != len(value):
                raise InputTypeError(f"state must not have two names that are the same as text: {'/'.join(path)}")
            if names in ({_ARRAY}, {_FLOAT}):
                raise InputTypeError(
                    f"state must not have a mapping with only {_ARRAY} or {_FLOAT}: {'/'.join(path)}"
                )
            return {str(key): packed(item, (*path, str(key))) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [packed(item, (*path, str(number))) for number, item in enumerate(value)]
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {_FLOAT: str(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise InputTypeError(
            f"state must hold arrays and JSON values, and {'/'.join(path)} is {type(value).__name__}"
        )

    document = packed(state, ())
    place = as_entry(folder)
    for file, contents in arrays.items():
        write_arrays(place / file, contents)
        # The function above refers to itself and to this: without that, gigabytes would wait to be collected.
        contents.clear()
    with (place / name).create() as written:
        written.write(to_json(document, place / name).encode())
        sync(written)
    place.flush()


def read_state(
    folder: Path | Entry, places: Places, name: str = DOCUMENT, largest: int | None = None
) -> dict[str, Any]:
    """What ``write_state`` wrote; its arrays are views of the files.

    Args:
        folder: Where it is.
        places: Which arrays are in which file.
        name: Of the document.
        largest: Bytes that a file of arrays may have; see ``read_arrays``.

    Raises:
        ValueError: A file is missing, damaged or not of this kind.
    """
    within = as_entry(folder)
    arrays = {file: read_arrays(within / file, largest) for file in places}
    path = within / name
    used: set[tuple[str, str]] = set()

    def unpacked(value: Any, place: tuple[str, ...]) -> Any:
        if isinstance(value, list):
            return [unpacked(item, (*place, str(number))) for number, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if set(value) == {_FLOAT}:
            if value[_FLOAT] not in _SPECIAL:
                raise InputError(f"{path} is damaged: {str(value[_FLOAT])[:40]!r} is no number")
            return float(value[_FLOAT])
        if set(value) == {_ARRAY}:
            called = "/".join(place)
            file = _file_of(place, places)
            found = arrays.get(file, {}).get(called)
            if value[_ARRAY] != called or found is None:
                raise InputError(f"{path} is damaged: it must have an array {called[:200]!r}")
            used.add((file, called))
            return found
        return {key: unpacked(item, (*place, key)) for key, item in value.items()}

    state = unpacked(read_json(path), ())
    if not isinstance(state, dict):
        raise InputError(f"{path} is damaged: it must hold a mapping")
    if len(used) != sum(map(len, arrays.values())):
        raise InputError(f"{path} is damaged: there are arrays that it does not name")
    return state


def read_document(folder: Path | Entry) -> dict[str, Any]:
    """The document alone, without its arrays.

    Raises:
        ValueError: It is missing or damaged.
    """
    path = as_entry(folder) / DOCUMENT
    document = read_json(path)
    if not isinstance(document, dict):
        raise InputError(f"{path} is damaged: it must hold a mapping")
    return document


def _file_of(path: tuple[str, ...], places: Places) -> str:
    """The file for the array at ``path``: that of the smallest part that it is in; "" if there is none."""
    holders = [file for file, part in places.items() if path[: len(part)] == part]
    return max(holders, key=lambda file: len(places[file]), default="")
