"""Grid worlds: walk from the start to a goal without falling into a hole."""

from __future__ import annotations

import os
import warnings
from functools import cached_property
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from holdfast.core.checks import check_action, check_choice, check_integer
from holdfast.core.errors import InputError, InputTypeError
from holdfast.envs.grid_map import GridMap
from holdfast.envs.grid_moves import move_matrix, neighbours
from holdfast.envs.grid_picture import grid_pixels, grid_text
from holdfast.envs.grid_rules import ACTION_NAMES, GridRules
from holdfast.envs.registration import SHORT_NAMES
from holdfast.mdp import TabularMDP

__all__ = ["GridWorld"]

_N_ACTIONS = len(ACTION_NAMES)


class GridWorld(gymnasium.Env[Any, Any]):
    """A grid world on an ASCII map.

    Observations are the states, with cells numbered row by row from 0 at the top left; actions are left, down,
    right, up = 0..3. Goals and holes are terminal. A border either blocks (the agent stays where it is) or is
    deadly: leaving the map is then terminal too, and leads to one more state, the last one, "outside".

    The reward of a step is that of what it enters: one of the four below, never a sum of two. An episode that ends
    within the step limit is terminated; the limit truncates the others.

    The map and the rules can be read but not set: other rules make another environment.

    Args:
        map: A ``GridMap``, its ASCII text, or the path of its file as an ``os.PathLike`` such as ``pathlib.Path``.
        goal_reward: Reward of entering a goal.
        hole_reward: Reward of falling into a hole.
        step_reward: Reward of any other step.
        border: ``"block"`` or ``"deadly"``.
        border_reward: Reward of leaving the map over a deadly border.
        slip: Probability that a step goes to one of the two sides instead, half to each.
        step_limit: Steps after which an episode is truncated; None for no limit.
        render_mode: ``"rgb_array"``, ``"ansi"``, or None for no pictures.
    """

    action_names: ClassVar[tuple[str, ...]] = ACTION_NAMES
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 8}  # type: ignore[misc]  # Gymnasium declares it on the instance

    def __init__(
        self,
        map: GridMap | str | os.PathLike[str],  # noqa: A002 (the word that users of grid worlds look for)
        *,
        goal_reward: float = 1.0,
        hole_reward: float = -1.0,
        step_reward: float = 0.0,
        border: str = "block",
        border_reward: float = -1.0,
        slip: float = 0.0,
        step_limit: int | None = 100,
        render_mode: str | None = None,
    ) -> None:
        self._map = _as_map(map)
        self._rules = GridRules(
            goal_reward=goal_reward,
            hole_reward=hole_reward,
            step_reward=step_reward,
            border=border,
            border_reward=border_reward,
            slip=slip,
            step_limit=step_limit,
        )
        if render_mode is not None:
            check_choice("render_mode", render_mode, tuple(self.metadata["render_modes"]))
        self.render_mode = render_mode

        self._terminal = self._terminal_states()
        self._next_states = self._intended_states()
        self._entry_rewards = self._rewards_on_entry()
        self._rewards = self._entry_rewards[self._next_states]
        self._rewards[self._terminal] = 0.0
        self.observation_space = gymnasium.spaces.Discrete(len(self._terminal))
        self.action_space = gymnasium.spaces.Discrete(_N_ACTIONS)

        self._state = self.map.start
        self._steps = 0
        self._needs_reset = True
        self._last_action: int | None = None

    @property
    def state(self) -> int:
        """The agent's current state."""
        return self._state

    @property
    def map(self) -> GridMap:
        """The map."""
        return self._map

    @property
    def rules(self) -> GridRules:
        """All rules, checked."""
        return self._rules

    @property
    def goal_reward(self) -> float:
        """Reward of entering a goal."""
        return self._rules.goal_reward

    @property
    def hole_reward(self) -> float:
        """Reward of falling into a hole."""
        return self._rules.hole_reward

    @property
    def step_reward(self) -> float:
        """Reward of any other step."""
        return self._rules.step_reward

    @property
    def border(self) -> str:
        """``"block"`` or ``"deadly"``."""
        return self._rules.border

    @property
    def border_reward(self) -> float:
        """Reward of leaving the map over a deadly border."""
        return self._rules.border_reward

    @property
    def slip(self) -> float:
        """Probability that a step goes to one of the two sides instead."""
        return self._rules.slip

    @property
    def step_limit(self) -> int | None:
        """Steps after which an episode is truncated; None for no limit."""
        return self._rules.step_limit

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin an episode at the start.

        Args:
            seed: Seed of the slips from here on.
            options: ``{"state": s}`` begins at another, non-terminal state.

        Returns:
            The state, and an empty info.
        """
        begin = self.map.start
        if options is not None and "state" in options:
            begin = self._check_begin(options["state"])
        super().reset(seed=seed)
        self._state = begin
        self._steps = 0
        self._needs_reset = False
        self._last_action = None
        return self._state, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Walk one step.

        Args:
            action: Left, down, right, up = 0..3.

        Returns:
            State, reward, terminated, truncated (never both), and an empty info.

        Raises:
            gymnasium.error.ResetNeeded: There is no episode to act in.
        """
        if self._needs_reset:
            raise gymnasium.error.ResetNeeded("reset must be called before step: no episode is running")
        intended = self._last_action = check_action(action, ACTION_NAMES)
        direction = self._direction(intended)
        reward = float(self._rewards[self._state, direction])
        self._state = int(self._next_states[self._state, direction])
        self._steps += 1
        terminated = bool(self._terminal[self._state])
        truncated = not terminated and self.step_limit is not None and self._steps >= self.step_limit
        self._needs_reset = terminated or truncated
        return self._state, reward, terminated, truncated, {}

    def render(self) -> Any:
        """The current picture: a (height, width, 3) array, or text; None without a render mode."""
        if self.render_mode is None:
            warnings.warn(
                'render shows nothing without a render_mode: make the environment with "rgb_array" or "ansi"',
                UserWarning,
                stacklevel=2,
            )
            return None
        if self.render_mode == "ansi":
            return grid_text(self.map, self._state, self._last_action)
        return grid_pixels(self.map, self._state, deadly_border=self._rules.deadly_border)

    def tabular_mdp(self, gamma: float = 0.99) -> TabularMDP:
        """The environment without its step limit, as an exact model.

        Terminal states are absorbing without reward. Without slips the transitions are an (S, A) array of next
        states; with slips they are one sparse matrix per action, and the rewards are by next state.

        Args:
            gamma: Discount factor.
        """
        if self.slip == 0.0:
            return TabularMDP(
                self._next_states.copy(),
                self._rewards.copy(),
                gamma,
                initial=self.map.start,
                terminal=self._terminal.copy(),
            )
        transitions = [
            move_matrix(self._next_states, self._rules.outcomes(action)) for action in range(_N_ACTIONS)
        ]
        rewards = [self._reward_matrix(matrix) for matrix in transitions]
        return TabularMDP(transitions, rewards, gamma, initial=self.map.start, terminal=self._terminal.copy())

    @cached_property
    def P(self) -> dict[int, dict[int, list[tuple[float, int, float, bool]]]]:  # noqa: N802 (toy_text's name)
        """``P[s][a]``, a list of (probability, next state, reward, terminated), as in toy_text environments.

        For small grids; use ``tabular_mdp`` for large ones.
        """
        return {
            state: {
                action: [
                    (
                        probability,
                        int(self._next_states[state, direction]),
                        float(self._rewards[state, direction]),
                        bool(self._terminal[self._next_states[state, direction]]),
                    )
                    for probability, direction in self._rules.outcomes(action)
                ]
                for action in range(_N_ACTIONS)
            }
            for state in range(len(self._terminal))
        }

    @property
    def initial_state_distrib(self) -> NDArray[np.float64]:
        """Distribution (S,) of an episode's first state, as in toy_text environments."""
        distribution = np.zeros(len(self._terminal))
        distribution[self.map.start] = 1.0
        return distribution

    def _terminal_states(self) -> NDArray[np.bool_]:
        cells = (self.map.goals | self.map.holes).ravel()
        return np.append(cells, True) if self._rules.deadly_border else cells

    def _intended_states(self) -> NDArray[np.int64]:
        """Where each step leads from each state if it does not slip, (S, A)."""
        moves = neighbours(self.map, outside=self.map.n_cells if self._rules.deadly_border else None)
        next_states = np.repeat(np.arange(len(self._terminal), dtype=np.int64)[:, None], _N_ACTIONS, axis=1)
        walking = np.flatnonzero(~self._terminal)
        next_states[walking] = moves[walking]
        return next_states

    def _rewards_on_entry(self) -> NDArray[np.float64]:
        """The reward of entering each state, (S,)."""
        rewards = np.full(len(self._terminal), self.step_reward)
        rewards[: self.map.n_cells][self.map.goals.ravel()] = self.goal_reward
        rewards[: self.map.n_cells][self.map.holes.ravel()] = self.hole_reward
        if self._rules.deadly_border:
            rewards[self.map.n_cells] = self.border_reward
        return rewards

    def _reward_matrix(self, transitions: sparse.csr_array) -> sparse.csr_array:
        """Rewards (S, S) of the possible transitions: those of the state they enter."""
        rewards = self._entry_rewards[transitions.indices]
        return sparse.csr_array((rewards, transitions.indices, transitions.indptr), shape=transitions.shape)

    def _direction(self, action: int) -> int:
        if self.slip == 0.0:
            return action
        draw = self.np_random.random()
        if draw >= self.slip:
            return action
        return (action - 1 if draw < self.slip / 2 else action + 1) % _N_ACTIONS

    def _check_begin(self, state: Any) -> int:
        begin = check_integer('options["state"]', state, at_least=0)
        if begin >= len(self._terminal) or self._terminal[begin]:
            raise InputError(f'options["state"] must be a state that is not terminal, not {begin}')
        return begin


def _as_map(source: Any) -> GridMap:
    if isinstance(source, GridMap):
        return source
    if isinstance(source, os.PathLike):
        return GridMap.read(source)
    if isinstance(source, str):
        if source.strip().lower().replace("_", "-") in SHORT_NAMES:
            raise InputError(
                f"map must be a map, not its name: holdfast.envs.make_env({source!r}) makes that grid"
            )
        return GridMap.parse(source)
    raise InputTypeError(f"map must be a GridMap, an ASCII text or a pathlib.Path, not {source!r}", "map")
