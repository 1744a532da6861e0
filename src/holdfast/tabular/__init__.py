"""Compiled tabular learners: PerQ-learning and the learners that it is compared with."""

from holdfast.core.decomposition import equal_updates_per_step
from holdfast.tabular.ez_greedy import EZGreedyQLearning
from holdfast.tabular.learner import TabularLearner
from holdfast.tabular.learning_rule import HeldOption, LearningRule
from holdfast.tabular.msa import MSAQLearning
from holdfast.tabular.perq import PerQLearning
from holdfast.tabular.policy import GreedyPolicy, Policy, SkipPolicy
from holdfast.tabular.q_learning import QLearning
from holdfast.tabular.run import EpisodeOutcomes, FitResult, RunState
from holdfast.tabular.synchronous import SYNCHRONOUS_RULES, SynchronousResult, learn_synchronously
from holdfast.tabular.temporl import TempoRLQLearning

__all__ = [
    "SYNCHRONOUS_RULES",
    "EZGreedyQLearning",
    "EpisodeOutcomes",
    "FitResult",
    "GreedyPolicy",
    "HeldOption",
    "LearningRule",
    "MSAQLearning",
    "PerQLearning",
    "Policy",
    "QLearning",
    "RunState",
    "SkipPolicy",
    "SynchronousResult",
    "TabularLearner",
    "TempoRLQLearning",
    "equal_updates_per_step",
    "learn_synchronously",
]
