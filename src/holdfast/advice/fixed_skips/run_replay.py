"""The replay of a run, read from its checkpoint; nothing that the files name is made or imported."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.core.checks import check_discount, check_integer
from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_mapping
from holdfast.deep.replay.ring import OptionReplayBuffer
from holdfast.envs.choices import are_choices
from holdfast.policies.algorithms import ALGORITHMS
from holdfast.policies.policy_files import read_policy
from holdfast.policies.spaces import space_from
from holdfast.runs.directory import RunFolder

__all__ = ["as_vectors", "read_replay"]

_MOST_CHOICES = 256
"""Largest number of choices that a part of an observation may have."""


def read_replay(run: str | os.PathLike[str]) -> OptionReplayBuffer:
    """The replay of a run's last undamaged checkpoint; a UserWarning reports a damaged one.

    Args:
        run: The run's folder; its agent must be one with a network.

    Raises:
        ValueError: There is no such run, or it keeps no replay.
    """
    folder = RunFolder(Path(run))
    if not folder.is_run:
        raise InputError(f"run must be the folder of a run of holdfast train, but {str(run)!r} is not one", "run")
    config = folder.read_config()
    known = ALGORITHMS.get(config.algo)
    # Of an agent of a user's own, nothing is imported: its checkpoint tells.
    if known is not None and not known.is_deep:
        raise InputError(
            f"run must be of an agent with a replay, but {config.algo} learns a table without one", "run"
        )
    if known is not None and known.is_continuous:
        raise InputError(
            f"run must be of an agent with discrete actions, but {config.algo} has continuous ones", "run"
        )
    checkpoint = folder.read_checkpoint(config.algo, _warn)
    if checkpoint is None:
        raise InputError(f"{run} has no checkpoint yet, which would contain the replay")
    if take(checkpoint, "agent") is None:
        raise InputError(f"{run} keeps no replay: it was trained with checkpoint_every=0")
    policy, agent = read_policy(folder.path), take_mapping(checkpoint, "agent")
    if "replay" not in agent:
        raise InputError(
            f"run must be of an agent with a replay, and {config.algo} learns in a table without one", "run"
        )
    actions = space_from(policy, "action_space")
    if not are_choices(actions):
        raise InputError("the saved policy must have discrete actions")
    arguments, made_of = config.arguments, take_mapping(agent, "made_of")
    try:
        size = check_integer("buffer_size", arguments.get("buffer_size"))
        gamma = check_discount(arguments.get("gamma"))
    except InputError as error:
        raise InputError(f"{folder.config_file} is damaged: {error}") from None
    if take(made_of, "k_max") != str(config.k_max):
        raise InputError(f"{folder.config_file} is damaged: k_max must be that of the checkpoint")
    saved = take_mapping(agent, "replay")
    persistences = None if config.persistences is None else tuple(config.persistences)
    is_shared = take(made_of, "shared_draws") == "True"
    n_trees = _n_trees(saved, config.k_max)
    # If an agent learns from fewer views than it has durations, the number of trees shows how many.
    all_views = persistences is not None or (is_shared and n_trees is not None)
    k_max = config.k_max if all_views else n_trees or 1
    replay = OptionReplayBuffer(
        size,
        space_from(policy, "observation_space"),
        actions,
        device="cpu",
        n_envs=config.n_envs,
        handle_timeout_termination=take(made_of, "handle_timeout_termination") != "False",
        k_max=k_max,
        gamma=gamma,
        prioritized=n_trees is not None,
        persistences=persistences,
        shared_draws=is_shared,
    )
    replay.restore(saved)
    return replay


def _warn(sentence: str) -> None:
    warnings.warn(sentence, UserWarning, stacklevel=2)


def _n_trees(saved: Mapping[str, Any], k_max: int) -> int | None:
    """The number of trees that the agent drew from, possibly fewer than K; None for one view drawn uniformly."""
    if take(saved, "trees") is None:
        return None
    leaves = take(take_mapping(saved, "trees"), "leaves")
    # The contents are not read here: the replay checks their length.
    if not isinstance(leaves, np.ndarray) or leaves.ndim != 2 or len(leaves) > k_max:
        raise InputError(f"the saved state must have trees for at most {k_max} persistences as 'leaves'")
    return len(leaves)


def as_vectors(space: spaces.Space[Any], observations: Any) -> NDArray[np.float64]:
    """Observations as vectors (N, D); a single number stays one, and a dictionary's parts are concatenated.

    Args:
        space: Space of one observation.
        observations: (N, ...), as a replay's store gives them.

    Raises:
        ValueError: They are images, or of a kind that has no such vectors.
    """
    if isinstance(space, spaces.Discrete):
        return np.asarray(observations, dtype=np.float64).reshape(-1, 1)
    if not isinstance(space, spaces.Dict):
        return _vectors(space, observations)
    return np.concatenate([_vectors(part, observations[key]) for key, part in space.spaces.items()], axis=1)


def _vectors(space: spaces.Space[Any], observations: Any) -> NDArray[np.float64]:
    """Vectors with meaningful distances: a choice becomes one 0 or 1 per possibility."""
    given = np.asarray(observations)
    rows = given.reshape(len(given), math.prod(given.shape[1:]))
    match space:
        case spaces.Box() if len(space.shape) <= 1:
            return rows.astype(np.float64)
        case spaces.MultiBinary() if len(space.shape) <= 1:
            return rows.astype(np.float64)
        case spaces.Discrete() if space.n <= _MOST_CHOICES:
            return np.asarray(np.eye(int(space.n))[rows[:, 0] - space.start])
        case spaces.MultiDiscrete() if space.nvec.ndim == 1 and space.nvec.sum() <= _MOST_CHOICES:
            columns = (rows - space.start).T
            parts = [np.eye(int(n))[column] for n, column in zip(space.nvec, columns, strict=True)]
            return np.concatenate(parts, axis=1)
    raise InputError(
        f"fixed skips can be estimated only from observations that are vectors or numbers, "
        f"not from {' '.join(str(space).split())[:100]}"
    )
