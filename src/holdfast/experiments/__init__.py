"""Experiments: the paper's figures by name, as jobs that run anywhere, with rows that are stored once."""
