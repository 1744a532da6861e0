"""Runs: train any agent into a folder that says everything about it, and go on exactly from where it stopped.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from holdfast.core.lazy_names import lazy_names

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

__getattr__ = lazy_names(__name__, __all__, ("config", "directory", "progress", "stopping", "training"))
