"""What ``import holdfast`` offers, pinned."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import holdfast
from tests.architecture import ROOT

PUBLIC = sorted(
    [
        *("Decision", "Option", "OptionClock", "OptionSpace", "PartialHistory", "TabularMDP"),
        *("EpisodeLog", "GridMap", "GridWorld", "HoldAction", "make_vec_env"),
        *("EZGreedyDQN", "PerDQN", "PerSAC", "PerTD3", "TempoRLDQN"),
        *("EZGreedyQLearning", "MSAQLearning", "PerQLearning", "QLearning", "TempoRLQLearning"),
        *("load_policy", "read_campaign", "read_runs", "__version__"),
    ]
)


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


def test_version_is_the_one_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == holdfast.__version__


def test_type_checkers_see_the_names() -> None:
    tree = ast.parse(Path(str(holdfast.__file__)).read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert sorted({*seen, "__version__"}) == PUBLIC


@pytest.mark.parametrize("name", ["HoldAction", "Option", "TabularMDP", "read_campaign", "read_runs"])
def test_what_needs_no_agent_loads_no_agent(name: str) -> None:
    code = f"import sys, holdfast\nholdfast.{name}\nassert not {{'torch', 'numba'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("package", ["advice", "experiments", "policies", "runs", "stats"])
def test_every_public_name_of_a_package_can_be_imported(package: str) -> None:
    module = importlib.import_module(f"holdfast.{package}")
    assert all(getattr(module, name) is not None for name in module.__all__)
    with pytest.raises(AttributeError, match=f"module 'holdfast.{package}' has no attribute 'nothing'"):
        _ = module.nothing
