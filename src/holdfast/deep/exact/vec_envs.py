"""Vectorised environments that can be restored: how to make them, and their state.

A state is the history of every single environment (``EpisodeLog``) and the arrays of the vector wrappers above.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    StackedObservations,
    SubprocVecEnv,
    VecCheckNan,
    VecEnv,
    VecEnvWrapper,
    VecExtractDictObs,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)

from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError, InputTypeError
from holdfast.core.saved_fields import (
    json_copy,
    take,
    take_array,
    take_integer,
    take_list,
    take_mapping,
    take_number,
)
from holdfast.envs.earlier_episodes import EarlierEpisodes
from holdfast.envs.episode_log import EpisodeLog, repeatable_wrappers
from holdfast.envs.lookup import make_env

__all__ = ["copied_observations", "make_vec_env", "restore_vec_env", "take_observations", "vec_env_state"]

SingleEnv = gymnasium.Env[Any, Any]


def make_vec_env(
    env_id: str | os.PathLike[str] | Callable[..., SingleEnv],
    n_envs: int = 1,
    seed: int | None = None,
    start_index: int = 0,
    monitor_dir: str | None = None,
    wrapper_class: Callable[..., SingleEnv] | None = None,
    env_kwargs: dict[str, Any] | None = None,
    vec_env_cls: type[DummyVecEnv | SubprocVecEnv] | None = None,
    vec_env_kwargs: dict[str, Any] | None = None,
    monitor_kwargs: dict[str, Any] | None = None,
    wrapper_kwargs: dict[str, Any] | None = None,
) -> VecEnv:
    """SB3's ``make_vec_env``, with an ``EpisodeLog`` around each environment.

    Args:
        env_id: A Gymnasium id, a short name, a map file's path, or a callable that returns an environment.
        n_envs: Number of environments.
        seed: The run's seed.
        start_index: Index of the first environment.
        monitor_dir: Where ``Monitor`` writes its files; None writes none.
        wrapper_class: A wrapper, or a function that wraps, put around ``Monitor``.
        env_kwargs: Arguments of the environment.
        vec_env_cls: ``DummyVecEnv`` (the default) or ``SubprocVecEnv``.
        vec_env_kwargs: Its arguments.
        monitor_kwargs: Arguments of ``Monitor``.
        wrapper_kwargs: Arguments of the wrapper.
    """
    check_integer("n_envs", n_envs)
    check_integer("start_index", start_index, 0)

    def maker(index: int) -> Callable[[], SingleEnv]:
        def make() -> SingleEnv:
            made = _make(env_id, env_kwargs or {})
            if seed is not None:
                made.action_space.seed(seed + index)
            path = None if monitor_dir is None else os.path.join(monitor_dir, str(index))  # noqa: PTH118 - SB3's way
            made = Monitor(made, filename=path, **(monitor_kwargs or {}))
            if wrapper_class is not None:
                made = wrapper_class(made, **(wrapper_kwargs or {}))
            return EpisodeLog(made, index)

        return make

    if monitor_dir is not None:
        os.makedirs(monitor_dir, exist_ok=True)  # noqa: PTH103
    makers = [maker(start_index + number) for number in range(n_envs)]
    env = (vec_env_cls or DummyVecEnv)(makers, **(vec_env_kwargs or {}))
    env.seed(seed)
    return env


def _make(env_id: Any, env_kwargs: dict[str, Any]) -> SingleEnv:
    if callable(env_id):
        return env_id(**env_kwargs)
    try:
        # As SB3 does, so that it can be filmed.
        return make_env(env_id, **{"render_mode": "rgb_array", **env_kwargs})
    except InputTypeError:
        return make_env(env_id, **env_kwargs)


# State ----------------------------------------------------------------------------------------------------------


def vec_env_state(env: VecEnv) -> dict[str, Any]:
    """The state of a vectorised environment, as arrays and JSON values.

    Raises:
        ValueError: It cannot be restored; the message says why.
    """
    layers = []
    while isinstance(env, VecEnvWrapper):
        read = _LAYERS.get(type(env), (None, None))[0]
        if read is None:
            raise InputError(
                f"env must have vector wrappers that can be saved, and {type(env).__name__} is not one"
            )
        layers.append({"kind": type(env).__name__, **read(env)})
        env = env.venv
    _refuse_foreign(env)
    episodes = env.env_method("episode_state", repeatable_wrappers())
    for index, episode in enumerate(episodes):
        if "refused" in episode:
            raise InputError(f"env must be one that can be saved: environment {index}: {episode['refused']}")
    try:
        options = json_copy(env._options)
    except InputError:
        raise InputError("env must be given options of reset that are JSON values to be saved") from None
    return {
        "layers": layers,
        "episodes": episodes,
        "seeds": [None if seed is None else int(seed) for seed in env._seeds],
        "options": options,
    }


def restore_vec_env(env: VecEnv, state: Mapping[str, Any]) -> None:
    """Bring a vectorised environment made in the same way to the state that ``vec_env_state`` returned.

    Raises:
        ValueError: It is another environment, or one that is not reproducible.
    """
    layers = take_list(state, "layers", dict)
    found: VecEnv = env
    for layer in layers:
        kind = str(take(layer, "kind"))
        if not isinstance(found, VecEnvWrapper) or type(found).__name__ != kind:
            raise InputError(
                f"env must be wrapped in {kind} where the saved one is, not in {type(found).__name__}"
            )
        write = _LAYERS.get(type(found), (None, None))[1]
        if write is None:
            raise InputError(
                f"env must have vector wrappers that can be saved, and {type(found).__name__} is not one"
            )
        write(found, layer)
        found = found.venv
    if isinstance(found, VecEnvWrapper):
        raise InputError(f"env must not be wrapped in {type(found).__name__}, which the saved one is not")
    _refuse_foreign(found)
    episodes = take_list(state, "episodes", dict)
    if len(episodes) != found.num_envs:
        raise InputError(f"env must have {len(episodes)} environments, as the saved one has, not {found.num_envs}")
    for index, episode in enumerate(episodes):
        (refused,) = found.env_method(
            "repeat_episode", _checked_episode(episode), repeatable_wrappers(), indices=[index]
        )
        if refused is not None:
            raise InputError(f"env must be one that can be restored: {refused}")
    seeds, options = take_list(state, "seeds", (int, type(None))), take_list(state, "options", dict)
    allowed = all(seed is None or (seed >= 0 and not isinstance(seed, bool)) for seed in seeds)
    if not (len(seeds) == len(options) == found.num_envs and allowed):
        raise InputError(
            "the saved state must have a seed of at least 0, or none, and options of every environment"
        )
    found._seeds, found._options = seeds, copy.deepcopy(options)


def _refuse_foreign(env: VecEnv) -> None:
    if type(env) not in (DummyVecEnv, SubprocVecEnv):
        raise InputError(
            f"env must be a DummyVecEnv or SubprocVecEnv to be saved, not {type(env).__name__}; "
            "holdfast.make_vec_env makes one"
        )
    # The name of the outermost wrapper's class, because the class itself may not be picklable.
    if any(module != EpisodeLog.__module__ for module in env.get_attr("__module__")):
        raise InputError(
            "env must be made by holdfast.make_vec_env to be saved: the outermost wrapper of every environment "
            "must be EpisodeLog"
        )


def copied_observations(found: Any) -> Any:
    """A copy of what a vectorised environment showed, as arrays; or None."""
    if isinstance(found, Mapping):
        return {key: np.array(value) for key, value in found.items()}
    return None if found is None else np.array(found)


def take_observations(state: Mapping[str, Any], name: str, space: spaces.Space[Any], n_envs: int) -> Any:
    """A copy of saved observations of ``n_envs`` environments; or None."""
    if take(state, name) is None:
        return None
    if isinstance(space, spaces.Dict):
        parts = take_mapping(state, name)
        return {key: _take_numbers(parts, key, (n_envs, *part.shape)) for key, part in space.spaces.items()}  # type: ignore[misc]
    return _take_numbers(state, name, (n_envs, *space.shape))  # type: ignore[misc]


def _take_numbers(state: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """A copy of an array of this shape; an environment may give another type of numbers than its space says."""
    value = take(state, name)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        raise InputError(f"the saved state must have an array of numbers as {name!r}")
    return take_array(state, name, value.dtype, shape).copy()


def _checked_episode(episode: Mapping[str, Any]) -> dict[str, Any]:
    seed, actions, options, digest = (take(episode, name) for name in ("seed", "actions", "options", "digest"))
    if not isinstance(actions, np.ndarray) or actions.dtype.kind not in "biuf" or actions.ndim == 0:
        raise InputError("the saved state must have an array of numbers as 'actions'")
    if (seed is None) != (digest is None):
        raise InputError("the saved state must have a seed and a digest of an episode that has begun")
    return {
        # Seeds may have any number of digits.
        "run_seed": take_integer(episode, "run_seed", at_most=None),
        "index": take_integer(episode, "index"),
        "episode": take_integer(episode, "episode", -1),
        "seed": None if seed is None else take_integer(episode, "seed", at_most=None),
        "options": None if options is None else dict(take_mapping(episode, "options")),
        "actions": actions,
        "digest": digest,
        "action_space": take_mapping(episode, "action_space"),
        # States from before there was such a sample have none.
        "earlier": EarlierEpisodes.restored(take_mapping(episode, "earlier")).state()
        if "earlier" in episode
        else None,
        # Those of environments that can say where they are.
        **({"exact": take_list(episode, "exact", dict)} if "exact" in episode else {}),
    }


def _nothing(env: VecEnvWrapper) -> dict[str, Any]:
    return {}


def _nothing_to_do(env: VecEnvWrapper, state: Mapping[str, Any]) -> None:
    pass


def _read_monitor(env: VecMonitor) -> dict[str, Any]:
    return {
        "episode_returns": env.episode_returns.copy(),
        "episode_lengths": env.episode_lengths.copy(),
        "episode_count": env.episode_count,
    }


def _write_monitor(env: VecMonitor, state: Mapping[str, Any]) -> None:
    returns = take_array(state, "episode_returns", env.episode_returns.dtype, (env.num_envs,))
    lengths = take_array(state, "episode_lengths", env.episode_lengths.dtype, (env.num_envs,))
    env.episode_count = take_integer(state, "episode_count")
    env.episode_returns, env.episode_lengths = returns.copy(), lengths.copy()


def _stacks(stack: StackedObservations[Any]) -> dict[str, StackedObservations[Any]]:
    parts = getattr(stack, "sub_stacked_observations", None)
    return {"all": stack} if parts is None else parts


def _read_frames(env: VecFrameStack) -> dict[str, Any]:
    return {"frames": {key: part.stacked_obs.copy() for key, part in _stacks(env.stacked_obs).items()}}


def _write_frames(env: VecFrameStack, state: Mapping[str, Any]) -> None:
    frames = take_mapping(state, "frames")
    for key, part in _stacks(env.stacked_obs).items():
        part.stacked_obs = take_array(frames, key, part.stacked_obs.dtype, part.stacked_obs.shape).copy()


def _moments(env: VecNormalize) -> dict[str, RunningMeanStd]:
    moments = {"reward": env.ret_rms}
    if env.norm_obs:
        parts = env.obs_rms if isinstance(env.obs_rms, dict) else {"all": env.obs_rms}
        moments.update({f"observation.{key}": part for key, part in parts.items()})
    return moments


def _read_normalizer(env: VecNormalize) -> dict[str, Any]:
    return {
        "moments": {
            name: {"mean": np.array(part.mean), "var": np.array(part.var), "count": float(part.count)}
            for name, part in _moments(env).items()
        },
        "returns": env.returns.copy(),
        "old_reward": np.array(env.old_reward),
        "old_obs": copied_observations(getattr(env, "old_obs", None)),
        "training": bool(env.training),
    }


def _write_normalizer(env: VecNormalize, state: Mapping[str, Any]) -> None:
    moments, own = take_mapping(state, "moments"), _moments(env)
    for name, part in own.items():
        found = take_mapping(moments, name)
        shape = np.shape(part.mean)
        mean, var = (take_array(found, field, np.float64, shape) for field in ("mean", "var"))
        count = take_number(found, "count")
        if not (np.isfinite(mean).all() and np.isfinite(var).all() and (var >= 0.0).all() and count > 0.0):
            raise InputError("the saved state must have a finite 'mean' and 'var' of a 'count' above 0")
        part.mean, part.var, part.count = mean.copy(), var.copy(), count
    if set(moments) != set(own):
        raise InputError("env must have a VecNormalize that normalises what the saved one does")
    env.returns = take_array(state, "returns", np.float64, (env.num_envs,)).copy()
    rewards = take(state, "old_reward")
    # Before the first step there are none.
    env.old_reward = _take_numbers(state, "old_reward", (0,) if np.size(rewards) == 0 else (env.num_envs,))
    observations = take_observations(state, "old_obs", env.venv.observation_space, env.num_envs)
    if observations is not None:
        env.old_obs = observations
    training = take(state, "training")
    if not isinstance(training, bool):
        raise InputError("the saved state must have true or false as 'training'")
    env.training = training


_LAYERS: dict[type[VecEnvWrapper], tuple[Callable[[Any], dict[str, Any]], Callable[[Any, Any], None]]] = {
    VecCheckNan: (_nothing, _nothing_to_do),
    VecExtractDictObs: (_nothing, _nothing_to_do),
    VecFrameStack: (_read_frames, _write_frames),
    VecMonitor: (_read_monitor, _write_monitor),
    VecNormalize: (_read_normalizer, _write_normalizer),
    VecTransposeImage: (_nothing, _nothing_to_do),
}
"""How the state of each known vector wrapper is read and written."""
