"""The policies by the names that Stable-Baselines3 gives them: for vectors, images, and dictionaries."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor, NatureCNN

from holdfast.core.errors import InputError
from holdfast.deep.networks.option_policy import OptionPolicy
from holdfast.deep.networks.sac_policy import GaussianActorPolicy
from holdfast.deep.networks.td3_policy import DeterministicActorPolicy

__all__ = [
    "ActorCnnPolicy",
    "ActorMlpPolicy",
    "ActorMultiInputPolicy",
    "CnnPolicy",
    "GaussianCnnPolicy",
    "GaussianMlpPolicy",
    "GaussianMultiInputPolicy",
    "MlpPolicy",
    "MultiInputPolicy",
]

_SMALLEST_IMAGE = 36
"""Height and width from which on the convolutions of SB3's NatureCNN leave a pixel."""


class _ForImages(BasePolicy):
    """Beside a policy: SB3's convolutions for images."""

    def __init__(self, observation_space: spaces.Space[Any], *arguments: Any, **keywords: Any) -> None:
        extractor = keywords.setdefault("features_extractor_class", NatureCNN)
        _refuse_small_images(type(self).__name__, observation_space, extractor)
        super().__init__(observation_space, *arguments, **keywords)


class _ForDictionaries(BasePolicy):
    """Beside a policy: SB3's features of dictionaries."""

    def __init__(self, observation_space: spaces.Space[Any], *arguments: Any, **keywords: Any) -> None:
        extractor = keywords.setdefault("features_extractor_class", CombinedExtractor)
        _refuse_small_images(type(self).__name__, observation_space, extractor)
        super().__init__(observation_space, *arguments, **keywords)


class MlpPolicy(OptionPolicy):
    """For vectors."""


class CnnPolicy(_ForImages, OptionPolicy):
    """For images."""


class MultiInputPolicy(_ForDictionaries, OptionPolicy):
    """For dictionaries of observations."""


class ActorMlpPolicy(DeterministicActorPolicy):
    """For vectors and continuous actions."""


class ActorCnnPolicy(_ForImages, DeterministicActorPolicy):
    """For images and continuous actions."""


class ActorMultiInputPolicy(_ForDictionaries, DeterministicActorPolicy):
    """For dictionaries of observations and continuous actions."""


class GaussianMlpPolicy(GaussianActorPolicy):
    """For vectors and continuous actions that are drawn."""


class GaussianCnnPolicy(_ForImages, GaussianActorPolicy):
    """For images and continuous actions that are drawn."""


class GaussianMultiInputPolicy(_ForDictionaries, GaussianActorPolicy):
    """For dictionaries of observations and continuous actions that are drawn."""


def _refuse_small_images(
    policy: str, observation_space: spaces.Space[Any], extractor: type[BaseFeaturesExtractor]
) -> None:
    """InputError for images that SB3's convolutions leave no pixel of."""
    if extractor not in (NatureCNN, CombinedExtractor):
        return
    parts = observation_space.spaces if isinstance(observation_space, spaces.Dict) else {"": observation_space}
    for key, part in parts.items():
        if isinstance(part, spaces.Box) and is_image_space(part):
            height, width = part.shape[-2:]
        elif isinstance(part, spaces.Box) and extractor is NatureCNN and len(part.shape) == 3:
            # A board of zeros and ones, for example: no image to SB3, but given to the convolutions all the same.
            height, width = sorted(part.shape)[-2:]
        else:
            continue
        if min(height, width) < _SMALLEST_IMAGE:
            image = f"the image {key!r}" if key else "the observation"
            remedy = "flatten it in a wrapper" if key else "use MlpPolicy, which flattens it"
            raise InputError(
                f"policy {policy} needs images of at least {_SMALLEST_IMAGE}x{_SMALLEST_IMAGE} pixels, and "
                f"{image} has {height}x{width}: enlarge it, or {remedy}",
                "policy",
            )
