"""TempoRL's DQN: choose an action by its value, then for how long to hold it by a second head of skip values."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
import torch as th
from numpy.typing import NDArray

from holdfast.deep.agents.option_dqn import OptionDQN
from holdfast.deep.agents.option_steps import uniform_durations
from holdfast.deep.agents.skip_regression import regress_skips
from holdfast.deep.agents.targets import skip_targets
from holdfast.deep.arguments import Argument, truth
from holdfast.deep.networks.skip_network import SkipQNetwork
from holdfast.deep.replay.views import OptionBatch, Views

__all__ = ["TempoRLDQN"]


@final
class TempoRLDQN(OptionDQN):
    """TempoRL: action values Q(s,a), and skip values J(s,j|a) of holding an action for j steps.

    Its greedy policy is a = argmax Q(s,·), then j = argmax J(s,·|a), the longest of equals. Where an option begins
    two coins are tossed with the same ε: one for the action and one for the skip, which may be the best one of a
    random action or a random one of the best action.

    Both values are learned from PerDQN's ring. D_j holds every sub-transition (t, t+j) inside a skip, wherever in
    it t lies, and D_1 so every primitive step, from the skip's end on. A tuple's target, of either value, is

        r^j + γ^j Q⁻(s', argmax_a Q(s',a)),

    r^j alone where s' is terminal. An update draws ``batch_size`` tuples from each D_j: those of D_1 teach both Q
    and J(·,1|·), those of any other D_j teach J(·,j|·). The loss is the mean of Q's weighted Huber losses over the
    tuples of D_1 plus the mean of J's over all tuples. A tuple has one importance weight, that of its draw from
    D_j, and it counts in either loss. Its priority is its |error|; in D_1, where it has two, the larger one.
    """

    valued: ClassVar[str] = "skips"
    n_coins: ClassVar[int] = 2
    # Skips are valued through Q alone, by double DQN.
    stands_for: ClassVar[dict[str, Any]] = {
        "bootstrap": False,
        # Skips are valued by one-step decisions, which a cost per decision would distort.
        "decision_cost": 0.0,
        "dueling": False,
        "explore_by": "options",
        "persistences": None,
        "shared_draws": False,
        "target_value": "double",
    }
    added_arguments: ClassVar[tuple[Argument, ...]] = (
        Argument(
            "pad_terminal",
            True,
            "bool",
            "Whether a sub-transition that ends the episode also teaches all longer skips, which would have ended "
            "it alike.",
            truth,
            in_replay="pad_terminal",
        ),
    )
    pad_terminal: bool

    q_net: SkipQNetwork
    q_net_target: SkipQNetwork

    @property
    def views(self) -> Views:
        """The sub-transitions of every length."""
        return Views(self.k_max, bootstrap=False, pad_terminal=self.pad_terminal)

    def _random_durations(self, n: int) -> NDArray[np.int64]:
        return uniform_durations(n, self.k_max)

    def _update(self, batch_size: int, beta: float) -> float:
        batch = self._sample(batch_size, beta)
        targets = self._targets(batch)
        residuals = regress_skips(
            self.q_net, batch.observations, batch.actions, targets, batch.weights, self.policy.optimizer
        )
        self._check_loss(residuals.loss)
        self.policy.step(self.max_grad_norm, self._n_updates, clip_each=self.clip_gradients == "each")
        return self._learned(batch, targets, residuals)

    def _targets(self, batch: OptionBatch) -> NDArray[np.float32]:
        """r^j + γ^j (1−done) · Q⁻(s', argmax_a Q(s',a)): the TD target of each tuple, (K, B)."""
        rows, index = np.unique(batch.next_rows, return_inverse=True)
        target_q, online_q = self._target_values(rows), self._online_values(rows)
        device = target_q.device
        targets = skip_targets(
            th.as_tensor(batch.rewards, device=device),
            th.as_tensor(batch.discounts, device=device),
            th.as_tensor(batch.dones, device=device),
            target_q,
            online_q,
            th.as_tensor(index, device=device).view(batch.rows.shape),
        )
        return self._clipped(targets.cpu().numpy())
