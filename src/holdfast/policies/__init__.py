"""Trained policies on their own: load, decide, evaluate, draw, film and export them.

Names are imported when they are first used, so that the list of algorithms loads quickly.
"""

from typing import TYPE_CHECKING

from holdfast.core.lazy_names import lazy_names

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

__getattr__ = lazy_names(__name__, __all__, ("algorithms", "evaluation", "policy_files", "opened", "export"))
