"""A nested state in a folder: one JSON document with its arrays beside it; reading it executes nothing.

The document has the shape of the state. In place of each array it has the array's name in its file. It also has
the number of this layout, and the checksums of all the files, including its own.
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
from holdfast.files.digests import SHA256, check_seal, sealed
from holdfast.files.documents import parse_json, read_json_bytes
from holdfast.files.entries import Entry, as_entry
from holdfast.files.named_errors import sync

__all__ = ["FORMAT", "NewerFormatError", "read_document", "read_state", "write_state"]

FORMAT = 2
"""Number of the layout; 1, which had no checksums, can still be read."""

DOCUMENT = "state.json"
_FORMAT_NAME = "format"
_RESERVED = (_FORMAT_NAME, SHA256)

_ARRAY, _FLOAT = "$array", "$float"
_SPECIAL = ("nan", "inf", "-inf")

Places = Mapping[str, tuple[str, ...]]
"""For each file of arrays, the part of the state that it holds, as the names that lead to that part.

One file's part may lie within another's; ``()`` is the whole state.
"""


class NewerFormatError(InputError):
    """An undamaged state that a newer version of holdfast has written."""


def write_state(folder: Path | Entry, state: Mapping[str, Any], places: Places, name: str = DOCUMENT) -> None:
    """Write ``state`` into ``folder`` and flush to disk.

    Args:
        folder: An existing folder.
        state: Nested mappings and lists of arrays and JSON values.
        places: Which arrays go into which file.
        name: Document's name.

    Raises:
        TypeError: The state contains anything else.
    """
    if not state.keys().isdisjoint(_RESERVED):
        raise InputTypeError(f"state must not have the names {' and '.join(_RESERVED)}, which the document needs")
    arrays: dict[str, dict[str, NDArray[Any]]] = {name: {} for name in places}

    def packed(value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, np.ndarray):
            place = "/".join(path)
            found = arrays.get(_file_of(path, places))
            if found is None:
                raise InputTypeError(f"state must not have an array {place}: there is no file for it")
            if place in found:
                raise InputTypeError(f"state must not have two arrays with the name {place}")
            found[place] = value
            return {_ARRAY: place}
        if isinstance(value, Mapping):
            names = {str(key) for key in value}
            if len(names) != len(value):
                raise InputTypeError(f"state must not have two names with the same text: {'/'.join(path)}")
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
            f"state must hold arrays and JSON values, but {'/'.join(path)} is {type(value).__name__}"
        )

    document = packed(state, ())
    place = as_entry(folder)
    digests = {}
    for file, contents in arrays.items():
        digests[file] = write_arrays(place / file, contents)
        # The function above refers to itself and to this: unless cleared, gigabytes would wait for collection.
        contents.clear()
    with (place / name).create() as written:
        written.write(sealed({_FORMAT_NAME: FORMAT, **document}, digests, place / name))
        sync(written)
    place.flush()


def read_state(
    folder: Path | Entry,
    places: Places,
    name: str = DOCUMENT,
    largest: int | None = None,
    are_numbers_checked: bool = True,
) -> dict[str, Any]:
    """Read what ``write_state`` wrote; the arrays are views of the files.

    The files are compared with their checksums before anything in them is used.

    Args:
        folder: The state's folder.
        places: Which arrays are in which file.
        name: Document's name.
        largest: Largest size of a file of arrays, in bytes; see ``read_arrays``.
        are_numbers_checked: Whether to compare the files of arrays with their checksums, which reads them whole;
            the document is always compared.

    Raises:
        NewerFormatError: A newer version of holdfast has written it.
        ValueError: A file is missing, damaged or not of this kind.
    """
    within = as_entry(folder)
    path = within / name
    document, digests = _checked_document(path)
    arrays = {}
    for file in places:
        if digests is not None and file not in digests:
            raise InputError(f"{path} is damaged: it must have the checksum of {file}")
        digest = digests[file] if digests is not None and are_numbers_checked else None
        arrays[file] = read_arrays(within / file, largest, digest)
    used: set[tuple[str, str]] = set()

    def unpacked(value: Any, place: tuple[str, ...]) -> Any:
        if isinstance(value, list):
            return [unpacked(item, (*place, str(number))) for number, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if set(value) == {_FLOAT}:
            if value[_FLOAT] not in _SPECIAL:
                raise InputError(f"{path} is damaged: {str(value[_FLOAT])[:40]!r} is not a number")
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

    state: dict[str, Any] = unpacked(document, ())
    if len(used) != sum(map(len, arrays.values())):
        raise InputError(f"{path} is damaged: it does not name all arrays of its files")
    return state


def read_document(folder: Path | Entry) -> dict[str, Any]:
    """The document alone, compared with its checksum, without its arrays.

    Raises:
        NewerFormatError: A newer version of holdfast has written it.
        ValueError: It is missing or damaged.
    """
    return _checked_document(as_entry(folder) / DOCUMENT)[0]


def _checked_document(path: Entry) -> tuple[dict[str, Any], Mapping[str, str] | None]:
    """The document without its format and checksums, and the checksums; None for format 1, which had none.

    Raises:
        NewerFormatError: A newer version of holdfast has written it.
        ValueError: It is missing or damaged.
    """
    text = read_json_bytes(path)
    document = parse_json(text, path)
    if not isinstance(document, dict):
        raise InputError(f"{path} is damaged: it must hold a mapping")
    found = document.get(_FORMAT_NAME)
    if type(found) is not int:
        raise InputError(f"{path} is damaged: it must have a whole number as {_FORMAT_NAME!r}")
    is_known = 1 <= found <= FORMAT
    told = f"{path} has format {found}, and this version of holdfast reads 1 to {FORMAT}"
    digests = None
    if found != 1 or SHA256 in document:
        try:
            digests = check_seal(text, document, path)
        except InputError:
            if is_known:
                raise
            raise InputError(f"{told}, or it is damaged") from None
    if not is_known:
        raise NewerFormatError(told)
    return {key: value for key, value in document.items() if key not in _RESERVED}, digests


def _file_of(path: tuple[str, ...], places: Places) -> str:
    """The file for the array at ``path``: the one whose part most closely contains it; "" if there is none."""
    holders = [file for file, part in places.items() if path[: len(part)] == part]
    return max(holders, key=lambda file: len(places[file]), default="")
