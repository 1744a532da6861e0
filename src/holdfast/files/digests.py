"""Checksums: a file that has changed since it was written is rejected before anything in it is used.

A document contains the SHA-256 of every file that belongs to it, and its own. Its own is computed with zeros in
its place, so every byte of all the files is covered.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from holdfast.core.errors import InputError
from holdfast.files.documents import to_json
from holdfast.files.entries import Entry

__all__ = ["SHA256", "check_digest", "check_seal", "sealed"]

SHA256 = "sha256"
"""Name of the checksums in a document."""

_DIGITS = 64
_ZEROS = "0" * _DIGITS
_PART = 2**20


def sealed(document: Mapping[str, Any], digests: Mapping[str, str], path: Entry) -> bytes:
    """The text of a document for ``path``, with the checksums of its files and its own."""
    name = path.path.name
    text = to_json({**document, SHA256: {**digests, name: _ZEROS}}, path).encode()
    # Its own checksum is the last value in the text, so the last zeros are its placeholder.
    begin, zeros, end = text.rpartition(_ZEROS.encode())
    return begin + sha256(begin + zeros + end).hexdigest().encode() + end


def check_seal(text: bytes, document: Mapping[str, Any], path: Entry) -> Mapping[str, str]:
    """The checksums in a document, after checking its own.

    Args:
        text: The document as it was read.
        document: The same, parsed.
        path: Where it was read from.

    Raises:
        InputError: There are none, or the document has changed since it was written.
    """
    digests, name = document.get(SHA256), path.path.name
    if not isinstance(digests, dict) or not all(map(_is_digest, (*digests.values(), digests.get(name)))):
        raise InputError(f"{path} is damaged: it must have the checksums of its files as {SHA256!r}")
    begin, own, end = text.rpartition(digests[name].encode())
    if not own or sha256(begin + _ZEROS.encode() + end).hexdigest() != digests[name]:
        raise _changed(path)
    return digests


def check_digest(file: BinaryIO, digest: str, path: Path | Entry) -> None:
    """Check an open file against its checksum; it must be at its beginning, and is returned to it.

    Raises:
        InputError: The file has changed since it was written.
    """
    found = sha256()
    while part := file.read(_PART):
        found.update(part)
    if found.hexdigest() != digest:
        raise _changed(path)
    file.seek(0)


def _changed(path: Path | Entry) -> InputError:
    return InputError(f"{path} is damaged: its checksum does not match")


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) == _DIGITS and set(value) <= set("0123456789abcdef")
