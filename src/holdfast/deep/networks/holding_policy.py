"""What every policy that holds its actions shares: ``predict`` with its state, and its settings.

A policy keeps no hidden state: the option being held travels in ``predict``'s ``state``, as RecurrentPPO carries
its LSTM state. Without it, every call makes a new decision.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy
from torch import nn

from holdfast.core.choice import Decision
from holdfast.core.clock import OptionClock
from holdfast.core.errors import InputError
from holdfast.core.options import persistence_set
from holdfast.deep.arguments import Argument, refuse_unknown

__all__ = ["ExploratoryDraws", "HoldingPolicy", "refuse_reset_tuple", "selected"]

_OF_SB3 = (
    "net_arch",
    "activation_fn",
    "features_extractor_class",
    "features_extractor_kwargs",
    "normalize_images",
    "optimizer_class",
    "optimizer_kwargs",
)
"""Arguments that the policies of SB3 take too."""

_OF_ANOTHER_CLASS = (
    "the weights are those of another network: load a file saved by an agent of holdfast with the agent's own "
    "class, such as PerDQN.load, not with Stable-Baselines3's DQN.load"
)


class ExploratoryDraws(NamedTuple):
    """The random parts of the options that n environments begin, each (n,).

    Attributes:
        draws_action: Where the action is random.
        draws_hold: Where the duration is random.
        actions: Read where ``draws_action`` holds; (n, size) continuous ones.
        durations: Read where ``draws_hold`` holds.
        noise: (n, size) added to continuous actions; None for no noise.
    """

    draws_action: NDArray[np.bool_]
    draws_hold: NDArray[np.bool_]
    actions: NDArray[Any]
    durations: NDArray[np.int64]
    noise: NDArray[np.floating] | None = None


class HoldingPolicy(BasePolicy):
    """A policy that decides what to do and for how long.

    Abstract: ``OptionPolicy`` chooses among discrete actions, ``ActorPolicy`` has an actor that proposes them.

    Attributes:
        agent_arguments: The arguments of an agent that are its policy's.
        durations: The persistences that an option may have, in order.
    """

    agent_arguments: ClassVar[tuple[Argument, ...]]

    activation_fn: type[nn.Module]
    k_max: int
    persistences: tuple[int, ...] | None
    decision_tolerance: float
    interrupt_margin: float | None
    decision_cost: float

    # Settings ----------------------------------------------------------------------------------------------

    def _take_settings(self, settings: dict[str, Any]) -> None:
        """Set the agent's arguments that concern its policy: the given ones, checked, and other defaults."""
        # An agent of holdfast gives its persistences, and so does a policy's file; SB3's own classes do not.
        self._knows_its_agent = "k_max" in settings
        names = [argument.name for argument in self.agent_arguments]
        for name in settings:
            refuse_unknown(type(self).__name__, name, (*names, *_OF_SB3))
        if "k_max" in settings:
            # On its own, k_max means all of 1..k_max.
            settings.setdefault("persistences", None)
        for argument in self.agent_arguments:
            value = settings.get(argument.name, argument.default)
            setattr(self, argument.name, argument.check(argument.name, value))
        if self.persistences is not None:
            self.k_max = self.persistences[-1]
        self._durations = self.durations

    def _settings(self) -> dict[str, Any]:
        return {argument.name: getattr(self, argument.name) for argument in self.agent_arguments}

    @property
    def durations(self) -> NDArray[np.int64]:
        """The persistences that an option may have, in order."""
        return np.array(persistence_set(self.k_max, self.persistences), dtype=np.int64)

    @staticmethod
    @abstractmethod
    def layer_lists(net_arch: Any) -> Sequence[Any]:
        """The lists of layer widths in a given ``net_arch``."""

    def load_state_dict(self, state_dict: Mapping[str, Any], *arguments: Any, **keywords: Any) -> Any:
        """Load saved weights; raise ValueError if shapes differ or SB3's own class loads our file."""
        if not self._knows_its_agent:
            raise InputError(_OF_ANOTHER_CLASS)
        try:
            return super().load_state_dict(state_dict, *arguments, **keywords)
        except RuntimeError as error:
            if "size mismatch" not in str(error):
                raise
            raise InputError(_OF_ANOTHER_CLASS) from error

    @property
    @abstractmethod
    def optimizers(self) -> dict[str, th.optim.Optimizer]:
        """Those of the networks, by the names that a saved state has for them."""

    # Deciding ----------------------------------------------------------------------------------------------

    @abstractmethod
    def new_clock(self, n_envs: int) -> OptionClock:
        """A clock for the actions of ``n_envs`` environments."""

    @abstractmethod
    def as_taken(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Convert actions as the clock and the replay store them to what the environments take."""

    @abstractmethod
    def as_held(self, actions: NDArray[Any]) -> NDArray[Any]:
        """The inverse of ``as_taken``: actions (n, ...) as the clock and the replay store them."""

    @abstractmethod
    def decide(self, observation: Any) -> Decision:
        """What to do and for how long, for loops that sleep while they hold.

        Args:
            observation: One observation, or a batch of them.
        """

    @abstractmethod
    def interrupts(self, observation: Any, action: Any, left: int) -> bool:
        """Whether ``action``, which was to be held for ``left`` more steps, is dropped at one observation."""

    @abstractmethod
    def interrupt(
        self, clock: OptionClock, observation: Any, averaged: bool = False
    ) -> tuple[NDArray[np.bool_], Any]:
        """Interrupt the greedy options that should no longer be held.

        Args:
            clock: What is held; changed here.
            observation: Tensors, one row per environment.
            averaged: Whether to use the averaged weights.

        Returns:
            (n_envs,) the environments whose option was dropped, and the values if they were computed.
        """

    @abstractmethod
    def begin_options(
        self,
        clock: OptionClock,
        observation: Any,
        tolerance: float | None,
        values: Any = None,
        draws: ExploratoryDraws | None = None,
        averaged: bool = False,
    ) -> None:
        """Begin an option wherever none is held.

        Args:
            clock: What is held; changed here.
            observation: Tensors, one row per environment; not read where everything is random.
            tolerance: Decision tolerance of greedy choices; None takes the first maximum.
            values: Values of the observation, if ``interrupt`` has returned them.
            draws: The random parts of these options.
            averaged: Whether to choose with the averaged weights.
        """

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """The action to take now, and the state that carries the held option.

        Args:
            observation: One observation, or a batch.
            state: The state that the last call returned; None makes a new decision.
            episode_start: (n,) where an episode has just begun, so that nothing is held.
            deterministic: Whether ``decision_tolerance`` applies.
        """
        self.set_training_mode(False)
        clock, tensor, is_batch = self.held_options(observation, state, episode_start)
        _, values = self.interrupt(clock, tensor, averaged=True)
        tolerance = self.decision_tolerance if deterministic else None
        self.begin_options(clock, tensor, tolerance, values, averaged=True)
        return self.hold_on(clock, is_batch)

    def steps_left(self, state: tuple[NDArray[Any], ...] | None) -> NDArray[np.int64]:
        """(n,) steps for which the actions of a state returned by ``predict`` will still be held."""
        return np.zeros(0, np.int64) if state is None else self._clock_from(state, len(state[0])).left

    # The parts of ``predict``, from which an agent builds its own, with random options between them.

    def held_options(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None,
        episode_start: NDArray[np.bool_] | None,
    ) -> tuple[OptionClock, Any, bool]:
        """The clock of a ``predict`` state, the observation as tensors, and whether it is a batch."""
        refuse_reset_tuple(observation)
        tensor, is_batch = self.obs_to_tensor(observation)
        clock = self._clock_from(state, _batch_size(tensor))
        if episode_start is not None:
            starts = np.asarray(episode_start, dtype=np.bool_)
            if starts.shape not in ((), (1,), (clock.n_envs,)):
                raise InputError(f"episode_start must have shape ({clock.n_envs},), not {starts.shape}")
            clock.cut(np.broadcast_to(starts, (clock.n_envs,)))
        return clock, tensor, is_batch

    def hold_on(self, clock: OptionClock, is_batch: bool) -> tuple[NDArray[Any], tuple[NDArray[Any], ...]]:
        """The held actions for one step, and the state after it."""
        clock.tick(np.zeros(clock.n_envs, dtype=np.bool_))
        actions = self.as_taken(clock.action)
        return (actions if is_batch else np.array(actions[0])), tuple(clock.state().values())

    def _clock_from(self, state: tuple[NDArray[Any], ...] | None, n_envs: int) -> OptionClock:
        clock = self.new_clock(n_envs)
        if state is not None:
            names = clock.state()
            if not isinstance(state, tuple | list) or len(state) != len(names):
                raise InputError("state must be what the last call of predict returned, or None")
            clock.restore(dict(zip(names, state, strict=True)))
        return clock


def refuse_reset_tuple(observation: Any) -> None:
    """Raise InputError for the tuple that ``reset`` returns."""
    if isinstance(observation, tuple):
        raise InputError(
            "observation must be an observation alone, not what reset() returns with its info; "
            "are you mixing Gym API and VecEnv API?"
        )


def _batch_size(observation: Any) -> int:
    if isinstance(observation, dict):
        return len(next(iter(observation.values())))
    return len(observation)


def selected(observation: Any, mask: NDArray[np.bool_]) -> Any:
    """The rows of tensors under a mask."""
    chosen = th.as_tensor(mask)
    if isinstance(observation, dict):
        return {key: value[chosen.to(value.device)] for key, value in observation.items()}
    return observation[chosen.to(observation.device)]
