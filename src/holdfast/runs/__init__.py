"""Runs: train any agent into a folder that says everything about it, and go on exactly from where it stopped.

Names are imported when they are first used: the list of algorithms alone is quick to have.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.runs.algorithms import ALGORITHMS, Algorithm, find_algorithm
    from holdfast.runs.config import RunConfig
    from holdfast.runs.directory import RunFolder, RunInUseError, RunStatus, find_runs
    from holdfast.runs.evaluation import Evaluation, evaluate
    from holdfast.runs.export import Export, export_onnx
    from holdfast.runs.policy_files import load_policy
    from holdfast.runs.progress import Progress, Reporter
    from holdfast.runs.stopping import StopRequest
    from holdfast.runs.training import Outcome, train

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Evaluation",
    "Export",
    "Outcome",
    "Progress",
    "Reporter",
    "RunConfig",
    "RunFolder",
    "RunInUseError",
    "RunStatus",
    "StopRequest",
    "evaluate",
    "export_onnx",
    "find_algorithm",
    "find_runs",
    "load_policy",
    "train",
]

_MODULES = (
    "algorithms",
    "config",
    "directory",
    "evaluation",
    "policy_files",
    "progress",
    "stopping",
    "training",
    "export",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for place in _MODULES:
            module = importlib.import_module(f"holdfast.runs.{place}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'holdfast.runs' has no attribute {name!r}")
