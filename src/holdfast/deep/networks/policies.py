"""The policies by the names that Stable-Baselines3 gives them: for vectors, images, and dictionaries."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor, NatureCNN

from holdfast.core.errors import InputError
from holdfast.deep.networks.actor_policy import ActorPolicy
from holdfast.deep.networks.option_policy import OptionPolicy

__all__ = [
    "ActorCnnPolicy",
    "ActorMlpPolicy",
    "ActorMultiInputPolicy",
    "CnnPolicy",
    "MlpPolicy",
    "MultiInputPolicy",
]

_SMALLEST_IMAGE = 36
"""Height and width from which on the convolutions of SB3's NatureCNN leave a pixel."""


class MlpPolicy(OptionPolicy):
    """For vectors."""


class CnnPolicy(OptionPolicy):
    """For images."""

    def __init__(self, observation_space: spaces.Space[Any], *arguments: Any, **keywords: Any) -> None:
        extractor = keywords.setdefault("features_extractor_class", NatureCNN)
        _refuse_small_images(type(self).__name__, observation_space, extractor)
        super().__init__(observation_space, *arguments, **keywords)


class MultiInputPolicy(OptionPolicy):
    """For dictionaries of observations."""

    def __init__(self, observation_space: spaces.Space[Any], *arguments: Any, **keywords: Any) -> None:
        extractor = keywords.setdefault("features_extractor_class", CombinedExtractor)
        _refuse_small_images(type(self).__name__, observation_space, extractor)
        super().__init__(observation_space, *arguments, **keywords)


class ActorMlpPolicy(ActorPolicy):
    """For vectors and continuous actions."""


class ActorCnnPolicy(ActorPolicy):
    """For images and continuous actions."""

    def __init__(self, observation_space: spaces.Space[Any], *arguments: Any, **keywords: Any) -> None:
        extractor = keywords.setdefault("features_extractor_class", NatureCNN)
        _refuse_small_images(type(self).__name__, observation_space, extractor)
        super().__init__(observation_space, *arguments, **keywords)


class ActorMultiInputPolicy(ActorPolicy):
    """For dictionaries of observations and continuous actions."""

    def __init__(self, observation_space: spaces.Space[Any], *arguments: Any, **keywords: Any) -> None:
        extractor = keywords.setdefault("features_extractor_class", CombinedExtractor)
        _refuse_small_images(type(self).__name__, observation_space, extractor)
        super().__init__(observation_space, *arguments, **keywords)


def _refuse_small_images(
    policy: str, observation_space: spaces.Space[Any], extractor: type[BaseFeaturesExtractor]
) -> None:
    """InputError for images that SB3's convolutions leave no pixel of."""
    if extractor not in (NatureCNN, CombinedExtractor):
        return
    parts = observation_space.spaces if isinstance(observation_space, spaces.Dict) else {"": observation_space}
    for key, part in parts.items():
        if isinstance(part, spaces.Box) and is_image_space(part) and min(part.shape[-2:]) < _SMALLEST_IMAGE:
            height, width = part.shape[-2:]
            image = f"the image {key!r}" if key else "the observation"
            raise InputError(
                f"policy {policy} needs images of at least {_SMALLEST_IMAGE}x{_SMALLEST_IMAGE} pixels, and "
                f"{image} has {height}x{width}: enlarge it, or flatten it in a wrapper",
                "policy",
            )
