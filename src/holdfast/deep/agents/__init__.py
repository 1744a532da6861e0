"""The agents: a seam per parent in Stable-Baselines3, a small final class per algorithm, and what they share."""
