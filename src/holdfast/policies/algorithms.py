"""The one list of algorithms: what the command line, its help, the tests and the documentation go by."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.core.checks import check_persistences
from holdfast.core.errors import InputError

if TYPE_CHECKING:
    from holdfast.policies.arguments import Argument

__all__ = ["ALGORITHMS", "DEFAULT_ALGORITHM", "Algorithm", "find_algorithm", "nearest_names"]

_SET_ELSEWHERE = {
    "self",
    "env",
    "seed",
    "device",
    "verbose",
    "tensorboard_log",
    # These do nothing here.
    "optimize_memory_usage",
    "n_steps",
    "_init_setup_model",
}


@dataclass(frozen=True)
class Algorithm:
    """An algorithm by the name that users type.

    Attributes:
        name: That name.
        title: What it is called in tables and pictures.
        summary: What it is, in a few words.
        location: ``module:class``; imported when it is first needed.
        stands_for: Arguments that the name fixes.
        is_continuous: Whether it takes continuous actions rather than discrete ones.
    """

    name: str
    title: str
    summary: str
    location: str
    stands_for: Mapping[str, Any] = field(default_factory=dict)
    is_continuous: bool = False

    @property
    def is_deep(self) -> bool:
        """Whether it learns with a network, step by step; otherwise in a table, episode by episode."""
        return self.location.startswith("holdfast.deep")

    def load(self) -> Any:
        """The class."""
        module, _, name = self.location.partition(":")
        return getattr(importlib.import_module(module), name)

    def arguments(self) -> dict[str, Argument]:
        """The arguments that may be set, by name, with ``k_max`` where the algorithm has one."""
        from holdfast.policies.arguments import argument_of

        parameters = inspect.signature(self.load().__init__).parameters
        found = {
            name: argument_of(parameter)
            for name, parameter in parameters.items()
            if name not in _SET_ELSEWHERE and name not in self.stands_for
        }
        return {name: argument for name, argument in found.items() if argument is not None}

    @property
    def holds(self) -> bool:
        """Whether it has a largest persistence of its own to choose."""
        return "k_max" in self.arguments()

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments, as JSON values: those given, which are checked, and the defaults of the others.

        Args:
            given: By name.

        Raises:
            ValueError: A name is unknown, or a value of the wrong kind.
        """
        known = self.arguments()
        for name in given:
            if name in self.stands_for:
                fixed = f"{name}={self.stands_for[name]!r}"
                raise InputError(
                    f"set must not name {name!r}: algo={self.name!r} stands for {fixed}", "set", "algo"
                )
            if name not in known:
                hint = nearest_names(name, known) or f"it may name {', '.join(known)}"
                raise InputError(f"set names {name!r}, which {self.name} does not have; {hint}", "set")
        found = {
            name: argument.check(given[name]) if name in given else argument.default
            for name, argument in known.items()
        }
        if "k_max" in given and "persistences" in known and "persistences" not in given:
            # By itself it stands for all of 1..k_max.
            found["persistences"] = None
        if found.get("persistences") is None:
            return found
        numbers = check_persistences("persistences", found["persistences"]) or ()
        longest = known["k_max"].check(numbers[-1])
        if given.get("k_max", longest) != longest:
            raise InputError(
                f"k_max and persistences say the same thing: give one of them, not {given['k_max']} and {numbers}",
                "k_max",
                "persistences",
            )
        return {**found, "persistences": list(numbers), "k_max": longest}


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("perdqn", "PerDQN", "Persistent DQN: all persistences at once", "holdfast.deep:PerDQN"),
        Algorithm(
            "dqn",
            "DQN",
            "every action held for one step",
            "holdfast.deep:PerDQN",
            {"k_max": 1, "persistences": None, "decision_cost": 0.0},
        ),
        Algorithm(
            "msa-dqn", "MSA-DQN", "no bootstrap across persistences", "holdfast.deep:PerDQN", {"bootstrap": False}
        ),
        Algorithm("temporl-dqn", "TempoRL DQN", "an action, then how long to skip", "holdfast.deep:TempoRLDQN"),
        Algorithm("ez-dqn", "εz-greedy DQN", "DQN that holds what it explores", "holdfast.deep:EZGreedyDQN"),
        Algorithm(
            "pertd3",
            "PerTD3",
            "Persistent TD3: PerDQN's operator for continuous actions",
            "holdfast.deep:PerTD3",
            is_continuous=True,
        ),
        Algorithm(
            "td3",
            "TD3",
            "continuous actions, each held for one step",
            "holdfast.deep:PerTD3",
            {
                "k_max": 1,
                "persistences": None,
                "decision_cost": 0.0,
                "clip_targets": False,
                "initial_values": "zero",
            },
            is_continuous=True,
        ),
        Algorithm("perq", "PerQ-learning", "PerDQN's operator in a table", "holdfast.tabular:PerQLearning"),
        Algorithm("q", "Q-learning", "every action held for one step", "holdfast.tabular:QLearning"),
        Algorithm("msa-q", "MSA-Q-learning", "no bootstrap across persistences", "holdfast.tabular:MSAQLearning"),
        Algorithm("temporl-q", "TempoRL", "an action, then how long to skip", "holdfast.tabular:TempoRLQLearning"),
        Algorithm(
            "ez-q", "εz-greedy", "Q-learning that holds what it explores", "holdfast.tabular:EZGreedyQLearning"
        ),
    )
}
"""By name, in the order in which they are listed."""


DEFAULT_ALGORITHM = "perdqn"

_CALLED_ELSEWHERE = {
    "lr": ("learning_rate", "alpha"),
    "learning_rate": ("alpha",),
    "alpha": ("learning_rate",),
    "discount": ("gamma",),
    "eps": ("epsilon", "exploration_final_eps"),
    "epsilon": ("exploration_final_eps", "exploration_fraction"),
    "k": ("k_max",),
    "net_arch": ("policy_kwargs",),
}
"""What others call our arguments, where the spelling does not tell."""


def find_algorithm(name: Any) -> Algorithm:
    """The algorithm of that name, or one sentence with the nearest ones."""
    if isinstance(name, str) and name in ALGORITHMS:
        return ALGORITHMS[name]
    hint = nearest_names(str(name).lower(), ALGORITHMS, cutoff=0.4)
    raise InputError(f"algo must be one of {', '.join(ALGORITHMS)}, not {name!r}{'; ' * bool(hint)}{hint}", "algo")


def nearest_names(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A question with the names that were perhaps meant, or nothing."""
    names = list(known)
    meant = [other for other in _CALLED_ELSEWHERE.get(name.lower(), ()) if other in names]
    nearest = meant or difflib.get_close_matches(name, names, n=2, cutoff=cutoff)
    return f"did you mean {' or '.join(nearest)}?" if nearest else ""
