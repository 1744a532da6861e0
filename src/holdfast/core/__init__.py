"""The paper's objects as small pure functions and types; the compiling decorator; no global random state."""

from holdfast.core.choice import Decision
from holdfast.core.clock import OptionClock
from holdfast.core.decomposition import backward_schedule, sub_transitions, update_count, window_length
from holdfast.core.history import PartialHistory
from holdfast.core.options import Option, OptionSpace
from holdfast.core.schedules import Constant, Exponential, Linear, Schedule
from holdfast.core.targets import empirical_all_persistence, empirical_bootstrap, empirical_optimality

__all__ = [
    "Constant",
    "Decision",
    "Exponential",
    "Linear",
    "Option",
    "OptionClock",
    "OptionSpace",
    "PartialHistory",
    "Schedule",
    "backward_schedule",
    "empirical_all_persistence",
    "empirical_bootstrap",
    "empirical_optimality",
    "sub_transitions",
    "update_count",
    "window_length",
]
