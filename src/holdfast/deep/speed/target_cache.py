"""What the target network said of a row of the replay, kept until one of the two changes, and targets from it.

Between two updates of the target network its answer to an observation is always the same, and prioritised replay
asks for the same ones again and again. An agent owns one cache. Nobody tells it what has changed: it looks at the
network's version, at the number of target updates and at the stamps by which the replay marks what it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.compiling import compiled
from holdfast.core.errors import InputError
from holdfast.core.options import persistence_index
from holdfast.core.saved_fields import take_array
from holdfast.core.targets import bootstrapped_return

if TYPE_CHECKING:
    from holdfast.deep.agents.option_dqn import OptionDQN
    from holdfast.deep.replay.ring import OptionBatch

__all__ = ["TargetCache", "kept_targets"]

Rows = NDArray[np.int64]
_NEVER = -1


class TargetCache:
    """Values of a fixed shape per row, computed when first asked for.

    Args:
        shape: Shape of one row's values.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.values = np.zeros((0, *shape), dtype=np.float32)
        self._stamps = np.zeros(0, dtype=np.int64)
        self._source: tuple[Any, ...] | None = None

    @staticmethod
    def bytes_needed(n_rows: int, shape: tuple[int, ...]) -> int:
        """Memory of a cache that has been asked for all rows."""
        return n_rows * (4 * int(np.prod(shape)) + 8)

    def need(
        self,
        rows: Rows,
        written: NDArray[np.int64],
        source: tuple[Any, ...],
        compute: Callable[[Rows], NDArray[np.float32]],
    ) -> NDArray[np.float32]:
        """Values by row, known for ``rows`` at least.

        Args:
            rows: Of the replay.
            written: By row, a stamp of what was written there last.
            source: What the values are those of; whatever came from elsewhere is forgotten.
            compute: Asked for the values of distinct rows that are not known.
        """
        if source != self._source:
            self._stamps[:] = _NEVER
            self._source = source
        if len(written) > len(self._stamps):
            self._grow(len(written))
        missing = _not_as_written(rows.ravel(), self._stamps, written)
        if len(missing):
            try:
                self.values[missing] = compute(missing)
            except BaseException:
                self._stamps[missing] = _NEVER
                raise
        return self.values

    def targets(self, agent: OptionDQN, batch: OptionBatch, primitive: bool) -> NDArray[np.float32]:
        """The targets of a batch, (K, B), with V(s') over actions held once if ``primitive``."""
        return kept_targets(
            self.of_agent(agent, batch.next_rows),
            batch.next_rows,
            batch.actions,
            batch.rest,
            batch.rewards,
            batch.discounts,
            batch.dones,
            primitive,
        )

    def of_agent(self, agent: OptionDQN, rows: Rows) -> NDArray[np.float32]:
        """Q⁻(s,·,·) by row of the agent's replay, (rows, A, K), known for ``rows`` at least."""
        assert agent.replay_buffer is not None
        return self.need(
            rows,
            agent.replay_buffer.written,
            _source(agent),
            lambda missing: agent._target_values(missing).cpu().numpy(),
        )

    def known(self, agent: OptionDQN) -> Rows:
        """The rows of the agent's replay whose values are known and hold now."""
        assert agent.replay_buffer is not None
        if self._source != _source(agent):
            return np.zeros(0, dtype=np.int64)
        written = agent.replay_buffer.written[: len(self._stamps)]
        return np.flatnonzero(self._stamps[: len(written)] == written)

    def state(self, agent: OptionDQN) -> dict[str, Any]:
        """A copy of what is known."""
        rows = self.known(agent)
        return {"rows": rows, "values": self.values[rows]}

    def restore(self, agent: OptionDQN, state: Mapping[str, Any]) -> None:
        """Know what ``state`` knew, of the agent's networks and replay as they are now."""
        assert agent.replay_buffer is not None
        most_rows = agent.replay_buffer.store.n_rows
        rows = take_array(state, "rows", np.int64, (None,), most_rows)
        values = take_array(state, "values", np.float32, (len(rows), *self.values.shape[1:]))
        if np.any((rows < 0) | (rows >= most_rows)):
            raise InputError("the saved state must keep values of rows that its replay has")
        written = agent.replay_buffer.written
        self._grow(len(written))
        self._stamps[:] = _NEVER
        self.values[rows], self._stamps[rows] = values, written[rows]
        self._source = _source(agent)

    def _grow(self, n_rows: int) -> None:
        more = n_rows - len(self._stamps)
        if more > 0:
            self.values = np.concatenate([self.values, np.zeros((more, *self.values.shape[1:]), np.float32)])
            self._stamps = np.concatenate([self._stamps, np.full(more, _NEVER, dtype=np.int64)])


class _Same:
    """Equal to what holds the very same object, which stays alive as long."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._held is other._held

    def __hash__(self) -> int:
        return id(self._held)


def _source(agent: OptionDQN) -> tuple[Any, ...]:
    """Changes with the replay, and with every update of the target network.

    SB3 updates it by writing past PyTorch's own versions of its weights, at every so many calls.
    """
    n_updates = agent._n_calls // max(agent.target_update_interval // agent.n_envs, 1)
    return (_Same(agent.replay_buffer), n_updates, agent.q_net_target.version())


_bootstrapped_return = compiled(bootstrapped_return)
_persistence_index = compiled(persistence_index)


@compiled
def _not_as_written(rows: Rows, stamps: NDArray[np.int64], written: NDArray[np.int64]) -> Rows:
    """The distinct rows whose stamps are not those of what was written, which they are from now on."""
    found = np.empty_like(rows)
    count = 0
    for row in rows:
        if stamps[row] != written[row]:
            stamps[row] = written[row]
            found[count] = row
            count += 1
    return found[:count]


@compiled
def kept_targets(
    values: NDArray[np.float32],
    next_rows: NDArray[np.int64],
    actions: NDArray[np.int64],
    rest: NDArray[np.int64],
    rewards: NDArray[np.float32],
    discounts: NDArray[np.float32],
    dones: NDArray[np.float32],
    primitive: bool,
) -> NDArray[np.float32]:
    """The targets of tuples (K, B) whose last states' values (rows, A, K) are at hand.

    Args:
        values: Q⁻(s',·,·) by row.
        next_rows: (K, B) the row of each tuple's s'.
        actions: (K, B).
        rest: (K, B) k − ℓ.
        rewards: (K, B) r^ℓ.
        discounts: (K, B) γ^ℓ.
        dones: (K, B).
        primitive: Whether V(s') is the maximum over actions held once, rather than over all options.
    """
    targets = np.empty_like(rewards)
    considered = 1 if primitive else values.shape[2]  # persistences
    for index in range(targets.shape[0]):
        for b in range(targets.shape[1]):
            at_end = values[next_rows[index, b]]
            if rest[index, b] > 0:
                next_value = at_end[actions[index, b], _persistence_index(rest[index, b])]
            else:
                next_value = at_end[:, :considered].max()
            targets[index, b] = _bootstrapped_return(
                rewards[index, b], discounts[index, b], next_value, dones[index, b]
            )
    return targets
