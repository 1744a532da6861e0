"""Persistent DQN: deep Q-learning with the all-persistence Bellman operator."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, final

import numpy as np
import torch as th
from numpy.typing import NDArray

from holdfast.core.checks import check_choice
from holdfast.core.durations import EXPLORATIONS
from holdfast.deep.agents.option_dqn import OptionDQN
from holdfast.deep.agents.option_steps import uniform_durations
from holdfast.deep.agents.paper_settings import ATARI, MOUNTAIN_CAR, PLAIN, READINGS
from holdfast.deep.agents.regression import Residuals, regress
from holdfast.deep.agents.targets import all_persistence_targets, held_values, state_values
from holdfast.deep.arguments import Argument, choice
from holdfast.deep.networks.option_network import OptionQNetwork
from holdfast.deep.replay.views import OptionBatch, Views
from holdfast.deep.speed.shortcuts import can_keep_targets, compiled_parameters

__all__ = ["OptionValueDQN", "PerDQN"]


class OptionValueDQN(OptionDQN):
    """Values of options Q(s,a,k), learned by the all-persistence operator; with one view it is DQN's update.

    Abstract: an agent supplies its views and how random durations are drawn. An agent with its own update
    overrides ``_update``, which may call ``_sample``, ``_fresh_targets``, ``_clipped``, ``_regress``,
    ``policy.step`` and ``_learned``; targets and regression are final, because compiled code computes them too.
    """

    q_net: OptionQNetwork
    q_net_target: OptionQNetwork

    def _update(self, batch_size: int, beta: float) -> float:
        batch = self._sample(batch_size, beta)
        parameters = compiled_parameters(self, batch)
        if parameters is None:
            targets = self._targets(batch)
            residuals = self._regress(batch, targets)
        else:
            # The same in compiled code: ``gradient`` (speed/pass_kernels.py), whose targets are ``kept_targets``.
            targets, found = self.q_net.compiled_pass.learn(self, batch, parameters, self._target_bounds())
            residuals = Residuals(*found)
        self._check_loss(residuals.loss)
        self.policy.step(self.max_grad_norm, self._n_updates, parameters, clip_each=self.clip_gradients == "each")
        return self._learned(batch, targets, residuals)

    @final
    def _targets(self, batch: OptionBatch) -> NDArray[np.float32]:
        """The clipped TD target of each tuple, (K, B), from fresh or cached values."""
        assert self.replay_buffer is not None
        if not can_keep_targets(self):
            return self._clipped(self._fresh_targets(batch))
        return self._clipped(self.target_cache.targets(self, batch))

    @final
    def _fresh_targets(self, batch: OptionBatch) -> NDArray[np.float32]:
        """r^ℓ + γ^ℓ (1−done) · (V(s') where ℓ = k, else Q⁻(s',a,k−ℓ)), (K, B), from what the networks say now.

        ``kept_targets`` computes the same from cached values of the target network.
        """
        assert self.replay_buffer is not None
        rows, index = self._distinct(batch.next_rows)
        target_q = self._target_values(rows)
        online_q = self._online_values(rows) if self.target_value == "double" else None
        on_device = {name: th.as_tensor(part, device=target_q.device) for name, part in batch.numbers().items()}
        next_index = th.as_tensor(index, device=target_q.device)
        rest_positions = th.as_tensor(self.replay_buffer.positions[batch.rest], device=target_q.device)
        targets = all_persistence_targets(
            on_device["rewards"],
            on_device["discounts"],
            on_device["dones"],
            on_device["rest"] == 0,
            state_values(self.target_value, target_q, online_q, self.decision_cost)[next_index],
            held_values(target_q, next_index, on_device["actions"], rest_positions),
        )
        return targets.cpu().numpy()

    @final
    def _regress(self, batch: OptionBatch, targets: NDArray[np.float32]) -> Residuals:
        """The gradient of the mean over all K·B tuples of weight · Huber(Q(s,a,k) − target)."""
        return regress(
            self.q_net,
            batch.observations,
            batch.actions,
            targets,
            batch.weights,
            self.policy.optimizer,
            batch.is_shared,
        )


@final
class PerDQN(OptionValueDQN):
    """Persistent DQN (not to be confused with prioritised-replay DQN): Q(s,a,k) learned for every k at once.

    It chooses what to do and for how long; whatever time scale an experience was collected at, it updates the
    values of all of them. With ``k_max=1`` it holds nothing; ``holdfast docs perdqn`` says with which arguments
    it is SB3's DQN.

    Paper: Algorithm per-dqn
    """

    added_arguments: ClassVar[tuple[Argument, ...]] = (
        Argument(
            "exploration",
            "options",
            "str",
            'What a random decision draws from: all ``"options"``, or ``"primitive"`` actions held for one step.',
            choice(EXPLORATIONS),
        ),
    )
    exploration: str

    @property
    def views(self) -> Views:
        """One for every persistence."""
        return Views(self.k_max, self.bootstrap, persistences=self.persistences, shared_draws=self.shared_draws)

    def _mean_random_hold(self) -> float:
        return 1.0 if self.exploration == "primitive" else super()._mean_random_hold()

    def _random_durations(self, n: int) -> NDArray[np.int64]:
        if self.exploration == "primitive":
            return np.ones(n, dtype=np.int64)
        return uniform_durations(n, self.k_max, self.persistences)

    @staticmethod
    def plain() -> dict[str, Any]:
        """Keyword arguments for the paper's plain update, without what makes learning steadier or faster."""
        return copy.deepcopy(PLAIN)

    @staticmethod
    def paper_mountain_car(reading: str = "text") -> dict[str, Any]:
        """The paper's MountainCar settings as keyword arguments, with schedules over its 600 000 steps.

        Args:
            reading: ``"text"`` for what the paper says, ``"baselines"`` for what OpenAI Baselines, on which its
                code was built, did where it says nothing.
        """
        return _read(MOUNTAIN_CAR, reading)

    @staticmethod
    def paper_atari(reading: str = "text") -> dict[str, Any]:
        """The paper's Atari settings as keyword arguments, with schedules over its 2.5 million steps.

        Args:
            reading: As in ``paper_mountain_car``.
        """
        return _read(ATARI, reading)


def _read(settings: dict[str, Any], reading: str) -> dict[str, Any]:
    added = READINGS[check_choice("reading", reading, tuple(READINGS))]
    return copy.deepcopy({**settings, **added})
