"""Which environments have compiled random options, and their episodes, some hundred thousand steps at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from numpy.typing import NDArray

from holdfast.analysis.compiled_options import roll_model
from holdfast.analysis.mountain_car import Car, car_of, roll_cars
from holdfast.analysis.random_options import Budget, RollOut, Setting, option_stream, reset_seed
from holdfast.envs import GridWorld
from holdfast.runs.evaluation import LONGEST_EPISODE
from holdfast.tabular.simulator import FlatModel, flat_model
from holdfast.tabular.world import is_plain_grid, opaque_wrapper, own_step_limit

__all__ = ["CarGame", "CompiledRoller", "ModelGame", "find_compiled"]

_STEPS_AT_A_TIME = 2**18


def find_compiled(env: gymnasium.Env[Any, Any], seed: int) -> CompiledRoller | None:
    """Compiled random options that do exactly what ``env`` does, or None where there are none.

    There are some for Gymnasium's MountainCar and for grid worlds without slips, within wrappers that pass every
    step through as it is (a time limit among them) and no other. They agree with the general way bit for bit.

    Args:
        env: Where.
        seed: Of the study.
    """
    if opaque_wrapper(env) is not None:
        return None
    limit = min(own_step_limit(env) or LONGEST_EPISODE, LONGEST_EPISODE)
    inner = env.unwrapped
    if isinstance(inner, GridWorld) and is_plain_grid(env) and inner.slip == 0.0:
        return CompiledRoller(ModelGame(flat_model(inner.tabular_mdp()), limit), seed)
    car = car_of(inner)
    return None if car is None else CompiledRoller(CarGame(car, limit, seed), seed)


class Game(Protocol):
    """Something that plays many episodes at once."""

    step_limit: int
    """Steps after which an episode is truncated."""

    def play(self, setting: Setting, first: int, n: int, draws: np.random.Generator) -> RollOut:
        """``n`` episodes, the first of which has the number ``first``."""
        ...


class CompiledRoller:
    """Random options, compiled.

    Args:
        game: Where.
        seed: Of the study.
    """

    def __init__(self, game: Game, seed: int) -> None:
        self._game = game
        self._seed = seed

    def roll(self, setting: Setting, budget: Budget) -> Iterator[RollOut]:
        """The same episodes as step by step in the environment."""
        draws = option_stream(self._seed, setting)
        episodes = steps = 0
        while not budget.is_spent(episodes, steps):
            # Never more than are sure to be wanted, however long they get.
            sure = budget.episodes_left(episodes, steps, self._game.step_limit)
            n = max(1, min(sure, _STEPS_AT_A_TIME // self._game.step_limit))
            played = self._game.play(setting, episodes, n, draws)
            episodes, steps = episodes + n, steps + int(played.lengths.sum())
            yield played


class CarGame:
    """MountainCar.

    Args:
        car: The dynamics.
        step_limit: Steps after which an episode is truncated.
        seed: Of the study.
    """

    def __init__(self, car: Car, step_limit: int, seed: int) -> None:
        self.step_limit = step_limit
        self._car = car
        self._seed = seed
        # One of our own, to be asked where an episode starts.
        self._env = MountainCarEnv()
        self._starts: list[float] = []

    def play(self, setting: Setting, first: int, n: int, draws: np.random.Generator) -> RollOut:
        """``n`` episodes."""
        seen = np.empty((n * (self.step_limit + 1), 2), np.float32)
        lengths, decisions, terminated = _records(n)
        starts = self._starts_of(first, n)
        k_max, draws_duration = setting.k_max, setting.draws_duration
        roll_cars(
            self._car,
            starts,
            k_max,
            draws_duration,
            self.step_limit,
            draws,
            seen,
            lengths,
            decisions,
            terminated,
        )
        steps = int(lengths.sum())
        return RollOut(seen[: steps + n], np.full(steps, -1.0), lengths, decisions, terminated)

    def _starts_of(self, first: int, n: int) -> NDArray[np.float64]:
        """(n,) positions; they are the same in all settings."""
        for episode in range(len(self._starts), first + n):
            self._env.reset(seed=reset_seed(self._seed, episode))
            self._starts.append(float(self._env.state[0]))
        return np.array(self._starts[first : first + n])


class ModelGame:
    """A deterministic model.

    Args:
        model: It has one first state.
        step_limit: Steps after which an episode is truncated.
    """

    def __init__(self, model: FlatModel, step_limit: int) -> None:
        self.step_limit = step_limit
        self._model = model

    def play(self, setting: Setting, first: int, n: int, draws: np.random.Generator) -> RollOut:
        """``n`` episodes."""
        seen, rewards = np.empty(n * (self.step_limit + 1), np.int64), np.empty(n * self.step_limit)
        lengths, decisions, terminated = _records(n)
        k_max, draws_duration = setting.k_max, setting.draws_duration
        roll_model(
            self._model,
            n,
            k_max,
            draws_duration,
            self.step_limit,
            draws,
            seen,
            rewards,
            lengths,
            decisions,
            terminated,
        )
        steps = int(lengths.sum())
        return RollOut(seen[: steps + n], rewards[:steps], lengths, decisions, terminated)


def _records(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Room for the lengths, decisions and ends of n episodes."""
    return np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_)
