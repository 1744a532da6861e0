"""Imports point down the layers, nothing executes what it reads, no file knows the machine it came from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable

import pytest

from tests.architecture import (
    LAYERS,
    ROOT,
    SOURCE,
    granted_libraries,
    layer_violations,
    machine_paths,
    project_files,
    unsafe_code,
)


def findings(check: Callable[[str, str], list[str]]) -> list[str]:
    files = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
    assert "core/options.py" in files
    return [line for name, path in files.items() for line in check(path.read_text("utf-8"), name)]


def test_imports_point_down() -> None:
    assert findings(layer_violations) == []


def test_nothing_executes_what_it_reads_and_only_the_command_line_prints() -> None:
    assert findings(unsafe_code) == []


def test_the_layers_are_the_packages_that_there_are() -> None:
    folders = {path.relative_to(SOURCE).parts[0] for path in SOURCE.glob("*/**/*.py")}
    assert folders == LAYERS.keys()
    assert [package for package in LAYERS if not (SOURCE / package / "__init__.py").is_file()] == []


def test_layers_have_no_cycle() -> None:
    seen: set[str] = set()
    for package, layer in LAYERS.items():
        assert set(layer.packages) <= seen, f"{package} may only import packages that stand above it in LAYERS"
        seen.add(package)


def test_every_granted_library_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        requirements += extra
    declared = {re.split(r"[^\w-]", requirement)[0].replace("-", "_") for requirement in requirements}
    declared |= {"PIL"} if "pillow" in declared else set()
    declared |= {"cv2"} if "opencv_python_headless" in declared else set()
    assert {library for layer in LAYERS.values() for library in layer.libraries} <= declared


def test_libraries_come_along_with_the_packages() -> None:
    assert granted_libraries("core") == {"numpy", "numba"}
    assert {"numpy", "scipy", "gymnasium", "numba"} <= granted_libraries("tabular")
    assert "torch" not in granted_libraries("tabular")
    assert "matplotlib" not in granted_libraries("deep")


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    try:
        files = project_files()
    except LookupError as reason:
        pytest.skip(str(reason))
    assert [line for name, text in files.items() for line in machine_paths(text, name)] == []


# That each of these tests can fail, and does not fail too easily:


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core/options.py", "import scipy"),
        ("core/options.py", "import numpy, matplotlib.pyplot"),
        ("core/options.py", "from gymnasium.spaces import Discrete"),
        ("core/options.py", "from holdfast.mdp import solve"),
        ("core/options.py", "import holdfast.cli.main"),
        ("core/options.py", "from holdfast import mdp"),
        ("core/options.py", "import holdfast"),
        ("core/options.py", "from holdfast import PerDQN"),
        ("core/options.py", "from ..mdp import solve"),
        ("core/options.py", "from .. import mdp"),
        ("core/deeper/options.py", "from ...mdp.solve import q_star"),
        ("core/options.py", "def late():\n    from holdfast.envs import grids"),
        ("core/options.py", "if TYPE_CHECKING:\n    import torch"),
        ("core/options.py", "import importlib\nimportlib.import_module('holdfast.deep')"),
        ("core/options.py", "__import__('torch')"),
        ("tabular/perq.py", "import torch"),
        ("tabular/perq.py", "import numba"),
        ("deep/replay/ring.py", "from numba import njit"),
        ("deep/replay/ring.py", "def late():\n    from numba.core.decorators import njit"),
        ("advice/visitation/mountain_car.py", "import importlib\nimportlib.import_module('numba')"),
        ("core/options.py", "import numba as nb"),
        ("deep/agents/per_dqn.py", "from holdfast.tabular import perq"),
        ("deep/agents/per_dqn.py", "from holdfast.mdp import TabularMDP"),
        ("experiments/engine.py", "from holdfast.cli import main"),
        ("cli/main.py", "import undeclared_library"),
        ("unheard_of/module.py", ""),
        ("stray.py", ""),
        ("__init__.py", "from holdfast.core import Option"),
        ("__init__.py", "try:\n    import numpy\nexcept ImportError:\n    pass"),
        ("__init__.py", "class Lazy:\n    import numpy"),
        ("__main__.py", "from holdfast.runs import run"),
    ],
)
def test_a_forbidden_import_is_found(path: str, source: str) -> None:
    assert len(layer_violations(source, path)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core/options.py", "from __future__ import annotations\nimport math, numpy as np\nimport numpy.typing"),
        ("core/options.py", "from . import clock\nfrom .clock import OptionClock\nfrom holdfast.core import x"),
        ("core/compiling.py", "import numba"),
        ("core/deeper/options.py", "from ..clock import OptionClock\nfrom ... import core"),
        ("mdp/solve.py", "import numpy\nfrom scipy import sparse\nfrom ..core import options"),
        ("deep/agents/per_dqn.py", "import torch, gymnasium\nfrom stable_baselines3 import DQN"),
        ("cli/main.py", "from holdfast import __version__, deep\nfrom holdfast.experiments import spec"),
        ("__init__.py", "import importlib\ndef __getattr__(name):\n    from holdfast.deep import PerDQN"),
        ("__init__.py", "if TYPE_CHECKING:\n    from holdfast.deep import PerDQN"),
        ("__main__.py", "import sys\nfrom holdfast.cli import main"),
    ],
)
def test_a_permitted_import_is_let_through(path: str, source: str) -> None:
    assert layer_violations(source, path) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "def read():\n    from joblib import load",
        "eval('1')",
        "exec('x = 1')",
        "print('solved')",
        "np.load(path, allow_pickle=True)",
        "torch.load(path, weights_only=False)",
    ],
)
def test_unsafe_code_is_found(source: str) -> None:
    assert len(unsafe_code(source, "core/options.py")) == 1


def test_harmless_code_is_let_through() -> None:
    source = "model.eval()\nnp.load(path, allow_pickle=False)\nconsole.print(1)"
    assert unsafe_code(source, "core/options.py") == []
    assert unsafe_code("print('solved')", "cli/main.py") == []


def test_machine_paths_are_found() -> None:
    for parts in (("", "home", "me", "x"), ("", "tmp", "x"), ("", "Users", "me")):
        assert len(machine_paths(f"run = '{'/'.join(parts)}'", "x.py")) == 1
    assert len(machine_paths("C:" + "\\Users", "x.py")) == 1


def test_urls_and_relative_paths_are_let_through() -> None:
    lines = ["#!/usr/bin/env bash", "https://example.org/home/page", "./tmp/x", "a/var/b", "$HOME/work/x"]
    assert machine_paths("\n".join(lines), "x.py") == []
