"""Persistent DQN in one file: an agent that decides what to do *and for how long to do it*.

    python examples/perdqn_single_file.py --env-id CartPole-v1 --total-steps 50000

An option (a, k) holds the action a for k steps. The network values every option, Q(s, a, k), and each step of an
option that was played teaches the values of every k (Sabbioni et al., AAAI 2023, Algorithm 3). Suppose (a, 4) was
played in s0 and led through s1, s2 and s3 to s4. With V(s) = max Q(s,·,·), this teaches

    Q(s0,a,4) ← r0 + γ r1 + γ² r2 + γ³ r3 + γ⁴ V(s4)        the option itself
    Q(s0,a,2) ← r0 + γ r1 + γ² V(s2)                        a shorter one: its part of the way
    Q(s0,a,8) ← r0 + γ r1 + γ² r2 + γ³ r3 + γ⁴ Q(s4,a,4)    a longer one: s4 with 4 more steps to go

and likewise for s1, s2 and s3. The rest is a modern DQN: double, dueling, prioritised replay, layer normalisation,
averaged weights. ``holdfast.PerDQN`` with its defaults does the same, but faster, and much more besides.
"""

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn

PERSISTENCES = np.array([1, 2, 4, 8, 16, 32])  # the k among which to choose
K, LONGEST = len(PERSISTENCES), 32
GAMMA, LEARNING_RATE, LEARNING_RATE_AT_END = 0.99, 3e-4, 3e-5
BUFFER_SIZE, LEARNING_STARTS, BATCH_SIZE, TARGET_UPDATE_INTERVAL = 100_000, 1000, 64, 500
EXPLORATION_FRACTION, EPSILON_AT_END = 0.1, 0.02  # ε falls from 1 over a tenth of the training
PRIORITY_ALPHA, PRIORITY_BETA = 0.6, 0.4  # β rises to 1 over the training
MAX_GRADIENT_NORM, AVERAGE_RATE = 10.0, 0.001


class QNetwork(nn.Module):
    """Q(s, a, k) = V(s) + U(s, a, k) − mean of U: a trunk, one head for each k, and one more for V."""

    def __init__(self, n_inputs, n_actions):
        super().__init__()
        self.n_actions = n_actions
        self.trunk = nn.Sequential(
            *(nn.Linear(n_inputs, 256), nn.LayerNorm(256), nn.ReLU()),
            *(nn.Linear(256, 256), nn.LayerNorm(256), nn.ReLU()),
        )
        heads = [nn.Linear(256, n_actions) for _ in range(K + 1)]
        self.heads = nn.Linear(256, (K + 1) * n_actions)  # all of them in one product
        self.heads.weight.data = torch.cat([head.weight.data for head in heads])
        self.heads.bias.data = torch.cat([head.bias.data for head in heads])

    def forward(self, observations):
        outputs = self.heads(self.trunk(observations)).view(-1, K + 1, self.n_actions).transpose(0, 1)
        advantages, state_value = outputs[:-1], outputs[-1:].mean(dim=2, keepdim=True)
        values = state_value + advantages - advantages.mean(dim=(0, 2), keepdim=True)
        return values.permute(1, 2, 0)  # (batch, action, persistence)

    def greedy_option(self, observation):
        """The action and the hold of argmax Q(s,·,·)."""
        with torch.no_grad():
            values = self(torch.as_tensor(observation[None], dtype=torch.float32))
        action, position = divmod(int(values.argmax()), K)
        return action, PERSISTENCES[position]


def window_lengths():
    """ℓ by (k, steps left): k if so many are left, else the most whose rest k − ℓ has a value; 0 for none."""
    useful = [[n for n in range(1, k + 1) if k - n in (0, *PERSISTENCES)] for k in PERSISTENCES]
    return np.array([[max([0, *(n for n in row if n <= left)]) for left in range(LONGEST + 1)] for row in useful])


class Replay:
    """A ring of steps. Each is stored once; what it teaches about each k is worked out when it is drawn."""

    def __init__(self, n_inputs):
        self.observations = np.zeros((BUFFER_SIZE, n_inputs), dtype=np.float32)
        self.next_observations = np.zeros_like(self.observations)
        self.actions = np.zeros(BUFFER_SIZE, dtype=np.int64)
        self.rewards = np.zeros(BUFFER_SIZE, dtype=np.float32)
        self.terminated = np.zeros(BUFFER_SIZE, dtype=bool)
        self.left = np.zeros(BUFFER_SIZE, dtype=np.int64)  # steps of its option from here on; 0 while that runs
        self.n_added, self.largest_priority = 0, 1.0
        self.least, self.most = 0.0, 0.0  # of the rewards so far, and of 0, which is all that follows an end
        self.lengths = window_lengths()
        self.powers = np.cumprod([1.0, *[GAMMA] * LONGEST]).astype(np.float32)
        # Priorities are the leaves of a binary tree, in which each node is the sum of its two children.
        self.n_leaves = 1 << (BUFFER_SIZE - 1).bit_length()
        self.sums = np.zeros(2 * self.n_leaves)

    def add(self, observation, action, reward, next_observation, terminated):
        slot = self.n_added % BUFFER_SIZE
        self.observations[slot], self.next_observations[slot] = observation, next_observation
        self.actions[slot], self.rewards[slot], self.terminated[slot] = action, reward, terminated
        self.least, self.most = min(self.least, self.rewards[slot]), max(self.most, self.rewards[slot])
        self.left[slot] = 0
        self.set_priorities(np.array([slot]), 0.0)  # not to be drawn yet
        self.n_added += 1

    def finish_option(self, n_steps):
        """The option of the last ``n_steps`` is over: they can be drawn, as likely as the most surprising step."""
        left = np.arange(1, n_steps + 1)
        slots = (self.n_added - left) % BUFFER_SIZE
        self.left[slots] = left
        self.set_priorities(slots, self.largest_priority**PRIORITY_ALPHA)

    def set_priorities(self, slots, values):
        nodes = slots + self.n_leaves
        self.sums[nodes] = values
        while nodes[0] > 1:
            nodes = nodes // 2
            self.sums[nodes] = self.sums[2 * nodes] + self.sums[2 * nodes + 1]

    def draw(self, beta):
        """Slots in proportion to their priorities, one from each of B equal shares, and their weights."""
        masses = (np.arange(BATCH_SIZE) + np.random.rand(BATCH_SIZE)) * (self.sums[1] / BATCH_SIZE)
        nodes = np.ones(BATCH_SIZE, dtype=np.int64)
        while nodes[0] < self.n_leaves:
            nodes *= 2
            goes_right = (masses >= self.sums[nodes]) & (self.sums[nodes + 1] > 0)
            masses -= np.where(goes_right, self.sums[nodes], 0.0)
            nodes += goes_right
        priorities = self.sums[nodes]
        return nodes - self.n_leaves, ((priorities / priorities.min()) ** -beta).astype(np.float32)

    def windows(self, slots):
        """What each slot teaches about each k, all (K, B): ℓ, r^ℓ, the last step, and whether it can."""
        left = self.left[slots]
        ends = self.terminated[(slots + left - 1) % BUFFER_SIZE]  # the option ended the episode,
        is_fixed = ends & (left < PERSISTENCES[:, None])  # and so would have any longer one, in the same way
        lengths = np.where(is_fixed, left, self.lengths[:, np.minimum(left, LONGEST)])
        exists, lengths = lengths > 0, np.maximum(lengths, 1)
        returns = np.zeros(lengths.shape)
        for step in reversed(range(lengths.max())):  # r^ℓ = r0 + γ (r1 + γ (r2 + ...))
            rewards = self.rewards[(slots + step) % BUFFER_SIZE]
            returns = np.where(step < lengths, rewards + GAMMA * returns, returns)
        return lengths, returns.astype(np.float32), (slots + lengths - 1) % BUFFER_SIZE, exists


class Agent:
    """The networks, their optimiser and the replay; ``act`` holds actions, ``learn`` makes one update."""

    def __init__(self, env, total_steps, seed=0):
        np.random.seed(seed)
        torch.manual_seed(seed)
        env.action_space.seed(seed)
        n_inputs, self.action_space = env.observation_space.shape[0], env.action_space
        self.online, self.target, self.average = (QNetwork(n_inputs, int(env.action_space.n)) for _ in range(3))
        for network in (self.target, self.average):
            network.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=LEARNING_RATE, fused=True)
        self.replay = Replay(n_inputs)
        self.total_steps, self.n_steps, self.n_updates = total_steps, 0, 0
        self.action, self.hold, self.held, self.is_random = 0, 0, 0, False
        self.mean_greedy_hold = 1.0

    def act(self, observation):
        """The action that is held; if none is, the coin is tossed and a new option begins."""
        if self.held == self.hold:
            self.held, warms_up = 0, self.n_steps < LEARNING_STARTS
            self.is_random = warms_up or np.random.rand() < self.exploration_chance()
            if self.is_random:
                self.action, self.hold = self.action_space.sample(), PERSISTENCES[np.random.randint(K)]
            else:
                self.action, self.hold = self.online.greedy_option(observation)
        return self.action

    def exploration_chance(self):
        """The chance of a random *option* with which a share ε of all *steps* is random."""
        done = self.n_steps / self.total_steps / EXPLORATION_FRACTION
        epsilon = max(1.0 + done * (EPSILON_AT_END - 1.0), EPSILON_AT_END)
        greedy, random = epsilon * self.mean_greedy_hold, (1.0 - epsilon) * PERSISTENCES.mean()
        return greedy / (greedy + random)

    def store(self, observation, reward, next_observation, terminated, truncated):
        self.replay.add(observation, self.action, reward, next_observation, terminated)
        self.n_steps += 1
        self.held += 1
        if self.held == self.hold or terminated or truncated:
            self.replay.finish_option(self.held)
            if not self.is_random:
                self.mean_greedy_hold += 0.01 * (self.held - self.mean_greedy_hold)
            self.held = self.hold = 0
        if self.n_steps % TARGET_UPDATE_INTERVAL == 0:
            self.target.load_state_dict(self.online.state_dict())

    def learn(self):
        replay, done = self.replay, self.n_steps / self.total_steps
        self.optimizer.param_groups[0]["lr"] = LEARNING_RATE + done * (LEARNING_RATE_AT_END - LEARNING_RATE)
        if self.n_updates == 0:  # values begin at the one number that fits the steps so far: v = r̄ + γ (1 − d̄) v
            known = replay.left > 0
            start = replay.rewards[known].mean() / (1.0 - GAMMA * (1.0 - replay.terminated[known].mean()))
            for network in (self.online, self.target, self.average):
                network.heads.bias.data[-network.n_actions :] += float(start)  # V's

        slots, weights = replay.draw(PRIORITY_BETA + (1.0 - PRIORITY_BETA) * done)
        lengths, returns, last, exists = replay.windows(slots)
        actions = np.tile(replay.actions[slots], (K, 1))
        states, index = np.unique(last, return_inverse=True)  # each last state is valued once
        index = index.reshape(last.shape)
        with torch.no_grad():
            next_observations = torch.as_tensor(replay.next_observations[states])
            target_values, online_values = self.target(next_observations), self.online(next_observations)
        best = online_values.flatten(1).argmax(dim=1, keepdim=True)  # double: one chooses, the other values
        state_values = target_values.flatten(1).gather(1, best).numpy()[index, 0]
        rest = PERSISTENCES[:, None] - lengths
        positions = np.minimum(np.searchsorted(PERSISTENCES, rest), K - 1)
        held_values = target_values.numpy()[index, actions, positions]
        next_values = np.where(rest == 0, state_values, held_values) * ~replay.terminated[last]
        targets = returns + replay.powers[lengths] * next_values
        targets = torch.as_tensor(np.clip(targets, replay.least / (1.0 - GAMMA), replay.most / (1.0 - GAMMA)))

        values = self.online(torch.as_tensor(replay.observations[slots])).permute(2, 0, 1)
        values = values.gather(2, torch.as_tensor(actions).unsqueeze(2)).squeeze(2)  # (K, B)
        losses = nn.functional.smooth_l1_loss(values, targets, reduction="none")
        loss = (torch.as_tensor(exists * weights) * losses).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), MAX_GRADIENT_NORM)
        self.optimizer.step()

        errors = np.where(exists, np.abs((values - targets).detach().numpy()), np.float32(0.0)).sum(axis=0)
        priorities = (errors / exists.sum(axis=0)).astype(np.float32).astype(np.float64) + 1e-6
        replay.set_priorities(slots, priorities**PRIORITY_ALPHA)
        replay.largest_priority = max(replay.largest_priority, priorities.max())
        rate = max(AVERAGE_RATE, 10.0 / (self.n_updates + 10.0))
        for mean, own in zip(self.average.parameters(), self.online.parameters(), strict=True):
            mean.data.lerp_(own.data, rate)  # the average of the weights is what one evaluates and ships
        self.n_updates += 1


def train(env, total_steps, seed=0, report=print):
    agent, episode_return = Agent(env, total_steps, seed), 0.0
    observation, _ = env.reset(seed=seed)
    while agent.n_steps < total_steps:
        next_observation, reward, terminated, truncated, _ = env.step(agent.act(observation))
        agent.store(observation, reward, next_observation, terminated, truncated)
        observation, episode_return = next_observation, episode_return + reward
        if agent.n_steps > LEARNING_STARTS:
            agent.learn()
        if terminated or truncated:
            report(f"step {agent.n_steps}: return {episode_return:g}, greedy hold {agent.mean_greedy_hold:.1f}")
            observation, episode_return = env.reset()[0], 0.0
    return agent


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train Persistent DQN, in one file.")
    parser.add_argument("--env-id", default="CartPole-v1", help="a Gymnasium id (default: CartPole-v1)")
    parser.add_argument("--total-steps", type=int, default=50_000, help="steps to train for (default: 50000)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    arguments = parser.parse_args()
    train(gym.make(arguments.env_id), arguments.total_steps, arguments.seed)
