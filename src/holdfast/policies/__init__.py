"""Policies as things of their own: load, decide, evaluate, look at, film and export what was trained.

Names are imported when they are first used: the list of algorithms alone is quick to have.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.policies.algorithms import ALGORITHMS, Algorithm, find_algorithm
    from holdfast.policies.evaluation import Evaluation, evaluate
    from holdfast.policies.export import Export, export_onnx
    from holdfast.policies.opened import OpenedPolicy, open_policy
    from holdfast.policies.policy_files import load_policy

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Evaluation",
    "Export",
    "OpenedPolicy",
    "evaluate",
    "export_onnx",
    "find_algorithm",
    "load_policy",
    "open_policy",
]

_MODULES = ("algorithms", "evaluation", "policy_files", "opened", "export")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for place in _MODULES:
            module = importlib.import_module(f"holdfast.policies.{place}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'holdfast.policies' has no attribute {name!r}")
