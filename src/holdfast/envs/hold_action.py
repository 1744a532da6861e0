"""Fixed persistence: every action is held for k steps, whatever the agent."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, TypedDict

import gymnasium

from holdfast.core.checks import check_discount, check_integer
from holdfast.core.errors import InputTypeError
from holdfast.core.history import k_step_return

__all__ = ["Hold", "HoldAction", "steps_per_decision"]


class Hold(TypedDict):
    """What happened while an action was held: ``info["hold"]``, of ℓ ≤ k primitive steps.

    There is no array in it: Gymnasium's vector environments lay the arrays of an info into one, and holds that an
    episode cut short would not fit. They turn the two numbers into arrays (n_envs,), and each tuple into an entry
    of an object array.

    Attributes:
        observations: The ℓ observations reached, the last of which is the one that ``step`` returns.
        rewards: Their ℓ rewards, undiscounted.
        infos: Their ℓ infos.
        length: ℓ, the steps really executed: below k only where the episode was over.
        discount: γ^ℓ, what the value of the last observation counts. It does not know of terminal states.
    """

    observations: tuple[Any, ...]
    rewards: tuple[float, ...]
    infos: tuple[dict[str, Any], ...]
    length: int
    discount: float


class HoldAction(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Holds every action for ``k`` primitive steps, fewer where the episode is over before.

    The environment then is the k-persistent decision process: from s it leads to s' ~ P_k(·|s,a) for the reward
    Σ_{i<ℓ} γ^i r_i, which is r_k(s,a) on average. ``terminated``, ``truncated`` and the info are those of the last
    primitive step; the info has one more entry ``"hold"``, a :class:`Hold`, in place of any the environment itself
    may have under that name (which stays in ``info["hold"]["infos"]``).

    A learner's target is the reward plus γ^ℓ = ``info["hold"]["discount"]`` times the value of the observation,
    and the reward alone where the episode terminated. Learners that know one discount factor for all steps are to
    be given γ^k.

    What stands within the wrapper sees the primitive steps, what stands around it sees the decisions: a
    ``TimeLimit``, Stable-Baselines3's ``Monitor`` or a ``RecordVideo`` mean one thing or the other by their place.

    Observations are copies, so that environments may show them in one array again and again.

    Args:
        env: The environment, with any observations and actions.
        k: Steps that each action is held for.
        gamma: Discount factor of one primitive step, within the hold.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], k: int, gamma: float = 1.0) -> None:
        if not isinstance(env, gymnasium.Env):
            raise InputTypeError(f"env must be a Gymnasium environment, not {env!r}")
        self._k = check_integer("k", k)
        self._gamma = check_discount(gamma)
        gymnasium.utils.RecordConstructorArgs.__init__(self, k=self._k, gamma=self._gamma)
        gymnasium.Wrapper.__init__(self, env)

    @property
    def k(self) -> int:
        """Steps that each action is held for."""
        return self._k

    @property
    def gamma(self) -> float:
        """Discount factor of one primitive step."""
        return self._gamma

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; nothing is held yet, and the info is the environment's own."""
        observation, info = self.env.reset(seed=seed, options=options)
        return deepcopy(observation), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Hold ``action`` for k steps, or until the episode is over.

        Returns:
            The last observation, the discounted reward, the last step's terminated and truncated, and its info
            with ``"hold"``.
        """
        observations: list[Any] = []
        rewards: list[float] = []
        infos: list[dict[str, Any]] = []
        discount = 1.0
        terminated = truncated = False
        while len(rewards) < self._k and not (terminated or truncated):
            # Copies: an environment may write into the action it is given, or into the observation it gave.
            observation, reward, terminated, truncated, info = self.env.step(deepcopy(action))
            observations.append(deepcopy(observation))
            rewards.append(float(reward))
            infos.append(dict(info))
            discount *= self._gamma
        hold: Hold = {
            "observations": tuple(observations),
            "rewards": tuple(rewards),
            "infos": tuple(infos),
            "length": len(rewards),
            "discount": discount,
        }
        total = float(k_step_return(rewards, 0, len(rewards), self._gamma))
        return observations[-1], total, terminated, truncated, {**infos[-1], "hold": hold}


def steps_per_decision(env: gymnasium.Env[Any, Any]) -> int:
    """Steps for which the ``HoldAction`` wrappers of an environment hold every action; 1 without any."""
    held = 1
    while isinstance(env, gymnasium.Wrapper):
        held *= env.k if isinstance(env, HoldAction) else 1
        env = env.env
    return held
