"""Arguments of algorithms: as typed, as stored in a file, and as Python objects.

A file holds JSON values. Anything else is written as text: a schedule of ε as ``"exponential(0.99, 0.01)"``, a
learning rate that falls linearly to 0 as ``"lin_0.001"``, an activation or an optimiser by its name in PyTorch,
and a features extractor by the name of its class.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from holdfast.core.errors import InputError
from holdfast.core.schedules import Constant, Exponential, Linear

__all__ = ["JsonArgument", "argument_of", "as_python", "check_train_freq", "policy_arguments"]

_SCHEDULES = {"constant": Constant, "linear": Linear, "exponential": Exponential}

ACTIVATIONS = ("ELU", "GELU", "LeakyReLU", "Mish", "ReLU", "SiLU", "Tanh")
OPTIMIZERS = ("Adam", "AdamW", "RMSprop", "SGD")
EXTRACTORS = ("ConvFeatures", "NatureCNN", "SmallConvolutions")

_OPTIMIZER_ARGUMENTS = (
    "alpha",
    "amsgrad",
    "betas",
    "centered",
    "dampening",
    "eps",
    "fused",
    "momentum",
    "nesterov",
    "weight_decay",
)

_POLICY_ARGUMENTS = {
    "net_arch": "a list of whole numbers",
    "activation_fn": f"one of {', '.join(ACTIVATIONS)}",
    "optimizer_class": f"one of {', '.join(OPTIMIZERS)}",
    "optimizer_kwargs": f"a mapping with numbers as {', '.join(_OPTIMIZER_ARGUMENTS)}",
    "features_extractor_class": f"one of {', '.join(EXTRACTORS)}",
    "features_extractor_kwargs": "a mapping of numbers",
    "normalize_images": "true or false",
}


_MOST_OF_ALL = 2**62
_MOST = {"k_max": 2**31}


@dataclass(frozen=True)
class JsonArgument:
    """One argument of an algorithm.

    Attributes:
        name: Its name.
        default: Its default, as a JSON value.
        kinds: What it may be: names among int, float, bool, str, list, dict, None, schedule, rate.
    """

    name: str
    default: Any
    kinds: tuple[str, ...]

    def check(self, value: Any) -> Any:
        """The value, as a JSON value of one of the kinds.

        Raises:
            ValueError: It is of another kind; the sentence names the argument and what it may be.
        """
        for kind in self.kinds:
            found = _KINDS[kind].read(value)
            if found is not _NOTHING:
                return self._bounded(found)
        allowed = " or ".join(_KINDS[kind].title for kind in self.kinds)
        raise InputError(f"{self.name} must be {allowed}, not {value!r}", self.name)

    def _bounded(self, value: Any) -> Any:
        """The value; raise InputError for a whole number too large for memory or files."""
        most = _MOST.get(self.name, _MOST_OF_ALL)
        if type(value) is int and value >= most:
            raise InputError(f"{self.name} must be less than {most}, not {value}", self.name)
        return value


def argument_of(parameter: inspect.Parameter) -> JsonArgument | None:
    """The argument of a parameter; None if no file can hold it."""
    # The element types of a list or mapping do not matter here.
    words = set(re.findall(r"\w+", re.sub(r"\[.*?\]", "", str(parameter.annotation))))
    if "type" in words and "str" not in words:
        return None
    kinds = [kind for kind in ("bool", "int", "float", "str", "None") if kind in words]
    if words & {"list", "tuple"}:
        kinds.append("list")
    if "dict" in words:
        kinds.append("dict")
    if "Schedule" in words:
        kinds.append("rate" if parameter.name == "learning_rate" else "schedule")
    default = "MlpPolicy" if parameter.default is inspect.Parameter.empty else _as_json(parameter.default)
    return JsonArgument(parameter.name, default, tuple(kinds))


def as_python(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as Python objects, for the algorithm."""
    found = dict(arguments)
    if isinstance(found.get("epsilon"), str):
        found["epsilon"] = _schedule(found["epsilon"])
    if isinstance(found.get("learning_rate"), str):
        found["learning_rate"] = _falling_rate(found["learning_rate"])
    if isinstance(found.get("train_freq"), list):
        found["train_freq"] = tuple(found["train_freq"])
    if found.get("persistences") is not None:
        # The longest of them.
        found.pop("k_max", None)
    if found.get("policy_kwargs"):
        found["policy_kwargs"] = policy_arguments(found["policy_kwargs"])
    return found


def policy_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a policy as Python objects.

    Raises:
        ValueError: There is one that a file cannot hold, or that is of the wrong kind.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in _POLICY_ARGUMENTS:
            raise InputError(
                f"policy_kwargs may have {', '.join(_POLICY_ARGUMENTS)}, not {name!r}", "policy_kwargs"
            )
        if not _fits(name, value):
            raise InputError(
                f"{name} in policy_kwargs must be {_POLICY_ARGUMENTS[name]}, not {value!r}", "policy_kwargs"
            )
        found[name] = value
    if "activation_fn" in found or "optimizer_class" in found:
        from torch import nn, optim

        for name, place in (("activation_fn", nn), ("optimizer_class", optim)):
            if name in found:
                found[name] = getattr(place, found[name])
    if "features_extractor_class" in found:
        found["features_extractor_class"] = _extractor(found["features_extractor_class"])
    return found


def _extractor(name: str) -> Any:
    from stable_baselines3.common.torch_layers import NatureCNN

    from holdfast.deep.networks.option_network import ConvFeatures
    from holdfast.deep.networks.small_convolutions import SmallConvolutions

    return {kind.__name__: kind for kind in (ConvFeatures, NatureCNN, SmallConvolutions)}[name]


def check_train_freq(value: Any, n_envs: int) -> None:
    """Check that train_freq is a number of steps, or a pair of a number and its unit."""
    is_pair = isinstance(value, list) and len(value) == 2 and value[1] in ("step", "episode")
    number = value[0] if is_pair else value
    if type(number) is not int or number < 1:
        allowed = "a whole number of at least 1, or a pair such as [1, 'episode']"
        raise InputError(f"train_freq must be {allowed}, not {value!r}", "train_freq")
    if is_pair and value[1] == "episode" and n_envs > 1:
        raise InputError(
            "train_freq must count steps, not episodes, where n_envs is more than 1", "train_freq", "n_envs"
        )


def _fits(name: str, value: Any) -> bool:
    match name:
        case "net_arch":
            return isinstance(value, list) and all(type(units) is int for units in value)
        case "activation_fn":
            return isinstance(value, str) and value in ACTIVATIONS
        case "optimizer_class":
            return isinstance(value, str) and value in OPTIMIZERS
        case "features_extractor_class":
            return isinstance(value, str) and value in EXTRACTORS
        case "normalize_images":
            return isinstance(value, bool)
        case "optimizer_kwargs":
            return isinstance(value, dict) and all(
                key in _OPTIMIZER_ARGUMENTS and _is_numbers(item) for key, item in value.items()
            )
    return isinstance(value, dict) and all(map(_is_numbers, value.values()))


def _is_numbers(value: Any) -> bool:
    """Whether it is a number, true, false, or a list of numbers."""
    if isinstance(value, list):
        return all(type(item) in (int, float) for item in value)
    return type(value) in (bool, int, float)


# Kinds ----------------------------------------------------------------------------------------------------------

_NOTHING = object()


@dataclass(frozen=True)
class _Kind:
    """A kind of value: its description, and how to read it; reading anything else gives ``_NOTHING``."""

    title: str
    read: Callable[[Any], Any]


def _read_bool(value: Any) -> Any:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return value if isinstance(value, bool) else _NOTHING


def _read_int(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)  # 1e5, as people type it
    return value if type(value) is int else _NOTHING


def _read_float(value: Any) -> Any:
    return value if type(value) is int or (type(value) is float and math.isfinite(value)) else _NOTHING


def _read_text(value: Any) -> Any:
    return value if isinstance(value, str) else _NOTHING


def _read_none(value: Any) -> Any:
    if isinstance(value, str) and value.lower() in ("none", "null"):
        return None
    return None if value is None else _NOTHING


def _read_list(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple) and _is_json(list(value)) else _NOTHING


def _read_dict(value: Any) -> Any:
    return value if isinstance(value, dict) and _is_json(value) else _NOTHING


def _read_schedule(value: Any) -> Any:
    try:
        return _as_json(_schedule(value)) if isinstance(value, str) else _NOTHING
    except InputError:
        return _NOTHING


def _read_rate(value: Any) -> Any:
    return value if isinstance(value, str) and _rate_in(value) is not None else _NOTHING


_KINDS = {
    "bool": _Kind("true or false", _read_bool),
    "int": _Kind("a whole number", _read_int),
    "float": _Kind("a number", _read_float),
    "str": _Kind("a text", _read_text),
    "None": _Kind("None", _read_none),
    "list": _Kind("a list", _read_list),
    "dict": _Kind("a mapping", _read_dict),
    "schedule": _Kind("a schedule such as exponential(0.99, 0.01) or linear(1, 0.05, 500)", _read_schedule),
    "rate": _Kind("a falling rate such as lin_0.001", _read_rate),
}


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError):
        return False


def _as_json(value: Any) -> Any:
    if isinstance(value, Constant | Linear | Exponential):
        numbers = ", ".join(repr(getattr(value, field.name)) for field in fields(value))
        return f"{type(value).__name__.lower()}({numbers})"
    return list(value) if isinstance(value, tuple) else value


def _schedule(text: str) -> Constant | Linear | Exponential:
    match = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", text)
    if match is None or match[1] not in _SCHEDULES:
        raise InputError(f"a schedule must be one of {', '.join(_SCHEDULES)} with its numbers, not {text!r}")
    try:
        numbers = ast.literal_eval(f"({match[2]},)") if match[2].strip() else ()
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise InputError(f"a schedule must have numbers, not {match[2]!r}") from None
    kind = _SCHEDULES[match[1]]
    try:
        inspect.signature(kind).bind(*numbers)
    except TypeError:
        names = ", ".join(field.name for field in fields(kind))
        raise InputError(f"a schedule must be such as {match[1]}({names}), not {text!r}") from None
    return kind(*numbers)  # type: ignore[no-any-return]


def _rate_in(text: str) -> float | None:
    try:
        rate = float(text.removeprefix("lin_"))
    except ValueError:
        return None
    return rate if text.startswith("lin_") and 0.0 < rate < float("inf") else None


def _falling_rate(text: str) -> Callable[[float], float]:
    rate = _rate_in(text)
    if rate is None:
        raise InputError(
            f"learning_rate must be a number, or one such as lin_0.001, not {text!r}", "learning_rate"
        )
    return lambda progress_remaining: progress_remaining * rate
