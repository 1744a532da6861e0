"""Every block of the README and the docs runs: Python, and what a console is said to print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from holdfast.cli import main
from tests.architecture import DOCUMENTS, ROOT


def blocks(language: str) -> list[object]:
    found = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, match.start()) + 2
            found.append(pytest.param(match[1], id=f"{document.relative_to(ROOT)}:{line}"))
    return found


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run_and_print_what_their_comments_say(
    code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(code, "document", "exec", dont_inherit=True), {"__name__": "__document__"})
    promised = re.findall(r"^print\(.*# (.+)$", code, flags=re.MULTILINE)
    printed = capsys.readouterr().out.splitlines()
    # A comment may go on with words of its own.
    told = [
        text if text == line else re.match(r"\w*", text)[0] for text, line in zip(promised, printed, strict=True)
    ]
    assert printed == told


@pytest.mark.parametrize("session", blocks("console"))
def test_console_blocks_print_what_they_show(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, _, shown = session.partition("\n")
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "holdfast"
    assert main(arguments) == 0
    assert capsys.readouterr().out == shown


def test_there_is_something_to_test() -> None:
    assert len(blocks("python")) >= 2
    assert len(blocks("console")) >= 1
    assert all(path.exists() for path in DOCUMENTS)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


def headings(text: str) -> set[str]:
    """What links into a page may name, as GitHub makes it of headings."""
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", outside, flags=re.MULTILINE)
    }


def lost_links(document: Path) -> list[str]:
    """Links to headings that are not there."""
    links = re.findall(r"\]\(([^)#:\s]*)#([^)]+)\)", document.read_text(encoding="utf-8"))
    pages = [(document.parent / page if page else document, heading) for page, heading in links]
    return [heading for page, heading in pages if heading not in headings(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_headings(document: Path) -> None:
    assert lost_links(document) == []


def test_a_lost_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "## Where `k` is: 1\n\n[here](#where-k-is-1) [there](page.md#elsewhere)\n```sh\n# elsewhere\n```\n"
    )
    assert lost_links(page) == ["elsewhere"]
