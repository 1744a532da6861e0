"""The paper's experiments, by name."""
