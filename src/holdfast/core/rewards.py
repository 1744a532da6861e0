"""Which rewards the agents can learn from."""

__all__ = ["LARGEST_REWARD"]

LARGEST_REWARD = 1e30
"""Rewards up to this size can be added up, discounted and squared without becoming infinite."""
