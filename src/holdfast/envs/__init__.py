"""Environments: grid worlds on ASCII maps, registered with Gymnasium, and how to find them by name."""

from holdfast.envs.frozen_lake import FrozenLake16, random_map
from holdfast.envs.grid_map import GridMap
from holdfast.envs.grids import GridWorld
from holdfast.envs.lookup import make_env
from holdfast.envs.registration import SHORT_NAMES, register_environments

register_environments()

__all__ = [
    "SHORT_NAMES",
    "FrozenLake16",
    "GridMap",
    "GridWorld",
    "make_env",
    "random_map",
    "register_environments",
]
