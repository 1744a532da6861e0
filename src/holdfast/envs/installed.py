"""Which installed package registers an environment: found by searching its files, without importing anything."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

__all__ = ["package_that_registers"]

_KNOWN_ALREADY = {"gymnasium", "holdfast", "stable-baselines3"}
_LARGEST = 2**20


def package_that_registers(env_id: str) -> str | None:
    """The import name of an installed package that needs Gymnasium and whose files register ``env_id``.

    A file counts if it contains the id as a string and the word "register". Packages that need Gymnasium only for
    one of their extras do not count.

    Args:
        env_id: Environment's id, as for ``gymnasium.make``.
    """
    if not re.fullmatch(r"[\w./:-]+", env_id):
        return None
    wanted = re.compile(rf"""["']{re.escape(env_id)}["']""")
    for distribution in importlib.metadata.distributions():
        name = str(distribution.metadata["Name"] or "").lower()
        needs = [
            re.split(r"[^\w-]", need.strip().lower(), maxsplit=1)[0]
            for need in distribution.requires or ()
            if not re.search(r"\bextra\s*==", need)
        ]
        if name in _KNOWN_ALREADY or "gymnasium" not in needs:
            continue
        # Files nearest to the top first, because packages usually register there.
        files = [file for file in distribution.files or () if file.suffix == ".py"]
        for file in sorted(files, key=lambda file: len(file.parts)):
            text = _text(Path(str(distribution.locate_file(file))))
            if "register" in text and wanted.search(text):
                return file.parts[0].removesuffix(".py")
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= _LARGEST else ""
    except (OSError, UnicodeDecodeError):
        return ""
