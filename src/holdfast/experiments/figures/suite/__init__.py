"""The learning suite: does an agent learn, soon, on every seed, and does it stay good? And what makes it so?"""

from holdfast.experiments.figures.suite.ablations import ABLATION
from holdfast.experiments.figures.suite.experiment import SUITE

__all__ = ["ABLATION", "SUITE"]
