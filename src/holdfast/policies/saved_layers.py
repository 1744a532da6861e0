"""What a policy's file may ask for: no layers larger than the weights it brings, checked before any is made."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gymnasium import spaces

from holdfast.core.checks import check_persistences
from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_array, take_mapping
from holdfast.core.user_code import is_raised_by_holdfast
from holdfast.policies.arguments import ACTIVATIONS

if TYPE_CHECKING:
    import torch

__all__ = [
    "building",
    "check_saved_layers",
    "check_saved_persistences",
    "known_extractors",
    "saved_arguments",
    "saved_class",
    "saved_tensors",
    "unfit_layers",
]

_LARGEST_PICTURE = 2**24
"""Numbers in an observation that a convolution is shown."""

_ARRAYS_PER_PICTURE = 8
"""Arrays of weights and biases that each picture among several has: of three convolutions and a layer behind."""

_LONGEST = 2**31
"""Steps for which no policy holds an action."""


def unfit_layers() -> InputError:
    """The error for weights that do not belong to the layers."""
    return InputError("the saved policy must have the weights of its layers, and no others")


@contextmanager
def building() -> Iterator[None]:
    """Turn what PyTorch and SB3 raise, given spaces or arguments that they cannot use, into one sentence."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, InputError) and is_raised_by_holdfast(error):
            raise
        raise InputError(f"the saved policy cannot be built: {' '.join(str(error).split())[:200]}") from None


def known_extractors() -> dict[str, Any]:
    """The features extractors that a file may name."""
    from stable_baselines3.common.torch_layers import CombinedExtractor, FlattenExtractor, NatureCNN

    from holdfast.deep.networks.option_network import ConvFeatures
    from holdfast.deep.networks.small_convolutions import SmallConvolutions

    kinds = (FlattenExtractor, NatureCNN, CombinedExtractor, ConvFeatures, SmallConvolutions)
    return {kind.__name__: kind for kind in kinds}


def saved_class(state: Mapping[str, Any], kinds: Iterable[type]) -> Any:
    """The class of the saved policy, one of these; no other is ever looked up."""
    classes = {kind.__name__: kind for kind in kinds}
    kind = classes.get(str(take(state, "policy")))
    if kind is None:
        raise InputError(f"the saved policy must be one of {', '.join(classes)}")
    return kind


def saved_arguments(
    state: Mapping[str, Any], own: Iterable[str], unsaid: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The arguments of the saved policy, with classes in place of the names of known ones.

    Args:
        state: The state read from a file.
        own: Names of the arguments beyond activation function and features extractor.
        unsaid: Values of arguments that files of older versions do not have.
    """
    import torch

    saved = {**(unsaid or {}), **take_mapping(state, "arguments")}
    known = {*own, "activation_fn", "features_extractor_class", "features_extractor_kwargs"}
    if set(saved) != known:
        raise InputError(f"the saved policy must have the arguments {', '.join(sorted(known))}")
    extractor = known_extractors().get(str(saved["features_extractor_class"]))
    if extractor is None or str(saved["activation_fn"]) not in ACTIVATIONS:
        raise InputError("the saved policy must have a known activation_fn and features_extractor_class")
    activation = getattr(torch.nn, saved["activation_fn"])
    return {**saved, "activation_fn": activation, "features_extractor_class": extractor}


def saved_tensors(weights: Mapping[str, Any], own: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies of saved weights for parameters with the names, types and shapes of ``own``, and no others."""
    import torch

    from holdfast.deep.exact.agent_state import as_array

    if set(own) != set(weights):
        raise unfit_layers()
    return {
        name: torch.from_numpy(take_array(weights, name, as_array(value).dtype, tuple(value.shape)).copy())
        for name, value in own.items()
    }


def check_saved_layers(
    weights: Mapping[str, Any],
    extractor: Any,
    kwargs: Any,
    observations: spaces.Space[Any],
    stacks: Sequence[tuple[int, Sequence[int | None]]],
) -> None:
    """Check that all layers together are no larger than the weights that are there for them.

    Args:
        weights: Arrays by name.
        extractor: Class of the features extractor.
        kwargs: Its arguments.
        observations: What it sees.
        stacks: How often each stack of layers occurs, and the widths of its layers: whole numbers, of which None
            stands for the features.

    Raises:
        InputError: They are larger, or something is not a whole number.
    """
    if not isinstance(kwargs, dict) or not all(type(value) in (int, float, bool) for value in kwargs.values()):
        raise InputError("the saved policy must have numbers as 'features_extractor_kwargs'")
    available = sum(getattr(array, "size", 0) for array in weights.values())
    n_features, needed = _features(extractor, kwargs, observations, len(weights))
    n_layers = 0
    for number, widths in stacks:
        if not all(width is None or (type(width) is int and width >= 1) for width in widths):
            raise InputError("the saved policy must have lists of whole numbers as its layers")
        n_layers += len(widths) - 1
        sizes = [n_features if width is None else width for width in widths]
        needed += number * sum(inputs * outputs for inputs, outputs in pairwise(sizes))
    if n_features < 1 or n_layers > len(weights) or needed > available:
        raise unfit_layers()


def _features(
    extractor: Any, kwargs: Mapping[str, Any], observations: spaces.Space[Any], n_arrays: int
) -> tuple[int, int]:
    """How many numbers a features extractor returns, and its number of weights; its layers are not allocated."""
    import torch

    try:
        inspect.signature(extractor).bind(observations, **kwargs)
    except TypeError:
        # Before it is called: what a call itself raises looks like a fault of holdfast.
        raise InputError(
            f"the saved policy must have arguments of {extractor.__name__} as 'features_extractor_kwargs', not "
            f"{', '.join(map(repr, sorted(kwargs)))}"[:200]
        ) from None
    pictures = _pictures(extractor, kwargs, observations)
    if _ARRAYS_PER_PICTURE * (len(pictures) - 1) > n_arrays:
        raise unfit_layers()
    if any(math.prod(space.shape or ()) > _LARGEST_PICTURE for space in pictures):
        raise InputError(f"the saved policy must have pictures of at most {_LARGEST_PICTURE} numbers")
    with building(), torch.device("meta"):
        made = extractor(observations, **kwargs)
    return int(made.features_dim), sum(weight.numel() for weight in made.parameters())


def _pictures(
    extractor: Any, kwargs: Mapping[str, Any], observations: spaces.Space[Any]
) -> list[spaces.Space[Any]]:
    """The spaces that convolutions are shown; others are flattened, whatever their shape."""
    from stable_baselines3.common.preprocessing import is_image_space
    from stable_baselines3.common.torch_layers import FlattenExtractor

    if isinstance(observations, spaces.Dict):
        normalized = bool(kwargs.get("normalized_image", False))
        return [space for space in observations.values() if is_image_space(space, normalized_image=normalized)]
    return [] if extractor is FlattenExtractor or len(observations.shape or ()) != 3 else [observations]


def check_saved_persistences(arguments: Mapping[str, Any]) -> int:
    """Check ``k_max`` and ``persistences``, and return the number of persistences.

    Raises:
        InputError: They are not what a policy has.
    """
    k_max, persistences = arguments["k_max"], arguments["persistences"]
    if type(k_max) is not int or not 1 <= k_max < _LONGEST:
        raise InputError(f"the saved policy must have a whole number from 1 to {_LONGEST - 1} as 'k_max'")
    if persistences is None:
        return k_max
    if not isinstance(persistences, list):
        raise InputError("the saved policy must have a list of whole numbers as 'persistences', or none")
    try:
        numbers = check_persistences("persistences", persistences)
    except InputError as error:
        raise InputError(f"the saved policy is damaged: {error}") from None
    if numbers is None or numbers[-1] != k_max:
        raise InputError("the saved policy must have its longest persistence as 'k_max'")
    return len(numbers)
