"""``holdfast docs``, and that messages refer to its pages and not to files of the repository."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from holdfast.cli import docs, main
from tests.architecture import ROOT, SOURCE
from tests.cli.test_main import imported_by

PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "CHANGELOG.md", ROOT / "constraints.txt"]


def test_every_page_is_listed_with_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    titles = dict(line.split(maxsplit=1) for line in lines[:-2])
    assert set(titles) == {path.stem.lower() for path in PAGES} | {"citation"}
    assert titles["errata"] == "Corrections to the paper"
    assert titles["train"] == "Training: train"
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_is_printed_whole(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given in (path.stem, path.name, f"docs/{path.name}", path.stem.upper()):
        assert main(["docs", given]) == 0
        assert capsys.readouterr().out == path.read_text("utf-8")


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("eratta", "did you mean errata?"),
        ("", "holdfast docs lists them"),
        ("../setup.py", "holdfast docs lists them"),
        ("/etc/hostname", "holdfast docs lists them"),
    ],
)
def test_what_is_no_page_is_refused(given: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", given]) == 2
    assert capsys.readouterr().err == f"holdfast docs: PAGE must be the name of a page, not {given!r} ({hint})\n"


def test_pages_that_are_missing_are_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(docs, "__file__", str(tmp_path / "a" / "b" / "holdfast" / "cli" / "docs.py"))
    assert main(["docs"]) == 2
    assert "are missing" in capsys.readouterr().err


def test_the_pages_in_the_package_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = tmp_path / "site-packages" / "holdfast" / "pages"
    pages.mkdir(parents=True)
    (pages / "errata.md").write_text("# Corrections\n", encoding="utf-8")
    (tmp_path / "docs").mkdir()  # somebody else's
    monkeypatch.setattr(docs, "__file__", str(pages.parent / "cli" / "docs.py"))
    assert main(["docs"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "errata  Corrections"


def test_it_is_quick() -> None:
    heavy = {"torch", "numba", "gymnasium", "scipy", "matplotlib"}
    assert imported_by("from holdfast.cli import main\nmain(['docs', 'train'])") & heavy == set()


def texts(path: Path) -> list[str]:
    """The strings of a source file."""
    tree = ast.parse(path.read_text("utf-8"))
    return [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_messages_refer_to_pages_that_can_be_read_everywhere() -> None:
    files, pages = [], []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name == "docs.py":
            continue
        for text in texts(path):
            files += [f"{path.name}: {name}" for name in re.findall(r"\b[\w/]+\.md\b", text)]
            pages += re.findall(r"holdfast docs (\w+)", text)
    assert files == []
    assert {"errata", "exploration", "fixed_skip"} <= set(pages) <= set(docs.find_pages())
