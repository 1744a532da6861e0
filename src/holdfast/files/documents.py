"""JSON documents that may be damaged or foreign, and their files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

from holdfast.core.errors import InputError
from holdfast.files.entries import Entry, as_entry
from holdfast.files.replacing import replace_file

__all__ = ["parse_json", "read_json", "read_json_bytes", "replace_json", "to_json"]

_LARGEST = 64 * 2**20
_DEEPEST = 64


def read_json(path: Path | Entry) -> Any:
    """The document in ``path``.

    Raises:
        ValueError: The file is missing, damaged, too large or nested too deeply.
    """
    return parse_json(read_json_bytes(path), path)


def read_json_bytes(path: Path | Entry) -> bytes:
    """The text of the document in ``path``; see ``read_json``."""
    return as_entry(path).read(_LARGEST, "a document")


def parse_json(text: bytes, path: Path | Entry) -> Any:
    """The document in ``text``, which was read from ``path``: strict JSON in which every name occurs once."""
    try:
        document = json.loads(
            text.decode("utf-8"), parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_distinct
        )
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {' '.join(str(error).split())[:200]}") from None
    if _depth(document) > _DEEPEST:
        raise InputError(f"{path} is damaged: it is nested too deeply")
    return document


def replace_json(path: Path | Entry, document: Any, indent: int | None = 2) -> None:
    """Write a document to disk, as a whole or not at all."""
    text = to_json(document, path, indent)
    with replace_file(path) as file:
        file.write(text.encode())
    as_entry(path).parent.flush()


def to_json(document: Any, path: Path | Entry, indent: int | None = None) -> str:
    """The text of a document, to be written to ``path`` in a form that ``read_json`` can read.

    Raises:
        ValueError: The document is too large or not JSON.
    """
    text = json.dumps(document, indent=indent, allow_nan=False, ensure_ascii=False) + "\n"
    if len(text.encode()) > _LARGEST or _depth(document) > _DEEPEST:
        raise InputError(f"{path} would be too large or nested too deeply to be read back")
    return text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _depth(document: Any) -> int:
    deepest, level = 0, [document]
    while level:
        deepest += 1
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return deepest
