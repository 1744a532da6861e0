"""Deep agents that hold their actions, as Stable-Baselines3 algorithms."""

from holdfast.deep.ez_dqn import EZGreedyDQN
from holdfast.deep.option_dqn import OptionDQN
from holdfast.deep.per_dqn import PerDQN
from holdfast.deep.policies import CnnPolicy, MlpPolicy, MultiInputPolicy
from holdfast.deep.replay import OptionReplayBuffer
from holdfast.deep.temporl_dqn import TempoRLDQN
from holdfast.deep.vec_envs import make_vec_env

__all__ = [
    "CnnPolicy",
    "EZGreedyDQN",
    "MlpPolicy",
    "MultiInputPolicy",
    "OptionDQN",
    "OptionReplayBuffer",
    "PerDQN",
    "TempoRLDQN",
    "make_vec_env",
]
