"""Files are opened, made, listed, renamed and removed in ``holdfast.files``, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture import SOURCE

METHODS = {
    *("open", "read_bytes", "read_text", "write_bytes", "write_text", "touch", "truncate"),
    *("unlink", "rename", "mkdir", "rmdir", "symlink_to", "hardlink_to", "chmod"),
    *("iterdir", "glob", "rglob", "walk", "savefig"),
}
"""Of a path, or of what is written to one."""
MODULES = {
    "os": {
        *("open", "fdopen", "mkdir", "makedirs", "mkfifo", "rename", "renames", "replace", "unlink", "remove"),
        *("rmdir", "removedirs", "truncate", "link", "symlink", "chmod", "listdir", "scandir", "walk"),
    },
    "shutil": {"copy", "copy2", "copyfile", "copyfileobj", "copytree", "move", "rmtree"},
    "tempfile": None,
    "glob": None,
    "mmap": None,
    "fcntl": None,
    "io": {"open", "FileIO"},
    "np": {"load", "save", "savez", "savez_compressed", "fromfile", "memmap", "loadtxt", "genfromtxt", "savetxt"},
}
"""Functions of modules; None for all of them."""

EXCEPTIONS = {
    ("cli/faults.py", "os.fdopen"): "a traceback in the temporary folder",
    ("cli/faults.py", "tempfile.mkstemp"): "a traceback in the temporary folder",
    ("cli/faults.py", "unlink"): "a traceback in the temporary folder",
    ("cli/streams.py", "open"): "the null device",
    ("cli/streams.py", "os.open"): "the null device",
    ("cli/docs.py", "open"): "holdfast's own pages",
    ("cli/docs.py", "read_text"): "holdfast's own pages",
    ("cli/docs.py", "iterdir"): "holdfast's own pages",
    ("cli/docs.py", "glob"): "holdfast's own pages",
    ("cli/solve.py", "np.savez_compressed"): "writes to an open file",
    ("deep/replay/memory.py", "read_text"): "the system's own account of its memory",
    ("deep/exact/vec_envs.py", "os.makedirs"): "SB3's monitor folder, which the caller names",
    ("draw/style.py", "savefig"): "writes to an open file",
    ("envs/grid_map.py", "open"): "a map that the user names; envs stands below files, and looks for pipes itself",
    ("envs/installed.py", "read_text"): "the source code of installed packages",
    ("experiments/engines/ray.py", "tempfile.TemporaryDirectory"): "a folder of its own, on another machine",
    ("experiments/engines/ray.py", "tempfile.mkdtemp"): "a folder of its own, for Ray",
    ("experiments/engines/local.py", "os.fdopen"): "the pipe to the one who asked",
    ("runs/step_watch.py", "read_bytes"): "the system's own account of a process",
    ("policies/video.py", "shutil.copyfileobj"): "between open files",
    ("policies/video.py", "tempfile.TemporaryDirectory"): "a folder of its own, for the encoder",
    ("core/compiling.py", "read_bytes"): "holdfast's own source code",
}
"""Calls outside that are none of a run's or campaign's files, and why."""


def calls_of(source: str) -> Iterator[tuple[str, int]]:
    """Calls that touch files, by name and line."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="open")):
                yield "open", node.lineno
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)) if module in MODULES:
                known = MODULES[module]
                if known is None or name in known:
                    yield f"{module}.{name}", node.lineno
            case ast.Call(func=ast.Attribute(attr=name)) if name in METHODS:
                yield name, node.lineno
            # A text's has two arguments, a path's one.
            case ast.Call(func=ast.Attribute(attr="replace"), args=[_], keywords=[]):
                yield "replace", node.lineno
            case ast.ImportFrom(module=str(module), names=names) if module in MODULES:
                known = MODULES[module]
                for alias in names:
                    if known is None or alias.name in known:
                        yield f"{module}.{alias.name}", node.lineno


def test_files_are_touched_in_one_place() -> None:
    found: dict[tuple[str, str], list[int]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith("files/"):
            for call, line in calls_of(path.read_text()):
                found.setdefault((name, call), []).append(line)
    strange = {place: lines for place, lines in found.items() if place not in EXCEPTIONS}
    assert not strange, "holdfast.files.Entry and its neighbours do this"
    assert set(EXCEPTIONS) == set(found), "exceptions that are none any more"


@pytest.mark.parametrize(
    "line",
    [
        "open('a')",
        "path.open('rb')",
        "(folder / 'a').write_text('x')",
        "Path('a').read_bytes()",
        "task.log.unlink(missing_ok=True)",
        "unfinished.replace(path)",
        "os.replace(a, b)",
        "os.rename(a, b)",
        "os.remove(a)",
        "shutil.rmtree(folder)",
        "from shutil import rmtree",
        "from os import unlink",
        "[x for x in folder.iterdir()]",
        "folder.glob('*.part')",
        "out.mkdir(parents=True)",
        "np.load(path)",
        "figure.savefig(path)",
    ],
)
def test_it_sees_every_way(line: str) -> None:
    assert list(calls_of(line))


@pytest.mark.parametrize("line", ["text.replace('a', 'b')", "entry.rename", "os.path.join(a, b)", "os.getpid()"])
def test_it_sees_nothing_else(line: str) -> None:
    assert not list(calls_of(line))
