"""How an Atari game is played and observed: checked settings, for a single game or many at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from holdfast.core.checks import check_integer, check_probability, check_truth
from holdfast.core.errors import InputError
from holdfast.envs.game_names import atari_games, find_game

__all__ = ["SETTINGS", "AtariSettings"]

_FRAME_SKIP = 4
_FRAME_SKIPS = {"space_invaders": 3}
"""With four, its blinking shots would never be visible."""
_LARGEST: Mapping[str, int] = MappingProxyType(
    {"frame_skip": 10_000, "stack": 1000, "size": 1000, "no_ops": 10_000, "max_frames": 2**31 - 1}
)
"""Beyond these, the emulator's integers overflow, or a step takes minutes, since it goes on after a game's end."""


@dataclass
class AtariSettings:
    """The paper's settings and, where it is silent, those customary in training.

    Args:
        game: Game's name.
        frame_skip: Number of frames in one step, of which the last is observed (default: 3 for Space Invaders,
            else 4).
        sticky: Probability, at every frame, that the emulator repeats the previous frame's action.
        stack: Number of frames in an observation.
        size: Height and width of a shrunk frame.
        episodic_life: Whether a lost life ends the episode, though not the game.
        clip_rewards: Whether a reward is replaced by its sign.
        no_ops: Largest number of no-ops at the beginning of a game; 0 for none.
        fire: Whether FIRE is pressed at the beginning of a game that has it.
        full_actions: Whether to use all 18 actions of the console instead of those that have an effect in the
            game.
        max_frames: Frames after which a game is cut short.

    Raises:
        ValueError: There is no such game, or a setting is invalid; the message is one sentence.
        TypeError: A setting has the wrong type or an unknown name.
    """

    game: str
    frame_skip: int | None = None
    sticky: float = 0.25
    stack: int = 4
    size: int = 84
    episodic_life: bool = True
    clip_rewards: bool = True
    no_ops: int = 30
    fire: bool = True
    full_actions: bool = False
    max_frames: int = 108_000

    def __post_init__(self) -> None:
        self.game = find_game("atari", self.game, atari_games())
        for name, largest in _LARGEST.items():
            if name != "frame_skip" or self.frame_skip is not None:
                number = check_integer(name, getattr(self, name), 0 if name == "no_ops" else 1)
                if number > largest:
                    raise InputError(f"{name} must be at most {largest}, not {number}", name)
                setattr(self, name, number)
        self.sticky = check_probability("sticky", self.sticky)
        for name in ("episodic_life", "clip_rewards", "fire", "full_actions"):
            setattr(self, name, check_truth(name, getattr(self, name)))

    @property
    def frames_per_step(self) -> int:
        """Number of frames in one step."""
        return _FRAME_SKIPS.get(self.game, _FRAME_SKIP) if self.frame_skip is None else self.frame_skip


SETTINGS = tuple(field.name for field in fields(AtariSettings) if field.name != "game")
"""The names of all settings."""
