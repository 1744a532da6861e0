"""Every argument of a deep agent with an actor, once: those of Stable-Baselines3's TD3, and what holding adds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from stable_baselines3.common.noise import ActionNoise

from holdfast.core.checks import check_real
from holdfast.core.errors import InputError
from holdfast.core.targets import STATE_VALUES
from holdfast.deep.arguments import OWN_ARGUMENTS, SB3_ARGUMENTS, Argument, choice, integer, real

__all__ = ["ACTOR_ARGUMENTS", "ACTOR_POLICY_ARGUMENTS", "TD3_ARGUMENTS", "TD3_UPDATE"]

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


TD3_ARGUMENTS = (
    _as_in_dqn(
        "learning_rate", 1e-3, "As in SB3's TD3, like everything down to ``device`` unless it says otherwise."
    ),
    _as_in_dqn("buffer_size", 1_000_000),
    _as_in_dqn("learning_starts", meaning="Primitive steps of random actions before learning starts."),
    _as_in_dqn("batch_size", 256),
    _as_in_dqn("tau", 0.005, "Soft update coefficient of the target networks."),
    _as_in_dqn("gamma"),
    _as_in_dqn("train_freq"),
    _as_in_dqn("gradient_steps"),
    Argument(
        "action_noise",
        0.1,
        "ActionNoise | float | None",
        "Exploration noise of actions scaled to [−1, 1], drawn where an option begins and held with it: one of "
        "SB3's objects, the standard deviation of Gaussian noise, or None.",
        _check_noise,
    ),
    _as_in_dqn("replay_buffer_class"),
    _as_in_dqn("replay_buffer_kwargs"),
    _as_in_dqn("optimize_memory_usage"),
    _as_in_dqn("n_steps"),
    Argument("policy_delay", 2, "int", "Critic updates per update of the actor and the targets.", integer()),
    Argument(
        "target_policy_noise",
        0.2,
        "float",
        "Standard deviation of the noise that smooths the target policy; one draw serves all heads of a state.",
        real(0.0),
    ),
    Argument("target_noise_clip", 0.5, "float", "Largest size of that noise.", real(0.0)),
    _as_in_dqn("stats_window_size"),
    _as_in_dqn("tensorboard_log"),
    _as_in_dqn("policy_kwargs"),
    _as_in_dqn("verbose"),
    _as_in_dqn("seed"),
    _as_in_dqn("device"),
)
"""Those of Stable-Baselines3's TD3, in its order, with the defaults of the agents."""

ACTOR_ARGUMENTS = (
    _as_in_dqn("k_max"),
    _as_in_dqn("persistences", (1, 2, 4, 8)),
    Argument(
        "target_value",
        "options",
        "str",
        'How V(s\') is read off the networks: ``"options"`` is the best of all heads, each at its own '
        'persistence, ``"primitive"`` the head for one step (the same fixed point under the best actor, cheaper).',
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
        "Part of the training over which ε falls, the share of random durations.",
        real(0.0, 1.0),
    ),
    _as_in_dqn("exploration_initial_eps"),
    _as_in_dqn("exploration_final_eps", 0.1),
    _as_in_dqn(
        "explore_by", meaning='What ε is the share of: ``"options"`` or ``"steps"`` with a random duration.'
    ),
    _as_in_dqn("learning_rate_falls_to", 1.0),
    _as_in_dqn(
        "decision_tolerance",
        meaning="Deterministic acting takes the longest hold whose value is within this of the best.",
    ),
    _as_in_dqn("interrupt_margin"),
    _as_in_dqn("decision_cost"),
    _as_in_dqn("timeout_is_terminal"),
    _as_in_dqn(
        "schedule_steps",
        meaning="Steps over which ε and a learning rate's schedule go; None for those that "
        "``learn`` is asked for. Behind them they stay where they are.",
    ),
)
"""Those that an agent with an actor adds, unless it stands for one value of them."""

ACTOR_POLICY_ARGUMENTS = tuple(argument for argument in ACTOR_ARGUMENTS if argument.in_policy)
"""Those that an ``ActorPolicy`` has too."""

TD3_UPDATE = {"clip_targets": False, "initial_values": "zero"}
"""What TD3 has not, switched off: with ``k_max=1`` the rest is TD3."""
