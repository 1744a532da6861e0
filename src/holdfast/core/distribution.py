"""The name that holdfast is installed by, which is not the one that it is imported by."""

from __future__ import annotations

__all__ = ["DISTRIBUTION", "install_command"]

DISTRIBUTION = "holdfast-rl"
"""On PyPI: ``holdfast`` is another project there."""


def install_command(extra: str) -> str:
    """What a user types to get the packages of an optional part, such as ``onnx``."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
