"""How long actions should be held: where random options lead, what a fixed frame skip costs, and advice.

Names are imported when they are first used: to count needs nothing that draws.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.analysis.intervals import Estimate, mean_estimate, quantile_estimate, wilson_estimate
    from holdfast.analysis.random_options import Setting
    from holdfast.analysis.results import Visitation, VisitationStudy
    from holdfast.analysis.showing import draw_visitation
    from holdfast.analysis.visitation import StudyProgress, study_visitation

__all__ = [
    "Estimate",
    "Setting",
    "StudyProgress",
    "Visitation",
    "VisitationStudy",
    "draw_visitation",
    "mean_estimate",
    "quantile_estimate",
    "study_visitation",
    "wilson_estimate",
]

_MODULES = ("intervals", "random_options", "results", "visitation", "showing")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for place in _MODULES:
            module = importlib.import_module(f"holdfast.analysis.{place}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'holdfast.analysis' has no attribute {name!r}")
