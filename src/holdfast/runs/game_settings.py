"""Default arguments for games: the paper's for Atari, a small network for MinAtar."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from holdfast.envs.game_names import split_name
from holdfast.policies.algorithms import Algorithm

__all__ = ["game_settings"]

_NETWORK = ("policy", "policy_kwargs", "head_arch")
"""Arguments that belong together: if the policy or its arguments are given, none of these defaults apply."""

_MINATAR: Mapping[str, Any] = {
    "policy": "CnnPolicy",
    "policy_kwargs": {"net_arch": [128], "features_extractor_class": "SmallConvolutions"},
}


def game_settings(environment: Any, algorithm: Algorithm, given: Collection[str]) -> dict[str, Any]:
    """Default arguments of an algorithm for a game, as JSON values; empty for other environments and for tables.

    How long actions may be held is not among them.

    Args:
        environment: Its name.
        algorithm: The algorithm.
        given: Names of the arguments that were given.
    """
    game = split_name(environment) if isinstance(environment, str) else None
    if game is None or not algorithm.is_deep or algorithm.is_continuous:
        return {}
    settings = dict(_paper_atari() if game[0] == "atari" else _MINATAR)
    left_out = {"k_max", *given}
    if left_out & {"policy", "policy_kwargs"}:
        left_out.update(_NETWORK)
    known = algorithm.arguments()
    return {name: value for name, value in settings.items() if name in known and name not in left_out}


def _paper_atari() -> dict[str, Any]:
    from holdfast.deep.agents.paper_settings import ATARI

    kwargs = ATARI["policy_kwargs"]
    extractor = kwargs["features_extractor_class"].__name__
    return {**ATARI, "policy_kwargs": {**kwargs, "features_extractor_class": extractor}}
