"""Pictures of a policy: its values at its decisions, and its choices over a plane of observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from matplotlib.figure import Figure
from numpy.typing import NDArray

from holdfast.core.array_types import Floats
from holdfast.draw import CellLayout, HoldMap, draw_hold_map, draw_option_values, draw_policy
from holdfast.envs import Choices, GridWorld, action_names, are_choices, observation_names
from holdfast.envs.names import two_axes
from holdfast.policies.actors import NetworkActor, TableActor
from holdfast.policies.evaluation import LONGEST_EPISODE, Actor, play

__all__ = ["Trip", "choose_axes", "draw_decisions", "draw_policy_over", "find_axes", "hold_map", "take_trip"]


_ALONG = 64
"""Number of points along an axis."""
_ROOM = 0.15
"""How far a picture extends beyond the range seen, as a fraction of it."""


@dataclass(frozen=True, eq=False)
class Trip:
    """An episode to draw.

    Attributes:
        observations: One per step, and the final one.
        decided: (steps + 1,) whether the policy decided there.
    """

    observations: Sequence[Any]
    decided: NDArray[np.bool_]

    def decisions(self, n: int) -> list[int]:
        """The steps of ``n`` of its decisions, evenly spread from the first; all if there are fewer."""
        steps = np.flatnonzero(self.decided)
        places = np.unique(np.linspace(0, len(steps) - 1, n).round().astype(int))
        return [int(step) for step in steps[places]]


def take_trip(actor: Actor, env: gymnasium.Env[Any, Any], seed: int, longest: int = LONGEST_EPISODE) -> Trip:
    """One greedy episode."""
    moments = list(play(actor, env, seed, longest))
    return Trip([moment.observation for moment in moments], np.array([moment.is_decided for moment in moments]))


def find_axes(given: str, env: gymnasium.Env[Any, Any]) -> tuple[int, int]:
    """Two axes of an observation, given by number or name and separated by a comma.

    Raises:
        ValueError: They are not two different existing axes.
    """
    return two_axes(given, observation_names(env))


def choose_axes(actor: NetworkActor, trip: Trip, space: spaces.Box) -> tuple[int, int]:
    """The two axes along which the policy changes its choice most often, through the middle of an episode.

    Axes that are constant throughout the episode come last.
    """
    seen = _places(trip)
    middle, (low, high) = np.median(seen, axis=0), _ranges(seen, space)
    changes = []
    for axis in range(seen.shape[1]):
        line = np.repeat(middle[None], _ALONG, axis=0)
        line[:, axis] = np.linspace(low[axis], high[axis], _ALONG)
        choice = actor.decide(line.astype(space.dtype))
        options = np.stack([_levels(actor, choice.action), choice.hold])
        is_still = np.ptp(seen[:, axis]) == 0.0
        changes.append(-1 if is_still else int((options[:, 1:] != options[:, :-1]).any(axis=0).sum()))
    first, second = sorted(np.argsort(-np.array(changes), kind="stable")[:2])
    return int(first), int(second)


def hold_map(
    actor: Actor, env: gymnasium.Env[Any, Any], trip: Trip, axes: tuple[int, int] | None
) -> HoldMap | None:
    """A policy's choices over two axes of its observations, all others as in the middle of an episode.

    Args:
        actor: Who decides.
        env: Where.
        trip: An episode.
        axes: Two numbers; None chooses them.

    Returns:
        None unless observations are vectors of at least two numbers.
    """
    space = env.observation_space
    is_vector = isinstance(space, spaces.Box) and len(space.shape) == 1 and space.shape[0] >= 2
    if not isinstance(actor, NetworkActor) or not is_vector or not isinstance(space, spaces.Box):
        return None
    across, up = choose_axes(actor, trip, space) if axes is None else axes
    seen = _places(trip)
    low, high = _ranges(seen, space)
    x, y = np.linspace(low[across], high[across], _ALONG), np.linspace(low[up], high[up], _ALONG)
    plane = np.repeat(np.median(seen, axis=0)[None], _ALONG * _ALONG, axis=0)
    plane[:, across], plane[:, up] = np.tile(x, _ALONG), np.repeat(y, _ALONG)
    choice = actor.decide(plane.astype(space.dtype))
    names = observation_names(env)
    doing, done_names, bounds = _shown_actions(env, choice.action)
    return HoldMap(
        x,
        y,
        doing.reshape(_ALONG, _ALONG),
        choice.hold.reshape(_ALONG, _ALONG),
        actor.policy.k_max,
        (names[across], names[up]),
        done_names,
        seen[:, [across, up]],
        trip.decided,
        "" if seen.shape[1] == 2 else "the other observations as in the middle of the episode",
        bounds,
    )


def _shown_actions(
    env: gymnasium.Env[Any, Any], actions: NDArray[Any]
) -> tuple[NDArray[Any], tuple[str, ...], tuple[float, float] | None]:
    """What a map shows of the actions, its name, and its range if continuous."""
    space = env.action_space
    if are_choices(space):
        return Choices(space).numbers(actions), action_names(env), None
    assert isinstance(space, spaces.Box)
    first = np.asarray(actions, dtype=np.float64).reshape(len(actions), -1)[:, 0]
    name = "action" if space.low.size == 1 else "action[0]"
    return first, (name,), (float(space.low.ravel()[0]), float(space.high.ravel()[0]))


def _levels(actor: NetworkActor, actions: NDArray[Any]) -> NDArray[Any]:
    """(n,) a number per distinct action; for continuous ones, which eighth of the range the first number is in."""
    space = actor.policy.action_space
    if not isinstance(space, spaces.Box):
        return Choices(space).numbers(actions)
    low, high = space.low.ravel()[0], space.high.ravel()[0]
    first = actions.reshape(len(actions), -1)[:, 0]
    return np.asarray(np.floor(8.0 * (first - low) / (high - low)))


def draw_policy_over(
    actor: Actor,
    env: gymnasium.Env[Any, Any],
    trip: Trip,
    axes: tuple[int, int] | None = None,
    title: str | None = None,
) -> Figure | None:
    """A policy as a picture: held actions as long arrows on a grid, or a map over two numbers that it observes.

    Args:
        actor: Who decides.
        env: Where.
        trip: An episode to lay over the map.
        axes: Of the map; None chooses them.
        title: Written above.

    Returns:
        None if there is no such picture.
    """
    grid = env.unwrapped
    if isinstance(actor, TableActor) and isinstance(grid, GridWorld):
        layout = CellLayout(grid.map.shape, grid.map.start, grid.map.goals, grid.map.holes)
        return draw_policy(
            actor.policy.table,
            layout,
            options=actor.policy.options(),
            title=title,
            persistences=actor.policy.durations.tolist(),
        )
    found = hold_map(actor, env, trip, axes)
    return None if found is None else draw_hold_map(found, title)


def draw_decisions(actor: Actor, env: gymnasium.Env[Any, Any], trip: Trip, n: int = 4) -> Figure:
    """Values over k at an episode's first decision and at some later ones."""
    steps = trip.decisions(n)
    decisions = [actor.decide(trip.observations[step]) for step in steps]
    if isinstance(env.action_space, spaces.Box):
        names: Sequence[str] = ("the action proposed for k",)
        options = [(0, decision.hold) for decision in decisions]
    else:
        names, choices = action_names(env), Choices(env.action_space)
        options = [(choices.number(decision.action), decision.hold) for decision in decisions]
    return draw_option_values(
        [decision.values for decision in decisions],
        options,
        names,
        [f"at step {step}" for step in steps],
        "value of holding" if actor.acting == (None, None) else "$Q(s, a, k)$",
        actor.policy.durations.tolist() if isinstance(actor, NetworkActor | TableActor) else None,
    )


def _places(trip: Trip) -> Floats:
    return np.asarray(trip.observations, dtype=np.float64)


def _ranges(seen: Floats, space: spaces.Box) -> tuple[Floats, Floats]:
    """The range of each axis: slightly more than was seen, within the bounds unless the episode left them."""
    low, high = seen.min(axis=0), seen.max(axis=0)
    room = np.where(high > low, _ROOM * (high - low), 0.5 * np.maximum(np.abs(low), 1.0))
    wide_low, wide_high = np.maximum(low - room, space.low), np.minimum(high + room, space.high)
    is_wide = (wide_low <= low) & (wide_high >= high) & (wide_high > wide_low)
    return np.where(is_wide, wide_low, low - room), np.where(is_wide, wide_high, high + room)
