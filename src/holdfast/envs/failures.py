"""Environments that fail, and how to say so: every failure is named, with its episode and step."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import gymnasium
import numpy as np

from holdfast.core.rewards import LARGEST_REWARD
from holdfast.core.user_code import described, is_interrupt, place_of, shown
from holdfast.envs.observations import observation_problem

__all__ = ["EnvironmentFailedError", "NamedFailures"]


class EnvironmentFailedError(RuntimeError):
    """An environment raised an exception, or returned something that cannot be learned from.

    Args:
        what: What happened, such as ``"its step raised KeyError: 'arm'"``.
        place: When, such as ``"in episode 3, at its step 17"``.
    """

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(what, place)
        self.what = what
        self.place = place

    def __str__(self) -> str:
        return f"the environment failed {self.place}: {self.what}" if self.place else self.what


class NamedFailures(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Passes every step through as it is, and turns what goes wrong in it into an ``EnvironmentFailedError``.

    Whatever an environment raises is its failure, ``SystemExit`` and ``GeneratorExit`` included; Ctrl-C and
    signals are not. What it returns must be what a learner can use: an observation of its space, a finite reward,
    ends that are true or false, and a dictionary. Rewards and ends that are arrays or tensors of one number are
    handed on as numbers, and a dictionary of a class of its own as a plain one. The spaces are those that the
    environment had at first.

    Args:
        env: The environment.

    Attributes:
        n_resets: Episodes begun.
        n_steps: Steps taken, or tried.
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
        # Environments from before there were options have no argument for them.
        given = {} if options is None else {"options": options}
        self.n_resets += 1
        self._steps_before = self.n_steps
        try:
            returned = self.env.reset(seed=seed, **given)
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise self._raised("reset", error) from error
        observation, info = self._taken_apart("reset", returned, ("observation", "info"))
        problem = observation_problem(self.observation_space, observation) or _info_problem(info)
        if problem is not None:
            raise self._failed(problem)
        return observation, info if type(info) is dict else self._plain(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step."""
        self.n_steps += 1
        try:
            returned = self.env.step(action)
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise self._raised("step", error) from error
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
        """A picture."""
        try:
            return self.env.render()
        except gymnasium.error.DependencyNotInstalled:
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise self._raised("render", error) from error

    def close(self) -> None:
        """Close; what goes wrong then matters to nobody any more."""
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
            raise self._failed(f"its {call} must return {', '.join(names)}, and returned {shown(returned)}")
        return parts

    def _plain(self, info: Any) -> dict[str, Any]:
        """The same entries in a dictionary that runs no code of the environment when it is read."""
        try:
            return {name: info[name] for name in info}
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise self._failed(f"its info raised {described(error)}{place_of(error, but=__file__)}") from error

    def _number(self, reward: Any) -> Any:
        """The reward; NaN compares as not within any bounds."""
        number: Any = None
        if isinstance(reward, bool | int | np.number) or type(reward) is float:
            number = reward
        else:
            try:
                # Arrays and tensors have such a method, which does not mind gradients.
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
        return self._failed(f"its {call} raised {described(error)}{place_of(error, but=__file__)}")

    def _failed(self, what: str) -> EnvironmentFailedError:
        steps = self.n_steps - self._steps_before
        when = f"at its step {steps}" if steps else "before its step 1"
        return EnvironmentFailedError(what, f"in episode {self.n_resets}, {when}" if self.n_resets else "")


def _info_problem(info: Any) -> str | None:
    if isinstance(info, dict | MutableMapping):
        return None
    return f"it gave {shown(info)} as info, which must be a dictionary"
