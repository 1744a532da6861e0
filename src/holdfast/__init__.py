"""holdfast: reinforcement-learning agents that decide what to do and how long to hold it.

Names are imported when they are first used, so that ``import holdfast`` stays quick. The environments
(``holdfast/Cliff-v0`` and others) are registered with Gymnasium by ``import holdfast.envs``, and by
``import holdfast`` if Gymnasium has been imported before.
"""

import importlib
import sys
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "GridMap": "holdfast.envs",
    "GridWorld": "holdfast.envs",
    "Option": "holdfast.core",
    "OptionClock": "holdfast.core",
    "OptionSpace": "holdfast.core",
    "PartialHistory": "holdfast.core",
    "TabularMDP": "holdfast.mdp",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _register_environments() -> None:
    importlib.import_module("holdfast.envs")


if "gymnasium" in sys.modules:
    _register_environments()
