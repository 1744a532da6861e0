"""A file that a verb writes may be named in a folder that does not exist yet: every verb makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli import main
from tests.runs.small_runs import TABLE, trained

WRITERS = {
    "plot": (["plot", "RUN", "-o", "FILE"], "curves.png"),
    "report": (["report", "RUN", "--no-pictures", "-o", "FILE"], "page.html"),
    "export": (["export", "RUN", "FILE", "--check", "10"], "policy.onnx"),
    "evaluate": (["evaluate", "RUN", "--episodes", "1", "--render", "FILE"], "film.gif"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "one"
    trained(TABLE, path)
    return path


def typed(verb: str, run: Path, folder: Path) -> tuple[list[str], Path]:
    words, name = WRITERS[verb]
    file = folder / name
    return [{"RUN": str(run), "FILE": str(file)}.get(word, word) for word in words], file


@pytest.mark.parametrize("verb", WRITERS)
def test_missing_folders_are_made_and_the_file_is_named(
    verb: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, file = typed(verb, run, tmp_path / "not" / "yet")
    assert main(command) == 0
    assert file.stat().st_size > 0
    assert f"wrote {file}" in capsys.readouterr().out


@pytest.mark.parametrize("verb", WRITERS)
def test_a_folder_that_cannot_be_made_is_one_sentence(
    verb: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    command, file = typed(verb, run, tmp_path / "file" / "folder")
    assert main(command) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"holdfast {verb}: ")
    assert str(file.parent) in said
    assert said.count("\n") == 1
    assert (tmp_path / "file").read_text() == "in the way"
