"""From values to held actions: what a policy over persistence options does when it is asked.

A policy keeps no hidden state: the option being held travels in ``predict``'s ``state``, as RecurrentPPO carries
its LSTM state. Without it every call decides anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray

from holdfast.core.choice import Decision
from holdfast.core.clock import OptionClock, is_interrupted
from holdfast.core.errors import InputError
from holdfast.core.options import persistence_index, position_within
from holdfast.deep.networks.greedy_rules import Table
from holdfast.deep.networks.option_network import OptionQNetwork
from holdfast.deep.networks.skip_network import SkipQNetwork
from holdfast.deep.networks.stacked_heads import stacked_parameters
from holdfast.deep.networks.value_policy import ValuePolicy
from holdfast.deep.speed.optimizer_step import optimizer_step

__all__ = ["ExploratoryDraws", "OptionPolicy"]


class ExploratoryDraws(NamedTuple):
    """What is random of the options that n environments begin, each (n,).

    Attributes:
        draws_action: Where the action is a random one.
        draws_hold: Where the time for which it is held is.
        actions: Read where ``draws_action`` holds.
        durations: Read where ``draws_hold`` holds.
    """

    draws_action: NDArray[np.bool_]
    draws_hold: NDArray[np.bool_]
    actions: NDArray[np.int64]
    durations: NDArray[np.int64]

    @classmethod
    def none(cls, n: int) -> ExploratoryDraws:
        """Nothing is random."""
        nowhere = np.zeros(n, dtype=np.bool_)
        return cls(nowhere, nowhere, np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64))


class OptionPolicy(ValuePolicy):
    """A policy that decides what to do and for how long; ``ValuePolicy`` explains its arguments."""

    @property
    def device(self) -> th.device:
        """Where the parameters are."""
        return self.q_net.device if "q_net" in self._modules else super().device

    def set_training_mode(self, mode: bool) -> None:
        """Put the network into training or evaluation mode; the target network stays in evaluation mode."""
        self.q_net.set_training_mode(mode)
        # Not by way of PyTorch, which looks for modules and parameters of that name first.
        self.__dict__["training"] = mode

    # Deciding ----------------------------------------------------------------------------------------------

    @property
    def averaged_net(self) -> OptionQNetwork | SkipQNetwork:
        """The network that is evaluated and shipped: that of averaged weights, if they are averaged."""
        return self._modules.get("q_net_average") or self.q_net  # type: ignore[return-value]

    def option_values(self, observation: Any, averaged: bool = False) -> NDArray[np.float32]:
        """The network's table of a batch of observations, as tensors: (n, A, ·), to be read by ``rule``.

        Args:
            observation: Tensors.
            averaged: Whether by ``averaged_net`` rather than by the network that is trained.
        """
        network = self.averaged_net if averaged else self.q_net
        return network.quick_values(observation).cpu().numpy()

    def move_average(self, n_updates: int) -> None:
        """Move the averaged weights, if there are any, towards those that an optimiser has just moved.

        Args:
            n_updates: Updates before this one; while they are few, the average is one over their last tenth.
        """
        if self.average_rate == 0.0:
            return
        rate = self._rate_of_average(n_updates)
        own, average = self.q_net.plain_parameters(), self.q_net_average.plain_parameters()
        with th.no_grad():
            if own is None or average is None:
                own, average = self.q_net.all_parameters(), self.q_net_average.all_parameters()
                for source, copied in zip(self.q_net.all_buffers(), self.q_net_average.all_buffers(), strict=True):
                    copied.copy_(source)
            th._foreach_lerp_(average, own, rate)

    def _rate_of_average(self, n_updates: int) -> float:
        return max(self.average_rate, 10.0 / (n_updates + 10.0))

    def step(
        self,
        max_norm: float,
        n_updates: int,
        compiled_parameters: list[th.Tensor] | None = None,
        clip_each: bool = False,
    ) -> None:
        """Clip the gradients, make the optimiser's step, and ``move_average``.

        Args:
            max_norm: Of the gradients.
            n_updates: Updates before this one.
            compiled_parameters: Those of the network, if compiled code has set their gradients.
            clip_each: Clip every weight matrix and bias vector by itself, those of each head too. Compiled code
                knows one norm of all alone.
        """
        is_compiled = compiled_parameters is not None and not clip_each
        if not is_compiled or not self.step_compiled(compiled_parameters or [], max_norm, n_updates):
            optimizer_step(self.optimizer, max_norm, stacked_parameters(self.q_net) if clip_each else None)
            self.move_average(n_updates)

    def step_compiled(self, parameters: list[th.Tensor], max_norm: float, n_updates: int) -> bool:
        """The optimiser's step and ``move_average`` by compiled code; False, with nothing done, if it cannot."""
        own, mean = self.q_net, self.averaged_net
        assert isinstance(own, OptionQNetwork)
        assert isinstance(mean, OptionQNetwork)
        is_averaged = self.average_rate > 0.0
        average = mean.compiled_pass if is_averaged else None
        rate = self._rate_of_average(n_updates) if is_averaged else 0.0
        return own.compiled_pass.step(self.optimizer, max_norm, parameters, average, rate)

    def _choose(self, table: Table, tolerance: float | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        actions, counted = self.rule.choose(table, tolerance)
        return actions, self._durations[persistence_index(counted)]

    def decide(self, observation: Any) -> Decision:
        """What to do and for how long, for loops that sleep while they hold.

        Args:
            observation: One observation, or a batch of them.
        """
        _refuse_reset_tuple(observation)
        self.set_training_mode(False)
        tensor, is_batch = self.obs_to_tensor(observation)
        table = self.option_values(tensor, averaged=True)
        actions, durations = self._choose(table, self.decision_tolerance)
        actions, values = actions + self.action_space.start, self.rule.options(table)
        if is_batch:
            return Decision(actions, durations, values)
        return Decision(int(actions[0]), int(durations[0]), values[0])

    def interrupts(self, observation: Any, action: int, left: int) -> bool:
        """Whether ``action``, which was to be held for ``left`` more steps, is dropped at one observation."""
        if self.interrupt_margin is None:
            return False
        self.set_training_mode(False)
        table = self.option_values(self.obs_to_tensor(observation)[0], averaged=True)
        position = position_within(self._durations, left)
        held = self.rule.options(table)[0, action - self.action_space.start, position]
        return bool(is_interrupted(self.rule.best(table)[0], held, self.interrupt_margin))

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """The action to take now, and the option that is held on to.

        Args:
            observation: One observation, or a batch.
            state: What the last call returned; None decides anew.
            episode_start: (n,) where an episode has just begun, so that nothing is held.
            deterministic: Whether ``decision_tolerance`` applies.
        """
        self.set_training_mode(False)
        clock, tensor, is_batch = self.held_options(observation, state, episode_start)
        _, values = self.interrupt(clock, tensor, averaged=True)
        tolerance = self.decision_tolerance if deterministic else None
        self.begin_options(clock, tensor, tolerance, values, averaged=True)
        return self.hold_on(clock, is_batch)

    @staticmethod
    def steps_left(state: tuple[NDArray[Any], ...] | None) -> NDArray[np.int64]:
        """(n,) steps for which the actions of a state that ``predict`` returned are to be held on."""
        return np.zeros(0, np.int64) if state is None else _clock_from(state, len(state[0])).left

    # The parts of ``predict``, of which an agent makes its own, with random options between them.

    def held_options(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None,
        episode_start: NDArray[np.bool_] | None,
    ) -> tuple[OptionClock, Any, bool]:
        """What is held by a state of ``predict``, the observation as tensors, and whether it is a batch."""
        _refuse_reset_tuple(observation)
        tensor, is_batch = self.obs_to_tensor(observation)
        clock = _clock_from(state, _batch_size(tensor))
        if episode_start is not None:
            starts = np.asarray(episode_start, dtype=np.bool_)
            if starts.shape not in ((), (1,), (clock.n_envs,)):
                raise InputError(f"episode_start must have shape ({clock.n_envs},), not {starts.shape}")
            clock.cut(np.broadcast_to(starts, (clock.n_envs,)))
        return clock, tensor, is_batch

    def interrupt(
        self, clock: OptionClock, observation: Any, averaged: bool = False
    ) -> tuple[NDArray[np.bool_], Table | None]:
        """Drop the greedy options that should not be held on to.

        Args:
            clock: What is held; changed here.
            observation: Tensors, one row per environment.
            averaged: Whether averaged weights tell.

        Returns:
            (n_envs,) the environments whose option was dropped, and the values if they were asked for.
        """
        interrupted = np.zeros(clock.n_envs, dtype=np.bool_)
        if self.interrupt_margin is None:
            return interrupted, None
        watched = ~clock.idle & ~clock.exploratory
        if not watched.any():
            return interrupted, None
        values = self.option_values(observation, averaged)
        # Of a sparse set, the longest hold that is not longer than what is left.
        positions = position_within(self._durations, clock.left)
        held = self.rule.options(values)[np.arange(clock.n_envs), clock.action, positions]
        interrupted = watched & is_interrupted(self.rule.best(values), held, self.interrupt_margin)
        clock.cut(interrupted)
        return interrupted, values

    def begin_options(
        self,
        clock: OptionClock,
        observation: Any,
        tolerance: float | None,
        values: Table | None = None,
        draws: ExploratoryDraws | None = None,
        averaged: bool = False,
    ) -> None:
        """Begin an option wherever none is held.

        Args:
            clock: What is held; changed here.
            observation: Tensors, one row per environment.
            tolerance: Of the greedy choices; None takes the first maximum.
            values: Of the observation, if they are known.
            draws: What is random of these options.
            averaged: Whether averaged weights choose.
        """
        idle = clock.idle
        if not idle.any():
            return
        draws = draws or ExploratoryDraws.none(clock.n_envs)
        actions, durations = draws.actions.copy(), draws.durations.copy()
        asking = idle & ~(draws.draws_action & draws.draws_hold)
        if asking.any():
            if values is not None:
                table = values[asking]
            else:
                shown = observation if asking.all() else _select(observation, asking)
                table = self.option_values(shown, averaged)
            chosen, holds = self._choose(table, tolerance)
            given = draws.draws_action[asking]
            if given.any():
                counted = self.rule.hold(table, actions[asking], tolerance)
                holds = np.where(given, self._durations[persistence_index(counted)], holds)
            actions[asking] = np.where(given, actions[asking], chosen)
            durations[asking] = np.where(draws.draws_hold[asking], durations[asking], holds)
        clock.begin(idle, actions, durations, draws.draws_action | draws.draws_hold)

    def hold_on(self, clock: OptionClock, is_batch: bool) -> tuple[NDArray[Any], tuple[NDArray[Any], ...]]:
        """The actions of one step of what is held, and the state behind it."""
        clock.tick(np.zeros(clock.n_envs, dtype=np.bool_))
        actions = clock.action + self.action_space.start
        return (actions if is_batch else np.array(actions[0])), tuple(clock.state().values())

    def _predict(self, observation: Any, deterministic: bool = True) -> th.Tensor:
        tolerance = self.decision_tolerance if deterministic else None
        actions, _ = self._choose(self.option_values(observation, averaged=True), tolerance)
        return th.as_tensor(actions, device=self.device)


def _refuse_reset_tuple(observation: Any) -> None:
    if isinstance(observation, tuple):
        raise InputError(
            "observation must be an observation alone, not what reset() returns with its info; "
            "are you mixing Gym API and VecEnv API?"
        )


def _clock_from(state: tuple[NDArray[Any], ...] | None, n_envs: int) -> OptionClock:
    clock = OptionClock(n_envs)
    if state is not None:
        names = clock.state()
        if not isinstance(state, tuple | list) or len(state) != len(names):
            raise InputError("state must be what the last call of predict returned, or None")
        clock.restore(dict(zip(names, state, strict=True)))
    return clock


def _batch_size(observation: Any) -> int:
    if isinstance(observation, dict):
        return len(next(iter(observation.values())))
    return len(observation)


def _select(observation: Any, mask: NDArray[np.bool_]) -> Any:
    chosen = th.as_tensor(mask)
    if isinstance(observation, dict):
        return {key: value[chosen.to(value.device)] for key, value in observation.items()}
    return observation[chosen.to(observation.device)]
