"""Deep agents that hold their actions, as Stable-Baselines3 algorithms."""

from holdfast.deep.agents.ez_dqn import EZGreedyDQN
from holdfast.deep.agents.option_actor_critic import OptionActorCritic
from holdfast.deep.agents.option_dqn import OptionDQN
from holdfast.deep.agents.per_dqn import OptionValueDQN, PerDQN
from holdfast.deep.agents.per_sac import OptionSAC, PerSAC
from holdfast.deep.agents.per_td3 import OptionTD3, PerTD3
from holdfast.deep.agents.temporl_dqn import TempoRLDQN
from holdfast.deep.arguments import Argument
from holdfast.deep.atari_vec_env import make_atari_vec
from holdfast.deep.exact.vec_envs import make_vec_env
from holdfast.deep.networks.policies import CnnPolicy, MlpPolicy, MultiInputPolicy
from holdfast.deep.replay.ring import OptionReplayBuffer
from holdfast.deep.replay.views import Views

__all__ = [
    "Argument",
    "CnnPolicy",
    "EZGreedyDQN",
    "MlpPolicy",
    "MultiInputPolicy",
    "OptionActorCritic",
    "OptionDQN",
    "OptionReplayBuffer",
    "OptionSAC",
    "OptionTD3",
    "OptionValueDQN",
    "PerDQN",
    "PerSAC",
    "PerTD3",
    "TempoRLDQN",
    "Views",
    "make_atari_vec",
    "make_vec_env",
]
