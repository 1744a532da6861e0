"""Which installed package registers an environment: looked for in its files, without importing any of it."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

__all__ = ["package_that_registers"]

_KNOWN_ALREADY = {"gymnasium", "holdfast", "stable-baselines3"}
_LARGEST = 2**20


def package_that_registers(env_id: str) -> str | None:
    """The name to import of an installed package whose files have ``env_id`` as a text, and that needs Gymnasium.

    Args:
        env_id: As ``gymnasium.make`` takes it.
    """
    if not re.fullmatch(r"[\w./:-]+", env_id):
        return None
    wanted = re.compile(rf"""["']{re.escape(env_id)}["']""")
    for distribution in importlib.metadata.distributions():
        name = str(distribution.metadata["Name"] or "").lower()
        needs = [re.split(r"[^\w-]", need.strip().lower(), maxsplit=1)[0] for need in distribution.requires or ()]
        if name in _KNOWN_ALREADY or "gymnasium" not in needs:
            continue
        # Nearest to the top first: that is where packages register.
        files = [file for file in distribution.files or () if file.suffix == ".py"]
        for file in sorted(files, key=lambda file: len(file.parts)):
            if wanted.search(_text(Path(str(distribution.locate_file(file))))):
                return file.parts[0].removesuffix(".py")
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= _LARGEST else ""
    except (OSError, UnicodeDecodeError):
        return ""
