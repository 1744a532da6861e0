"""Code of the user that the command line may import."""

from __future__ import annotations

import os
import sys

__all__ = ["allow_code", "code_folder"]


def allow_code(name: str | None) -> None:
    """Let the module of what was typed as ``module:name`` be found in the current folder."""
    here = code_folder(name)
    if here is not None and here not in sys.path:
        sys.path.insert(0, here)


def code_folder(name: str | None) -> str | None:
    """The folder in which such a module is looked for; None for what is no code."""
    if name is None or ":" not in name:
        return None
    return os.getcwd()  # noqa: PTH109 - as Python puts it there
