"""The one list of algorithms, used by the command line, its help, the tests and the documentation.

A user's own agent is named as ``module:Class``, or by the name that an installed package gives it.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.core.checks import check_persistences
from holdfast.core.errors import InputError
from holdfast.policies.own_algorithms import agent_class, installed_algorithms, is_own_algorithm, is_plain_name

if TYPE_CHECKING:
    from holdfast.policies.arguments import JsonArgument

__all__ = [
    "ALGORITHMS",
    "DEFAULT_ALGORITHM",
    "Algorithm",
    "algorithm_title",
    "check_algorithm_name",
    "find_algorithm",
    "nearest_names",
]

_SET_ELSEWHERE = {
    "self",
    "env",
    "seed",
    "device",
    "verbose",
    "tensorboard_log",
    # These have no effect here.
    "optimize_memory_usage",
    "n_steps",
    "use_sde",
    "sde_sample_freq",
    "use_sde_at_warmup",
    "_init_setup_model",
}

_LEFT_OUT = frozenset({"replay_buffer_class"})
"""Arguments recorded only if given, so that runs and jobs from before they existed stay the same."""


@dataclass(frozen=True)
class Algorithm:
    """An algorithm by the name that users type.

    Attributes:
        name: The name.
        title: Its name in tables and pictures.
        summary: A few words about it.
        location: ``module:class``; imported when it is first needed.
        stands_for: Arguments that the name fixes.
        is_deep: Whether it learns with a network, step by step; otherwise in a table, episode by episode.
        is_continuous: Whether it takes continuous actions rather than discrete ones.
    """

    name: str
    title: str
    summary: str
    location: str
    stands_for: Mapping[str, Any] = field(default_factory=dict)
    is_deep: bool = False
    is_continuous: bool = False

    def load(self) -> Any:
        """The class."""
        module, _, name = self.location.partition(":")
        return getattr(importlib.import_module(module), name)

    def arguments(self) -> dict[str, JsonArgument]:
        """The arguments that may be set, by name, including ``k_max`` if the algorithm has one."""
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
        """Whether the user may choose its largest persistence."""
        return "k_max" in self.arguments()

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments as JSON values: the given ones, checked, and defaults for the others.

        Args:
            given: Arguments by name.

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
                hint = nearest_names(name, known) or f"choose from {', '.join(known)}"
                raise InputError(f"set names {name!r}, which {self.name} does not have; {hint}", "set")
        found = {
            name: argument.check(given[name]) if name in given else argument.default
            for name, argument in known.items()
            if name in given or name not in _LEFT_OUT
        }
        if "k_max" in given and "persistences" in known and "persistences" not in given:
            # On its own, k_max means all of 1..k_max.
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
        Algorithm(
            "perdqn",
            "PerDQN",
            "Persistent DQN: all persistences at once",
            "holdfast.deep:PerDQN",
            is_deep=True,
        ),
        Algorithm(
            "dqn",
            "DQN",
            "every action held for one step",
            "holdfast.deep:PerDQN",
            {"k_max": 1, "persistences": None, "decision_cost": 0.0},
            is_deep=True,
        ),
        Algorithm(
            "msa-dqn",
            "MSA-DQN",
            "no bootstrap across persistences",
            "holdfast.deep:PerDQN",
            {"bootstrap": False},
            is_deep=True,
        ),
        Algorithm(
            "temporl-dqn",
            "TempoRL DQN",
            "an action, then how long to skip",
            "holdfast.deep:TempoRLDQN",
            is_deep=True,
        ),
        Algorithm(
            "ez-dqn", "εz-greedy DQN", "DQN that holds what it explores", "holdfast.deep:EZGreedyDQN", is_deep=True
        ),
        Algorithm(
            "pertd3",
            "PerTD3",
            "Persistent TD3: PerDQN's operator for continuous actions",
            "holdfast.deep:PerTD3",
            is_deep=True,
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
            is_deep=True,
            is_continuous=True,
        ),
        Algorithm(
            "persac",
            "PerSAC",
            "Persistent SAC: PerTD3's operator with entropy",
            "holdfast.deep:PerSAC",
            is_deep=True,
            is_continuous=True,
        ),
        Algorithm(
            "sac",
            "SAC",
            "continuous actions with entropy, each held for one step",
            "holdfast.deep:PerSAC",
            {"k_max": 1, "persistences": None, "decision_cost": 0.0, "initial_values": "zero"},
            is_deep=True,
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
"""Algorithms by name, in the order of the documentation."""


DEFAULT_ALGORITHM = "perdqn"

_CALLED_ELSEWHERE = {
    "lr": ("learning_rate", "alpha"),
    "learning_rate": ("alpha",),
    "alpha": ("learning_rate",),
    "discount": ("gamma",),
    "eps": ("epsilon", "exploration_final_eps"),
    "epsilon": ("exploration_final_eps", "exploration_fraction"),
    "k": ("k_max",),
    "n_steps": ("k_max",),
    "net_arch": ("policy_kwargs",),
}
"""Other libraries' names for our arguments, if they are spelt very differently."""


def find_algorithm(name: Any) -> Algorithm:
    """The algorithm of that name; otherwise an error that names the nearest ones.

    A user's own agent is imported: if the name comes from a file, call ``check_algorithm_name`` and
    ``is_own_algorithm`` first.
    """
    if isinstance(name, str) and name in ALGORITHMS:
        return ALGORITHMS[name]
    if is_own_algorithm(name):
        return _own_algorithm(name, name)
    added = installed_algorithms()
    if isinstance(name, str) and name in added:
        return _own_algorithm(name, added[name])
    known = [*ALGORITHMS, *(own for own in added if own not in ALGORITHMS)]
    hint = nearest_names(str(name).lower(), known, cutoff=0.4)
    raise InputError(
        f"algo must be one of {', '.join(known)}, or module:Class, not {name!r}{'; ' * bool(hint)}{hint}", "algo"
    )


def check_algorithm_name(name: str) -> None:
    """Check, without importing anything, that ``name`` can be an algorithm; raise InputError if not.

    It may be one that a package adds which is not installed here: what it has trained is read without it.
    """
    if not is_own_algorithm(name) and not is_plain_name(name):
        raise InputError(f"algo must be the name of an algorithm, or module:Class, not {name!r}", "algo")


def algorithm_title(name: str) -> str:
    """The name of an algorithm in tables and pictures; for a user's own, that of its class."""
    return ALGORITHMS[name].title if name in ALGORITHMS else name.rpartition(":")[2]


def _own_algorithm(name: str, location: str) -> Algorithm:
    """A user's own agent as an algorithm.

    Raises:
        ValueError: It is not an agent, or has arguments that no file can hold.
    """
    from holdfast.tabular.learner import TabularLearner

    found = agent_class(name, location)
    is_deep = not issubclass(found, TabularLearner)
    is_continuous = False
    if is_deep:
        from holdfast.deep import OptionActorCritic

        is_continuous = issubclass(found, OptionActorCritic)
    summary = (inspect.getdoc(found) or "").partition("\n")[0]
    algorithm = Algorithm(
        name, algorithm_title(name), summary, location, is_deep=is_deep, is_continuous=is_continuous
    )
    _check_arguments(algorithm)
    return algorithm


def _check_arguments(algorithm: Algorithm) -> None:
    """Check that every argument of a user's own agent has a default and a type that a file can hold."""
    needed = {"policy", "train_freq", "schedule_steps"} if algorithm.is_deep else {"alpha", "gamma", "epsilon"}
    known = algorithm.arguments()
    fixed = sorted(needed.intersection(getattr(algorithm.load(), "stands_for", ())))
    if fixed:
        raise InputError(f"algo {algorithm.name!r} must not have {fixed[0]} in stands_for: every run sets its own")
    if not needed <= set(known):
        how = "added_arguments" if algorithm.is_deep else "fields of a dataclass"
        raise InputError(
            f"algo {algorithm.name!r} must not have a constructor of its own: its arguments are given as {how}",
            "algo",
        )
    parameters = inspect.signature(algorithm.load().__init__).parameters
    for name, argument in known.items():
        has_default = parameters[name].default is not inspect.Parameter.empty or name == "policy"
        if not argument.kinds or not has_default:
            raise InputError(
                f"algo {algorithm.name!r} must give its argument {name} a default and an annotation of int, "
                "float, bool, str, list, dict or None",
                "algo",
            )
        argument.check(argument.default)


def nearest_names(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The question "did you mean ...?" with the nearest names; empty if none is near."""
    names = list(known)
    meant = [other for other in _CALLED_ELSEWHERE.get(name.lower(), ()) if other in names]
    nearest = meant or difflib.get_close_matches(name, names, n=2, cutoff=cutoff)
    return f"did you mean {' or '.join(nearest)}?" if nearest else ""
