"""What the documents say is in a file is in it, and every test that they name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture import DOCUMENTS, ROOT

_LINK = re.compile(r"\[([^\]]*`[^\]]*)\]\(([^)#:]+\.py)\)")


def named(words: str) -> list[str]:
    """The names in code, each without what stands around it: ``QLearning(updates_per_step=…)`` is QLearning."""
    found = [re.match(r"[\w.]+", code) for code in re.findall(r"`([^`]+)`", words)]
    return [match[0].rpartition(".")[2] for match in found if match]


def is_defined(name: str, source: str) -> bool:
    return re.search(rf"^\s*(?:def|class) {name}\b|^{name}\b.*=", source, flags=re.MULTILINE) is not None


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_names_are_in_the_files_that_they_lead_to(document: Path) -> None:
    missing = []
    for words, target in _LINK.findall(document.read_text("utf-8")):
        path = document.parent / target
        source = path.read_text("utf-8") if path.exists() else ""
        missing += [f"{name} in {target}" for name in named(words) if not is_defined(name, source)]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_tests_that_are_named_are_there(document: Path) -> None:
    text = document.read_text("utf-8")
    written = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "tests").rglob("*.py")))
    tests = set(re.findall(r"`(?:Test\w+\.)?(test_\w+)`", text))
    assert sorted(name for name in tests if not is_defined(name, written)) == []


def test_what_is_not_defined_is_missed() -> None:
    source = "LIMIT: int = 3\ndef walk() -> None:\n    return run()\nclass Walker:\n    def rest(self): ...\n"
    assert [name for name in ("LIMIT", "walk", "Walker", "rest", "run", "wal") if is_defined(name, source)] == [
        "LIMIT",
        "walk",
        "Walker",
        "rest",
    ]
    assert named("`Walker.rest(hours=…)` and `walk`") == ["rest", "walk"]
