"""The target network's values of replay rows, cached until one of the two changes, and targets from them.

Between two updates of the target network its values of an observation stay the same, and prioritised replay draws
the same rows repeatedly. An agent owns one cache. It finds out by itself what has changed: from the network's
version, the number of target updates, and the stamps by which the replay marks what it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.compiling import compiled
from holdfast.core.errors import InputError
from holdfast.core.options import duration_at
from holdfast.core.saved_fields import take_array
from holdfast.core.targets import undecided_value, window_target
from holdfast.deep.replay.observation_store import Rows

if TYPE_CHECKING:
    from holdfast.deep.agents.option_dqn import OptionDQN
    from holdfast.deep.replay.views import OptionBatch

__all__ = ["LARGEST", "TargetCache", "ValuedTuples", "kept_targets"]

_NEVER = -1
LARGEST = -1
"""In place of a chosen option: the one with the largest value."""


class ValuedTuples(NamedTuple):
    """What compiled code needs for the targets of tuples, besides the values of their last states.

    Attributes:
        next_rows: (K, B) the row of each tuple's s'.
        actions: (K, B).
        rest: (K, B) k − ℓ.
        positions: By number of steps, its position among the persistences.
        rewards: (K, B) r^ℓ.
        discounts: (K, B) γ^ℓ.
        dones: (K, B).
        primitive: Whether the largest value is that over actions held once, rather than over all options.
        decision_cost: c, of the same type as the values.
    """

    next_rows: Rows
    actions: NDArray[np.int64]
    rest: NDArray[np.int64]
    positions: NDArray[np.int64]
    rewards: NDArray[np.float32]
    discounts: NDArray[np.float32]
    dones: NDArray[np.float32]
    primitive: bool
    decision_cost: np.float32

    @classmethod
    def of_agent(cls, agent: OptionDQN, batch: OptionBatch) -> ValuedTuples:
        """Those of a batch, by the agent's arguments."""
        assert agent.replay_buffer is not None
        return cls(
            batch.next_rows,
            batch.actions,
            batch.rest,
            agent.replay_buffer.positions,
            batch.rewards,
            batch.discounts,
            batch.dones,
            agent.target_value == "primitive",
            np.float32(agent.decision_cost),
        )


class TargetCache:
    """Values of a fixed shape per row, computed when first asked for.

    Args:
        shape: Shape of one row's values.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.values = np.zeros((0, *shape), dtype=np.float32)
        self._stamps = np.zeros(0, dtype=np.int64)
        self._source: tuple[Any, ...] | None = None
        self._marks = np.zeros(0, dtype=np.int64)

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

    def targets(
        self, agent: OptionDQN, batch: OptionBatch, chosen: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """The targets of a batch, (K, B), by the agent's ``target_value``.

        Args:
            agent: Whose cache it is.
            batch: Tuples of its replay.
            chosen: (K, B) for ``"double"``: the options whose values count, if known; see ``kept_targets``.
        """
        if chosen is None:
            chosen = np.full(batch.next_rows.shape, LARGEST, dtype=np.int64)
            if agent.target_value == "double":
                rows, index = self.valued_rows(batch)
                if len(rows):
                    best = agent._online_values(rows).flatten(1).argmax(dim=1).cpu().numpy()
                    chosen = np.where(index >= 0, best[index], LARGEST)
        values = self.values_of(agent, batch.next_rows)
        return kept_targets(values, chosen, ValuedTuples.of_agent(agent, batch))

    def valued_rows(self, batch: OptionBatch) -> tuple[Rows, NDArray[np.int64]]:
        """The distinct rows of last states whose V(s') is asked for, and which of them each tuple's is or −1."""
        most = int(batch.next_rows.max()) + 1
        if most > len(self._marks):
            self._marks = np.full(max(most, len(self._stamps)), -1, dtype=np.int64)
        return _valued_rows(batch.next_rows, batch.rest, batch.dones, batch.is_there, self._marks)

    def values_of(self, agent: OptionDQN, rows: Rows) -> NDArray[np.float32]:
        """Q⁻(s,·,·) by row of the agent's replay, (rows, A, K), known for ``rows`` at least."""
        replay, network = agent.replay_buffer, agent.q_net_target
        assert replay is not None
        return self.need(
            rows,
            replay.written,
            _source(agent),
            lambda missing: network.bootstrap_values(replay.observations_at(missing)).cpu().numpy(),
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


_undecided_value = compiled(undecided_value)
_window_target = compiled(window_target)
_duration_at = compiled(duration_at)


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
def _valued_rows(
    next_rows: Rows,
    rest: NDArray[np.int64],
    dones: NDArray[np.float32],
    is_there: NDArray[np.bool_],
    marks: NDArray[np.int64],
) -> tuple[Rows, NDArray[np.int64]]:
    found = np.empty(next_rows.size, dtype=np.int64)
    index = np.full(next_rows.shape, -1, dtype=np.int64)
    count = 0
    for view in range(next_rows.shape[0]):
        for b in range(next_rows.shape[1]):
            if rest[view, b] == 0 and dones[view, b] == 0.0 and is_there[view, b]:
                row = next_rows[view, b]
                if marks[row] < 0:
                    marks[row] = count
                    found[count] = row
                    count += 1
                index[view, b] = marks[row]
    for row in found[:count]:
        marks[row] = -1
    return found[:count], index


@compiled
def kept_targets(
    values: NDArray[np.float32], chosen: NDArray[np.int64], tuples: ValuedTuples
) -> NDArray[np.float32]:
    """The targets of tuples (K, B) whose last states' values (rows, A, K) are at hand.

    Args:
        values: Q⁻(s',·,·) by row.
        chosen: (K, B) the option whose value is V(s'), as a flat index of (A, K); −1 for the largest value.
        tuples: What else the targets need.
    """
    targets = np.empty_like(tuples.rewards)
    considered = 1 if tuples.primitive else values.shape[2]  # persistences
    for index in range(targets.shape[0]):
        for b in range(targets.shape[1]):
            at_end = values[tuples.next_rows[index, b]]
            rest = tuples.rest[index, b]
            # A rest that has no values is that of a hold which ended the episode.
            position = max(tuples.positions[rest], 0 if rest > 0 else -1)
            next_value = at_end[0, 0]
            if position < 0 and chosen[index, b] >= 0:
                next_value = at_end[chosen[index, b] // values.shape[2], chosen[index, b] % values.shape[2]]
            elif position < 0:
                next_value = at_end[:, :considered].max()
            targets[index, b] = _window_target(
                tuples.rewards[index, b],
                tuples.discounts[index, b],
                _duration_at(position),
                _undecided_value(next_value, tuples.decision_cost),
                at_end[tuples.actions[index, b]],
                tuples.dones[index, b],
            )
    return targets
