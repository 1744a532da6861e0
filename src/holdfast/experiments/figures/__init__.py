"""The figures that can be reproduced; figures that differ only in their data share a module.

To add one: an ``Experiment`` in a module here, and a line in ``_PLACES``. Modules are imported on first use.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import replace

from holdfast.core.errors import InputError
from holdfast.core.user_code import user_code
from holdfast.experiments.spec import Experiment
from holdfast.policies.algorithms import nearest_names

__all__ = ["LABELS", "find_experiment", "find_label", "is_own_experiment"]

_PLACES = {
    "fig:Kemeny": "chain_curves:KEMENY",
    "fig:kem_complete": "chain_curves:KEMENY_AND_ENTROPY",
    "fig:adv_exploration": "car_visits:DYNAMIC",
    "fig:adv_exploration_fix": "car_visits:FIXED",
    "fig:all_pers_update": "all_pers_update:EXPERIMENT",
    "fig:sync_env": "grid_maps:SYNCHRONOUS",
    "fig:sync_val": "sync_val:EXPERIMENT",
    "fig:sync": "sync:EXPERIMENT",
    "fig:tabular": "grid_maps:TABULAR",
    "fig:tabular_perf": "grid_returns:METHODS",
    "fig:tabular_noboot": "grid_returns:WITHOUT_BOOTSTRAP",
    "fig:tabular_multi": "grid_returns:MORE_UPDATES",
    "fig:tabular_times": "tabular_times:EXPERIMENT",
    "fig:mtcar": "car_returns:METHODS",
    "fig:mt_car_2": "car_returns:WITHOUT_BOOTSTRAP",
    "fig:mtcar_comp": "car_returns:LARGER_BATCHES",
    "fig:atari": "games:GAMES",
    "fig:atariK": "games:LONGER_HOLDS",
    "fig:freeway_extended": "games:FREEWAY",
    "fig:freeway_comp": "games:FREEWAY_BATCHES",
    "fig:minatar": "games:MINATAR",
    "fig:minatarK": "games:MINATAR_LONGER_HOLDS",
    "fig:suite": "suite:SUITE",
    "fig:ablation": "suite:ABLATION",
    "fig:refinement": "refinement:EXPERIMENT",
    "fig:refinement_car": "refinement_car:EXPERIMENT",
    "fig:continuous": "continuous:EXPERIMENT",
    "fig:continuous_sac": "continuous:SOFT",
    "fig:her": "goals:EXPERIMENT",
}
"""Module and name of each figure, in the order of listing."""

LABELS = tuple(_PLACES)

_CODE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def find_experiment(name: str) -> Experiment:
    """The experiment of a label, or a user's own experiment given as ``module:attribute``.

    Raises:
        ValueError: There is none; the message names the nearest label.
    """
    if is_own_experiment(name):
        place, _, attribute = name.partition(":")
        return replace(_imported(place, attribute, name), reference=name)
    label = find_label(name)
    module, _, attribute = _PLACES[label].partition(":")
    return replace(_imported(f"{__name__}.{module}", attribute, label), reference=label)


def find_label(name: str) -> str:
    """The label that a user typed, with or without ``fig:``, in capitals or not.

    Raises:
        ValueError: There is none; the message names the nearest.
    """
    known = {label.lower(): label for label in LABELS}
    typed = name.lower()
    for wanted in (typed, f"fig:{typed}"):
        if wanted in known:
            return known[wanted]
    hint = nearest_names(typed.removeprefix("fig:"), [label.removeprefix("fig:") for label in LABELS], 0.4)
    raise InputError(
        f"label must be one that `holdfast reproduce list` shows, all, or module:attribute, not {name!r}"
        f"{'; ' * bool(hint)}{hint}",
        "label",
    )


def is_own_experiment(name: str) -> bool:
    """Whether an experiment of that name is a user's own, so that finding it imports what it names."""
    return not name.lower().startswith("fig:") and _CODE.fullmatch(name) is not None


def _imported(module: str, attribute: str, name: str) -> Experiment:
    if module.startswith(f"{__name__}."):
        found = getattr(importlib.import_module(module), attribute)
    else:
        with user_code(f"experiment {name!r} cannot be loaded: importing {module}"):
            found = getattr(importlib.import_module(module), attribute, None)
    if not isinstance(found, Experiment):
        raise InputError(f"experiment {name!r} must be a holdfast.experiments.spec.Experiment, but is not")
    return found
