"""Nothing tells a user to install ``holdfast``, another project on PyPI: the distribution is ``holdfast-rl``."""

from __future__ import annotations

import re
import tomllib

import pytest

from holdfast.cli import doctor
from holdfast.core.distribution import DISTRIBUTION, install_command
from tests.architecture import ROOT, project_files

_INSTALLER = re.compile(r"\b(?:pip\d?|pipx|uv|poetry|pdm|conda|mamba)\s+(?:pip\s+)?(?:install|add|download)\b")
_END_OF_A_COMMAND = re.compile(r"[`;#)]|\n\s*\n|\.\s")
_ELSEWHERE = re.compile(
    r"(?<![\w./-])holdfast(?:"
    r"\s*\[[\w,{ ]"  # a requirement with extras
    r"|\s*(?:==|~=|>=|<=)\s*\d"  # a requirement with a version
    r")"
    r"|(?:version|distribution|metadata|requires)\(\s*[\"']holdfast[\"']"  # what importlib.metadata is asked for
    r"|pypi\.org/(?:project|pypi|simple)/holdfast(?![\w-])"
)


def strangers(text: str, path: str) -> list[str]:
    """Sentences about places that name another project's distribution."""
    lines = {text.count("\n", 0, match.start()) + 1 for match in _ELSEWHERE.finditer(text)}
    for command in _INSTALLER.finditer(text):
        if any(re.match(r"[\"'\\]*holdfast(?![\w./-])", word) for word in _arguments(text[command.end() :])):
            lines.add(text.count("\n", 0, command.start()) + 1)
    return [f"{path}:{line}: names another project" for line in sorted(lines)]


def _arguments(rest: str) -> list[str]:
    """The words of a command, which ends with its line; prose may break the line before the first argument."""
    lines = _END_OF_A_COMMAND.split(rest, maxsplit=1)[0].splitlines()
    words = lines[0].split() if lines else []
    return words if any(not word.startswith("-") for word in words) else words + " ".join(lines[1:2]).split()


def test_no_file_names_the_stranger() -> None:
    try:
        files = project_files()
    except LookupError as reason:
        pytest.skip(str(reason))
    assert {"README.md", "pyproject.toml", "src/holdfast/cli/doctor.py"} <= set(files)
    assert [line for name, text in files.items() for line in strangers(text, name)] == []


def test_the_project_has_the_name_that_messages_give() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == DISTRIBUTION == "holdfast-rl"
    assert list(project["scripts"]) == ["holdfast"]
    for extra in doctor._OPTIONAL:
        assert install_command(extra) == f"pip install 'holdfast-rl[{extra}]'"
        assert extra in project["optional-dependencies"]


# That it can fail, and does not fail too easily:

OURS, THEIRS = "holdfast-rl", "holdfast"


@pytest.mark.parametrize(
    "text",
    [
        "pip install {}",
        "pip3 install --upgrade '{}'",
        "run `pip install\n{}` first",
        "python -m pip install -c constraints.txt {} torch",
        "pip install {}==0.1.0",
        "pipx install {}",
        "uv pip install {}",
        "uv add {}",
        "raise InputError(\"pip install '{}[onnx]'\")",
        "f\"pip install '{}[{{extra}}]'\"",
        '  "{}[test]",\n',
        "Requires-Dist: {} >=0.1",
        "importlib.metadata.version('{}')",
        "https://pypi.org/project/{}/",
    ],
)
def test_the_stranger_is_found_and_our_own_name_let_through(text: str) -> None:
    assert len(strangers(text.format(THEIRS), "x.py")) == 1
    assert strangers(text.format(OURS), "x.py") == []


@pytest.mark.parametrize(
    "text",
    [
        "import holdfast\nfrom holdfast import PerDQN",
        "`pip install holdfast-rl` installs holdfast",
        "pip install -e .\nholdfast doctor",
        "pip install ./holdfast.whl",
        "versions['holdfast']",
        "To install holdfast into an environment",
    ],
)
def test_the_import_and_the_command_keep_their_name(text: str) -> None:
    assert strangers(text, "x.py") == []
