"""Deep agents that hold their actions, as Stable-Baselines3 algorithms."""

from holdfast.deep.agents.ez_dqn import EZGreedyDQN
from holdfast.deep.agents.option_dqn import OptionDQN
from holdfast.deep.agents.per_dqn import PerDQN
from holdfast.deep.agents.per_td3 import PerTD3
from holdfast.deep.agents.temporl_dqn import TempoRLDQN
from holdfast.deep.atari_vec_env import make_atari_vec
from holdfast.deep.exact.vec_envs import make_vec_env
from holdfast.deep.networks.policies import CnnPolicy, MlpPolicy, MultiInputPolicy
from holdfast.deep.replay.ring import OptionReplayBuffer

__all__ = [
    "CnnPolicy",
    "EZGreedyDQN",
    "MlpPolicy",
    "MultiInputPolicy",
    "OptionDQN",
    "OptionReplayBuffer",
    "PerDQN",
    "PerTD3",
    "TempoRLDQN",
    "make_atari_vec",
    "make_vec_env",
]
