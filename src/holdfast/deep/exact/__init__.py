"""Continuing a training exactly: the state of an agent and of its environments."""
