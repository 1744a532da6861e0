"""Which environments have compiled random options, and their episodes, in chunks of up to 2**18 steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from numpy.typing import NDArray

from holdfast.advice.visitation.compiled_options import Records, roll_model
from holdfast.advice.visitation.mountain_car import Car, car_of, roll_cars
from holdfast.advice.visitation.random_options import Budget, RollOut, Setting, option_stream
from holdfast.envs import GridWorld
from holdfast.envs.episode_log import episode_seed
from holdfast.tabular.simulator import FlatModel, flat_model
from holdfast.tabular.world import is_plain_grid, opaque_wrapper, own_step_limit

__all__ = ["CarGame", "CompiledRoller", "ModelGame", "find_compiled"]

_STEPS_AT_A_TIME = 2**18


def find_compiled(env: gymnasium.Env[Any, Any], seed: int) -> CompiledRoller | None:
    """Compiled random options that do exactly what ``env`` does, or None if there are none.

    They exist for Gymnasium's MountainCar and for grid worlds without slips, within wrappers that pass every step
    through unchanged (such as a time limit) and no others. They agree with the Python loop bit for bit.

    Args:
        env: The environment.
        seed: Seed of the study.
    """
    if opaque_wrapper(env) is not None:
        return None
    limit = own_step_limit(env)
    inner = env.unwrapped
    if isinstance(inner, GridWorld) and is_plain_grid(env) and inner.slip == 0.0:
        return CompiledRoller(ModelGame(flat_model(inner.tabular_mdp()), limit), seed)
    car = car_of(inner)
    return None if car is None else CompiledRoller(CarGame(car, limit, seed), seed)


class Game(Protocol):
    """Something that plays many episodes at once."""

    step_limit: int | None
    """Steps after which an episode is truncated; None if it never is."""

    def play(self, setting: Setting, first: int, n: int, longest: int, draws: np.random.Generator) -> RollOut:
        """Play ``n`` episodes of at most ``longest`` steps; the first has the number ``first``."""
        ...


class CompiledRoller:
    """Random options, compiled.

    Args:
        game: The game to play.
        seed: Seed of the study.
    """

    def __init__(self, game: Game, seed: int) -> None:
        self._game = game
        self._seed = seed

    def roll(self, setting: Setting, budget: Budget) -> Iterator[RollOut]:
        """The same episodes as step by step in the environment."""
        draws = option_stream(self._seed, setting)
        longest = min(self._game.step_limit or budget.longest_episode, budget.longest_episode)
        episodes = steps = 0
        while not budget.is_spent(episodes, steps):
            # Never more episodes than are certain to be needed, however long they get.
            sure = budget.episodes_left(episodes, steps, longest)
            n = max(1, min(sure, _STEPS_AT_A_TIME // longest))
            played = self._game.play(setting, episodes, n, longest, draws)
            episodes, steps = episodes + n, steps + int(played.lengths.sum())
            yield played


class CarGame:
    """MountainCar.

    Args:
        car: The dynamics.
        step_limit: Steps after which an episode is truncated; None if it never is.
        seed: Seed of the study.
    """

    def __init__(self, car: Car, step_limit: int | None, seed: int) -> None:
        self.step_limit = step_limit
        self._car = car
        self._seed = seed
        # A separate environment, used only for the start of each episode.
        self._env = MountainCarEnv()
        self._starts: list[float] = []

    def play(self, setting: Setting, first: int, n: int, longest: int, draws: np.random.Generator) -> RollOut:
        """Play ``n`` episodes of at most ``longest`` steps."""
        seen = np.empty((n * (longest + 1), 2), np.float32)
        records = Records.empty(n)
        starts = self._starts_of(first, n)
        roll_cars(self._car, starts, setting.k_max, setting.draws_duration, longest, draws, seen, records)
        steps = int(records.lengths.sum())
        cut_off = _cut_off(self.step_limit, longest, records)
        return RollOut(seen[: steps + n], np.full(steps, -1.0), *records, cut_off)

    def _starts_of(self, first: int, n: int) -> NDArray[np.float64]:
        """(n,) start positions; they are the same in all settings."""
        for episode in range(len(self._starts), first + n):
            self._env.reset(seed=episode_seed(self._seed, 0, episode))
            self._starts.append(float(self._env.state[0]))
        return np.array(self._starts[first : first + n])


class ModelGame:
    """A deterministic model.

    Args:
        model: A model with a single initial state.
        step_limit: Steps after which an episode is truncated; None if it never is.
    """

    def __init__(self, model: FlatModel, step_limit: int | None) -> None:
        self.step_limit = step_limit
        self._model = model

    def play(self, setting: Setting, first: int, n: int, longest: int, draws: np.random.Generator) -> RollOut:
        """Play ``n`` episodes of at most ``longest`` steps."""
        seen, rewards = np.empty(n * (longest + 1), np.int64), np.empty(n * longest)
        records = Records.empty(n)
        roll_model(self._model, n, setting.k_max, setting.draws_duration, longest, draws, seen, rewards, records)
        steps = int(records.lengths.sum())
        cut_off = _cut_off(self.step_limit, longest, records)
        return RollOut(seen[: steps + n], rewards[:steps], *records, cut_off)


def _cut_off(step_limit: int | None, longest: int, records: Records) -> NDArray[np.bool_]:
    """(n,) which episodes neither terminated nor reached their own time limit."""
    has_own_end = step_limit is not None and step_limit <= longest
    return np.asarray(~records.terminated & (records.lengths >= longest) & (not has_own_end))
