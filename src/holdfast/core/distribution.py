"""The name to install holdfast by, which differs from the name to import."""

from __future__ import annotations

__all__ = ["DISTRIBUTION", "install_command"]

DISTRIBUTION = "holdfast-rl"
"""The name on PyPI, where ``holdfast`` is another project."""


def install_command(extra: str) -> str:
    """The command that installs the packages of an optional part, such as ``onnx``."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
