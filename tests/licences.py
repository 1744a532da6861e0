"""The licences of all that holdfast is tested with: ``python -m tests.licences`` writes docs/licences.md anew."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/licences.md"
HEAD = """# Licences of what holdfast uses

holdfast is under the [MIT licence](../LICENSE). This page lists the licences that the packages of
`constraints.txt` declare; `python -m tests.licences` writes it. None of their code is in our own distribution.
`ale-py` and `MinAtar`, under the GPL, come with the extras `atari` and `minatar` alone.

| package | licence |
|---|---|
"""


def pinned() -> list[str]:
    """The packages in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line.partition("==")[0] for line in lines if line and not line.startswith("#")]


def licence_of(package: str) -> str:
    """What a package that is installed says of its licence, in a few words."""
    about = importlib.metadata.metadata(package)
    classified = [
        entry.rpartition(" :: ")[2]
        for entry in about.get_all("Classifier") or []
        if entry.startswith("License ::") and not entry.endswith("OSI Approved")
    ]
    written = (about.get("License") or "").strip().splitlines()
    found = about.get("License-Expression") or ", ".join(classified) or (written[0] if written else "")
    return re.sub(r"\s+", " ", found).replace("|", "/")[:80] or "see its files"


if __name__ == "__main__":
    rows = []
    for name in pinned():
        try:
            rows.append(f"| {name} | {licence_of(name)} |")
        except importlib.metadata.PackageNotFoundError:
            rows.append(f"| {name} | not installed here |")
    PAGE.write_text(HEAD + "\n".join(rows) + "\n")
