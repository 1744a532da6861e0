"""JSON documents that may be damaged or somebody else's, and the files they are in."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

from holdfast.core.errors import InputError
from holdfast.files.entries import Entry, as_entry
from holdfast.files.replacing import replace_file

__all__ = ["parse_json", "read_json", "replace_json", "to_json"]

_LARGEST = 64 * 2**20
_DEEPEST = 64


def read_json(path: Path | Entry) -> Any:
    """The document in ``path``.

    Raises:
        ValueError: It is missing, damaged, too large or nested too deeply.
    """
    return parse_json(as_entry(path).read(_LARGEST, "a document"), path)


def parse_json(text: bytes, path: Path | Entry) -> Any:
    """The document that ``text`` from ``path`` is: strict JSON, every name once."""
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
    """Write a document, as a whole or not at all, and onto the disk."""
    text = to_json(document, path, indent)
    with replace_file(path) as file:
        file.write(text.encode())
    as_entry(path).parent.flush()


def to_json(document: Any, path: Path | Entry, indent: int | None = None) -> str:
    """The text of a document that is to be written to ``path``, and that ``read_json`` will read.

    Raises:
        ValueError: It is too large, or no JSON.
    """
    text = json.dumps(document, indent=indent, allow_nan=False, ensure_ascii=False) + "\n"
    if len(text.encode()) > _LARGEST or _depth(document) > _DEEPEST:
        raise InputError(f"{path} would be too large or nested too deeply to be read again")
    return text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands in it twice")
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
