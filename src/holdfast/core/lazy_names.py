"""Names of a package that are imported when they are first used, so that importing the package stays quick."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, names: Sequence[str], modules: Sequence[str]) -> Callable[[str], Any]:
    """A package's ``__getattr__``.

    Args:
        package: The package's full name.
        names: Its public names.
        modules: Its modules that define them, each in its ``__all__``; those that are quick to import first.
    """

    def find(name: str) -> Any:
        if name in names:
            for place in modules:
                module = importlib.import_module(f"{package}.{place}")
                if name in module.__all__:
                    return getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
