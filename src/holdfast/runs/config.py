"""The configuration of a run: everything needed to repeat it, bit for bit."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import dataclass, fields, replace
from typing import Any

from holdfast import __version__
from holdfast.policies.algorithms import Algorithm, find_algorithm

__all__ = ["FORMAT", "RunConfig", "versions"]

FORMAT = 1

_LASTING = ("steps", "episodes", "checkpoint_every", "keep_checkpoints")
"""Options that may change from one session to the next: a run's length, and how it is secured."""


@dataclass(frozen=True)
class RunConfig:
    """A run, with every default filled in.

    Attributes:
        environment: Name of the environment, as ``make_env`` takes it.
        env_kwargs: Its arguments.
        label: Its name in file names and headings.
        algo: Name of the algorithm.
        arguments: All its arguments, as JSON values.
        seed: The seed from which all random numbers derive.
        n_envs: Number of parallel environments.
        steps: Steps to train; None for as many as the episodes take.
        episodes: Episodes to train; None for as many as fit in the steps.
        eval_every: Steps (for a table: episodes) between evaluations; 0 for none.
        eval_episodes: Greedy episodes per evaluation.
        checkpoint_every: Seconds between checkpoints; 0 for none.
        keep_checkpoints: Number of checkpoints to keep.
        threads: Threads of PyTorch.
        device: Device of PyTorch.
    """

    environment: str
    env_kwargs: dict[str, Any]
    label: str
    algo: str
    arguments: dict[str, Any]
    seed: int
    n_envs: int
    steps: int | None
    episodes: int | None
    eval_every: int
    eval_episodes: int
    checkpoint_every: float
    keep_checkpoints: int
    threads: int
    device: str

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm; a user's own is imported."""
        return find_algorithm(self.algo)

    @property
    def k_max(self) -> int:
        """The largest persistence."""
        return int(self.arguments.get("k_max", 1))

    @property
    def persistences(self) -> list[int] | None:
        """The persistences to choose from; None for all up to the largest."""
        return self.arguments.get("persistences")

    @property
    def held(self) -> str:
        """How long actions may be held and what a decision costs, for headings; empty if there is no choice."""
        if "k_max" not in self.arguments:
            return ""
        cost = self.arguments.get("decision_cost") or 0.0
        # A file may contain anything here; anything but a number is shown as it is.
        priced = (f", c={cost:g}" if isinstance(cost, int | float) else f", c={cost}") if cost else ""
        if self.persistences is None:
            return f"K={self.k_max}{priced}"
        return f"k in {{{','.join(map(str, self.persistences))}}}{priced}"

    def is_reached(self, steps: int, episodes: int) -> bool:
        """Whether a run with this many steps and episodes is finished."""
        return (self.steps is not None and steps >= self.steps) or (
            self.episodes is not None and episodes >= self.episodes
        )

    def options(self) -> dict[str, Any]:
        """Options that lead to exactly this configuration."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["set"] = found.pop("arguments")
        return found

    def document(self) -> dict[str, Any]:
        """The options as a document to write, with the versions of the packages used."""
        return {"format": FORMAT, "versions": versions(), **self.options()}

    def difference(self, other: RunConfig) -> str | None:
        """How ``other`` differs from this run, in words; length and checkpoints do not count."""
        lasting = {name: getattr(self, name) for name in _LASTING}
        other = replace(other, **lasting)
        for field in fields(self):
            one, two = getattr(self, field.name), getattr(other, field.name)
            if field.name in ("arguments", "env_kwargs"):
                for name in (*one, *two):
                    if name not in one or name not in two:
                        return f"{name}={one[name]!r}, not without" if name in one else f"no {name}"
                    if one[name] != two[name]:
                        return f"{name}={one[name]!r}, not {two[name]!r}"
            elif one != two:
                return f"{field.name}={one!r}, not {two!r}"
        return None


def versions() -> dict[str, str]:
    """The versions of everything that results depend on, without importing any of it."""
    found = {"holdfast": __version__, "python": platform.python_version()}
    for package in ("numpy", "gymnasium", "numba", "torch", "stable-baselines3"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
