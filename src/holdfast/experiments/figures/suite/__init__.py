"""The learning suite: does an agent learn, soon, on every seed, and does it stay good?"""

from holdfast.experiments.figures.suite.experiment import SUITE

__all__ = ["SUITE"]
