"""The agents: one seam to Stable-Baselines3, one small final class per algorithm, and what they share."""
