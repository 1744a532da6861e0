"""Advice on how long actions should be held: where random options lead, and what a fixed frame skip costs.

Names are imported on first use: counting needs none of the drawing code.
"""

from typing import TYPE_CHECKING

from holdfast.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from holdfast.advice.exploring import EnvironmentAdvice, explore
    from holdfast.advice.fixed_skips.skips import estimate_run_skips, estimate_skips, exact_skips
    from holdfast.advice.visitation.pictures import draw_visitation
    from holdfast.advice.visitation.random_options import Setting
    from holdfast.advice.visitation.results import Visitation, VisitationStudy
    from holdfast.advice.visitation.study import StudyProgress, study_visitation

__all__ = [
    "EnvironmentAdvice",
    "Setting",
    "StudyProgress",
    "Visitation",
    "VisitationStudy",
    "draw_visitation",
    "estimate_run_skips",
    "estimate_skips",
    "exact_skips",
    "explore",
    "study_visitation",
]

__getattr__ = lazy_names(
    __name__,
    __all__,
    (
        "visitation.random_options",
        "visitation.results",
        "visitation.study",
        "visitation.pictures",
        "fixed_skips.skips",
        "exploring",
    ),
)
