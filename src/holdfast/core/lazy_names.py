"""Package names that are imported on first use, so that importing the package stays fast."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, names: Sequence[str], modules: Sequence[str]) -> Callable[[str], Any]:
    """Make a package's ``__getattr__``.

    Args:
        package: The package's full name.
        names: The package's public names.
        modules: The modules that define them, each in its ``__all__``; list those that import fast first.
    """

    def find(name: str) -> Any:
        if name in names:
            for place in modules:
                module = importlib.import_module(f"{package}.{place}")
                if name in module.__all__:
                    return getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
