"""Two agents of your own: ``holdfast train cliff --algo own_agents:SmdpQ``, and ``own_agents:ZetaPerDQN``."""

from dataclasses import dataclass

import numpy as np

from holdfast.deep import Argument, OptionValueDQN, Views
from holdfast.deep.arguments import real
from holdfast.tabular import GreedyPolicy, TabularLearner


@dataclass(kw_only=True, eq=False)
class SmdpQ(TabularLearner):
    """Q(s,a,k) learned only from the options carried out, with step sizes that fall with the visits."""

    k_max: int = 8
    falls_by: float = 0.6

    def table_depths(self):
        return {"q": self.k_max, "visits": self.k_max}

    def rule(self):  # how it decides
        return self.make_rule(range(1, self.k_max + 1))

    def policy_of(self, tables):
        return GreedyPolicy(tables["q"])

    def learn(self, tables, option):
        at = option.states[0], option.action, option.kappa - 1
        reward = option.rewards @ self.gamma ** np.arange(option.kappa)
        following = 0.0 if option.terminated else tables["q"][option.states[-1]].max()
        tables["visits"][at] += 1.0
        target = reward + self.gamma**option.kappa * following
        tables["q"][at] += tables["visits"][at] ** -self.falls_by * (target - tables["q"][at])


class ZetaPerDQN(OptionValueDQN):
    """PerDQN that seldom explores with long holds: a random action lasts k steps with probability ∝ k^−µ."""

    added_arguments = (Argument("mu", 1.0, "float", "µ, how fast the chance falls.", real(0.0)),)

    @property
    def views(self):  # what it learns of each step: a value for every persistence
        return Views(self.k_max, self.bootstrap, persistences=self.persistences, shared_draws=self.shared_draws)

    def _chances(self):
        chances = np.asarray(self.views.durations, dtype=float) ** -self.mu
        return chances / chances.sum()

    def _mean_random_hold(self):
        return float(self._chances() @ self.views.durations)

    def _random_durations(self, n):  # in steps, from SB3's generator
        return np.random.choice(self.views.durations, size=n, p=self._chances())  # noqa: NPY002
