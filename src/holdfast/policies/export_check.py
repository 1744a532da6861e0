"""Whether an exported policy decides as the policy does: ONNX Runtime against ``decide``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.core.choice import Decision, few_decision_option
from holdfast.core.errors import InputError
from holdfast.core.options import persistence_index
from holdfast.core.user_code import is_raised_by_holdfast
from holdfast.envs import Choices
from holdfast.policies.actors import NetworkActor, TableActor
from holdfast.policies.onnx_policies import space_inputs

__all__ = ["ExportCheck", "check_export", "draw_observations", "is_actor_policy"]

_NUMBERS_AT_ONCE = 2**22
"""Numbers of a batch, observations and values together."""
_BATCH = 256
_ALONE = 32
"""How many of the first observations are also decided one at a time."""

_ROUNDING = 1e-5
"""Tolerated difference between two evaluations of the same network, relative to a batch's largest value."""

_UNBOUNDED = 1e30


class ExportCheck(NamedTuple):
    """What a comparison of decisions found.

    Attributes:
        observations: Number compared.
        near_ties: Those whose decisions differ, because rounding swaps options of equal value.
        largest_difference: Largest difference in value.
    """

    observations: int
    near_ties: int
    largest_difference: float

    @property
    def equal(self) -> int:
        """Observations whose decisions are equal."""
        return self.observations - self.near_ties


def check_export(
    data: bytes,
    actor: NetworkActor | TableActor,
    space: spaces.Space[Any],
    n: int,
    seed: int,
    told: Callable[[int, int], None] = lambda done, all_of_them: None,
) -> ExportCheck:
    """Compare the decisions of a model, run by ONNX Runtime, with those of the policy it was made from.

    Args:
        data: The serialized model.
        actor: The policy.
        space: Its observation space.
        n: Number of observations to draw.
        seed: Random seed.
        told: Called with the number compared so far, and ``n``.

    Raises:
        InputError: One of the two cannot decide.
        ValueError: They differ by more than rounding, which is a bug in the graph.
    """
    client = _Client(data, space)
    random = np.random.default_rng(seed)
    near_ties, largest = 0, 0.0
    size = _batch_size(actor, space)
    for begin in range(0, n, size):
        batch = draw_observations(space, min(size, n - begin), random, begin)
        ours, theirs = _decisions(actor, batch), client.decide(batch)
        scale = float(np.abs(ours.values).max())
        difference, swapped = _compare(actor, ours, theirs, scale)
        near_ties, largest = near_ties + swapped, max(largest, difference)
        for number in range(min(_ALONE, n) if begin == 0 else 0):
            one = _row(batch, number)
            theirs = client.decide(_row(batch, slice(number, number + 1)))
            _compare(actor, _alone(_decide(actor, one)), theirs, scale)
        told(min(begin + size, n), n)
    return ExportCheck(n, near_ties, largest)


def _batch_size(actor: NetworkActor | TableActor, space: spaces.Space[Any]) -> int:
    """The batch size, small enough to fit in memory."""
    if isinstance(actor, TableActor):
        numbers = actor.policy.table[0].size
    else:
        n_heads, actions = len(actor.policy.durations), actor.policy.action_space
        numbers = n_heads * (n_heads if isinstance(actions, spaces.Box) else Choices(actions).n)
    parts = space.spaces.values() if isinstance(space, spaces.Dict) else (space,)
    numbers += sum(math.prod(part.shape or ()) for part in parts)
    return max(1, min(_BATCH, _NUMBERS_AT_ONCE // int(numbers)))


def _compare(
    actor: NetworkActor | TableActor, ours: Decision, theirs: Decision, scale: float
) -> tuple[float, int]:
    """The largest difference in value, and how many decisions rounding has swapped."""
    if [part.shape for part in theirs] != [part.shape for part in ours]:
        raise ValueError("the exported policy does not give one decision per observation: nothing was written")
    with np.errstate(invalid="ignore"):
        largest = float(np.abs(theirs.values.astype(np.float64) - ours.values).max())
    # NaN must count as a large difference.
    if not largest <= (_ROUNDING * scale if isinstance(actor, NetworkActor) else 0.0):
        raise ValueError(f"the exported policy's values differ by {largest:.2g}: nothing was written")
    if is_actor_policy(actor):
        return largest, _compare_continuous(actor, ours, theirs)
    if not _equal(theirs, _by_the_rule(actor, theirs.values) or ours).all():
        raise ValueError("the exported policy decides differently from the same values: nothing was written")
    # With the same rule, a different decision can only come from values changed by rounding.
    return largest, int((~_equal(theirs, ours)).sum())


def is_actor_policy(actor: Any) -> bool:
    """Whether a policy gives continuous actions."""
    return isinstance(actor, NetworkActor) and isinstance(actor.policy.action_space, spaces.Box)


def _compare_continuous(actor: NetworkActor | TableActor, ours: Decision, theirs: Decision) -> int:
    """How many holds rounding has swapped; if the hold is the same, the action must be too, up to rounding."""
    assert isinstance(actor, NetworkActor)
    _, counted = few_decision_option(theirs.values, actor.policy.decision_tolerance)
    space: Any = actor.policy.action_space
    same = theirs.hold == ours.hold
    distance = np.abs(theirs.action - ours.action)[same] <= _ROUNDING * (space.high - space.low)
    if not np.array_equal(theirs.hold, actor.policy.durations[persistence_index(counted)]) or not distance.all():
        raise ValueError("the exported policy decides differently from the same values: nothing was written")
    return int((~same).sum())


def _by_the_rule(actor: NetworkActor | TableActor, values: NDArray[Any]) -> Decision | None:
    """The policy's decision for these values; a table is exact and needs no such check."""
    if isinstance(actor, TableActor):
        return None
    with np.errstate(over="ignore"):
        actions, counted = few_decision_option(values, actor.policy.decision_tolerance)
    holds = actor.policy.durations[persistence_index(counted)]
    return Decision(Choices(actor.policy.action_space).taken(actions), holds, values)


def _equal(one: Decision, other: Decision) -> NDArray[np.bool_]:
    same_action = (one.action == other.action).reshape(len(one.action), -1).all(axis=1)
    return np.asarray(same_action & (one.hold == other.hold))


class _Client:
    """The model in ONNX Runtime, on one thread and without log output."""

    def __init__(self, data: bytes, space: spaces.Space[Any]) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self._names = {key: part.name for key, part in space_inputs(space).items()}
        try:
            self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's own classes have no other base
            raise _refusal("ONNX Runtime does not take the exported policy", error) from None

    def decide(self, batch: Any) -> Decision:
        """The decisions about a batch of observations."""
        parts = batch if isinstance(batch, dict) else {"all": batch}
        try:
            found = self._session.run(None, {self._names[key]: part for key, part in parts.items()})
        except Exception as error:  # the same
            raise _refusal("ONNX Runtime cannot run the exported policy", error) from None
        return Decision(*found)


def _decisions(actor: NetworkActor | TableActor, batch: Any) -> Decision:
    if isinstance(actor, NetworkActor):
        return _decide(actor, batch)
    return Decision(*map(np.array, zip(*(_decide(actor, state) for state in batch), strict=True)))


def _decide(actor: NetworkActor | TableActor, observation: Any) -> Decision:
    try:
        with np.errstate(over="ignore"):
            return actor.decide(observation)
    except Exception as error:  # whatever PyTorch says of it
        if isinstance(error, InputError | MemoryError) or is_raised_by_holdfast(error):
            raise
        raise _refusal("the policy cannot decide about the observations of its own space", error) from None


def _alone(decision: Decision) -> Decision:
    return Decision(*(np.asarray(part)[None] for part in decision))


def _row(batch: Any, index: int | slice) -> Any:
    return {key: part[index] for key, part in batch.items()} if isinstance(batch, dict) else batch[index]


def _refusal(what: str, error: Exception) -> InputError:
    """One sentence from another library's error."""
    return InputError(f"{what}: {' '.join(str(error).split())[:200]}")


# Observations ---------------------------------------------------------------------------------------------------


def draw_observations(
    space: spaces.Space[Any], n: int, random: np.random.Generator, begin: int | None = None
) -> Any:
    """``n`` observations of a space as one array, or as a dictionary of arrays.

    For a Discrete space with a ``begin``, they are in order from that number on: all occur before any repeats.
    """
    match space:
        case spaces.Dict():
            return {key: draw_observations(part, n, random) for key, part in space.spaces.items()}
        case spaces.Discrete():
            numbers = random.integers(space.n, size=n) if begin is None else np.arange(begin, begin + n)
            return (space.start + numbers % int(space.n)).astype(np.int64)
        case spaces.MultiDiscrete():
            return (space.start + random.integers(space.nvec, size=(n, *space.shape))).astype(space.dtype)
        case spaces.MultiBinary():
            return random.integers(2, size=(n, *space.shape)).astype(space.dtype)
        case spaces.Box():
            return _draw_box(space, n, random)
    raise InputError(f"there are no observations of the space {type(space).__name__} to check")


def _draw_box(space: spaces.Box, n: int, random: np.random.Generator) -> NDArray[Any]:
    if space.low.dtype.kind == "f":
        return np.clip(_draw_numbers(space, n, random), space.low, space.high).astype(space.dtype)
    whole: dict[str, Any] = {"low": space.low, "high": space.high, "dtype": space.low.dtype}
    return np.asarray(random.integers(**whole, size=(n, *space.shape), endpoint=True))


def _draw_numbers(space: spaces.Box, n: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Uniform between two bounds; otherwise normal at several scales, from the one bound or from 0."""
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    has_low, has_high = np.abs(low) < _UNBOUNDED, np.abs(high) < _UNBOUNDED
    low, high = np.where(has_low, low, 0.0), np.where(has_high, high, 0.0)
    shape = (n, *space.shape)
    away = random.normal(size=shape) * 10.0 ** random.uniform(-1.0, 1.0, (n, *(1 for _ in space.shape)))
    return np.select(
        [has_low & has_high, has_low, has_high],
        [low + random.random(shape) * (high - low), low + np.abs(away), high - np.abs(away)],
        away,
    )
