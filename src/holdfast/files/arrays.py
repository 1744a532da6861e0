"""Named arrays in one file in the safetensors format: a JSON header and the numbers, nothing that could run.

The safetensors library reads the files that this module writes, and the other way round. This module writes arrays
without copying them in memory, and what it reads is a view of the file: an array costs nothing until its shape has
been checked and its numbers are used.

Layout: eight bytes with the header's length, the header with the type, shape and position of every array, then the
numbers of all arrays, one after the other.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.errors import InputError, InputTypeError
from holdfast.files.digests import check_digest
from holdfast.files.documents import parse_json
from holdfast.files.entries import Entry, as_entry
from holdfast.files.hollow import is_hollow
from holdfast.files.named_errors import sync

__all__ = ["read_arrays", "write_arrays"]

_TYPES = {
    "BOOL": "?",
    "U8": "|u1",
    "I8": "|i1",
    "U16": "<u2",
    "I16": "<i2",
    "F16": "<f2",
    "U32": "<u4",
    "I32": "<i4",
    "F32": "<f4",
    "U64": "<u8",
    "I64": "<i8",
    "F64": "<f8",
}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}

_RESERVED = "__metadata__"
_PREFIX = 8
_LARGEST_HEADER = 100_000_000
_MOST_DIMENSIONS = 32


def write_arrays(path: Path | Entry, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Write ``arrays`` to ``path`` and flush to disk; an existing file is replaced.

    Returns:
        The SHA-256 of what was written.

    Raises:
        TypeError: An array's type does not exist in the format.
        ValueError: An array has the name that the format reserves.
    """
    if _RESERVED in arrays:
        raise InputError(f"arrays must not be called {_RESERVED!r}, which the format reserves")
    # Longest numbers first, so that every array begins at a multiple of its number size.
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    header: dict[str, Any] = {}
    place = 0
    for name, array in ordered:
        little_endian = array.dtype.newbyteorder("<")
        if little_endian not in _NAMES:
            raise InputTypeError(f"arrays must be of numbers or booleans, and {name!r} is of {array.dtype}")
        header[name] = {
            "dtype": _NAMES[little_endian],
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _PREFIX)
    digest = sha256()
    with as_entry(path).create() as file:

        def put(data: bytes | memoryview) -> None:
            file.write(data)
            digest.update(data)

        put(len(text).to_bytes(_PREFIX, "little") + text)
        for _, array in ordered:
            if array.size:
                whole = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
                put(whole.reshape(-1).view(np.uint8).data)
        sync(file)
    return digest.hexdigest()


def read_arrays(
    path: Path | Entry, largest: int | None = None, digest: str | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays in ``path``, as read-only views of the file.

    Args:
        path: The file.
        largest: Largest size in bytes; None for any size. With a limit, a file that is mostly holes is rejected
            too, because it takes no room on disk but fills the memory when it is read.
        digest: SHA-256 that the file must have, checked before anything else in it; None for no check. With a
            digest, too, a file that is mostly holes is rejected.

    Raises:
        ValueError: The file is damaged or not of this kind; nothing in it was used.
    """
    with as_entry(path).open_to_read(largest, "its arrays") as file:
        size = os.fstat(file.fileno()).st_size
        if size < _PREFIX:
            raise InputError(f"{path} is damaged: it ends before its header")
        if (largest is not None or digest is not None) and is_hollow(file.fileno()):
            raise InputError(f"{path} is damaged: it is nearly empty but claims to have {size >> 20} MB")
        if digest is not None:
            check_digest(file, digest, path)
        length = int.from_bytes(file.read(_PREFIX), "little")
        if length > min(_LARGEST_HEADER, size - _PREFIX):
            raise InputError(f"{path} is damaged or not a safetensors file")
        header = parse_json(file.read(length), path)
        if not isinstance(header, dict):
            raise InputError(f"{path} is damaged: its header must be a mapping")
        header.pop(_RESERVED, None)
        begin = _PREFIX + length
        found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return _views(found, begin, header, path)


def _views(found: mmap.mmap, begin: int, header: Mapping[str, Any], path: Path | Entry) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    places = []
    for name, entry in header.items():
        called = name[:200]
        code, shape, (start, end) = _entry(entry, called, path)
        count = math.prod(shape)
        if end - start != count * np.dtype(code).itemsize:
            raise InputError(f"{path} is damaged: the length of {called!r} does not match its shape")
        if begin + end > len(found):
            raise InputError(f"{path} is damaged: it ends before {called!r} does")
        try:
            flat = (
                np.frombuffer(found, dtype=code, count=count, offset=begin + start) if count else np.zeros(0, code)
            )
            arrays[name] = flat.reshape(shape)
        except ValueError:
            raise InputError(f"{path} is damaged: {called!r} has an impossible shape") from None
        places.append((start, end))
    reached = 0
    for start, end in sorted(places):
        if start != reached:
            raise InputError(f"{path} is damaged: its arrays must follow each other")
        reached = end
    if begin + reached != len(found):
        raise InputError(f"{path} is damaged: there are bytes after its arrays")
    return arrays


def _entry(entry: Any, name: str, path: Path | Entry) -> tuple[str, list[int], list[int]]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise InputError(f"{path} is damaged: {name!r} must have a type, a shape and a position")
    code = _TYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if code is None:
        raise InputError(f"{path} is damaged: {name!r} has an unknown type")
    shape, place = entry["shape"], entry["data_offsets"]
    for numbers in (shape, place):
        if not isinstance(numbers, list) or not all(type(number) is int and number >= 0 for number in numbers):
            raise InputError(f"{path} is damaged: {name!r} must have whole numbers as its shape and position")
    if len(shape) > _MOST_DIMENSIONS or len(place) != 2 or any(number >= 2**63 for number in (*shape, *place)):
        raise InputError(f"{path} is damaged: {name!r} has an impossible shape or position")
    return code, shape, place
