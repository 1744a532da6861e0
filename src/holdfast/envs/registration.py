"""The environments' names: Gymnasium ids and short names.

The environments truncate their episodes themselves (``step_limit``), so none is registered with
``max_episode_steps``: one argument sets how long an episode may last, wherever it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import gymnasium

from holdfast.envs.game_names import FAMILIES
from holdfast.envs.maps import BRIDGE, CLIFF, OPEN, SYNC_GRID, ZIGZAG

__all__ = ["GRID_ID", "SHORT_NAMES", "register_environments"]

_GRID_WORLD = "holdfast.envs.grids:GridWorld"
_FROZEN_LAKE = "holdfast.envs.frozen_lake:FrozenLake16"

GRID_ID = "holdfast/Grid-v0"
"""The grid world that takes its map as an argument."""

_ENTRIES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("holdfast/Cliff-v0", _GRID_WORLD, {"map": CLIFF}),
    ("holdfast/Bridge-v0", _GRID_WORLD, {"map": BRIDGE}),
    ("holdfast/ZigZag-v0", _GRID_WORLD, {"map": ZIGZAG}),
    ("holdfast/Open-v0", _GRID_WORLD, {"map": OPEN}),
    (
        "holdfast/SyncGrid-v0",
        _GRID_WORLD,
        {
            "map": SYNC_GRID,
            "goal_reward": 100.0,
            "hole_reward": -10.0,
            "step_reward": -1.0,
            "border": "deadly",
            "border_reward": -100.0,
        },
    ),
    ("holdfast/FrozenLake16-v0", _FROZEN_LAKE, {}),
    (GRID_ID, _GRID_WORLD, {}),
    ("holdfast/GoalGrid-v0", "holdfast.envs.goal_grid:GoalGrid", {}),
    ("holdfast/MountainCarFine-v0", "holdfast.envs.finer_time:MountainCarFine", {}),
    ("holdfast/CartPoleFine-v0", "holdfast.envs.finer_time:CartPoleFine", {}),
    ("holdfast/AcrobotFine-v0", "holdfast.envs.finer_time:AcrobotFine", {}),
    ("holdfast/PendulumFine-v0", "holdfast.envs.finer_time:PendulumFine", {}),
    (FAMILIES["atari"], "holdfast.envs.atari:AtariGame", {}),
    (FAMILIES["minatar"], "holdfast.envs.minatar:MinAtarGame", {}),
)

SHORT_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "cliff": "holdfast/Cliff-v0",
        "bridge": "holdfast/Bridge-v0",
        "zigzag": "holdfast/ZigZag-v0",
        "zig-zag": "holdfast/ZigZag-v0",
        "open": "holdfast/Open-v0",
        "goal-grid": "holdfast/GoalGrid-v0",
        "goalgrid": "holdfast/GoalGrid-v0",
        "sync-grid": "holdfast/SyncGrid-v0",
        "syncgrid": "holdfast/SyncGrid-v0",
        "frozen-lake": "holdfast/FrozenLake16-v0",
        "frozenlake": "holdfast/FrozenLake16-v0",
        "frozen-lake16": "holdfast/FrozenLake16-v0",
        "frozenlake16": "holdfast/FrozenLake16-v0",
    }
)
"""Short names and their Gymnasium ids."""


def register_environments() -> None:
    """Add the environments to Gymnasium's registry; those already there are not changed."""
    for name, entry_point, arguments in _ENTRIES:
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point, kwargs=dict(arguments))
