"""Messages below the command line call arguments by their Python names: ``cli`` alone knows how they are typed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast

PACKAGE = Path(holdfast.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "cli" not in path.relative_to(PACKAGE).parts)

FLAG = re.compile(r"(?<![\w-])--?[a-z]|\b(ENV|RUN|DIR|FILE|LABEL|MAP_OR_ENV) (must|names|needs)")


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts of a module that are no docstrings, with their lines; f-strings without what is filled in."""
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.lineno, node.value


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts with a space in them: sentences, and parts of such."""
    return ((line, text) for line, text in texts(tree) if " " in text.strip())


def input_errors(tree: ast.AST) -> Iterator[tuple[int, str, list[str]]]:
    """Where input errors are made, with the texts of the sentence and the names that are given with it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("InputError", "InputTypeError"):
            first, *others = node.args
            names = [other.value for other in others if isinstance(other, ast.Constant)]
            yield node.lineno, " ".join(text for _, text in texts(first)), names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_message_below_the_command_line_names_an_option(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [f"{path}:{line}: {text}" for line, text in messages(tree) if FLAG.search(text)]
    assert found == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_names_that_an_error_carries_stand_in_its_sentence(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for line, sentence, names in input_errors(tree):
        # One that is handed over is not known here.
        for name in names if re.search(r"\w", sentence) else ():
            assert re.search(rf"(?<!['\w]){name}(?!['\w])", sentence), f"{path}:{line}: {name} in {sentence!r}"


def test_the_reader_of_messages_sees_them() -> None:
    tree = ast.parse(
        '"""--steps in a docstring."""\n'
        'raise InputError(f"{x}: --n-envs must be 1 for {algo}", "n_envs")\n'
        'raise InputError("give another -o, or remove it")\n'
        'raise InputError("ENV must be given")\n'
        'run("git", "--porcelain")\n'
        'say("a well-known word, a - dash, k -- 1")\n'
    )
    assert sorted(line for line, text in messages(tree) if FLAG.search(text)) == [2, 3, 4]
    assert [(line, names) for line, _, names in input_errors(tree)] == [(2, ["n_envs"]), (3, []), (4, [])]
