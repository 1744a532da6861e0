"""From a table of values to held actions: what a policy over discrete options does when it is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray

from holdfast.core.choice import Decision
from holdfast.core.clock import OptionClock, is_interrupted
from holdfast.core.options import persistence_index, position_within
from holdfast.deep.networks.greedy_rules import ValueTable
from holdfast.deep.networks.holding_policy import ExploratoryDraws, refuse_reset_tuple, selected
from holdfast.deep.networks.option_network import OptionQNetwork
from holdfast.deep.networks.skip_network import SkipQNetwork
from holdfast.deep.networks.stacked_heads import stacked_parameters
from holdfast.deep.networks.value_policy import ValuePolicy
from holdfast.deep.speed.optimizer_step import optimizer_step

__all__ = ["OptionPolicy"]


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

    @property
    def optimizers(self) -> dict[str, th.optim.Optimizer]:
        """The value network's."""
        return {"optimizer": self.optimizer}

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

    def _choose(self, table: ValueTable, tolerance: float | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The greedy actions, and for how many steps to hold them, each (n,)."""
        actions, counted = self.rule.choose(table, tolerance)
        return actions, self._durations[persistence_index(counted)]

    def new_clock(self, n_envs: int) -> OptionClock:
        """A clock of actions that are whole numbers."""
        return OptionClock(n_envs)

    def as_taken(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Convert numbers from 0 to the actions that the environment takes."""
        return self.choices.taken(actions)

    def as_held(self, actions: NDArray[Any]) -> NDArray[Any]:
        """The inverse of ``as_taken``: numbers from 0."""
        return self.choices.numbers(actions)

    def decide(self, observation: Any) -> Decision:
        """What to do and for how long, for loops that sleep while they hold; see ``HoldingPolicy``."""
        refuse_reset_tuple(observation)
        self.set_training_mode(False)
        tensor, is_batch = self.obs_to_tensor(observation)
        table = self.option_values(tensor, averaged=True)
        actions, durations = self._choose(table, self.decision_tolerance)
        actions, values = self.as_taken(actions), self.rule.options(table)
        if is_batch:
            return Decision(actions, durations, values)
        action = int(actions[0]) if self.choices.are_numbers else actions[0]
        return Decision(action, int(durations[0]), values[0])

    def interrupts(self, observation: Any, action: Any, left: int) -> bool:
        """Whether ``action``, which was to be held for ``left`` more steps, is dropped at one observation."""
        if self.interrupt_margin is None:
            return False
        self.set_training_mode(False)
        table = self.option_values(self.obs_to_tensor(observation)[0], averaged=True)
        position = position_within(self._durations, left)
        held = self.rule.options(table)[0, self.choices.number(action), position]
        return bool(is_interrupted(self.rule.best(table)[0], held, self.interrupt_margin))

    def interrupt(
        self, clock: OptionClock, observation: Any, averaged: bool = False
    ) -> tuple[NDArray[np.bool_], ValueTable | None]:
        """Drop the greedy options that another option beats by more than ``interrupt_margin``."""
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
        values: ValueTable | None = None,
        draws: ExploratoryDraws | None = None,
        averaged: bool = False,
    ) -> None:
        """Begin random options, and the best by the table of values elsewhere."""
        idle = clock.idle
        if not idle.any():
            return
        draws = draws or _nothing_random(clock.n_envs)
        actions, durations = draws.actions.copy(), draws.durations.copy()
        asking = idle & ~(draws.draws_action & draws.draws_hold)
        if asking.any():
            if values is not None:
                table = values[asking]
            else:
                shown = observation if asking.all() else selected(observation, asking)
                table = self.option_values(shown, averaged)
            chosen, holds = self._choose(table, tolerance)
            given = draws.draws_action[asking]
            if given.any():
                counted = self.rule.hold(table, actions[asking], tolerance)
                holds = np.where(given, self._durations[persistence_index(counted)], holds)
            actions[asking] = np.where(given, actions[asking], chosen)
            durations[asking] = np.where(draws.draws_hold[asking], durations[asking], holds)
        clock.begin(idle, actions, durations, draws.draws_action | draws.draws_hold)

    def _predict(self, observation: Any, deterministic: bool = True) -> th.Tensor:
        tolerance = self.decision_tolerance if deterministic else None
        actions, _ = self._choose(self.option_values(observation, averaged=True), tolerance)
        return th.as_tensor(actions, device=self.device)


def _nothing_random(n: int) -> ExploratoryDraws:
    nowhere = np.zeros(n, dtype=np.bool_)
    return ExploratoryDraws(nowhere, nowhere, np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64))
