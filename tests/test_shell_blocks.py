"""Every shell block of the README and the docs can be typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture import DOCUMENTS, ROOT
from tests.shell_blocks import command_server, run_document, shell_documents, smaller


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with command_server(tmp_path_factory.mktemp("server")) as path:
        yield path


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(path, id=str(path.relative_to(ROOT)), marks=() if path.parent == ROOT else pytest.mark.slow)
        for path in shell_documents(DOCUMENTS)
    ],
)
def test_shell_blocks_can_be_typed(document: Path, tmp_path: Path, server: Path) -> None:
    run_document(document, tmp_path, server)


@pytest.mark.parametrize(
    "typed",
    [
        "holdfast train cliff --no-such-option",
        "holdfast evaluate runs/nowhere",
        "make nothing",
        "pip install 'holdfast-rl[nothing]'",
        "python examples/nothing.py",
        "nothing",
    ],
)
def test_what_cannot_be_typed_is_noticed(typed: str, tmp_path: Path, server: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(f"```sh\n{typed}\n```\n")
    with pytest.raises(AssertionError):
        run_document(document, tmp_path, server)


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
