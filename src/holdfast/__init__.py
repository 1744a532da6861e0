"""holdfast: reinforcement-learning agents that decide what to do and how long to hold it.

Names are imported when they are first used, so that ``import holdfast`` stays quick. The environments
(``holdfast/Cliff-v0`` and others) are registered with Gymnasium by ``import holdfast.envs``, and by
``import holdfast`` if Gymnasium has been imported before.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.core import Decision, Option, OptionClock, OptionSpace, PartialHistory
    from holdfast.deep import EZGreedyDQN, PerDQN, PerSAC, PerTD3, TempoRLDQN, make_vec_env
    from holdfast.envs import EpisodeLog, GridMap, GridWorld, HoldAction
    from holdfast.experiments import read_campaign
    from holdfast.mdp import TabularMDP
    from holdfast.policies import load_policy
    from holdfast.runs import read_runs
    from holdfast.tabular import (
        EZGreedyQLearning,
        MSAQLearning,
        PerQLearning,
        QLearning,
        TempoRLQLearning,
    )

__version__ = "0.1.0"

__all__ = [
    "Decision",
    "EZGreedyDQN",
    "EZGreedyQLearning",
    "EpisodeLog",
    "GridMap",
    "GridWorld",
    "HoldAction",
    "MSAQLearning",
    "Option",
    "OptionClock",
    "OptionSpace",
    "PartialHistory",
    "PerDQN",
    "PerQLearning",
    "PerSAC",
    "PerTD3",
    "QLearning",
    "TabularMDP",
    "TempoRLDQN",
    "TempoRLQLearning",
    "__version__",
    "load_policy",
    "make_vec_env",
    "read_campaign",
    "read_runs",
]

_PACKAGES = ("core", "mdp", "envs", "policies", "runs", "experiments", "tabular", "deep")


def __getattr__(name: str) -> Any:
    from holdfast.core.lazy_names import lazy_names

    return lazy_names(__name__, __all__, _PACKAGES)(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _register_environments() -> None:
    importlib.import_module("holdfast.envs")


if "gymnasium" in sys.modules:
    _register_environments()
