"""All pictures, in one style. Drawing returns a matplotlib ``Figure``; ``save_figure`` writes it."""

from holdfast.draw.cell_layout import CellLayout, draw_map, draw_maps
from holdfast.draw.curves import Curve, Panel, draw_curve_rows, draw_curves
from holdfast.draw.exploration_curves import HorizonCurve, draw_exploration_curves
from holdfast.draw.grid_policy import draw_policy
from holdfast.draw.grid_values import draw_value_maps
from holdfast.draw.hold_map import HoldMap, draw_hold_map
from holdfast.draw.holds import draw_hold_histogram, draw_holds_over_training, draw_tolerance_sweep
from holdfast.draw.option_values import draw_option_values
from holdfast.draw.profiles import IntervalMark, IntervalPanel, draw_aggregates, draw_profiles
from holdfast.draw.state_values import draw_state_values
from holdfast.draw.style import ALGORITHM_COLORS, PALETTE, algorithm_color, figure_bytes, look, save_figure

__all__ = [
    "ALGORITHM_COLORS",
    "PALETTE",
    "CellLayout",
    "Curve",
    "HoldMap",
    "HorizonCurve",
    "IntervalMark",
    "IntervalPanel",
    "Panel",
    "algorithm_color",
    "draw_aggregates",
    "draw_curve_rows",
    "draw_curves",
    "draw_exploration_curves",
    "draw_hold_histogram",
    "draw_hold_map",
    "draw_holds_over_training",
    "draw_map",
    "draw_maps",
    "draw_option_values",
    "draw_policy",
    "draw_profiles",
    "draw_state_values",
    "draw_tolerance_sweep",
    "draw_value_maps",
    "figure_bytes",
    "look",
    "save_figure",
]
