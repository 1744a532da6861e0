"""Atari games as the paper plays them: one frame skip, the last frame in grey and shrunk, and four frames stacked.

The emulator is ale-py, an optional part under GPL-2.0: it is imported when a game is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.core.checks import check_action, check_choice
from holdfast.core.errors import InputError, InputTypeError
from holdfast.core.saved_fields import restore_generator, take, take_array, take_integer
from holdfast.envs.atari_history import NEW_GAME, GameHistory
from holdfast.envs.atari_settings import AtariSettings
from holdfast.envs.game_names import missing_package, quiet_ale

__all__ = ["AtariGame", "make_atari"]

_NOT_RESTORED = {"klax", "qbert", "tetris"}
"""Games that continue differently from a stored emulator state, because ale-py 0.12.1 misses a part of it."""

_NO_OP = 0
_MEMORY = 128
"""Bytes of the console's memory."""
_MOST_WHOLE_GAMES = 2
"""Games of the largest length that a history has room for; usually it holds one."""
_MOST_UNSEEDED_GAMES = 50
"""New games, without a seed of their own, that a history has room for beside those of the no-ops."""


def make_atari(game: str, **settings: Any) -> gymnasium.Env[Any, Any]:
    """Make an Atari game for any learner; the same as ``make_env("atari:GAME")``.

    Args:
        game: Game's name, such as ``"Freeway"`` or ``"SpaceInvaders"``.
        settings: Settings of :class:`AtariSettings`, and ``render_mode``.

    Raises:
        ValueError: There is no such game, or a setting is invalid; the message is one sentence.
        TypeError: A setting has the wrong type or an unknown name.
    """
    from holdfast.envs.lookup import make_env

    if not isinstance(game, str):
        raise InputTypeError(f"game must be the name of a game, such as Freeway, not {game!r}", "game")
    return make_env(f"atari:{game}", **settings)


class AtariGame(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """One game; an observation is (stack, size, size), newest frame last, with black frames before the first.

    Measure results with ``episodic_life`` and ``clip_rewards`` off, as ``make_scoring_env`` does.

    Args:
        game: Game's name.
        render_mode: ``"rgb_array"``, ``"human"`` or None.
        settings: Settings of :class:`AtariSettings`. ``no_ops`` counts steps: a game begins with 1 to ``no_ops``
            of them. FIRE is pressed for one step, also at the beginning of each life. After a lost life, ``reset``
            without a seed continues the same game.
    """

    metadata = {"render_modes": ["rgb_array", "human"], "render_fps": 15}  # noqa: RUF012 (as Gymnasium has it)
    place_names = "contents of the console's memory (128 bytes of RAM)"

    def __init__(self, game: str, render_mode: str | None = None, **settings: Any) -> None:
        found = AtariSettings(game, **settings)
        if render_mode is not None:
            check_choice("render_mode", render_mode, ("rgb_array", "human"))
        self.game, self.frame_skip, self._no_ops = found.game, found.frames_per_step, found.no_ops
        self._episodic_life, self._clip_rewards = found.episodic_life, found.clip_rewards
        self._emulator = _emulator(
            game=self.game,
            obs_type="grayscale",
            frameskip=self.frame_skip,
            repeat_action_probability=found.sticky,
            full_action_space=found.full_actions,
            max_num_frames_per_episode=found.max_frames,
            render_mode=render_mode,
        )
        self._shrink = _shrinker(found.size)
        meanings = self._meanings = self.get_action_meanings()
        self._fire = meanings.index("FIRE") if found.fire and "FIRE" in meanings else None
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(len(meanings))
        self.observation_space = spaces.Box(0, 255, (found.stack, found.size, found.size), np.uint8)
        self._frames: NDArray[np.uint8] = np.zeros((found.stack, found.size, found.size), np.uint8)
        self._lives = 0
        self._lost_a_life = False
        # The emulator's state lacks the action that the next frame may repeat, so with sticky actions a game is
        # restored by its seed and actions.
        self._is_repeated = found.sticky > 0 or self.game in _NOT_RESTORED
        # After a lost life, and at the beginning of a game, there are a few steps more.
        per_game = found.max_frames // self.frame_skip + found.no_ops + 100
        # Where games are short, no-ops at the beginning may pass several of them.
        games = _MOST_UNSEEDED_GAMES + found.no_ops
        self._history = GameHistory(_MOST_WHOLE_GAMES * per_game, games)

    @property
    def ale(self) -> Any:
        """The emulator's own interface."""
        return self._emulator.ale

    @property
    def goes_on(self) -> bool:
        """Whether the next ``reset`` without a seed continues the same game, because only a life was lost."""
        return self._lost_a_life

    @property
    def spans_episodes(self) -> bool:
        """Whether a game may span several episodes."""
        return self._episodic_life

    def get_action_meanings(self) -> list[str]:
        """The console's name for each action: NOOP, FIRE, UP, ..."""
        return list(self._emulator.get_action_meanings())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin a game, or the next life if only a life was lost and no seed is given."""
        super().reset(seed=seed)
        screen, info = self._next_life() if seed is None and self._lost_a_life else self._new_game(seed)
        self._lives, self._lost_a_life = info["lives"], False
        self._frames = np.zeros_like(self._frames)
        return self._seen(screen), info

    def step(self, action: Any) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """One step: an action for ``frame_skip`` frames."""
        screen, reward, terminated, truncated, info = self._act(check_action(action, self._meanings))
        # In some games the count is 0 for a moment before the game is over, or between two lives.
        lost = 0 < info["lives"] < self._lives and not (terminated or truncated)
        if lost and not self._episodic_life and self._fire is not None:
            screen, more, terminated, truncated, info = self._act(self._fire)
            reward += more
        self._lives = info["lives"]
        self._lost_a_life = lost and self._episodic_life
        if self._clip_rewards:
            reward = float(np.sign(reward))
        return self._seen(screen), reward, terminated or self._lost_a_life, truncated, info

    def render(self) -> Any:
        """The screen in colour."""
        return self._emulator.render()

    def place(self) -> NDArray[np.uint8]:
        """(128,) the console's memory."""
        return np.array(self.ale.getRAM(), np.uint8)

    def _act(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        screen, reward, terminated, truncated, info = self._emulator.step(action)
        self._history.note(action)
        return screen, float(reward), bool(terminated), bool(truncated), dict(info)

    def _new_game(self, seed: int | None) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        if seed is not None and self._is_repeated:
            self._history.begin(seed)
        screen, info = self._begun(seed)
        # Counted as by Gymnasium's AtariPreprocessing.
        no_ops = int(self._emulator.np_random.integers(1, self._no_ops + 1)) if self._no_ops else 0
        for action in [_NO_OP] * no_ops + ([] if self._fire is None else [self._fire]):
            screen, info = self._acted_or_begun(action)
        return screen, info

    def _next_life(self) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        for action in (_NO_OP, self._fire):
            if action is not None:
                screen, _, terminated, truncated, info = self._act(action)
                if terminated or truncated:
                    return self._new_game(None)
        return screen, info

    def _acted_or_begun(self, action: int) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        screen, _, terminated, truncated, info = self._act(action)
        return self._begun(None) if terminated or truncated else (screen, info)

    def _begun(self, seed: int | None) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        self._history.note(NEW_GAME)
        screen, info = self._emulator.reset(seed=seed)
        return screen, {name: info[name] for name in info if name != "seeds"}

    def _seen(self, screen: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The stack with a new frame at its end: a new array, because learners keep what they saw."""
        self._frames = np.concatenate((self._frames[1:], self._shrink(screen)[None]))
        return self._frames.copy()

    # Exact state ---------------------------------------------------------------------------------------------

    def exact_state(self) -> dict[str, Any]:
        """Everything that the game needs to continue, as arrays and JSON values.

        With sticky actions, and for games that the emulator cannot restore, this is the seed of the game and
        every action since; otherwise it is the emulator's state with its random numbers.

        Raises:
            ValueError: The game would have to be repeated, but was never given a seed.
        """
        if self._is_repeated:
            if self._history.seed is None:
                why = "again, because its history has become too long," if self._history.outgrown else ""
                raise InputError(f"{self.game} must be reset with a seed {why}".rstrip() + " to be restored later")
            emulator: dict[str, Any] = {**self._history.state(), "memory": self.place()}
        else:
            system = self.ale.cloneSystemState().serialize()
            emulator = {"system": np.frombuffer(system, np.uint8).copy()}
        return {
            "game": self.game,
            **emulator,
            "frames": self._frames.copy(),
            "lives": int(self._lives),
            "lost_a_life": self._lost_a_life,
            "generator": dict(self._emulator.np_random.bit_generator.state),
        }

    def restore_exact_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``exact_state`` returned, in an environment with the same settings.

        Raises:
            ValueError: The state is damaged or belongs to another game.
        """
        if take(state, "game") != self.game:
            raise InputError(f"the saved state must be one of {self.game}, not of {take(state, 'game')!r}")
        lost_a_life = take(state, "lost_a_life")
        if not isinstance(lost_a_life, bool):
            raise InputError("the saved state must have true or false as 'lost_a_life'")
        frames = take_array(state, "frames", np.uint8, self._frames.shape)
        lives = take_integer(state, "lives")
        if self._is_repeated:
            if "system" in state and "done" not in state:
                raise InputError(
                    f"the saved state of {self.game} must have its seed and actions: it holds only the emulator's "
                    "state, from which a game with sticky actions does not continue exactly"
                )
            # States from older versions have no memory.
            memory = take_array(state, "memory", np.uint8, (_MEMORY,)) if "memory" in state else None
            self._do_again(self._history.restore(state, len(self.get_action_meanings())))
            if memory is not None and not np.array_equal(memory, self.place()):
                raise InputError(
                    f"{self.game} did not come to the same point when its actions were repeated: its settings and "
                    "the version of ale-py must be those of the saved state"
                )
        else:
            self._restore_system(take_array(state, "system", np.uint8, (None,)).tobytes())
        restore_generator(self._emulator.np_random, state, "generator")
        self._frames, self._lives, self._lost_a_life = frames.copy(), lives, lost_a_life

    def _do_again(self, done: Sequence[int]) -> None:
        seed = self._history.seed
        for number, action in enumerate(done):
            if action == NEW_GAME:
                self._emulator.reset(seed=None if number else seed)
            else:
                self._emulator.step(action)

    def _restore_system(self, serialized: bytes) -> None:
        from ale_py import ALEState

        try:
            self.ale.restoreSystemState(ALEState(serialized))
        except Exception as error:
            raise InputError("the saved state must have a state of the emulator as 'system'") from error


def _emulator(**arguments: Any) -> Any:
    return quiet_ale().AtariEnv(**arguments)


def _shrinker(size: int) -> Any:
    """A function that turns a screen into a frame of an observation: the mean over the area of each pixel."""
    try:
        import cv2
    except ImportError:
        raise missing_package("atari", "opencv-python-headless") from None

    def shrink(screen: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return np.asarray(cv2.resize(screen, (size, size), interpolation=cv2.INTER_AREA), np.uint8)

    return shrink
