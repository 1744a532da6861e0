"""Replay: one ring of primitive steps, K views of it, and the priorities by which they are drawn from."""
