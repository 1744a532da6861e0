"""Code of the user that the command line may import."""

from __future__ import annotations

import os
import sys

__all__ = ["allow_code"]


def allow_code(name: str | None) -> None:
    """Let the module of an environment that was typed as ``module:callable`` be found in the current folder."""
    if name is None or ":" not in name:
        return
    here = os.getcwd()  # noqa: PTH109 - as Python puts it there
    if here not in sys.path:
        sys.path.insert(0, here)
