"""The replay of a run, read from its checkpoint; nothing that the files name is made or imported."""

from __future__ import annotations

import math
import os
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
from holdfast.policies.policy_files import read_policy
from holdfast.policies.spaces import space_from
from holdfast.runs.directory import RunFolder

__all__ = ["as_vectors", "read_replay"]

_MOST_CHOICES = 256
"""That a part of an observation may offer."""


def read_replay(run: str | os.PathLike[str]) -> OptionReplayBuffer:
    """The replay of a run's last checkpoint.

    Args:
        run: The run's folder; its agent must be one with a network.

    Raises:
        ValueError: There is no such run or it keeps no replay, in one sentence.
    """
    folder = RunFolder(Path(run))
    if not folder.is_run:
        raise InputError(f"run must be the folder of a run of holdfast train, and {str(run)!r} is none", "run")
    config = folder.read_config()
    if not config.algorithm.is_deep:
        raise InputError(
            f"run must be of an agent with a replay, and {config.algo} learns in a table without one", "run"
        )
    if config.algorithm.is_continuous:
        raise InputError(
            f"run must be of an agent with discrete actions, and {config.algo} takes continuous ones", "run"
        )
    checkpoint = folder.read_checkpoint(config.algo)
    if checkpoint is None:
        raise InputError(f"{run} has no checkpoint yet, and the replay is in it")
    if take(checkpoint, "agent") is None:
        raise InputError(f"{run} keeps no replay: it was trained with checkpoint_every=0")
    policy, agent = read_policy(folder.path), take_mapping(checkpoint, "agent")
    actions = space_from(policy, "action_space")
    if not isinstance(actions, spaces.Discrete):
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
    # Of an agent that learns from fewer views than it has durations, the trees tell how many.
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


def _n_trees(saved: Mapping[str, Any], k_max: int) -> int | None:
    """The trees that the agent drew from, which may be fewer than K; None for one view that is drawn uniformly."""
    if take(saved, "trees") is None:
        return None
    leaves = take(take_mapping(saved, "trees"), "leaves")
    # Nothing of it is looked at here: the replay knows how long it must be.
    if not isinstance(leaves, np.ndarray) or leaves.ndim != 2 or len(leaves) > k_max:
        raise InputError(f"the saved state must have a tree for each of {k_max} persistences at most as 'leaves'")
    return len(leaves)


def as_vectors(space: spaces.Space[Any], observations: Any) -> NDArray[np.float64]:
    """Observations as vectors (N, D); one number alone stays that, and a dictionary's parts stand side by side.

    Args:
        space: Of one observation.
        observations: (N, ...), as a replay's store gives them.

    Raises:
        ValueError: They are pictures, or of a kind that has no such vectors.
    """
    if isinstance(space, spaces.Discrete):
        return np.asarray(observations, dtype=np.float64).reshape(-1, 1)
    if not isinstance(space, spaces.Dict):
        return _vectors(space, observations)
    return np.concatenate([_vectors(part, observations[key]) for key, part in space.spaces.items()], axis=1)


def _vectors(space: spaces.Space[Any], observations: Any) -> NDArray[np.float64]:
    """Vectors whose distances mean something: choices become one 0 or 1 for each possibility."""
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
        f"a fixed skip is estimated from observations that are vectors or numbers, "
        f"not from {' '.join(str(space).split())[:100]}"
    )
