"""Environments: grid worlds on ASCII maps, lookup by name, and a wrapper that holds actions."""

from holdfast.envs.atari import AtariGame, make_atari
from holdfast.envs.choices import MOST_COMBINATIONS, Choices, are_choices
from holdfast.envs.episode_log import EpisodeLog, allow_repetition
from holdfast.envs.exploration_chain import ExplorationKernel, exploration_kernel
from holdfast.envs.failures import EnvironmentFailedError, NamedFailures
from holdfast.envs.frozen_lake import FrozenLake16, random_map
from holdfast.envs.goal_grid import GoalGrid
from holdfast.envs.grid_map import GridMap
from holdfast.envs.grids import GridWorld
from holdfast.envs.hold_action import HoldAction
from holdfast.envs.lookup import is_own_environment, make_env, make_scoring_env
from holdfast.envs.minatar import MinAtarGame, make_minatar
from holdfast.envs.names import action_names, observation_names
from holdfast.envs.places import Placed, place_names, place_of
from holdfast.envs.registration import SHORT_NAMES, register_environments

register_environments()

__all__ = [
    "MOST_COMBINATIONS",
    "SHORT_NAMES",
    "AtariGame",
    "Choices",
    "EnvironmentFailedError",
    "EpisodeLog",
    "ExplorationKernel",
    "FrozenLake16",
    "GoalGrid",
    "GridMap",
    "GridWorld",
    "HoldAction",
    "MinAtarGame",
    "NamedFailures",
    "Placed",
    "action_names",
    "allow_repetition",
    "are_choices",
    "exploration_kernel",
    "is_own_environment",
    "make_atari",
    "make_env",
    "make_minatar",
    "make_scoring_env",
    "observation_names",
    "place_names",
    "place_of",
    "random_map",
    "register_environments",
]
