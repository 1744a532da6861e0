"""What ``import holdfast`` offers, pinned."""

from __future__ import annotations

import subprocess
import sys

import pytest

import holdfast

PUBLIC = [
    "GridMap",
    "GridWorld",
    "Option",
    "OptionClock",
    "OptionSpace",
    "PartialHistory",
    "TabularMDP",
    "__version__",
]


def test_the_public_names_are_these() -> None:
    assert sorted(holdfast.__all__) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_each_name_leads_somewhere(name: str) -> None:
    assert getattr(holdfast, name) is not None
    assert name in dir(holdfast)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'PerDQM'"):
        holdfast.PerDQM  # noqa: B018 - the access is the test


@pytest.mark.parametrize(
    "imports", ["import gymnasium, holdfast", "import holdfast.envs, gymnasium", "import gymnasium, holdfast.envs"]
)
def test_environments_are_registered(imports: str) -> None:
    code = f"{imports}\nassert gymnasium.make('holdfast/Cliff-v0').reset()[0] == 0"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_version_is_the_one_of_the_metadata() -> None:
    from importlib.metadata import version

    assert version("holdfast") == holdfast.__version__
