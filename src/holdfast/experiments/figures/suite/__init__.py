"""The learning suite: does an agent learn, soon, on every seed, and does it stay good? And why?"""

from holdfast.experiments.figures.suite.ablations import ABLATION
from holdfast.experiments.figures.suite.experiment import SUITE

__all__ = ["ABLATION", "SUITE"]
