"""Every block of the README and the docs runs: Python, the shell, and what a console is said to print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from holdfast.cli import main
from tests.shell_blocks import run_document, shell_documents, smaller

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


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
    exec(compile(code, "document", "exec"), {"__name__": "__document__"})
    promised = re.findall(r"^print\(.*# (\w+)", code, flags=re.MULTILINE)
    assert capsys.readouterr().out.split() == promised


@pytest.mark.parametrize("session", blocks("console"))
def test_console_blocks_print_what_they_show(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, _, shown = session.partition("\n")
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "holdfast"
    assert main(arguments) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("document", shell_documents(DOCUMENTS), ids=lambda path: str(path.relative_to(ROOT)))
def test_shell_blocks_can_be_typed(document: Path, tmp_path: Path) -> None:
    run_document(document, tmp_path)


@pytest.mark.parametrize(
    "typed",
    [
        "holdfast train cliff --no-such-option",
        "holdfast evaluate runs/nowhere",
        "make nothing",
        "pip install 'holdfast[nothing]'",
        "python examples/nothing.py",
        "nothing",
    ],
)
def test_what_cannot_be_typed_is_noticed(typed: str, tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(f"```sh\n{typed}\n```\n")
    with pytest.raises(AssertionError):
        run_document(document, tmp_path)


def test_budgets_are_made_smaller() -> None:
    assert smaller(["train", "cliff", "--algo", "q", "--episodes", "300"]) == [
        "train",
        "cliff",
        "--algo",
        "q",
        "--episodes",
        "15",
    ]
    assert smaller(["train", "CartPole-v1"]) == ["train", "CartPole-v1", "--steps", "400"]
    assert smaller(["train", "--resume", "run"]) == ["train", "--resume", "run"]


def test_there_is_something_to_test() -> None:
    assert len(blocks("python")) >= 2
    assert len(blocks("console")) >= 1
    assert all(path.exists() for path in DOCUMENTS)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target
