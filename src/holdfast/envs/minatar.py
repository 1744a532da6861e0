"""MinAtar's five games as Gymnasium environments that obey their seeds and can be restored exactly.

The games come from the package ``minatar``, an optional part under GPL-3: it is imported when a game is made. Its
own Gymnasium environments are not used: in them the last action, which sticky actions repeat, outlives the
episode, so a seed does not determine what follows.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.core.checks import check_action, check_choice, check_integer, check_probability, check_truth
from holdfast.core.errors import InputError, InputTypeError
from holdfast.core.saved_fields import take, take_array, take_integer, take_list, take_mapping, take_number
from holdfast.envs.game_names import MINATAR_GAMES, find_game, missing_package

__all__ = ["MinAtarGame", "make_minatar"]

_ACTIONS = {"n": "noop", "l": "left", "u": "up", "r": "right", "d": "down", "f": "fire"}
_FIXED = {"channels", "action_map", "ramping", "random"}
"""What a game never changes, and its generator, which it shares with this environment."""
_PIXELS = 16
"""Side of a cell in pictures, in pixels."""
_COLOURS = np.array(
    [
        (0, 0, 0),
        (230, 159, 0),
        (86, 180, 233),
        (0, 158, 115),
        (240, 228, 66),
        (0, 114, 178),
        (213, 94, 0),
        (204, 121, 167),
        (153, 153, 153),
        (170, 68, 153),
        (136, 204, 238),
    ],
    np.uint8,
)
"""Black where nothing is, then one colour per channel; if several channels share a cell, the last is shown."""


def make_minatar(game: str, **settings: Any) -> gymnasium.Env[Any, Any]:
    """Make a MinAtar game for any learner; the same as ``make_env("minatar:GAME")``.

    Args:
        game: Game's name: ``"Asterix"``, ``"Breakout"``, ``"Freeway"``, ``"Seaquest"`` or ``"SpaceInvaders"``.
        settings: Settings of :class:`MinAtarGame`.

    Raises:
        ValueError: There is no such game, or a setting is invalid; the message is one sentence.
        TypeError: A setting has the wrong type or an unknown name.
    """
    from holdfast.envs.lookup import make_env

    if not isinstance(game, str):
        raise InputTypeError(f"game must be the name of a game, such as Freeway, not {game!r}", "game")
    return make_env(f"minatar:{game}", **settings)


class MinAtarGame(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """One game of 10×10 cells; an observation is (channels, 10, 10), with 1 where an object of that channel is.

    Channels come first, as convolutions need them. The numbers are bytes, so a replay needs a quarter of the
    memory of floats. Their bounds are 0 and 1, so that Stable-Baselines3 does not divide them by 255 as it does
    with colours.

    Args:
        game: Game's name.
        sticky: Probability, at every step, that the previous action is repeated instead.
        ramping: Whether games become harder the longer they last, in games that have this.
        full_actions: Whether to use all six actions instead of those that have an effect in the game.
        max_steps: Steps after which a game is cut short; MinAtar itself has no such limit.
        render_mode: ``"rgb_array"`` or None.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012 (as Gymnasium has it)
    place_names = "states of the game (all that is on its board, and its timers)"

    def __init__(
        self,
        game: str,
        sticky: float = 0.1,
        ramping: bool = True,
        full_actions: bool = False,
        max_steps: int = 5000,
        render_mode: str | None = None,
    ) -> None:
        self.game = find_game("minatar", game, MINATAR_GAMES)
        self._sticky = check_probability("sticky", sticky)
        self._max_steps = check_integer("max_steps", max_steps)
        ramping, full_actions = check_truth("ramping", ramping), check_truth("full_actions", full_actions)
        if render_mode is not None:
            check_choice("render_mode", render_mode, ("rgb_array",))
        self.render_mode = render_mode
        self._game = _rules(self.game)(ramping=ramping)
        every = range(len(self._game.action_map))
        self._actions: list[int] = list(every if full_actions else self._game.minimal_action_set())
        self.action_names = tuple(_ACTIONS[self._game.action_map[action]] for action in self._actions)
        self._seeded(None)
        height, width, channels = self._game.state_shape()
        self.action_space = spaces.Discrete(len(self._actions))
        self.observation_space = spaces.Box(0, 1, (channels, height, width), np.uint8)
        self._last_action = 0
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin a game."""
        super().reset(seed=seed)
        if seed is not None:
            self._seeded(seed)
        self._game.reset()
        self._last_action = self._steps = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Take one step."""
        wanted = self._actions[check_action(action, self.action_names)]
        # Drawn at any probability, as in MinAtar.
        sticks = self._random.rand() < self._sticky
        self._last_action = self._last_action if sticks else wanted
        reward, over = self._game.act(self._last_action)
        self._steps += 1
        return self._seen(), float(reward), bool(over), self._steps >= self._max_steps and not over, {}

    def render(self) -> Any:
        """A picture with one colour per channel."""
        if self.render_mode is None:
            return None
        seen = self._seen()
        numbers = np.arange(1, len(seen) + 1)[:, None, None]
        return _COLOURS[(seen * numbers).max(axis=0)].repeat(_PIXELS, axis=0).repeat(_PIXELS, axis=1)

    def place(self) -> dict[str, Any]:
        """Everything on the board and all timers, by MinAtar's names, without random numbers."""
        things = {name: value for name, value in vars(self._game).items() if name not in _FIXED}
        return {name: _stored(value) for name, value in things.items()}

    def _seen(self) -> NDArray[np.uint8]:
        return np.ascontiguousarray(self._game.state().transpose(2, 0, 1), np.uint8)

    def _seeded(self, seed: int | None) -> None:
        if seed is not None and seed >= 2**32:
            seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        self._random = np.random.RandomState(seed)
        self._game.random = self._random

    # Exact state ---------------------------------------------------------------------------------------------

    def exact_state(self) -> dict[str, Any]:
        """Everything that the game needs to continue, as arrays and JSON values."""
        _, key, position, has_gauss, gauss = self._random.get_state()
        return {
            "game": self.game,
            "things": self.place(),
            "last_action": self._last_action,
            "steps": self._steps,
            "random_key": np.array(key),
            "random_position": int(position),
            "random_has_gauss": int(has_gauss),
            "random_gauss": float(gauss),
        }

    def restore_exact_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``exact_state`` returned, in an environment with the same settings.

        Raises:
            ValueError: The state is damaged or belongs to another game.
        """
        if take(state, "game") != self.game:
            raise InputError(f"the saved state must be one of {self.game}, not of {take(state, 'game')!r}")
        things = take_mapping(state, "things")
        own = {name: value for name, value in vars(self._game).items() if name not in _FIXED}
        if set(things) != set(own):
            raise InputError(f"the saved state must have the objects of {self.game} as 'things'")
        taken = {name: _taken(things, name, value) for name, value in own.items()}
        last_action = take_integer(state, "last_action", at_most=len(self._game.action_map) - 1)
        steps = take_integer(state, "steps")
        key = take_array(state, "random_key", np.uint32, (624,))
        position = take_integer(state, "random_position", at_most=624)
        has_gauss = take_integer(state, "random_has_gauss", at_most=1)
        gauss = take_number(state, "random_gauss")
        vars(self._game).update(taken)
        try:
            self._game.state()
        except (IndexError, TypeError, ValueError) as error:
            vars(self._game).update(own)
            raise InputError(
                "the saved state must have the positions of objects on the board as 'things'"
            ) from error
        self._last_action, self._steps = last_action, steps
        self._random.set_state(("MT19937", key, position, has_gauss, gauss))


def _rules(game: str) -> Any:
    try:
        return importlib.import_module(f"minatar.environments.{game}").Env
    except ImportError:
        raise missing_package("minatar", "minatar") from None


def _stored(value: Any) -> Any:
    """A number, an array, or nested lists of numbers; a game may have made some of them with NumPy."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list):
        return [_stored(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _taken(things: Mapping[str, Any], name: str, own: Any) -> Any:
    if isinstance(own, np.ndarray):
        return take_array(things, name, own.dtype, own.shape).copy()
    if isinstance(own, list):
        found = take_list(things, name, (list, type(None)))
        if not all(item is None or all(isinstance(part, int) for part in item) for item in found):
            raise InputError(f"the saved state must have lists of whole numbers as {name!r}")
        return [None if item is None else list(item) for item in found]
    value = take(things, name)
    if isinstance(own, bool | np.bool_) != isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"the saved state must have a whole number, true or false as {name!r}")
    return value
