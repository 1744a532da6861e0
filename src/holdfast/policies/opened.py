"""A loaded policy and the environment it plays in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_integer, take_mapping
from holdfast.envs import NamedFailures, is_own_environment, make_scoring_env
from holdfast.policies.evaluation import LONGEST_EPISODE, Actor
from holdfast.policies.policy_files import actor_of, read_policy

__all__ = ["OpenedPolicy", "open_policy"]


@dataclass(frozen=True)
class OpenedPolicy:
    """A policy and the environment it was trained in.

    Attributes:
        actor: The policy.
        environment: Name of the environment, as ``make_env`` takes it.
        env_kwargs: Its arguments.
        label: Its name in headings.
        algo: Name of the algorithm.
        step: Training step at which the policy was stored.
        longest: Steps after which the training cut an episode.
    """

    actor: Actor
    environment: str
    env_kwargs: dict[str, Any]
    label: str
    algo: str
    step: int
    longest: int = LONGEST_EPISODE

    def make_env(self, **kwargs: Any) -> gymnasium.Env[Any, Any]:
        """The environment with further arguments, as results are measured in it.

        Raises:
            ValueError: The policy cannot play there.
        """
        env = NamedFailures(make_scoring_env(self.environment, **{**self.env_kwargs, **kwargs}))
        if not self.actor.fits(env.observation_space, env.action_space):
            env.close()
            raise InputError(
                "environment must be like the one in training: the policy was trained for other observations "
                f"or actions than those of {self.label}",
                "environment",
            )
        return env


def open_policy(
    path: str | os.PathLike[str], environment: str | None = None, env_kwargs: Mapping[str, Any] | None = None
) -> OpenedPolicy:
    """Open the policy of a run, or of a policy's own folder.

    Args:
        path: The folder.
        environment: An environment other than that of the training; the user's own code must be named here.
        env_kwargs: Its arguments, if they differ from the training's.

    Raises:
        ValueError: There is no policy, it is damaged, or its environment is code that was not named here.
    """
    state = read_policy(Path(path))
    actor = actor_of(state)
    about = take_mapping(state, "about")
    named, kwargs, label, step = (take(about, name) for name in ("environment", "env_kwargs", "label", "step"))
    longest = take_integer(about, "longest_episode", 1)
    if not (isinstance(named, str) and isinstance(kwargs, dict) and isinstance(label, str) and type(step) is int):
        raise InputError(f"{path} is damaged: it must say where the policy was trained")
    if environment is None and is_own_environment(named):
        raise InputError(
            f"environment must be given to run {named}: for safety, code named in a file is never run",
            "environment",
        )
    if environment is not None and environment != named:
        named, kwargs, label = environment, {}, environment
    return OpenedPolicy(
        actor, named, {**kwargs, **(env_kwargs or {})}, label, str(take(state, "algorithm")), step, longest
    )
