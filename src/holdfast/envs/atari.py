"""Atari games as the paper plays them: frames skipped once, the last of them grey and small, and four stacked.

The emulator is ale-py's, which is an optional part and GPL-2.0: it is imported when a game is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.core.checks import check_choice
from holdfast.core.errors import InputError, InputTypeError
from holdfast.core.saved_fields import restore_generator, take, take_array, take_integer
from holdfast.envs.atari_settings import AtariSettings
from holdfast.envs.game_names import missing_package, quiet_ale

__all__ = ["AtariGame", "make_atari"]

_NOT_RESTORED = {"klax", "qbert", "tetris"}
"""Games whose emulator goes on differently from a state that was stored: ale-py 0.12.1 misses a part of it."""

_NO_OP = 0
_NEW_GAME = -1


def make_atari(game: str, **settings: Any) -> gymnasium.Env[Any, Any]:
    """An Atari game, for any learner: what ``make_env("atari:GAME")`` makes.

    Args:
        game: Its name: ``"Freeway"``, ``"SpaceInvaders"``.
        settings: Those of :class:`AtariSettings`, and ``render_mode``.

    Raises:
        ValueError: There is no such game, or a setting will not do; the message is one sentence.
        TypeError: A setting is of the wrong kind or has the wrong name.
    """
    from holdfast.envs.lookup import make_env

    if not isinstance(game, str):
        raise InputTypeError(f"game must be the name of a game, such as Freeway, not {game!r}", "game")
    return make_env(f"atari:{game}", **settings)


class AtariGame(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """One game; an observation is (stack, size, size), the newest frame last, black frames before the first.

    Results are to be measured with ``episodic_life`` and ``clip_rewards`` off, as ``make_scoring_env`` does it.

    Args:
        game: Its name.
        render_mode: ``"rgb_array"``, ``"human"`` or None.
        settings: Those of :class:`AtariSettings`. ``no_ops`` are steps, of which a game begins with 1 to so many.
            FIRE is pressed for one step, and where a life begins too. After a lost life, ``reset`` without a seed
            goes on with the same game.
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
        meanings = self._emulator.get_action_meanings()
        self._fire = meanings.index("FIRE") if found.fire and "FIRE" in meanings else None
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(len(meanings))
        self.observation_space = spaces.Box(0, 255, (found.stack, found.size, found.size), np.uint8)
        self._frames: NDArray[np.uint8] = np.zeros((found.stack, found.size, found.size), np.uint8)
        self._lives = 0
        self._lost_a_life = False
        # Seed and actions, for games that do not go on exactly from a stored state.
        self._seed: int | None = None
        self._done: list[int] = []

    @property
    def ale(self) -> Any:
        """The emulator's own interface."""
        return self._emulator.ale

    @property
    def goes_on(self) -> bool:
        """Whether the next ``reset`` without a seed goes on with the same game, because only a life was lost."""
        return self._lost_a_life

    @property
    def spans_episodes(self) -> bool:
        """Whether a game may last for several episodes."""
        return self._episodic_life

    def get_action_meanings(self) -> list[str]:
        """What each action is on the console: NOOP, FIRE, UP, ..."""
        return list(self._emulator.get_action_meanings())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin a game; or the next life, if only one was lost and no seed is given."""
        super().reset(seed=seed)
        screen, info = self._next_life() if seed is None and self._lost_a_life else self._new_game(seed)
        self._lives, self._lost_a_life = info["lives"], False
        self._frames = np.zeros_like(self._frames)
        return self._seen(screen), info

    def step(self, action: Any) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """One step: an action for ``frame_skip`` frames."""
        screen, reward, terminated, truncated, info = self._act(int(action))
        # Some games have none for a moment before they are over, or between two of them.
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
        self._note(action)
        return screen, float(reward), bool(terminated), bool(truncated), dict(info)

    def _new_game(self, seed: int | None) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        if seed is not None:
            self._seed, self._done = int(seed), []
        screen, info = self._begun(seed)
        # As Gymnasium's AtariPreprocessing counts them.
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
        self._note(_NEW_GAME)
        screen, info = self._emulator.reset(seed=seed)
        return screen, {name: info[name] for name in info if name != "seeds"}

    def _note(self, done: int) -> None:
        if self.game in _NOT_RESTORED and self._seed is not None:
            self._done.append(done)

    def _seen(self, screen: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The stack with a new frame at its end: a new array, for learners keep what they saw."""
        self._frames = np.concatenate((self._frames[1:], self._shrink(screen)[None]))
        return self._frames.copy()

    # Exact state ---------------------------------------------------------------------------------------------

    def exact_state(self) -> dict[str, Any]:
        """All that the game goes on from, as arrays and JSON values.

        The emulator's state with its random numbers; or, for games that it does not bring back from one, the seed
        of the game and every action since.

        Raises:
            ValueError: It would have to be repeated, and was never given a seed.
        """
        if self.game in _NOT_RESTORED:
            if self._seed is None:
                raise InputError(f"{self.game} must be reset with a seed to be brought back")
            emulator: dict[str, Any] = {"seed": self._seed, "done": np.array(self._done, np.int8)}
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
        """Go on from what ``exact_state`` returned, in an environment with the same settings.

        Raises:
            ValueError: The state is damaged or that of another game.
        """
        if take(state, "game") != self.game:
            raise InputError(f"the saved state must be one of {self.game}, not of {take(state, 'game')!r}")
        lost_a_life = take(state, "lost_a_life")
        if not isinstance(lost_a_life, bool):
            raise InputError("the saved state must have true or false as 'lost_a_life'")
        frames = take_array(state, "frames", np.uint8, self._frames.shape)
        lives = take_integer(state, "lives")
        if self.game in _NOT_RESTORED:
            done = take_array(state, "done", np.int8, (None,))
            if len(done) and not -1 <= done.min() <= done.max() < len(self.get_action_meanings()):
                raise InputError("the saved state must have actions of the game as 'done'")
            self._do_again(take_integer(state, "seed", at_most=None), done.tolist())
        else:
            self._restore_system(take_array(state, "system", np.uint8, (None,)).tobytes())
        restore_generator(self._emulator.np_random, state, "generator")
        self._frames, self._lives, self._lost_a_life = frames.copy(), lives, lost_a_life

    def _do_again(self, seed: int, done: list[int]) -> None:
        self._seed, self._done = seed, done
        for number, action in enumerate(done):
            if action == _NEW_GAME:
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
    """How a screen becomes a frame of an observation: the mean over the area of each pixel."""
    try:
        import cv2
    except ImportError:
        raise missing_package("atari", "opencv-python-headless") from None

    def shrink(screen: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return np.asarray(cv2.resize(screen, (size, size), interpolation=cv2.INTER_AREA), np.uint8)

    return shrink
