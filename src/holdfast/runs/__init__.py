"""Runs: train any agent into a folder that says everything about it, and go on exactly from where it stopped.

Names are imported when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.runs.config import RunConfig
    from holdfast.runs.directory import RunFolder, RunInUseError, RunStatus, find_runs
    from holdfast.runs.progress import Reporter, TrainingProgress
    from holdfast.runs.stopping import StopRequest
    from holdfast.runs.training import Outcome, train

__all__ = [
    "Outcome",
    "Reporter",
    "RunConfig",
    "RunFolder",
    "RunInUseError",
    "RunStatus",
    "StopRequest",
    "TrainingProgress",
    "find_runs",
    "train",
]

_MODULES = ("config", "directory", "progress", "stopping", "training")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for place in _MODULES:
            module = importlib.import_module(f"holdfast.runs.{place}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'holdfast.runs' has no attribute {name!r}")
