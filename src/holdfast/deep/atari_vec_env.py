"""Many Atari games at once, stepped by ale-py's own vector environment, which is written in C++.

This module adds what Stable-Baselines3 expects of a ``VecEnv``: the last observation of an episode, which ends are
truncations, and rewards that are clipped once. :func:`make_atari_vec` lists the remaining differences from one
game (``make_atari``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError, InputTypeError
from holdfast.envs.atari_settings import SETTINGS, AtariSettings
from holdfast.envs.game_names import quiet_ale

__all__ = ["AtariVecEnv", "make_atari_vec"]

_NO_LIMIT = 2**31 - 1


def make_atari_vec(game: str, n_envs: int = 1, seed: int | None = None, **settings: Any) -> VecEnv:
    """Many copies of an Atari game, within a ``VecMonitor``.

    Settings, observations and rewards are those of ``make_atari``, with these differences:

    - No-ops count frames, at most ``no_ops`` − 1 of them, and FIRE is pressed for one frame.
    - After a lost life the game continues without no-ops or FIRE: the agent has to press FIRE itself.
    - The games' states cannot be saved, so a training cannot be continued exactly.

    Args:
        game: Its name: ``"Freeway"``, ``"SpaceInvaders"``.
        n_envs: How many copies.
        seed: Seed of the first; the others follow.
        settings: ``n_threads``, and those of :class:`AtariSettings`.

    Raises:
        ValueError: There is no such game, or a setting is invalid; the message is one sentence.
        TypeError: A setting is of the wrong kind.
    """
    env = AtariVecEnv(game, n_envs, **settings)
    env.seed(seed if seed is None else check_integer("seed", seed, 0))
    return VecMonitor(env)


class AtariVecEnv(VecEnv):
    """Copies of one game; observations are (n_envs, stack, size, size), with the newest frame last.

    An episode's first observations are padded with black frames.

    Args:
        game: Its name.
        n_envs: How many copies.
        n_threads: Number of threads; 0 for one per processor.
        settings: Those of :class:`AtariSettings`. Fewer than ``no_ops`` frames are no-ops; FIRE is pressed for one
            frame; a game is cut only at the end of a step.
    """

    def __init__(self, game: str, n_envs: int = 1, n_threads: int = 0, **settings: Any) -> None:
        if unknown := settings.keys() - SETTINGS:
            raise InputTypeError(
                f"there is no setting {min(unknown)!r} of games: choose from {', '.join(SETTINGS)}"
            )
        found = AtariSettings(game, **settings)
        self.game, self.frame_skip, self._max_frames = found.game, found.frames_per_step, found.max_frames
        self._episodic_life, self._clip_rewards = found.episodic_life, found.clip_rewards
        self._games = quiet_ale().AtariVectorEnv(
            game=self.game,
            num_envs=check_integer("n_envs", n_envs),
            num_threads=check_integer("n_threads", n_threads, 0),
            # If it cut a game itself, it would return the frame before the last one; so this class cuts.
            max_num_frames_per_episode=_NO_LIMIT,
            repeat_action_probability=found.sticky,
            full_action_space=found.full_actions,
            autoreset_mode=AutoresetMode.SAME_STEP,
            img_height=found.size,
            img_width=found.size,
            stack_num=found.stack,
            frameskip=self.frame_skip,
            maxpool=False,
            noop_max=found.no_ops,
            # Its own episodic life would start a new game after every life.
            episodic_life=False,
            life_loss_info=self._episodic_life,
            # Once is enough.
            reward_clipping=False,
            use_fire_reset=found.fire,
        )
        self._actions: NDArray[np.int64] = np.zeros(n_envs, np.int64)
        self._frame_numbers: NDArray[Any] = np.zeros(n_envs, np.int64)
        # Steps since each episode's first observation.
        self._ages: NDArray[np.int64] = np.zeros(n_envs, np.int64)
        space, actions = self._games.single_observation_space, self._games.single_action_space
        super().__init__(n_envs, spaces.Box(0, 255, space.shape, np.uint8), spaces.Discrete(int(actions.n)))

    def reset(self) -> NDArray[np.uint8]:
        """Begin a game in every copy, with the seeds that ``seed`` has set."""
        fresh = np.random.SeedSequence().generate_state(self.num_envs) >> 1
        given = [own if seed is None else _game_seed(seed) for own, seed in zip(fresh, self._seeds, strict=True)]
        observations, info = self._begun(seed=np.array(given, np.int64))
        self._frame_numbers = info["episode_frame_number"]
        self._ages[:] = 0
        self.reset_infos = [self._told(info, place) for place in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        return observations

    def _begun(self, **how: Any) -> tuple[NDArray[np.uint8], dict[str, NDArray[Any]]]:
        observations, info = self._games.reset(**how)
        order = np.argsort(info["env_id"])
        return np.array(observations)[order], {name: np.array(values)[order] for name, values in info.items()}

    def step_async(self, actions: NDArray[Any]) -> None:
        """Say what to do in each copy."""
        self._actions = np.asarray(actions, np.int64).reshape(self.num_envs)

    def step_wait(self) -> VecEnvStepReturn:
        """Take one step; a game that ends is followed by a new one within the same step."""
        found = self._games.step(self._actions)
        order = np.argsort(found[-1]["env_id"])
        info = {name: np.array(values)[order] for name, values in found[-1].items()}
        observations, rewards, terminated = (np.array(part)[order] for part in found[:3])
        # In a game that continues, exactly these frames have passed.
        goes_on = info["episode_frame_number"] == self._frame_numbers + self.frame_skip
        # Some games briefly show no lives before they end, or between two lives.
        terminated &= ~(goes_on & (info["lives"] == 0))
        truncated = goes_on & (info["episode_frame_number"] >= self._max_frames)
        done = terminated | truncated
        self._ages += 1
        last = observations.copy() if done.any() else observations
        for place in np.flatnonzero(done & ~goes_on):
            last[place] = info["final_obs"][place]
        self._blacken(last, self._ages)
        if truncated.any():
            observations, info = self._begun(options={"reset_mask": truncated})
        self._frame_numbers = info["episode_frame_number"]
        self._ages[done] = 0
        self._blacken(observations, self._ages)
        rewards = np.sign(rewards) if self._clip_rewards else rewards
        return observations, rewards.astype(np.float32), done, self._infos(info, last, terminated, truncated)

    def _infos(
        self, info: dict[str, Any], last: NDArray[Any], terminated: NDArray[np.bool_], truncated: NDArray[np.bool_]
    ) -> list[dict[str, Any]]:
        infos: list[dict[str, Any]] = []
        for place in range(self.num_envs):
            told = self._told(info, place)
            told["TimeLimit.truncated"] = bool(truncated[place] and not terminated[place])
            if terminated[place] or truncated[place]:
                told["terminal_observation"] = last[place].copy()
            infos.append(told)
        return infos

    @staticmethod
    def _told(info: dict[str, NDArray[Any]], place: int) -> dict[str, Any]:
        return {name: int(info[name][place]) for name in ("lives", "episode_frame_number")}

    @staticmethod
    def _blacken(stacks: NDArray[np.uint8], ages: NDArray[np.int64]) -> None:
        """Black out frames from before the episode."""
        depth = stacks.shape[1]
        for place in np.flatnonzero(ages < depth - 1):
            stacks[place, : depth - 1 - ages[place]] = 0

    def get_action_meanings(self) -> list[str]:
        """The console's name of each action: NOOP, FIRE, UP, ..."""
        return [action.name for action in self._games.ale.get_action_set()]

    def close(self) -> None:
        """Nothing is left open."""

    def get_images(self) -> Sequence[Any]:
        """None: the vector environment does not render."""
        return [None] * self.num_envs

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The same for every copy."""
        value = None if attr_name == "render_mode" else getattr(self, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Nothing can be changed."""
        raise InputError(f"{attr_name} cannot be set: these games run in C++")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """The same for every copy."""
        value = getattr(self, method_name)(*method_args, **method_kwargs)
        return [value for _ in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """No copy is."""
        return [False for _ in self._get_indices(indices)]


def _game_seed(seed: int) -> int:
    """That of the emulator, as a single game derives it; C++ takes 31 bits of it."""
    return int(np.random.SeedSequence(seed).generate_state(2)[1] & 0x7FFFFFFF)
