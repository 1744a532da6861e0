"""An environment's state is its history: the seed of its reset and the actions since then.

``EpisodeLog`` derives the reset seed of every episode from the run's seed, the environment's index and the
episode's number, and records the actions. Repeating both restores any environment whose dynamics depend on nothing
else, without any knowledge of its internals. It is the outermost wrapper of a single environment, so the wrappers
below it (time limits, frame stacks, monitors) are restored by the same repetition. Before that, a sample of
earlier episodes is repeated, which exposes environments that depend on something else.

Environments that can report their own state (``exact_states``) are asked for it, and nothing is recorded.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any

import gymnasium
import numpy as np
from gymnasium import wrappers
from numpy.typing import NDArray

from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError, InputTypeError
from holdfast.core.saved_fields import json_copy, restore_generator, take_list, take_mapping
from holdfast.core.user_code import described
from holdfast.envs.earlier_episodes import LONGEST_PART, EarlierEpisodes, PlayedEpisode
from holdfast.envs.exact_states import (
    exact_state_of,
    first_without_state,
    restore_exact_state_of,
    spans_episodes,
)

__all__ = ["EpisodeLog", "allow_repetition", "episode_seed", "repeatable_wrappers"]

_GYMNASIUM = (
    "AtariPreprocessing",
    "ClipAction",
    "ClipReward",
    "DelayObservation",
    "DiscretizeAction",
    "DiscretizeObservation",
    "DtypeObservation",
    "FilterObservation",
    "FlattenObservation",
    "FrameStackObservation",
    "GrayscaleObservation",
    "MaxAndSkipObservation",
    "OrderEnforcing",
    "PassiveEnvChecker",
    "RecordEpisodeStatistics",
    "RepeatAction",
    "RescaleAction",
    "RescaleObservation",
    "ReshapeObservation",
    "ResizeObservation",
    "TimeAwareObservation",
    "TimeLimit",
)


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


_REPEATABLE: set[str] = {
    # Not every version of Gymnasium has all of them.
    *(_full_name(getattr(wrappers, name)) for name in _GYMNASIUM if hasattr(wrappers, name)),
    # Inside another one, it is given every seed.
    "holdfast.envs.episode_log.EpisodeLog",
    "holdfast.envs.failures.NamedFailures",
    "holdfast.envs.hold_action.HoldAction",
    "holdfast.envs.training_info.TrainingInfo",
    "stable_baselines3.common.atari_wrappers.ClipRewardEnv",
    "stable_baselines3.common.atari_wrappers.FireResetEnv",
    "stable_baselines3.common.atari_wrappers.MaxAndSkipEnv",
    "stable_baselines3.common.atari_wrappers.NoopResetEnv",
    "stable_baselines3.common.atari_wrappers.WarpFrame",
    "stable_baselines3.common.monitor.Monitor",
}
"""Full names of wrappers whose state depends on the running episode alone."""


_BOOKKEEPERS = {
    _full_name(wrappers.RecordEpisodeStatistics),
    "holdfast.envs.episode_log.EpisodeLog",
    "stable_baselines3.common.monitor.Monitor",
}
"""Wrappers that only record statistics of whole episodes and change nothing that is observed."""


def allow_repetition(wrapper: type[gymnasium.Wrapper[Any, Any, Any, Any]]) -> Any:
    """Declare that a wrapper can be restored by repeating an episode; usable as a decorator.

    Everything that such a wrapper remembers must come from the running episode, and its behaviour must depend only
    on that memory, the actions, and random numbers that ``reset`` has seeded.
    """
    if not (isinstance(wrapper, type) and issubclass(wrapper, gymnasium.Wrapper)):
        raise InputTypeError(f"wrapper must be a class of Gymnasium wrappers, not {wrapper!r}")
    _REPEATABLE.add(_full_name(wrapper))
    return wrapper


def repeatable_wrappers() -> frozenset[str]:
    """Full names of the wrappers that, to this process's knowledge, repeating an episode restores."""
    return frozenset(_REPEATABLE)


class EpisodeLog(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Seeds every episode by its number, and records its actions.

    A seed given to ``reset`` applies to that episode and becomes the run's seed: later episodes derive theirs from
    it. An episode that continues the game of the one before, after a lost life, gets no seed.

    Args:
        env: The environment, with all its wrappers.
        index: Index of this environment among those of the run.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], index: int = 0) -> None:
        index = check_integer("index", index, 0)
        gymnasium.utils.RecordConstructorArgs.__init__(self, index=index)
        super().__init__(env)
        self.index = index
        self._run_seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        self._episode = -1
        self._seed: int | None = None
        self._options: dict[str, Any] | None = None
        self._options_are_lost = False
        self._actions: list[Any] = []
        self._trace = self._part_trace = 0
        self._is_broken = False
        self._earlier = EarlierEpisodes()
        self._says_where_it_is = first_without_state(env) is None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Begin the next episode, with the given seed or with the one derived from its number."""
        if seed is None:
            self._episode += 1
            if not getattr(self.env.unwrapped, "goes_on", False):
                seed = episode_seed(self._run_seed, self.index, self._episode)
        else:
            seed = check_integer("seed", seed, 0)
            self._run_seed, self._episode = seed, 0
        self.end_episode()
        return self._begin(seed, options)

    def end_episode(self) -> None:
        """Count the running episode among the earlier ones, as ``reset`` does."""
        if self._seed is None or not self._actions:
            return
        played, part = None, self._actions[:LONGEST_PART]
        if not (self._is_broken or self._options_are_lost) and _are_numbers(part):
            digest = self._trace if len(self._actions) <= LONGEST_PART else self._part_trace
            played = PlayedEpisode(self._earlier.n_played, self._seed, self._options, np.array(part), digest)
        self._earlier.add(played)
        self._seed, self._actions = None, []

    def _begin(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, Any]:
        try:
            # A copy: the options belong to the caller, and the environment may write into them.
            self._options, self._options_are_lost = json_copy(options), False
        except InputError:
            self._options, self._options_are_lost = None, True
        self._seed, self._actions, self._is_broken = seed, [], False
        # Older environments have no argument for options.
        given = {} if options is None else {"options": options}
        observation, info = self.env.reset(seed=seed, **given)
        if self._says_where_it_is:
            return observation, info
        self._trace = _folded(0, observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one step, and record it unless the environment can report its own state."""
        if self._says_where_it_is:
            return self.env.step(action)
        self._actions.append(_copied(action))
        # A step that never finished cannot be repeated.
        was_broken, self._is_broken = self._is_broken, True
        result = self.env.step(action)
        self._is_broken = was_broken
        self._trace = _folded(self._trace, result[:2])
        if len(self._actions) == LONGEST_PART:
            self._part_trace = self._trace
        return result

    # State -------------------------------------------------------------------------------------------------

    def episode_state(self, repeatable: Collection[str] = ()) -> dict[str, Any]:
        """Everything that ``repeat_episode`` needs, as arrays and JSON values.

        If the environment cannot be restored, there is one entry, ``"refused"``: a sentence that says why.

        Args:
            repeatable: Full names of further wrappers that can be restored: those declared in the process that
                asks.
        """
        exact = None
        if self._says_where_it_is:
            try:
                # Before the first episode there is no state.
                exact, refused = exact_state_of(self.env) if self._episode >= 0 else [], None
            except InputError as error:
                refused = str(error)
        else:
            refused = self._foreign_wrapper(repeatable) or self._unrepeatable_episode()
        if refused is not None:
            return {"refused": refused}
        own = {} if exact is None else {"exact": exact, "seed": None, "options": None, "digest": None}
        return {
            "run_seed": self._run_seed,
            "index": self.index,
            "episode": self._episode,
            "seed": self._seed,
            "options": json_copy(self._options),
            "actions": np.array(self._actions),
            "digest": None if self._seed is None else self._trace,
            "earlier": self.earlier_state(),
            "action_space": dict(self.action_space.np_random.bit_generator.state),
            **own,
        }

    def repeat_episode(self, state: Mapping[str, Any], repeatable: Collection[str] = ()) -> str | None:
        """Go to the state at which ``episode_state`` was called.

        Args:
            state: What ``episode_state`` returned.
            repeatable: As for ``episode_state``.

        Returns:
            None, or a sentence that says why the environment did not get there.
        """
        if state["index"] != self.index:
            return f"environment {self.index} must be given its own episode, not that of {state['index']}"
        refused = self._restore(state) if self._says_where_it_is else self._go_there(state, repeatable)
        if refused is not None:
            return refused
        self._run_seed, self._episode = int(state["run_seed"]), int(state["episode"])
        try:
            restore_generator(self.action_space.np_random, state, "action_space")
        except InputError as error:
            return str(error)
        return None

    def _restore(self, state: Mapping[str, Any]) -> str | None:
        try:
            exact = take_list(state, "exact", dict)
            if exact:
                restore_exact_state_of(self.env, exact)
        except InputError as error:
            return f"environment {self.index} cannot be restored: {error}"
        return None

    def _go_there(self, state: Mapping[str, Any], repeatable: Collection[str]) -> str | None:
        refused = self._foreign_wrapper(repeatable)
        if refused is not None:
            return refused
        # States from older versions have no such sample.
        refused = self.repeat_earlier(take_mapping(state, "earlier")) if state.get("earlier") else None
        if refused is not None:
            return refused
        if state["seed"] is None:
            self._seed, self._actions = None, []
            return None
        return self._repeat("its episode", state["seed"], state["options"], state["actions"], state["digest"])

    def earlier_state(self) -> dict[str, Any]:
        """A sample of the finished episodes, as arrays and JSON values."""
        return self._earlier.state()

    def forget_after(self, state: Mapping[str, Any]) -> None:
        """Reset the sample to what ``earlier_state`` returned before: episodes played since then do not count."""
        self._earlier = EarlierEpisodes.restored(state)
        self._seed, self._actions = None, []

    def repeat_earlier(self, state: Mapping[str, Any]) -> str | None:
        """Check whether the environment still repeats earlier episodes; a new episode must begin afterwards.

        Args:
            state: What ``earlier_state`` returned.

        Returns:
            None, or a sentence that says which episode came out differently.

        Raises:
            ValueError: The state is damaged.
        """
        earlier = EarlierEpisodes.restored(state)
        with _without_bookkeepers(self):
            for episode in earlier.kept:
                what = f"its earlier episode {episode.number + 1}"
                refused = self._repeat(what, episode.seed, episode.options, episode.actions, episode.digest)
                if refused is not None:
                    return refused
        self._earlier = earlier
        self._seed, self._actions = None, []
        return None

    def _repeat(self, what: str, seed: int, options: Any, actions: Any, digest: int) -> str | None:
        """Repeat an episode; return a sentence if it came out differently."""
        try:
            is_the_same = bool(self._repeated(int(seed), json_copy(options), np.asarray(actions)) == digest)
        except Exception as error:
            # Whatever an environment raises in a foreign episode, its process must survive.
            return f"environment {self.index} did not repeat {what}: {described(error)}"
        if is_the_same:
            return None
        return (
            f"environment {self.index} did not repeat {what}: its dynamics must depend on the reset seed and the "
            "actions alone, and its code must not have changed"
        )

    def _repeated(self, seed: int, options: Any, actions: NDArray[Any]) -> int | None:
        """The fingerprint of an episode; None if it ended too early."""
        self._begin(seed, options)
        for number, action in enumerate(actions):
            *_, terminated, truncated, _ = self.step(_as_action(action))
            if (terminated or truncated) and number + 1 < len(actions):
                return None
        return self._trace

    def _foreign_wrapper(self, repeatable: Collection[str]) -> str | None:
        if spans_episodes(self.env):
            return (
                f"the wrapper {first_without_state(self.env)} cannot report its state, and an episode that "
                "continues the game of the one before cannot be repeated: give the wrapper exact_state and "
                "restore_exact_state, or the game episodic_life=False"
            )
        for wrapper in _wrappers(self.env):
            name = _full_name(type(wrapper))
            if name not in _REPEATABLE and name not in repeatable:
                return (
                    f"the wrapper {type(wrapper).__name__} cannot be restored by repeating an episode; if all "
                    "it remembers comes from the running episode, declare it with holdfast.envs.allow_repetition"
                )
        return None

    def _unrepeatable_episode(self) -> str | None:
        if self._options_are_lost:
            return "the options of reset must be JSON values for the environment to be restored"
        if not _are_numbers(self._actions):
            return "the actions must be numbers or arrays of one kind for the environment to be restored"
        return None


def episode_seed(run_seed: int, index: int, episode: int) -> int:
    """The reset seed of one episode of one environment of a run."""
    sequence = np.random.SeedSequence(entropy=run_seed, spawn_key=(index, episode))
    # Gymnasium and Box2D need seeds of 32 bits, in some places signed.
    return int(sequence.generate_state(1)[0] >> 1)


def _wrappers(env: gymnasium.Env[Any, Any]) -> Iterator[gymnasium.Wrapper[Any, Any, Any, Any]]:
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env


@contextmanager
def _without_bookkeepers(outermost: gymnasium.Wrapper[Any, Any, Any, Any]) -> Iterator[None]:
    """Bypass the wrappers that would record the episodes played in the meantime."""
    left_out = []
    outer: Any = outermost
    while isinstance(outer, gymnasium.Wrapper):
        if _full_name(type(outer.env)) in _BOOKKEEPERS:
            left_out.append((outer, outer.env))
            outer.env = outer.env.env  # type: ignore[attr-defined]
        else:
            outer = outer.env
    try:
        yield
    finally:
        for outer, inner in reversed(left_out):
            outer.env = inner


def _copied(action: Any) -> Any:
    return action.copy() if isinstance(action, np.ndarray) else action


def _are_numbers(actions: list[Any]) -> bool:
    """Whether one array can hold all actions and give each back unchanged."""
    # Fast paths for the usual types.
    types = {type(action) for action in actions}
    if types == {np.int64} or (types == {int} and all(-(2**63) <= action < 2**63 for action in actions)):
        return True
    if not all(isinstance(action, int | float | np.number | np.bool_ | np.ndarray) for action in actions):
        return False
    kinds = {(array.shape, array.dtype) for array in map(np.asarray, actions)}
    return len(kinds) <= 1 and all(dtype.kind in "biuf" for _, dtype in kinds)


def _as_action(action: NDArray[Any]) -> Any:
    return action.copy() if action.ndim else action[()]


_FLOAT, _WHOLE = (np.dtype(kind).str.encode() for kind in (np.float64, np.int64))


def _folded(trace: int, part: Any) -> int:
    """Extend a fingerprint of all that was seen by one part: arrays, numbers, strings, or nested combinations."""
    # The same bytes as for an array, in a fraction of the time.
    if type(part) is float:
        return zlib.crc32(struct.pack("=d", part), zlib.crc32(_FLOAT, trace))
    if type(part) is int and -(2**63) <= part < 2**63:
        return zlib.crc32(struct.pack("=q", part), zlib.crc32(_WHOLE, trace))
    if isinstance(part, Mapping):
        for key in sorted(part, key=str):
            trace = _folded(zlib.crc32(str(key).encode(), trace), part[key])
        return trace
    if isinstance(part, tuple | list):
        for item in part:
            trace = _folded(trace, item)
        return trace
    array = np.asarray(part)
    if array.dtype == object:
        # The bytes of an object array would be addresses.
        values = [float(item) if isinstance(item, Real) else str(item) for item in array.ravel()]
        array = np.frombuffer(repr(values).encode(), np.uint8)
    return zlib.crc32(array.tobytes(), zlib.crc32(array.dtype.str.encode(), trace))
