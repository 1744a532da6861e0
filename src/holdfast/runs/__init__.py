"""Runs: train any agent in a folder that records everything about it, and continue exactly where it stopped.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from holdfast.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from holdfast.runs.config import RunConfig
    from holdfast.runs.directory import RunFolder, RunInUseError, RunStatus, find_runs
    from holdfast.runs.frames import read_runs
    from holdfast.runs.progress import Reporter, TrainingProgress
    from holdfast.runs.session import Evaluated
    from holdfast.runs.stopping import StopRequest
    from holdfast.runs.training import Outcome, train

__all__ = [
    "Evaluated",
    "Outcome",
    "Reporter",
    "RunConfig",
    "RunFolder",
    "RunInUseError",
    "RunStatus",
    "StopRequest",
    "TrainingProgress",
    "find_runs",
    "read_runs",
    "train",
]

__getattr__ = lazy_names(
    __name__, __all__, ("config", "directory", "frames", "progress", "stopping", "session", "training")
)
