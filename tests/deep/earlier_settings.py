"""Arguments of an agent that does the paper's update and nothing beside it, on small networks.

What checks the mechanics of that update builds its agents from these; what does not care uses the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.deep import OptionDQN, PerDQN

EARLIER: dict[str, Any] = {
    **PerDQN.plain(),
    "k_max": 8,
    "head_arch": [64],
    "batch_size": 32,
    "exploration_fraction": 0.2,
    "policy_kwargs": {"net_arch": [64, 64]},
}
"""The paper's update with all persistences up to 8, one hidden layer per head and a trunk of two."""


def earlier(agent: type[OptionDQN] = PerDQN, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """``EARLIER`` without what ``agent`` stands for, and ``arguments`` over it; ``policy_kwargs`` are merged."""
    given = dict(arguments or {})
    found = {name: value for name, value in EARLIER.items() if name not in agent.stands_for}
    policy_kwargs = {**found["policy_kwargs"], **(given.pop("policy_kwargs", None) or {})}
    return {**found, **given, "policy_kwargs": policy_kwargs}
