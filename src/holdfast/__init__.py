"""Reinforcement-learning agents that decide what to do and how long to hold it."""

__version__ = "0.1.0"
