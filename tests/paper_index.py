"""The paper's items, where each of them is in the code, and which are still missing.

A docstring claims an item with a line ``Paper: <Kind> <label>``. Each item leads to exactly one public name
of ``src/holdfast``; a lemma, theorem or corollary leads to the test that shows it. Labels with a colon are the
paper's LaTeX labels; the others name what the paper defines without a label.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

ITEMS = {
    # Objects
    "defi:persistenceOption": "Definition",
    "persistent-kernel": "Definition",  # P_k
    "persistent-reward": "Definition",  # r_k
    "partial-history": "Definition",  # H_t^κ
    "k-value": "Definition",  # V*_k
    "reduced-distribution": "Definition",  # ω̃
    "eq:P_pers": "Equation",
    # Operators, exact and on a history
    "bellman-optimality": "Operator",  # T*
    "option-optimality": "Operator",  # T*_K
    "bootstrap": "Operator",  # T^κ
    "all-persistence": "Operator",  # H^κ
    "option-expectation": "Operator",  # T^ψ
    "empirical-optimality": "Operator",
    "empirical-bootstrap": "Operator",
    "empirical-all-persistence": "Operator",
    # Statements; the paper labels its theorem as a proposition
    "lem:r_k dec": "Lemma",
    "prop:HQ_contraction": "Theorem",
    "cor:apx_Qstar_equiv": "Corollary",
    "prop:kemeny": "Proposition",
    # Algorithms
    "alg:pers_update": "Algorithm",
    "alg:PerQ": "Algorithm",
    "alg:split_traj": "Algorithm",
    "per-dqn": "Algorithm",
    # Figures
    "fig:Kemeny": "Figure",
    "fig:adv_exploration": "Figure",
    "fig:adv_exploration_fix": "Figure",
    "fig:all_pers_update": "Figure",
    "fig:atari": "Figure",
    "fig:atariK": "Figure",
    "fig:freeway_comp": "Figure",
    "fig:freeway_extended": "Figure",
    "fig:kem_complete": "Figure",
    "fig:mt_car_2": "Figure",
    "fig:mtcar": "Figure",
    "fig:mtcar_comp": "Figure",
    "fig:sync": "Figure",
    "fig:sync_env": "Figure",
    "fig:sync_val": "Figure",
    "fig:tabular": "Figure",
    "fig:tabular_multi": "Figure",
    "fig:tabular_noboot": "Figure",
    "fig:tabular_perf": "Figure",
    "fig:tabular_times": "Figure",
}

# Shown by a test. A proposition is not among them: the paper's only one is a formula that is computed.
STATEMENTS = {"Lemma", "Theorem", "Corollary"}

# Take an item off when its code lands, and lower the number with it. Neither ever grows.
PENDING = [
    "reduced-distribution",
    "eq:P_pers",
    "prop:kemeny",
    "fig:Kemeny",
    "fig:adv_exploration",
    "fig:adv_exploration_fix",
    "fig:all_pers_update",
    "fig:atari",
    "fig:atariK",
    "fig:freeway_comp",
    "fig:freeway_extended",
    "fig:kem_complete",
    "fig:mt_car_2",
    "fig:mtcar",
    "fig:mtcar_comp",
    "fig:sync",
    "fig:sync_env",
    "fig:tabular",
    "fig:tabular_multi",
    "fig:tabular_noboot",
    "fig:tabular_perf",
    "fig:tabular_times",
]
PENDING_AT_MOST = 22


class Claim(NamedTuple):
    """One ``Paper:`` line and the name whose docstring it stands in."""

    text: str  # what follows "Paper:"
    name: str
    public: bool
    in_tests: bool


def claims_of(source: str, module: str, *, in_tests: bool) -> Iterator[Claim]:
    """All ``Paper:`` lines in the docstrings of a file's functions, classes and methods."""
    tree = ast.parse(source)
    exported = _exported_names(tree)

    def visit(node: ast.AST, outer: tuple[str, ...], public: bool) -> Iterator[Claim]:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from visit(child, outer, public)
                continue
            if in_tests:
                is_public = public and child.name.startswith(("test", "Test"))
            else:
                is_public = public and (not child.name.startswith("_") if outer else child.name in exported)
            name = ".".join((module, *outer, child.name))
            for line in (ast.get_docstring(child) or "").splitlines():
                if found := re.match(r"\s*paper\s*:(.*)", line, flags=re.IGNORECASE):
                    yield Claim(found[1].strip(), name, is_public, in_tests)
            within = is_public and isinstance(child, ast.ClassDef)
            yield from visit(child, (*outer, child.name), within)

    return visit(tree, (), True)


def index_problems(claims: Iterable[Claim], items: Mapping[str, str], pending: Collection[str]) -> list[str]:
    """Sentences about everything that keeps an item from leading to exactly one public name."""
    found = []
    names: dict[str, list[str]] = defaultdict(list)
    for text, name, public, in_tests in claims:
        kind, _, label = text.partition(" ")
        if label not in items:
            found.append(f"{name}: 'Paper: {text}' names no item of the paper")
            continue
        names[label].append(name)
        if kind != items[label]:
            found.append(f"{name}: {label} is of kind {items[label]}, not {kind}")
        if in_tests != (items[label] in STATEMENTS):
            place = "a public name of holdfast" if in_tests else "the test that shows it"
            found.append(f"{name}: {items[label]} {label} must lead to {place}")
        elif not public:
            place = "a test function" if in_tests else "listed in its module's __all__"
            found.append(f"{name}: claims {label}, so it must be {place}")
    for label in items:
        where = names[label]
        if len(where) > 1:
            found.append(f"{label} is claimed more than once: {', '.join(where)}")
        if where and label in pending:
            found.append(f"{label} is done in {where[0]}: take it off PENDING and lower PENDING_AT_MOST")
        if not where and label not in pending:
            found.append(f"{label} is claimed by no docstring and is not pending")
    found += [f"{label} is pending but no item of the paper" for label in pending if label not in items]
    found += [f"{label} is pending twice" for label in sorted(set(pending)) if list(pending).count(label) > 1]
    return found


def _exported_names(tree: ast.Module) -> set[object]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                # Names that are computed count for nothing: a claimed name must be spelt out.
                return {item.value for item in ast.walk(node.value) if isinstance(item, ast.Constant)}
    return set()
