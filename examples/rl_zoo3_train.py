"""rl_zoo3's own training script, with Persistent DQN among its algorithms.

python examples/rl_zoo3_train.py --algo perdqn --env CartPole-v1 --conf-file examples/rl_zoo3_perdqn.yml -n 50000
"""

import rl_zoo3
import rl_zoo3.exp_manager
import rl_zoo3.train

from holdfast import PerDQN

rl_zoo3.ALGOS["perdqn"] = PerDQN
rl_zoo3.train.ALGOS = rl_zoo3.ALGOS
rl_zoo3.exp_manager.ALGOS = rl_zoo3.ALGOS

if __name__ == "__main__":
    rl_zoo3.train.train()
