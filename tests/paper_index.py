"""The paper's items, where each of them is in the code, and which are still missing.

A docstring claims an item with a line ``Paper: <Kind> <label>``. Each item leads to exactly one public name
of ``src/holdfast``; a lemma, theorem or corollary leads to the test that shows it. Labels with a colon are the
paper's LaTeX labels; the others name what the paper defines without a label.

``tests.paper_page`` writes the same as a page, docs/paper_index.md.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from tests.architecture import ROOT


class Item(NamedTuple):
    """Something that the paper defines, states or shows."""

    kind: str
    title: str  # what it is, in our words


ITEMS = {
    # Objects
    "defi:persistenceOption": Item("Definition", "persistence options (a, k)"),
    "persistent-kernel": Item("Definition", "P_k: where holding an action for k steps leads"),
    "persistent-reward": Item("Definition", "r_k: the discounted reward of holding it"),
    "partial-history": Item("Definition", "H_t^κ: what is seen while one action is held"),
    "k-value": Item("Definition", "V*_k: the first action held for k steps, everything after it optimal"),
    "reduced-distribution": Item("Definition", "ω̃: a distribution of persistences, cut at a horizon"),
    "eq:P_pers": Item("Equation", "P_H: H steps of random options as one Markov chain"),
    # Operators, exact and on a history
    "bellman-optimality": Item("Operator", "T*, on primitive actions"),
    "option-optimality": Item("Operator", "T*_K, on persistence options"),
    "bootstrap": Item("Operator", "T^κ: κ steps seen, the rest from the value of holding on"),
    "all-persistence": Item("Operator", "H^κ: T*_K where k ≤ κ, T^κ where k > κ"),
    "option-expectation": Item("Operator", "T^ψ, for a policy over options"),
    "empirical-optimality": Item("Operator", "T̂*, on a partial history"),
    "empirical-bootstrap": Item("Operator", "T̂^κ, on a partial history"),
    "empirical-all-persistence": Item("Operator", "Ĥ^κ, on a partial history"),
    # Statements; the paper labels its theorem as a proposition
    "lem:r_k dec": Item("Lemma", "r_k is r_k' and, from where that leads, r_{k−k'}"),
    "prop:HQ_contraction": Item("Theorem", "H^κ contracts, Q*_K is its one fixed point, and does not grow with k"),
    "cor:apx_Qstar_equiv": Item("Corollary", "Q*_K(s,a,1) = Q*(s,a)"),
    "prop:kemeny": Item("Proposition", "Kemeny's constant by eigenvalues"),
    # Algorithms
    "alg:pers_update": Item("Algorithm", "Algorithm 1, the all-persistence update"),
    "alg:PerQ": Item("Algorithm", "Algorithm 2, PerQ-learning"),
    "alg:split_traj": Item("Algorithm", "Algorithm 3, what each replay buffer receives"),
    "per-dqn": Item("Algorithm", "PerDQN"),
    # Figures
    "fig:Kemeny": Item("Figure", "Kemeny's constant over K_max"),
    "fig:adv_exploration": Item("Figure", "MountainCar: where random options of any length lead"),
    "fig:adv_exploration_fix": Item("Figure", "MountainCar: where random options of one length lead"),
    "fig:all_pers_update": Item("Figure", "the order of the updates for κ = 2, K_max = 3"),
    "fig:atari": Item("Figure", "six Atari games"),
    "fig:atariK": Item("Figure", "Atari games with K_max = 4 and 8"),
    "fig:freeway_comp": Item("Figure", "Freeway against DQN with larger batches"),
    "fig:freeway_extended": Item("Figure", "Freeway with K_max = 4 and 8"),
    "fig:kem_complete": Item("Figure", "Kemeny's constant and entropy, several horizons"),
    "fig:mt_car_2": Item("Figure", "MountainCar without the bootstrap"),
    "fig:mtcar": Item("Figure", "MountainCar"),
    "fig:mtcar_comp": Item("Figure", "MountainCar against larger batches and εz-greedy"),
    "fig:sync": Item("Figure", "synchronous learning: the errors"),
    "fig:sync_env": Item("Figure", "synchronous learning: the grid"),
    "fig:sync_val": Item("Figure", "synchronous learning: V*_k for every k"),
    "fig:tabular": Item("Figure", "the three grids"),
    "fig:tabular_multi": Item("Figure", "grids against Q-learning with more updates"),
    "fig:tabular_noboot": Item("Figure", "grids without the bootstrap"),
    "fig:tabular_perf": Item("Figure", "grids: returns"),
    "fig:tabular_times": Item("Figure", "grids: computing times"),
}

# Shown by a test. A proposition is not among them: the paper's only one is a formula that is computed.
STATEMENTS = {"Lemma", "Theorem", "Corollary"}

# Take an item off when its code lands, and lower the number with it. Neither ever grows.
PENDING: list[str] = []
PENDING_AT_MOST = 0


class Claim(NamedTuple):
    """One ``Paper:`` line and the name whose docstring it stands in."""

    text: str  # what follows "Paper:"
    name: str
    path: str  # of the file, from the root of the project
    public: bool

    @property
    def in_tests(self) -> bool:
        """Whether it stands in a test."""
        return self.path.startswith("tests/")

    @property
    def label(self) -> str:
        """The item that is claimed."""
        return self.text.partition(" ")[2]


def all_claims() -> Iterator[Claim]:
    """Those of the source and of the tests."""
    for folder in ("src", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield from claims_of(path.read_text("utf-8"), path.relative_to(ROOT).as_posix())


def claims_of(source: str, path: str) -> Iterator[Claim]:
    """All ``Paper:`` lines in the docstrings of a file's functions, classes and methods."""
    tree = ast.parse(source)
    exported = exported_names(tree)
    in_tests = path.startswith("tests/")
    module = ".".join(PurePosixPath(path).with_suffix("").parts[1:])

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
                    yield Claim(found[1].strip(), name, path, is_public)
            within = is_public and isinstance(child, ast.ClassDef)
            yield from visit(child, (*outer, child.name), within)

    return visit(tree, (), True)


def index_problems(claims: Iterable[Claim], items: Mapping[str, Item], pending: Collection[str]) -> list[str]:
    """Sentences about everything that keeps an item from leading to exactly one public name."""
    found = []
    names: dict[str, list[str]] = defaultdict(list)
    for claim in claims:
        name, label = claim.name, claim.label
        if label not in items:
            found.append(f"{name}: 'Paper: {claim.text}' names no item of the paper")
            continue
        names[label].append(name)
        expected, kind = items[label].kind, claim.text.partition(" ")[0]
        if kind != expected:
            found.append(f"{name}: {label} is of kind {expected}, not {kind}")
        if claim.in_tests != (expected in STATEMENTS):
            place = "a public name of holdfast" if claim.in_tests else "the test that shows it"
            found.append(f"{name}: {expected} {label} must lead to {place}")
        elif not claim.public:
            place = "a test function" if claim.in_tests else "listed in its module's __all__"
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


def exported_names(tree: ast.Module) -> set[object]:
    """What a module's ``__all__`` lists."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                # Names that are computed count for nothing: a claimed name must be spelt out.
                return {item.value for item in ast.walk(node.value) if isinstance(item, ast.Constant)}
    return set()
