"""rl_zoo3's own scripts, with Persistent DQN among its algorithms: train, optimise and enjoy.

pip install rl_zoo3 pandas
python examples/rl_zoo3_train.py --algo perdqn --env CartPole-v1 --conf-file examples/rl_zoo3_perdqn.yml -n 50000
python examples/rl_zoo3_train.py --algo perdqn --env CartPole-v1 --conf-file examples/rl_zoo3_perdqn.yml -optimize
python examples/rl_zoo3_train.py enjoy --algo perdqn --env CartPole-v1 -f logs --no-render
"""

import sys
from typing import Any

import rl_zoo3
import rl_zoo3.enjoy
import rl_zoo3.train
from rl_zoo3 import hyperparams_opt

from holdfast import PerDQN


def sample_perdqn(trial: Any, n_actions: int, n_envs: int, additional_args: dict[str, Any]) -> dict[str, Any]:
    """What rl_zoo3 tries for DQN, and the largest persistence."""
    of_dqn = hyperparams_opt.sample_dqn_params(trial, n_actions, n_envs, additional_args)
    return {**of_dqn, "k_max": trial.suggest_categorical("k_max", [1, 2, 4, 8, 16])}


rl_zoo3.ALGOS["perdqn"] = PerDQN
hyperparams_opt.HYPERPARAMS_SAMPLER["perdqn"] = sample_perdqn
hyperparams_opt.HYPERPARAMS_CONVERTER["perdqn"] = hyperparams_opt.convert_offpolicy_params

if __name__ == "__main__":
    if sys.argv[1:2] == ["enjoy"]:
        del sys.argv[1]
        rl_zoo3.enjoy.enjoy()
    else:
        rl_zoo3.train.train()
