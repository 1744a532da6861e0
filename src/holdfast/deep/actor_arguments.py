"""Every argument of a deep agent with an actor, defined once: those of SB3's TD3 and SAC, and those of holding."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from stable_baselines3.common.noise import ActionNoise

from holdfast.core.checks import check_real
from holdfast.core.errors import InputError
from holdfast.core.targets import STATE_VALUES
from holdfast.deep.arguments import OWN_ARGUMENTS, SB3_ARGUMENTS, Argument, choice, integer, real

__all__ = [
    "ACTOR_ARGUMENTS",
    "ACTOR_POLICY_ARGUMENTS",
    "SAC_ARGUMENTS",
    "SAC_UPDATE",
    "TD3_ARGUMENTS",
    "TD3_UPDATE",
]

_OF_DQN = {argument.name: argument for argument in (*SB3_ARGUMENTS, *OWN_ARGUMENTS)}


def _as_in_dqn(name: str, default: Any = None, meaning: str | None = None) -> Argument:
    """An argument that DQN's agents have too, with another default or meaning."""
    found = _OF_DQN[name]
    return replace(
        found,
        default=found.default if default is None else default,
        meaning=found.meaning if meaning is None else meaning,
    )


def _check_noise(name: str, value: Any) -> Any:
    """A standard deviation, one of SB3's noise objects, or None."""
    if value is None or isinstance(value, ActionNoise):
        return value
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        return check_real(name, value, 0.0)
    raise InputError(
        f"{name} must be a standard deviation, an ActionNoise of Stable-Baselines3 or None, not {value!r}", name
    )


def _check_entropy_coefficient(name: str, value: Any) -> Any:
    """What a unit of entropy is worth: learned, learned from a number on, or given."""
    if not isinstance(value, str):
        return check_real(name, value, 0.0)
    kind, found, first = value.partition("_")
    try:
        # SB3 reads no further than to a second "_", which Python allows in numbers.
        is_number = "_" not in first and (not found or check_real(name, float(first), 0.0, open_low=True))
        if kind == "auto" and is_number:
            return value
    except ValueError:
        pass
    raise InputError(f"{name} must be 'auto', 'auto_' and a number above 0, or a number, not {value!r}", name)


def _check_target_entropy(name: str, value: Any) -> Any:
    """The entropy that decisions are meant to have."""
    if value == "auto":
        return value
    if isinstance(value, str):
        raise InputError(f"{name} must be 'auto' or a number, not {value!r}", name)
    return check_real(name, value, -math.inf)


def _refuse_sde(allowed: Any) -> Any:
    """A check that rejects SB3's state-dependent exploration, which a held action cannot follow."""

    def check(name: str, value: Any) -> Any:
        if value != allowed or isinstance(value, bool) != isinstance(allowed, bool):
            raise InputError(
                f"{name} must be {allowed!r}, not {value!r}: state-dependent exploration changes "
                "the action with every state, and a held action stays",
                name,
            )
        return allowed

    return check


def _first(learning_rate: float, parent: str) -> tuple[Argument, ...]:
    """The arguments that both parents begin with."""
    return (
        _as_in_dqn(
            "learning_rate",
            learning_rate,
            f"As in SB3's {parent}, like everything down to ``device`` unless it says otherwise.",
        ),
        _as_in_dqn("buffer_size", 1_000_000),
        _as_in_dqn("learning_starts", meaning="Primitive steps of random actions before learning starts."),
        _as_in_dqn("batch_size", 256),
        _as_in_dqn("tau", 0.005, "Coefficient of the target networks' soft updates."),
        _as_in_dqn("gamma"),
        _as_in_dqn("train_freq"),
        _as_in_dqn("gradient_steps"),
    )


def _noise(default: float | None, beside: str) -> Argument:
    return Argument(
        "action_noise",
        default,
        "ActionNoise | float | None",
        f"Exploration noise{beside} on actions scaled to [−1, 1], drawn when an option begins and held with it: "
        "one of SB3's objects, the standard deviation of Gaussian noise, or None.",
        _check_noise,
    )


_REPLAY = tuple(
    _as_in_dqn(name)
    for name in ("replay_buffer_class", "replay_buffer_kwargs", "optimize_memory_usage", "n_steps")
)
_LAST = tuple(
    _as_in_dqn(name)
    for name in ("stats_window_size", "tensorboard_log", "policy_kwargs", "verbose", "seed", "device")
)

TD3_ARGUMENTS = (
    *_first(1e-3, "TD3"),
    _noise(0.1, ""),
    *_REPLAY,
    Argument("policy_delay", 2, "int", "Critic updates per update of the actor and the targets.", integer()),
    Argument(
        "target_policy_noise",
        0.2,
        "float",
        "Standard deviation of the noise that smooths the target policy; one draw serves all heads of a state.",
        real(0.0),
    ),
    Argument("target_noise_clip", 0.5, "float", "Bound on the absolute value of that noise.", real(0.0)),
    *_LAST,
)
"""Those of Stable-Baselines3's TD3, in its order, with the defaults of the agents."""

SAC_ARGUMENTS = (
    *_first(3e-4, "SAC"),
    _noise(None, ", in addition to the actor's own,"),
    *_REPLAY,
    Argument(
        "ent_coef",
        "auto",
        "str | float",
        'α, the weight of the entropy: learned (``"auto"``), learned from an initial value '
        '(``"auto_0.1"``), or a number.',
        _check_entropy_coefficient,
    ),
    Argument(
        "target_update_interval",
        1,
        "int",
        "Updates between target updates, counted as in SB3: within the ``gradient_steps`` of a rollout.",
        integer(),
    ),
    Argument(
        "target_entropy",
        "auto",
        "str | float",
        'H̄, the target entropy of decisions, also credited to steps that decide nothing; ``"auto"`` is minus '
        "the size of an action.",
        _check_target_entropy,
    ),
    Argument("use_sde", False, "bool", "Must be False.", _refuse_sde(False), identifies=False),
    Argument("sde_sample_freq", -1, "int", "Must be -1.", _refuse_sde(-1), identifies=False),
    Argument("use_sde_at_warmup", False, "bool", "Must be False.", _refuse_sde(False), identifies=False),
    *_LAST,
)
"""Those of Stable-Baselines3's SAC, in its order, with the defaults of the agents."""

ACTOR_ARGUMENTS = (
    _as_in_dqn("k_max"),
    _as_in_dqn("persistences", (1, 2, 4, 8)),
    Argument(
        "target_value",
        "options",
        "str",
        'How the networks give V(s\'): ``"options"`` is the best of all heads, each at its own persistence; '
        '``"primitive"`` is the head for one step, which is cheaper (under the best actor PerTD3 then has the '
        "same fixed point; PerSAC has another, because holding suffers no draw).",
        choice(STATE_VALUES),
    ),
    _as_in_dqn("clip_targets"),
    _as_in_dqn("initial_values"),
    _as_in_dqn("shared_draws"),
    _as_in_dqn("prioritized", False),
    Argument(
        "exploration_fraction",
        0.2,
        "float",
        "Fraction of the training over which ε, the share of random durations, falls.",
        real(0.0, 1.0),
    ),
    _as_in_dqn("exploration_initial_eps"),
    _as_in_dqn("exploration_final_eps", 0.1),
    _as_in_dqn(
        "explore_by", meaning='Whether ε is the share of ``"options"`` or of ``"steps"`` with a random duration.'
    ),
    _as_in_dqn("learning_rate_falls_to", 1.0),
    _as_in_dqn(
        "decision_tolerance",
        meaning="When acting deterministically, take the longest hold whose value is within this of the best.",
    ),
    _as_in_dqn("interrupt_margin"),
    _as_in_dqn("decision_cost"),
    _as_in_dqn("timeout_is_terminal"),
    _as_in_dqn(
        "schedule_steps",
        meaning="Steps over which the schedules of ε and the learning rate run, after which they stay constant "
        "(None: the steps given to ``learn``).",
    ),
)
"""Arguments that every agent with an actor adds, unless it fixes their value."""

ACTOR_POLICY_ARGUMENTS = tuple(argument for argument in ACTOR_ARGUMENTS if argument.in_policy)
"""Arguments that an ``ActorPolicy`` has, too."""

TD3_UPDATE = {"clip_targets": False, "initial_values": "zero"}
"""What TD3 lacks, switched off: with ``k_max=1`` the rest is TD3."""

SAC_UPDATE = {"initial_values": "zero"}
"""What SAC lacks, switched off: with ``k_max=1`` the rest is SAC."""
