"""The complete state of an agent during training, as arrays and JSON values.

That is networks, optimiser, replay, schedules, counters, random generators, held options, pending log values and
environments. Restored into an agent made with the same arguments, even in another process, the training continues
as if it had never stopped, bit for bit.
"""

from __future__ import annotations

import copy
import random
import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray

from holdfast.core.checks import refuse_actions
from holdfast.core.errors import InputError
from holdfast.core.saved_fields import (
    restore_generator,
    take,
    take_array,
    take_integer,
    take_list,
    take_mapping,
    take_number,
)
from holdfast.core.user_code import shown
from holdfast.deep.exact.vec_envs import copied_observations, restore_vec_env, take_observations, vec_env_state

if TYPE_CHECKING:
    from holdfast.deep.agents.option_agent import OptionAgent

__all__ = ["FORMAT", "LogEntry", "agent_state", "as_array", "restore_agent", "resume_log"]

FORMAT = 4
"""Version of the state's format."""

_COUNTERS = (
    "num_timesteps",
    "_total_timesteps",
    "_episode_num",
    "_n_updates",
    "values_have_begun",
)
_NUMBERS = ("_current_progress_remaining", "exploration_rate", "greedy_hold")


def agent_state(agent: OptionAgent) -> dict[str, Any]:
    """The state of an agent between two rollouts.

    Raises:
        ValueError: Its environment cannot be restored.
    """
    if agent.env is None or agent.replay_buffer is None:
        raise InputError("state() needs an agent with an environment")
    counters: dict[str, Any] = {name: getattr(agent, name, None) for name in (*_COUNTERS, *agent.own_counters)}
    for name, number in counters.items():
        if not isinstance(number, int | np.integer):
            raise InputError(
                f"own_counters names {name!r}, which must be a whole number, not {shown(number)}: give the class "
                f"{name} = 0"
            )
    return {
        "format": FORMAT,
        "made_of": _made_of(agent),
        "environment": vec_env_state(agent.env),
        "networks": {name: as_array(value) for name, value in agent.policy.state_dict().items()},
        **{name: _optimizer_state(optimizer) for name, optimizer in agent.optimizers.items()},
        "replay": agent.replay_buffer.state(),
        "target_cache": agent.kept_values(),
        "counters": {name: int(number) for name, number in counters.items()},
        "numbers": {name: float(getattr(agent, name)) for name in _NUMBERS},
        "clock": agent.clock.state(),
        "hold_statistics": agent.hold_statistics.state(),
        "update_statistics": agent.update_statistics.state(),
        "episodes": _window(agent.ep_info_buffer),
        "successes": _window(agent.ep_success_buffer),
        "log": _pending_log(agent),
        "observations": {
            name: copied_observations(getattr(agent, name)) for name in ("_last_obs", "_last_original_obs")
        },
        "episode_starts": None if agent._last_episode_starts is None else np.array(agent._last_episode_starts),
        "generators": _generators(agent),
    }


def restore_agent(agent: OptionAgent, state: Mapping[str, Any]) -> None:
    """Continue from what ``agent_state`` returned; do not use the agent after an error.

    Raises:
        ValueError: The state is incomplete or belongs to another agent or environment.
    """
    if agent.env is None or agent.replay_buffer is None:
        raise InputError("restore() needs an agent with an environment")
    if not isinstance(state, Mapping) or not {"format", "made_of"} & set(state):
        raise InputError("state must be what state() returned")
    found = take_integer(state, "format")
    if found != FORMAT:
        raise InputError(f"the saved state must have format {FORMAT}, not {found}")
    saved, own = take_mapping(state, "made_of"), _made_of(agent)
    for name, value in own.items():
        given = take(saved, name)
        if not isinstance(given, str) or given != value:
            raise InputError(f"the saved state must be of an agent with {name}={value}, not {str(given)[:200]}")
    weights, own_weights = take_mapping(state, "networks"), agent.policy.state_dict()
    tensors = {
        name: th.from_numpy(take_array(weights, name, as_array(value).dtype, tuple(value.shape)).copy())
        for name, value in own_weights.items()
    }
    if set(weights) != set(own_weights):
        raise InputError("the saved state must be of networks with the same layers")
    counters = {
        name: take_integer(take_mapping(state, "counters"), name) for name in (*_COUNTERS, *agent.own_counters)
    }
    numbers = {name: take_number(take_mapping(state, "numbers"), name) for name in _NUMBERS}
    if not 1.0 <= numbers["greedy_hold"] <= agent.k_max:
        raise InputError(f"the saved state must have a mean hold of 1..{agent.k_max} steps")
    agent.replay_buffer.restore(take_mapping(state, "replay"))
    restore_vec_env(agent.env, take_mapping(state, "environment"))
    agent.policy.load_state_dict(tensors)
    for name, optimizer in agent.optimizers.items():
        _restore_optimizer(optimizer, take_mapping(state, name))
    for name, number in (counters | numbers).items():
        setattr(agent, name, number)
    _restore_clock(agent, take_mapping(state, "clock"))
    agent.hold_statistics.restore(take_mapping(state, "hold_statistics"))
    agent.update_statistics.restore(take_mapping(state, "update_statistics"))
    agent.ep_info_buffer = _restored_window(state, "episodes", _restored_episode, agent._stats_window_size)
    agent.ep_success_buffer = _restored_window(state, "successes", _restored_number, agent._stats_window_size)
    if (agent.ep_info_buffer is None) != (agent.ep_success_buffer is None):
        raise InputError("the saved state must have both 'episodes' and 'successes', or none")
    agent._log_to_go_on = _checked_log(take_mapping(state, "log"))
    _forget_log(agent)
    observations = take_mapping(state, "observations")
    seen = (
        agent.observation_space if agent._vec_normalize_env is None else agent._vec_normalize_env.observation_space
    )
    for name, space in (("_last_obs", agent.observation_space), ("_last_original_obs", seen)):
        setattr(agent, name, take_observations(observations, name, space, agent.n_envs))
    starts = take(state, "episode_starts")
    agent._last_episode_starts = (
        None if starts is None else take_array(state, "episode_starts", np.bool_, (agent.n_envs,)).copy()
    )
    agent.keep_values(take_mapping(state, "target_cache"))
    # Last, because anything above may have drawn from them.
    _restore_generators(agent, take_mapping(state, "generators"))


def _made_of(agent: OptionAgent) -> dict[str, str]:
    """What a state must match before it is read any further, as text."""
    assert agent.replay_buffer is not None
    named = (found.name for found in agent.all_arguments() if found.identifies)
    arguments = {name: getattr(agent, name) for name in named}
    if callable(arguments["learning_rate"]):
        # Schedules cannot be compared.
        arguments["learning_rate"] = "a schedule"
    return {
        "agent": type(agent).__name__,
        "n_envs": str(agent.n_envs),
        "observation_space": str(agent.observation_space),
        "action_space": str(agent.action_space),
        "policy": type(agent.policy).__name__,
        "features_extractor": agent.policy.features_extractor_class.__name__,
        "activation": agent.policy.activation_fn.__name__,
        "optimizer": type(next(iter(agent.optimizers.values()))).__name__,
        **{name: str(value) for name, value in arguments.items()},
        **agent.replay_buffer.identity(),
    }


def as_array(tensor: th.Tensor) -> NDArray[Any]:
    """A copy of a tensor."""
    return tensor.detach().cpu().numpy().copy()


def _restore_clock(agent: OptionAgent, state: Mapping[str, Any]) -> None:
    assert agent.replay_buffer is not None
    agent.clock.restore(state)
    refuse_actions("the saved state must hold actions that are", agent.clock.action, agent.replay_buffer.n_actions)
    if np.any(agent.clock.planned > agent.k_max):
        raise InputError(f"the saved state must hold actions for {agent.k_max} steps at most")


# What is logged -------------------------------------------------------------------------------------------------


def _window(values: deque[Any] | None) -> list[Any] | None:
    return None if values is None else [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    """NumPy scalars as Python numbers if nothing is lost, otherwise as arrays of no dimension."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if not isinstance(value, np.generic):
        return value
    # A mean of 16-bit numbers has 16 bits, too.
    return np.array(value) if isinstance(value, np.floating) and not isinstance(value, float) else value.item()


def _restored_window(
    state: Mapping[str, Any], name: str, restored: Callable[[Any], Any], length: int
) -> deque[Any] | None:
    if take(state, name) is None:
        return None
    return deque((restored(item) for item in take_list(state, name, object)), maxlen=length)


def _restored_number(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind == "f":
        return value[()]
    if not isinstance(value, bool | int | float) or (isinstance(value, int) and abs(value) > sys.float_info.max):
        raise InputError("the saved state must have numbers where something is logged")
    return value


def _restored_episode(info: Any) -> dict[str, Any]:
    # SB3 logs the mean return and length.
    named = {name: _restored_number(take(info, name)) for name in ("r", "l")}
    others = {
        name: value[()] if isinstance(value, np.ndarray) and not value.ndim else value
        for name, value in info.items()
    }
    return others | named


class LogEntry(NamedTuple):
    """A value recorded under one name since the log was last written.

    Attributes:
        value: A number or a text.
        n_values: How many values it is the mean of, if it is a mean.
        excluded: Output formats that leave it out.
    """

    value: Any
    n_values: int
    excluded: tuple[str, ...]


def _pending_log(agent: OptionAgent) -> dict[str, Any]:
    """Values recorded since the log was last written, without images and the like."""
    entries, logger = agent._log_to_go_on, getattr(agent, "_logger", None)
    if entries is None and logger is not None:
        entries = {
            name: LogEntry(value, logger.name_to_count[name], logger.name_to_excluded.get(name, ()))
            for name, value in logger.name_to_value.items()
            if isinstance(value, bool | int | float | str | np.number)
        }
    return {
        name: {"value": _plain(entry.value), "count": int(entry.n_values), "excluded": list(entry.excluded)}
        for name, entry in (entries or {}).items()
    }


def _checked_log(state: Mapping[str, Any]) -> dict[str, LogEntry]:
    found = {}
    for name in state:
        entry = take_mapping(state, name)
        value = take(entry, "value")
        found[name] = LogEntry(
            value if isinstance(value, str) else _restored_number(value),
            take_integer(entry, "count"),
            tuple(take_list(entry, "excluded", str)),
        )
    return found


def _forget_log(agent: OptionAgent) -> None:
    logger = getattr(agent, "_logger", None)
    if logger is not None:
        for recorded in (logger.name_to_value, logger.name_to_count, logger.name_to_excluded):
            recorded.clear()


def resume_log(agent: OptionAgent) -> None:
    """Give the new logger what had been recorded when the state was saved."""
    if agent._log_to_go_on is None:
        return
    for name, entry in agent._log_to_go_on.items():
        agent.logger.name_to_value[name] = entry.value
        agent.logger.name_to_count[name] = entry.n_values
        agent.logger.name_to_excluded[name] = entry.excluded
    agent._log_to_go_on = None


# Optimiser ------------------------------------------------------------------------------------------------------


def _optimizer_state(optimizer: th.optim.Optimizer) -> dict[str, Any]:
    found = optimizer.state_dict()
    n_parameters = sum(len(group["params"]) for group in optimizer.param_groups)
    slots = (found["state"].get(number) for number in range(n_parameters))
    return {
        "slots": [
            None
            if slot is None
            else {name: as_array(value) if isinstance(value, th.Tensor) else value for name, value in slot.items()}
            for slot in slots
        ],
        "groups": [
            {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in group.items()
                if name != "params"
            }
            for group in found["param_groups"]
        ],
    }


def _restore_optimizer(optimizer: th.optim.Optimizer, state: Mapping[str, Any]) -> None:
    own = optimizer.state_dict()["param_groups"]
    numbers = [group.pop("params") for group in own]
    groups = take_list(state, "groups", dict)
    if len(groups) != len(own) or not all(map(_same_settings, groups, own)):
        raise InputError("the saved state must be of an optimiser with the same settings")
    slots = take_list(state, "slots", (dict, type(None)))
    samples = _slots_after_a_step(optimizer)
    if len(slots) != len(samples):
        raise InputError("the saved state must be of an optimiser of as many parameters")
    restored = [
        {name: tuple(value) if isinstance(current[name], tuple) else value for name, value in group.items()}
        | {"params": params}
        for group, current, params in zip(groups, own, numbers, strict=True)
    ]
    tensors = {
        number: _slot(slot, sample)
        for number, (slot, sample) in enumerate(zip(slots, samples, strict=True))
        if slot is not None
    }
    optimizer.load_state_dict({"state": tensors, "param_groups": restored})


def _same_settings(saved: dict[str, Any], own: dict[str, Any]) -> bool:
    """Whether the settings match; numbers such as the learning rate may have changed during training."""

    def fits(given: Any, value: Any) -> bool:
        if isinstance(value, tuple):
            return isinstance(given, list) and len(given) == len(value) and all(map(fits, given, value))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return type(given) in (int, float) and abs(given) <= sys.float_info.max
        return type(given) is type(value) and given == value

    return set(saved) == set(own) and all(fits(saved[name], own[name]) for name in own)


def _slots_after_a_step(optimizer: th.optim.Optimizer) -> list[dict[str, Any]]:
    """What the optimiser keeps per parameter after a step, found with a copy."""
    tried = copy.deepcopy(optimizer)
    parameters = [parameter for group in tried.param_groups for parameter in group["params"]]
    for parameter in parameters:
        parameter.grad = th.zeros_like(parameter)
    tried.step()
    return [tried.state[parameter] for parameter in parameters]


def _slot(saved: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, Any]:
    if set(saved) != set(sample):
        raise InputError("the saved state must be of an optimiser that keeps the same values for every parameter")
    return {
        name: th.from_numpy(take_array(saved, name, as_array(value).dtype, tuple(value.shape)).copy())
        if isinstance(value, th.Tensor)
        else saved[name]
        for name, value in sample.items()
    }


# Random generators ----------------------------------------------------------------------------------------------


def _generators(agent: OptionAgent) -> dict[str, Any]:
    version, words, gauss = random.getstate()
    legacy: Any = np.random.get_state(legacy=False)  # noqa: NPY002 - SB3's generator
    found = {
        "python": {"version": version, "words": np.array(words, dtype=np.int64), "gauss": gauss},
        "numpy": {
            "key": legacy["state"]["key"].copy(),
            "pos": int(legacy["state"]["pos"]),
            "has_gauss": int(legacy["has_gauss"]),
            "gauss": float(legacy["gauss"]),
        },
        "torch": th.get_rng_state().numpy().copy(),
        "actions": agent.action_space.np_random.bit_generator.state,
    }
    if agent.device.type == "cuda":
        found["cuda"] = th.cuda.get_rng_state(agent.device).numpy().copy()
    return found


def _restore_generators(agent: OptionAgent, state: Mapping[str, Any]) -> None:
    python, legacy = take_mapping(state, "python"), take_mapping(state, "numpy")
    words, version = take_array(python, "words", np.int64, (625,)), take_integer(python, "version")
    gauss = None if take(python, "gauss") is None else take_number(python, "gauss")
    key, position = take_array(legacy, "key", np.uint32, (624,)), take_integer(legacy, "pos", at_most=624)
    has_gauss, legacy_gauss = take_integer(legacy, "has_gauss", at_most=1), take_number(legacy, "gauss")
    torch = take_array(state, "torch", np.uint8, tuple(th.get_rng_state().shape))
    restore_generator(agent.action_space.np_random, state, "actions")
    try:
        random.setstate((version, tuple(words.tolist()), gauss))
        np.random.set_state(("MT19937", key, position, has_gauss, legacy_gauss))  # noqa: NPY002 - SB3's generator
        th.set_rng_state(th.from_numpy(torch.copy()))
    except (ArithmeticError, TypeError, ValueError, RuntimeError):
        raise InputError("the saved state must have random generators as they were") from None
    if agent.device.type == "cuda":
        cuda = take_array(state, "cuda", np.uint8, tuple(th.cuda.get_rng_state(agent.device).shape))
        th.cuda.set_rng_state(th.from_numpy(cuda.copy()), agent.device)
