"""The layers of holdfast, and the reading of source files that holds the code to them.

Imports point down: a package may import itself, the holdfast packages and the third-party packages that
``LAYERS`` grants it, and the standard library. Where an import stands (in a function, under a condition, behind
``importlib.import_module``) makes no difference.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "holdfast"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


@dataclass(frozen=True)
class Layer:
    """What a package adds to what it may import."""

    packages: tuple[str, ...]  # holdfast packages, each of which brings along the libraries granted to it
    libraries: tuple[str, ...] = ()  # third-party packages of its own


_LEARNERS = ("files", "core", "stats", "mdp", "envs", "draw", "tabular", "deep")

LAYERS = {
    "core": Layer((), ("numpy", "numba")),
    "files": Layer(("core",), ("filelock",)),
    "stats": Layer(("core",), ("scipy",)),
    "mdp": Layer(("core",), ("scipy",)),
    "envs": Layer(("core", "mdp"), ("gymnasium", "ale_py", "cv2", "minatar")),
    "draw": Layer(("files", "core"), ("matplotlib",)),
    "tabular": Layer(("core", "mdp", "envs")),
    "deep": Layer(("core", "envs"), ("torch", "stable_baselines3", "scipy", "threadpoolctl")),
    "policies": Layer(_LEARNERS, ("PIL", "imageio_ffmpeg", "onnx", "onnxruntime")),
    "runs": Layer((*_LEARNERS, "policies"), ("tensorboard", "pandas")),
    "advice": Layer((*_LEARNERS, "policies", "runs")),
    "experiments": Layer((*_LEARNERS, "policies", "runs", "advice"), ("ray", "optuna")),
    "report": Layer((*_LEARNERS, "policies", "runs", "advice", "experiments"), ("jinja2", "markupsafe", "plotly")),
    "cli": Layer((*_LEARNERS, "policies", "runs", "advice", "experiments", "report")),
}

# Libraries that one file alone may import: code that numba compiles by itself is not compiled anew when a file
# that it calls changes.
ONLY_IN = {"numba": "core/compiling.py"}

# Modules that run code when they read a file.
UNSAFE_READERS = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


class Import(NamedTuple):
    """One imported module, by its full dotted name."""

    module: str
    line: int
    lazy: bool  # in a function, or for type checkers only: not executed when the file is imported


def granted_libraries(package: str) -> set[str]:
    """Third-party packages that ``package`` may import: its own, and those of the packages it stands on."""
    layer = LAYERS[package]
    return set(layer.libraries).union(*(LAYERS[lower].libraries for lower in layer.packages))


def dotted_package(path: str) -> list[str]:
    """Names of the package a file of the source tree belongs to: ``core/options.py`` is in holdfast.core."""
    return ["holdfast", *Path(path).parent.parts]


def imports_of(source: str, path: str) -> Iterator[Import]:
    """All imports of a file whose ``path`` is relative to the holdfast package."""
    for node, lazy in _walk(ast.parse(source), lazy=False):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(alias.name, node.lineno, lazy)
            case ast.ImportFrom(module=module, names=names, level=level):
                parts = module.split(".") if module else []
                if level:
                    package = dotted_package(path)
                    parts = package[: len(package) - level + 1] + parts
                if parts == ["holdfast"]:  # which package it is, only the imported name tells
                    for alias in names:
                        yield Import(f"holdfast.{alias.name}", node.lineno, lazy)
                else:
                    yield Import(".".join(parts), node.lineno, lazy)
            case ast.Call(args=[ast.Constant(value=str(module)), *_]) if _called_name(node) in (
                "import_module",
                "__import__",
            ):
                yield Import(module, node.lineno, lazy)


def layer_violations(source: str, path: str) -> list[str]:
    """Sentences about the imports of a file that its layer does not grant."""
    parts = Path(path).parts
    if len(parts) == 1:
        return _top_level_violations(source, path)
    package = parts[0]
    if package not in LAYERS:
        return [f"{path}: the package {package} has no place in LAYERS"]
    layer, libraries, found = LAYERS[package], granted_libraries(package), []
    for module, line, _ in imports_of(source, path):
        top, _, rest = module.partition(".")
        inner = rest.partition(".")[0]
        if top == "holdfast":
            allowed = inner == package or inner in layer.packages or inner == "__version__"
        else:
            allowed = top in sys.stdlib_module_names or top in libraries
        if not allowed:
            found.append(f"{path}:{line}: {package} may not import {module}")
        elif ONLY_IN.get(top, path) != path:
            found.append(f"{path}:{line}: only {ONLY_IN[top]} may import {module}")
    return found


def unsafe_code(source: str, path: str) -> list[str]:
    """Sentences about code that executes what it reads, and about printing outside the command line."""
    found = [
        f"{path}:{line}: {module} can run code when it reads a file"
        for module, line, _ in imports_of(source, path)
        if module.partition(".")[0] in UNSAFE_READERS
    ]
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name):
            if node.func.id in ("eval", "exec"):
                found.append(f"{path}:{node.lineno}: {node.func.id}() runs text as code")
            if node.func.id == "print" and Path(path).parts[0] != "cli":
                found.append(f"{path}:{node.lineno}: only the command line prints")
        for keyword in node.keywords:
            if isinstance(keyword.value, ast.Constant) and (keyword.arg, keyword.value.value) in (
                ("allow_pickle", True),
                ("weights_only", False),
            ):
                found.append(f"{path}:{node.lineno}: {keyword.arg}={keyword.value.value!r} lets a file run code")
    return found


def project_files() -> dict[str, str]:
    """The texts of all files that belong to the project, by their paths, as git knows them.

    Raises:
        LookupError: Without git, or outside of a clone.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError) as error:
        raise LookupError("needs git and a clone to know which files belong to the project") from error
    paths = {name: ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    contents = {name: path.read_bytes() for name, path in paths.items()}
    return {name: content.decode("utf-8") for name, content in contents.items() if b"\0" not in content}


_MACHINE_PATH = re.compile(
    r"(?<![\w.:/~$}\])-])(?:/(?:home|Users|root|work|tmp|opt|mnt|media|private|var)/\w|[A-Z]:\\\\?\w)"
)


def machine_paths(text: str, path: str) -> list[str]:
    """Sentences about absolute paths that exist on one machine only."""
    return [
        f"{path}:{number}: an absolute path of one machine: {line.strip()[:80]}"
        for number, line in enumerate(text.splitlines(), start=1)
        if _MACHINE_PATH.search(line)
    ]


def _top_level_violations(source: str, path: str) -> list[str]:
    if path == "__main__.py":
        return [
            f"{path}:{line}: python -m holdfast may import holdfast.cli only, not {module}"
            for module, line, _ in imports_of(source, path)
            if module.split(".")[:2] != ["holdfast", "cli"] and module.split(".")[0] not in sys.stdlib_module_names
        ]
    if path != "__init__.py":
        return [f"{path}: a module must stand in a package, only __init__ and __main__ stand beside them"]
    return [
        f"{path}:{line}: import {module} inside a function, so that importing holdfast stays quick"
        for module, line, lazy in imports_of(source, path)
        if not lazy and module.partition(".")[0] not in sys.stdlib_module_names
    ]


def _walk(node: ast.AST, lazy: bool) -> Iterator[tuple[ast.AST, bool]]:
    yield node, lazy
    if isinstance(node, ast.If) and _is_type_checking(node.test):
        for statement in node.body:
            yield from _walk(statement, lazy=True)
        for statement in node.orelse:
            yield from _walk(statement, lazy)
        return
    lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, lazy)


def _is_type_checking(test: ast.expr) -> bool:
    return getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING"


def _called_name(call: ast.Call) -> str | None:
    return getattr(call.func, "id", getattr(call.func, "attr", None))
