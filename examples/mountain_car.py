"""Train Persistent DQN on MountainCar and watch how long it holds its actions."""

from stable_baselines3.common.evaluation import evaluate_policy

from holdfast import PerDQN

model = PerDQN(
    "MlpPolicy",
    "MountainCar-v0",
    k_max=16,
    normalize_observations="space",
    exploration_fraction=0.6,
    policy_kwargs={"net_arch": [128, 128]},
    seed=0,
    verbose=1,
)
model.learn(60_000, log_interval=20)
mean_return, deviation = evaluate_policy(model, model.get_env(), n_eval_episodes=20)
print(f"return {mean_return:.1f} ± {deviation:.1f} over 20 episodes")
