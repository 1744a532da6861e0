"""Experiments: the paper's figures by name, as jobs that run anywhere, with rows that are stored once.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from holdfast.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from holdfast.experiments.engines.local import LocalEngine
    from holdfast.experiments.engines.ray import RayEngine
    from holdfast.experiments.frames import read_campaign
    from holdfast.experiments.guests import Guest
    from holdfast.experiments.programs import run_figure, run_sweep, run_tuning
    from holdfast.experiments.tuning.ranges import Range

__all__ = ["Guest", "LocalEngine", "Range", "RayEngine", "read_campaign", "run_figure", "run_sweep", "run_tuning"]

__getattr__ = lazy_names(
    __name__, __all__, ("frames", "guests", "tuning.ranges", "engines.local", "engines.ray", "programs")
)
