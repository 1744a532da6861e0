"""Whether an algorithm can be trained in an environment, and with which of its policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.core.errors import InputError
from holdfast.policies.algorithms import Algorithm

__all__ = ["SMALLEST_IMAGE", "check_environment", "unknown_part"]

SMALLEST_IMAGE = 36
"""The smallest height and width, in pixels, that the three layers of the default CNN accept."""


def check_environment(
    algorithm: Algorithm, name: str, kwargs: dict[str, Any], arguments: dict[str, Any], policy_is_given: bool
) -> None:
    """Check that the algorithm can be trained there, and choose the policy that fits its observations."""
    from gymnasium import spaces

    from holdfast.envs import NamedFailures, make_env
    from holdfast.envs.observations import has_numbers

    env = NamedFailures(make_env(name, **kwargs))
    try:
        seen, actions = env.observation_space, env.action_space
    finally:
        env.close()
    _check_actions(algorithm, name, actions)
    if not algorithm.is_deep:
        if not isinstance(seen, spaces.Discrete):
            raise InputError(
                f"environment must have discrete observations for {algorithm.name}, but those of {name} are "
                f"{type(seen).__name__}; algorithms with a network, such as perdqn, accept them",
                "environment",
            )
        return
    if not has_numbers(seen):
        raise InputError(
            f"environment must have observations with at least one number in every part, but those of {name} "
            f"are {seen}",
            "environment",
        )
    unknown = unknown_part(seen)
    if unknown is not None:
        raise InputError(
            f"environment must have observations of arrays, numbers or a dictionary of them for {algorithm.name}, "
            f"but those of {name} have {unknown}: a callable of your own (module:callable) can wrap the "
            "environment so that it is left out",
            "environment",
        )
    for part in seen.spaces.values() if isinstance(seen, spaces.Dict) else (seen,):
        if isinstance(part, spaces.Discrete) and part.start != 0:
            raise InputError(
                f"environment must have discrete observations that count from 0 for {algorithm.name}, "
                f"but those of {name} count from {part.start}",
                "environment",
            )
    from stable_baselines3.common.preprocessing import is_image_space

    is_image = isinstance(seen, spaces.Box) and is_image_space(seen)
    fitting = ["MultiInputPolicy"] if isinstance(seen, spaces.Dict) else ["MlpPolicy"]
    # Smaller images leave no output for the last layer of the CNN.
    height, width = sorted(seen.shape or ())[-2:] if is_image else (0, 0)
    is_large = height >= SMALLEST_IMAGE
    if is_large:
        fitting.insert(0, "CnnPolicy")
    if not policy_is_given:
        arguments["policy"] = fitting[0]
    elif is_image and not is_large and arguments["policy"] == "CnnPolicy" and _uses_default_cnn(arguments):
        raise InputError(
            f"policy must be MlpPolicy for {name}: CnnPolicy needs images of at least {SMALLEST_IMAGE} × "
            f"{SMALLEST_IMAGE} pixels, and these have {height} × {width}",
            "policy",
        )
    elif arguments["policy"] not in (*fitting, *(["CnnPolicy"] if is_image or _sees_boards(arguments) else [])):
        raise InputError(
            f"policy must be {' or '.join(fitting)} for {name}, not {arguments['policy']!r}", "policy"
        )


def _check_actions(algorithm: Algorithm, name: str, actions: Any) -> None:
    """Reject an environment whose actions the algorithm does not accept, and name algorithms that do."""
    from gymnasium import spaces

    from holdfast.envs import Choices, are_choices

    kind = "continuous" if algorithm.is_continuous else "discrete"
    if not (isinstance(actions, spaces.Box) if algorithm.is_continuous else are_choices(actions)):
        hint = "; pertd3 and persac accept them" if isinstance(actions, spaces.Box) else ""
        raise InputError(
            f"environment must have {kind} actions for {algorithm.name}, but those of {name} are {actions}{hint}",
            "environment",
        )
    if not algorithm.is_continuous:
        try:
            Choices(actions)
        except InputError as error:
            raise InputError(f"environment {name} cannot be learned in: {error}", "environment") from None


def unknown_part(observations: Any) -> str | None:
    """The kind of space within an observation space that no network agent accepts; None if all are accepted."""
    from gymnasium import spaces

    known = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
    parts = observations.spaces.values() if isinstance(observations, spaces.Dict) else (observations,)
    return next((type(part).__name__ for part in parts if not isinstance(part, known)), None)


def _uses_default_cnn(arguments: Mapping[str, Any]) -> bool:
    return "features_extractor_class" not in (arguments.get("policy_kwargs") or {})


def _sees_boards(arguments: Mapping[str, Any]) -> bool:
    return (arguments.get("policy_kwargs") or {}).get("features_extractor_class") == "SmallConvolutions"
