"""Every argument of a deep agent, defined once: its name, default, check, meaning and destination.

These tables determine an agent's signature and documentation, the checks of its arguments, what is passed on to
policy and replay, what a saved state must agree with, and what a policy's file contains.
"""

from __future__ import annotations

import difflib
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.core.checks import check_choice, check_discount, check_integer, check_persistences, check_real
from holdfast.core.errors import InputError, InputTypeError
from holdfast.deep.argument_checks import (
    check_layers,
    check_scaling,
    check_state_value,
    check_window,
)

__all__ = [
    "CLIP_GRADIENTS",
    "DEFAULT_TRUNK",
    "EXPLORE_BY",
    "IMPORTANCE",
    "INITIALIZATIONS",
    "INITIAL_VALUES",
    "OWN_ARGUMENTS",
    "POLICY_ARGUMENTS",
    "SB3_ARGUMENTS",
    "TARGET_VALUES",
    "Argument",
    "choice",
    "documentation",
    "integer",
    "merged",
    "real",
    "refuse_unknown",
    "settled",
    "signature",
    "truth",
]

DEFAULT_TRUNK = (256, 256)
"""Hidden units of the trunk for vector observations (default of ``policy_kwargs``)."""

TARGET_VALUES = ("options", "primitive", "double")
"""How V(s') is read off the networks' values."""

IMPORTANCE = ("buffer", "batch")
"""Where the largest importance weight is 1."""

INITIAL_VALUES = ("zero", "warm_up")
"""Where values start."""

CLIP_GRADIENTS = ("together", "each")
"""Which norm is bounded."""

INITIALIZATIONS = ("pytorch", "baselines")
"""How weights are drawn."""

EXPLORE_BY = ("options", "steps")
"""What ε is a share of."""

Check = Callable[[str, Any], Any]
"""Takes an argument's name and value; returns the value to use, or raises an error in one sentence."""


def integer(at_least: int = 1) -> Check:
    """A whole number."""
    return lambda name, value: check_integer(name, value, at_least)


def real(low: float, high: float = float("inf"), *, open_low: bool = False) -> Check:
    """A finite number."""
    return lambda name, value: check_real(name, value, low, high, open_low=open_low)


def choice(allowed: Sequence[str]) -> Check:
    """One of a few words."""
    return lambda name, value: check_choice(name, value, tuple(allowed))


def truth(name: str, value: Any) -> bool:
    """Anything with a truth value."""
    return bool(value)


def _or_none(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def _as_given(name: str, value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Argument:
    """One argument of an agent.

    Attributes:
        name: Its name.
        default: Its default.
        annotation: Its type, as a signature shows it.
        meaning: Its documentation.
        check: Rejects invalid values.
        in_policy: Whether it is passed to the policy under the same name, and so stored in a policy's file.
        in_replay: Its name in the replay, if it is passed there.
        identifies: Whether a saved state only fits agents with the same value.
        plain: Its value in the paper's plain update, if that is not the default.
    """

    name: str
    default: Any
    annotation: str
    meaning: str
    check: Check = _as_given
    in_policy: bool = False
    in_replay: str | None = None
    identifies: bool = True
    plain: Any = None


SB3_ARGUMENTS = (
    Argument(
        "learning_rate",
        3e-4,
        "float | Schedule",
        "As in SB3's DQN, like all arguments down to ``device`` unless noted.",
    ),
    Argument("buffer_size", 100_000, "int", "Primitive steps kept.", integer()),
    Argument("learning_starts", 1000, "int", "Primitive steps before learning starts.", integer(0)),
    Argument(
        "batch_size",
        64,
        "int",
        "Steps drawn per update, each with a tuple for every persistence; without ``shared_draws``, tuples drawn "
        "per persistence.",
        integer(),
    ),
    Argument("tau", 1.0, "float", "Coefficient of the target network's soft updates.", real(0.0, 1.0)),
    Argument(
        "gamma",
        0.99,
        "float",
        "Discount factor per primitive step.",
        lambda _, value: check_discount(value),
        in_replay="gamma",
    ),
    Argument("train_freq", 1, "int | tuple[int, str]", "Primitive steps between updates."),
    Argument("gradient_steps", 1, "int", "Number of updates each time.", integer(-1)),
    Argument(
        "replay_buffer_class",
        None,
        "str | type[OptionReplayBuffer] | None",
        "None, SB3's ``HerReplayBuffer`` (or its name) for goals chosen in hindsight, or a subclass of "
        "``OptionReplayBuffer``.",
        identifies=False,
    ),
    Argument(
        "replay_buffer_kwargs",
        None,
        "dict[str, Any] | None",
        "Further arguments of the replay buffer.",
        identifies=False,
    ),
    Argument(
        "optimize_memory_usage",
        False,
        "bool",
        "No effect: each observation is stored only once anyway.",
        identifies=False,
    ),
    Argument(
        "n_steps",
        1,
        "int",
        "Must be 1: the agent already learns from windows of every length up to k_max.",
        check_window,
        identifies=False,
    ),
    Argument("target_update_interval", 500, "int", "Primitive steps between target updates.", integer()),
    Argument("exploration_fraction", 0.1, "float", "Fraction of the training over which ε falls.", real(0.0, 1.0)),
    Argument("exploration_initial_eps", 1.0, "float", "ε at the start.", real(0.0, 1.0)),
    Argument("exploration_final_eps", 0.02, "float", "ε at the end.", real(0.0, 1.0)),
    Argument("max_grad_norm", 10, "float", "Largest norm of the gradients.", real(0.0, open_low=True)),
    Argument("stats_window_size", 100, "int", "Number of episodes in logged means.", integer(), identifies=False),
    Argument("tensorboard_log", None, "str | None", "Folder for TensorBoard logs.", identifies=False),
    Argument("policy_kwargs", None, "dict[str, Any] | None", "Further arguments of the policy.", identifies=False),
    Argument("verbose", 0, "int", "0, 1 or 2.", identifies=False),
    Argument("seed", None, "int | None", "Seed.", identifies=False),
    Argument("device", "auto", "th.device | str", "Device.", identifies=False),
)
"""Those of Stable-Baselines3's DQN, in its order, with the defaults of the agents."""

OWN_ARGUMENTS = (
    Argument(
        "k_max",
        8,
        "int",
        "Largest persistence K: options last 1..K steps.",
        integer(),
        in_policy=True,
        in_replay="k_max",
    ),
    Argument(
        "persistences",
        (1, 2, 4, 8, 16, 32),
        "list[int] | tuple[int, ...] | None",
        "The persistences that an option may have, such as [1, 2, 4, 8]. Give these or ``k_max``, which means all "
        "of 1..K. If you give neither, this default decides, and K is the last of it.",
        check_persistences,
        in_policy=True,
        in_replay="persistences",
    ),
    Argument(
        "head_arch",
        (),
        "list[int] | tuple[int, ...]",
        "Hidden units of the separate head of each persistence.",
        check_layers,
        in_policy=True,
    ),
    Argument(
        "dueling",
        "options",
        "bool | str",
        'Split values into a state value and advantages, with one state value per head (``"heads"``, or True) or '
        'one shared by all options (``"options"``).',
        check_state_value,
        in_policy=True,
        plain=False,
    ),
    Argument(
        "layer_norm",
        True,
        "bool",
        "Layer normalisation after each layer of the trunk.",
        truth,
        in_policy=True,
        plain=False,
    ),
    Argument(
        "normalize_observations",
        None,
        "str | None",
        '``"space"`` scales finite Box bounds to [−1, 1] inside the policy.',
        check_scaling,
        in_policy=True,
    ),
    Argument(
        "target_value",
        "double",
        "str",
        'How the networks give V(s\'): ``"options"`` is the maximum over all options (the paper); ``"primitive"`` '
        'is the maximum over actions held for one step (the same fixed point, less overestimation); ``"double"`` '
        "chooses with the online network and values with the target network.",
        choice(TARGET_VALUES),
        plain="options",
    ),
    Argument(
        "clip_targets",
        True,
        "bool",
        "Clip targets to what the rewards seen so far allow: the smallest and largest reward over 1 − gamma.",
        truth,
        plain=False,
    ),
    Argument(
        "initial_values",
        "warm_up",
        "str",
        'Where values start: near ``"zero"``, as PyTorch initialises networks, or at the one value that best fits '
        'the ``"warm_up"``, the steps before learning starts. Values that are too high fall by one step\'s reward '
        "per target update; values that are too low rise by whole holds.",
        choice(INITIAL_VALUES),
        plain="zero",
    ),
    Argument(
        "initialization",
        "pytorch",
        "str",
        'How weights are initialised: like ``"pytorch"``, or like OpenAI ``"baselines"``: orthogonal matrices '
        "times √2 in the trunk, Glorot's uniform distribution elsewhere, no biases.",
        choice(INITIALIZATIONS),
    ),
    Argument(
        "clip_gradients",
        "together",
        "str",
        'What ``max_grad_norm`` bounds: the norm of all gradients ``"together"``, or of ``"each"`` weight matrix '
        "and bias vector by itself (OpenAI Baselines).",
        choice(CLIP_GRADIENTS),
    ),
    Argument(
        "bootstrap",
        True,
        "bool",
        "Whether tuples shorter than k also update the values of k; if not, PerDQN is MSA-DQN.",
        truth,
        in_replay="bootstrap",
    ),
    Argument("prioritized", True, "bool", "Prioritised replay.", truth, in_replay="prioritized"),
    Argument("priority_alpha", 0.6, "float", "Exponent of the priorities.", real(0.0), in_replay="alpha"),
    Argument(
        "priority_beta0",
        0.4,
        "float",
        "Initial exponent of the importance weights; it rises to 1 over the training.",
        real(0.0, 1.0),
    ),
    Argument(
        "importance",
        "batch",
        "str",
        'What importance weights are divided by: the largest of the whole ``"buffer"`` (OpenAI Baselines) or of '
        'the ``"batch"``.',
        choice(IMPORTANCE),
        in_replay="importance",
        plain="buffer",
    ),
    Argument(
        "shared_draws",
        True,
        "bool",
        "Draw ``batch_size`` steps and learn every persistence's tuple that begins there, instead of drawing "
        "``batch_size`` tuples per persistence.",
        truth,
        in_replay="shared_draws",
        plain=False,
    ),
    Argument(
        "explore_by",
        "steps",
        "str",
        'Whether ε is the share of random ``"options"`` or of random ``"steps"``: long random options take up '
        "more than their share of the steps.",
        choice(EXPLORE_BY),
        plain="options",
    ),
    Argument(
        "average_rate",
        0.001,
        "float",
        "Evaluate and act deterministically with an exponential moving average of the weights, updated at this "
        "rate; 0 uses the weights themselves.",
        real(0.0, 1.0),
        in_policy=True,
        plain=0.0,
    ),
    Argument(
        "learning_rate_falls_to",
        0.1,
        "float",
        "Fraction of ``learning_rate`` at the end of the training, to which it falls linearly; 1 keeps it "
        "constant. If ``learning_rate`` is a schedule, this has no effect.",
        real(0.0, 1.0),
        plain=1.0,
    ),
    Argument(
        "decision_tolerance",
        0.0,
        "float",
        "When acting deterministically, hold the best action as long as its value stays within this of the best.",
        real(0.0),
        in_policy=True,
    ),
    Argument(
        "interrupt_margin",
        None,
        "float | None",
        "Drop a greedy option when another is better by more than this; None never drops one. With a "
        "``decision_cost``, that cost is the natural margin: beyond it, dropping pays.",
        _or_none(real(0.0)),
        in_policy=True,
    ),
    Argument(
        "decision_cost",
        0.0,
        "float",
        "Cost of each decision, so that actions are held where that pays. Values do not include the cost of their "
        "own decision; returns are reported without costs. ``interrupt_margin`` must not be less, because "
        "dropping a hold costs a decision.",
        real(0.0),
        in_policy=True,
    ),
    Argument(
        "timeout_is_terminal",
        False,
        "bool",
        "Treat a time limit as a terminal state instead of bootstrapping through it.",
        truth,
    ),
    Argument(
        "schedule_steps",
        None,
        "int | None",
        "Steps over which the schedules of ε, β and the learning rate run, after which they stay constant "
        "(None: the steps given to ``learn``).",
        _or_none(integer()),
    ),
)
"""Arguments that every agent adds, unless it fixes their value."""

POLICY_ARGUMENTS = tuple(argument for argument in OWN_ARGUMENTS if argument.in_policy)
"""Arguments that an ``OptionPolicy`` has, too."""

_FIRST = (
    Argument(
        "policy",
        inspect.Parameter.empty,
        "str | type[HoldingPolicy]",
        '``"MlpPolicy"``, ``"CnnPolicy"``, ``"MultiInputPolicy"``, or a subclass of one of these.',
    ),
    Argument("env", inspect.Parameter.empty, "GymEnv | str", "Environment, VecEnv or registered id."),
)

_LAST = Argument("_init_setup_model", True, "bool", "SB3's: whether networks and replay are made at once.")


def merged(
    arguments: Iterable[Argument], added: Iterable[Argument], stands_for: Mapping[str, Any]
) -> tuple[Argument, ...]:
    """``arguments`` without those that an agent fixes, with those that it adds or redefines."""
    found = {argument.name: argument for argument in (*arguments, *added)}
    return tuple(argument for name, argument in found.items() if name not in stands_for)


def signature(of_sb3: Iterable[Argument], own: Iterable[Argument]) -> inspect.Signature:
    """The signature of an agent's ``__init__``: SB3's arguments in SB3's order, then its ``own`` by keyword."""
    positional, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature(
        [
            inspect.Parameter("self", positional),
            *(
                inspect.Parameter(found.name, kind, default=found.default, annotation=found.annotation)
                for kind, group in ((positional, (*_FIRST, *of_sb3)), (keyword, (*own, _LAST)))
                for found in group
            ),
        ],
        return_annotation="None",
    )


def documentation(of_sb3: Iterable[Argument], own: Iterable[Argument]) -> str:
    """The lines of a docstring that explain every argument of an agent."""
    lines = ["Args:"]
    for argument in (*_FIRST, *of_sb3, *own, _LAST):
        text = f"{argument.name}: {argument.meaning}"
        lines += textwrap.wrap(text, 111, initial_indent="    ", subsequent_indent="        ")
    return "\n".join(lines)


def settled(
    agent: str,
    of_sb3: Sequence[Argument],
    own: Sequence[Argument],
    stands_for: Mapping[str, Any],
    positional: Sequence[Any],
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """All arguments of an agent after policy and env, by name: the given ones, checked, and other defaults.

    Args:
        agent: Its name.
        of_sb3: SB3's arguments, in SB3's order.
        own: What it adds to them.
        stands_for: Arguments that it fixes.
        positional: Arguments without a name.
        given: Arguments by name.

    Raises:
        TypeError: There are too many, one is given twice, or an unknown one.
        ValueError: One is not what it may be.
    """
    ordered = [argument.name for argument in merged(of_sb3, (), stands_for)]
    if len(positional) > len(ordered):
        raise InputTypeError(f"{agent} takes at most {len(ordered) + 2} arguments without a name")
    found = dict(zip(ordered, positional, strict=False))
    known = {argument.name: argument for argument in (*of_sb3, *own)}
    for name, value in given.items():
        if name in stands_for:
            raise InputTypeError(
                f"{name} must not be given to {agent}, which stands for {name}={stands_for[name]!r}", name
            )
        if name in found:
            raise InputTypeError(f"{name} must be given to {agent} once", name)
        refuse_unknown(agent, name, known)
        found[name] = value
    if "persistences" in known and "k_max" in found:
        # On its own, k_max means all of 1..k_max, whatever the default set is.
        found.setdefault("persistences", None)
    checked = {}
    for name, argument in known.items():
        value = found.get(name, argument.default)
        result = argument.check(name, value)
        # SB3's arguments are passed to SB3 as given.
        checked[name] = value if name in ordered else result
    if checked.get("persistences") is not None:
        longest = checked["persistences"][-1]
        if found.get("k_max", longest) != longest:
            raise InputError(
                f"k_max must be {longest}, the last of persistences, or not be given, not {found['k_max']!r}",
                "k_max",
                "persistences",
            )
        checked["k_max"] = longest
    return {**checked, **stands_for}


def refuse_unknown(owner: str, name: str, known: Iterable[str]) -> None:
    """Raise TypeError for an unknown argument, naming the nearest ones."""
    known = [*(argument.name for argument in _FIRST), *known]
    if name not in known:
        nearest = difflib.get_close_matches(name, known, n=2)
        hint = f"; did you mean {' or '.join(nearest)}?" if nearest else f"; it takes {', '.join(known)}"
        raise InputTypeError(f"{owner} has no argument {name!r}{hint}", name)
