"""``holdfast doctor``: what is installed here, and how to get what is not."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
from pathlib import Path
from typing import Any

from holdfast.cli.streams import results
from holdfast.cli.verbs import add_verb
from holdfast.core.distribution import install_command

__all__ = ["add_parser", "package_versions"]

_DESCRIPTION = """\
List what holdfast finds on this machine: versions, threads, devices, installed
optional parts, and how to install the others.
"""

_NEEDED = ("numpy", "scipy", "gymnasium", "matplotlib", "numba", "torch", "stable-baselines3", "tensorboard")
_OPTIONAL = {
    "atari": ("ale-py", "Atari games"),
    "minatar": ("minatar", "MinAtar games"),
    "mujoco": ("mujoco", "Hopper, HalfCheetah and others"),
    "box2d": ("box2d", "LunarLander"),
    "ray": ("ray", "experiments on several machines"),
    "onnx": ("onnx", "policies as .onnx files"),
    "data": ("pandas", "pandas frames of runs"),
    "tune": ("optuna", "tuning of arguments"),
    "report": ("plotly", "pages to look at"),
    "docs": ("mkdocs-material", "the documentation site"),
    "fuzz": ("atheris", "the test of changed files"),
    "video": ("imageio-ffmpeg", "films, also as .mp4 files"),
}


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(verbs, "doctor", "list versions, threads, devices and optional parts", _DESCRIPTION)
    parser.add_argument("--json", action="store_true", help="print the same as JSON")
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """Examine and print; return 1 if a required package is missing."""
    found = _examine()
    if arguments.json:
        results().write(json.dumps(found, indent=2) + "\n")
    else:
        results().write(_as_text(found))
    return 0 if all(found["packages"].values()) else 1


def _examine() -> dict[str, Any]:
    from holdfast import __version__

    return {
        "holdfast": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": package_versions(),
        "processors": _processors(),
        "torch_threads": _torch("get_num_threads"),
        "devices": _devices(),
        "optional": {extra: _version(package) for extra, (package, _) in _OPTIONAL.items()},
        "numba_cache_writable": _cache_is_writable(),
    }


def package_versions() -> dict[str, str | None]:
    """Versions of the packages that holdfast needs, without importing them; None where one is missing."""
    return {name: _version(name) for name in _NEEDED}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _torch(function: str) -> Any:
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    return getattr(torch, function)()


def _devices() -> list[str]:
    if importlib.util.find_spec("torch") is None:
        return []
    import torch

    found = ["cpu"]
    found += [f"cuda:{number} {torch.cuda.get_device_name(number)}" for number in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return found


def _cache_is_writable() -> bool:
    """Whether compiled code can be cached; if not, every process compiles it again."""
    folder = os.environ.get("NUMBA_CACHE_DIR") or str(Path(__file__).parent.parent / "tabular")
    return os.access(folder, os.W_OK)


def _as_text(found: dict[str, Any]) -> str:
    lines = [f"holdfast {found['holdfast']} on Python {found['python']}, {found['system']}", ""]
    for name, version in found["packages"].items():
        lines.append(f"  {name:<18} {version or 'MISSING: pip install ' + name}")
    lines += [
        "",
        f"  {'processors':<18} {found['processors']}",
        f"  {'torch threads':<18} {found['torch_threads']}; holdfast train uses 1 (--threads)",
        f"  {'devices':<18} {', '.join(found['devices']) or 'none'}",
    ]
    if not found["numba_cache_writable"]:
        lines.append(
            f"  {'numba cache':<18} not writable: tables are compiled anew each time (set NUMBA_CACHE_DIR)"
        )
    lines += ["", "  optional parts"]
    for extra, version in found["optional"].items():
        package, purpose = _OPTIONAL[extra]
        state = f"{package} {version}" if version else install_command(extra)
        lines.append(f"  {extra:<8} {purpose + ':':<34} {state}")
    return "\n".join(lines) + "\n"
