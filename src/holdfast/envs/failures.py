"""Environments that fail: every failure is reported with its episode and step."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Protocol

import gymnasium
import numpy as np

from holdfast.core.errors import InputError
from holdfast.core.rewards import LARGEST_REWARD
from holdfast.core.user_code import described, is_interrupt, shown, where_raised
from holdfast.envs.observations import observation_problem

__all__ = ["CallWatcher", "EnvironmentFailedError", "NamedFailures", "refuse_nonfinite", "watch_calls"]


class CallWatcher(Protocol):
    """Is told when an environment is called and when the call has ended."""

    def begins(self, call: str, episode: int, step: int) -> None:
        """A ``reset`` or ``step`` begins."""
        ...

    def ends(self) -> None:
        """The call has returned or raised."""
        ...


class _NoWatcher:
    """Ignores all calls."""

    def begins(self, call: str, episode: int, step: int) -> None:
        """Do nothing."""

    def ends(self) -> None:
        """Do nothing."""


_watcher: CallWatcher = _NoWatcher()


def watch_calls(watcher: CallWatcher | None) -> None:
    """Tell ``watcher`` about every call of an environment in this process; None to stop."""
    global _watcher
    _watcher = _NoWatcher() if watcher is None else watcher


class EnvironmentFailedError(RuntimeError):
    """An environment raised an exception, or returned something that cannot be learned from.

    Args:
        what: What happened, such as ``"its step raised KeyError: 'arm'"``.
        place: When it happened, such as ``"in episode 3, at its step 17"``.
    """

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(what, place)
        self.what = what
        self.place = place

    def __str__(self) -> str:
        return f"the environment failed {self.place}: {self.what}" if self.place else self.what


class NamedFailures(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Passes every step through unchanged, and turns every failure into an ``EnvironmentFailedError``.

    Whatever an environment raises is its failure, including ``SystemExit`` and ``GeneratorExit``; Ctrl-C and
    signals are not. What it returns must be usable by a learner: an observation of its space, a finite reward,
    true or false for the ends, and a dictionary. Rewards and ends that are arrays or tensors with one number are
    passed on as numbers, and a dictionary of another class as a plain one. The spaces are those that the
    environment had at first.

    Args:
        env: The environment.

    Attributes:
        n_resets: Number of episodes begun.
        n_steps: Number of steps taken or attempted.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.n_resets = 0
        self.n_steps = 0
        self._steps_before = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Begin an episode."""
        # Older environments have no argument for options.
        given = {} if options is None else {"options": options}
        self.n_resets += 1
        self._steps_before = self.n_steps
        _watcher.begins("reset", self.n_resets, 0)
        try:
            returned = self.env.reset(seed=seed, **given)
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise self._raised("reset", error) from error
        finally:
            _watcher.ends()
        observation, info = self._taken_apart("reset", returned, ("observation", "info"))
        problem = observation_problem(self.observation_space, observation) or _info_problem(info)
        if problem is not None:
            raise self._failed(problem)
        return observation, info if type(info) is dict else self._plain(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one step."""
        self.n_steps += 1
        _watcher.begins("step", self.n_resets, self.n_steps - self._steps_before)
        try:
            returned = self.env.step(action)
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise self._raised("step", error) from error
        finally:
            _watcher.ends()
        observation, reward, terminated, truncated, info = self._taken_apart(
            "step", returned, ("observation", "reward", "terminated", "truncated", "info")
        )
        problem = observation_problem(self.observation_space, observation) or _info_problem(info)
        if problem is not None:
            raise self._failed(problem)
        return (
            observation,
            self._number(reward),
            self._end("terminated", terminated),
            self._end("truncated", truncated),
            info if type(info) is dict else self._plain(info),
        )

    def render(self) -> Any:
        """Render a picture."""
        try:
            return self.env.render()
        except gymnasium.error.DependencyNotInstalled:
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise self._raised("render", error) from error

    def close(self) -> None:
        """Close the environment; failures no longer matter at this point."""
        try:
            self.env.close()
        except BaseException as error:
            if is_interrupt(error):
                raise

    def _taken_apart(self, call: str, returned: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
        try:
            parts = tuple(returned)
        except TypeError:
            parts = ()
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise self._raised(call, error) from error
        if len(parts) != len(names) or isinstance(returned, str | bytes | dict):
            raise self._failed(f"its {call} must return {', '.join(names)}, but returned {shown(returned)}")
        return parts

    def _plain(self, info: Any) -> dict[str, Any]:
        """The same entries in a plain dictionary; reading it runs no code of the environment."""
        try:
            return {name: info[name] for name in info}
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise self._failed(f"its info raised {described(error)}{where_raised(error, but=__file__)}") from error

    def _number(self, reward: Any) -> Any:
        """The reward, checked; NaN fails every comparison with the bounds."""
        number: Any = None
        if isinstance(reward, bool | int | np.number) or type(reward) is float:
            number = reward
        else:
            try:
                # Arrays and tensors have this method, which also works if they carry gradients.
                number = reward.item() if hasattr(reward, "item") else float(reward)
            except BaseException as error:
                if is_interrupt(error):
                    raise
        try:
            is_finite = bool(-LARGEST_REWARD <= number <= LARGEST_REWARD) and not isinstance(reward, str | bytes)
        except TypeError:
            is_finite = False
        if not is_finite:
            raise self._failed(
                f"it gave {shown(reward)} as a reward, which must be a finite number of at most "
                f"{LARGEST_REWARD:g} in size"
            )
        return number

    def _end(self, name: str, flag: Any) -> Any:
        if isinstance(flag, bool | np.bool_):
            return flag
        try:
            value = np.asarray(flag)
            is_flag = value.size == 1 and value.dtype.kind in "biu" and value.item() in (0, 1)
        except BaseException as error:
            if is_interrupt(error):
                raise
            is_flag = False
        if not is_flag:
            raise self._failed(f"it gave {shown(flag)} as {name}, which must be True or False")
        return bool(value.item())

    def _raised(self, call: str, error: BaseException) -> EnvironmentFailedError:
        return self._failed(f"its {call} raised {described(error)}{where_raised(error, but=__file__)}")

    def _failed(self, what: str) -> EnvironmentFailedError:
        steps = self.n_steps - self._steps_before
        when = f"at its step {steps}" if steps else "before its step 1"
        return EnvironmentFailedError(what, f"in episode {self.n_resets}, {when}" if self.n_resets else "")


def _info_problem(info: Any) -> str | None:
    if isinstance(info, dict | MutableMapping):
        return None
    return f"it gave {shown(info)} as info, which must be a dictionary"


def refuse_nonfinite(name: str, given: Any, step: int, env: int | None = None) -> None:
    """InputError for NaN and infinity: from any environment of several side by side, or from one.

    Args:
        name: What they are.
        given: An array, or a dictionary of arrays.
        step: When it was, for the error.
        env: Whose they are; None if there is a row for each.
    """
    for values in given.values() if isinstance(given, dict) else (given,):
        values = np.asarray(values)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            if env is None:
                env = int(np.argmax(~np.isfinite(values).reshape(len(values), -1).all(axis=1)))
            raise InputError(
                f"env must give finite numbers: environment {env} gave a {name} that is NaN "
                f"or infinite at step {step}"
            )
