"""An ONNX graph, built node by node, including the decision rule.

It uses an old operator set and format that most runtimes support.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.errors import InputError
from holdfast.core.options import duration_at

if TYPE_CHECKING:
    import onnx

__all__ = ["OUTPUTS", "Graph", "Tensor"]

OUTPUTS = ("action", "hold", "values")

_OPSET, _FORMAT = 17, 8

_LARGEST = 2**31 - 2**20
"""Bytes of weights that one file can hold."""


class Tensor(NamedTuple):
    """An input or output of a graph.

    Attributes:
        name: Its name.
        dtype: NumPy's name for its type.
        shape: Without the first axis, which counts the observations.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]


class Graph:
    """Nodes and constants so far; each output of a node has a name.

    Args:
        inputs: Inputs of the graph.
        outputs: Outputs of the graph, ``OUTPUTS``.
    """

    def __init__(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self._used = {part.name for part in (*inputs, *outputs)}
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, NDArray[Any]] = {}

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        from onnx import helper

        output = output or self._new_name(operator)
        self._nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def constant(self, value: Any, dtype: Any = None) -> str:
        """An array or a number that is always the same."""
        name = self._new_name("Constant")
        self._constants[name] = np.array(value, dtype, order="C")
        return name

    def cast(self, value: str, dtype: Any) -> str:
        """The same numbers as another type."""
        return self.add("Cast", value, to=_type(dtype))

    def checked_index(self, index: str, n: int) -> str:
        """The index; anything outside 0..n−1 is an error when the graph runs."""
        # Gather itself would count negative indices from the end.
        is_negative = self.add("Less", index, self.constant(0, np.int64))
        outside = self.add("Where", is_negative, self.constant(n, np.int64), index)
        return self.add("Gather", self.constant(np.arange(n, dtype=np.int64)), outside)

    def decide(
        self,
        values: str,
        actions: NDArray[Any],
        k_max: int,
        tolerance: float,
        persistences: Sequence[int] | None = None,
    ) -> None:
        """Make ``few_decision_option`` of ``values``, (n, A, K), the graph's outputs.

        Args:
            values: Name of the values.
            actions: (A, ...) each as the environment takes it.
            k_max: K.
            tolerance: What a longer hold may cost.
            persistences: The K holds; 1..K by default.
        """
        action, hold = self.choose(values, len(actions), k_max, tolerance, persistences)
        only = self.constant([1], np.int64)
        number = self.add("Squeeze", action, only)
        self.add("Gather", self.constant(actions.astype(np.int64)), number, output=OUTPUTS[0])
        self.add("Squeeze", hold, only, output=OUTPUTS[1])
        self.add("Identity", values, output=OUTPUTS[2])

    def choose(
        self,
        values: str,
        n_actions: int,
        k_max: int,
        tolerance: float,
        persistences: Sequence[int] | None = None,
    ) -> tuple[str, str]:
        """``few_decision_option`` of ``values``: the action, counted from 0, and the hold, each (n, 1)."""
        holds = duration_at(np.arange(k_max)) if persistences is None else persistences
        durations = self.constant(np.asarray(holds, dtype=np.int64))
        n_holds = self.constant(k_max, np.int64)
        flat = self.add("Reshape", values, self.constant([0, n_actions * k_max], np.int64))
        best = self._first_maximum(flat)
        action = self.add("Div", best, n_holds)
        hold = self.add("Gather", durations, self.add("Mod", best, n_holds))
        places = self.add("Add", self.add("Mul", action, n_holds), self.constant(np.arange(k_max, dtype=np.int64)))
        row = self.add("GatherElements", flat, places, axis=1)
        loss = self.add("Sub", self.add("GatherElements", flat, best, axis=1), row)
        with np.errstate(over="ignore"):
            # NumPy compares 32-bit values with a 32-bit tolerance.
            within = self.add("LessOrEqual", loss, self.constant(tolerance, np.float32))
        longest = self.add("Where", within, durations, self.constant(0, np.int64))
        longest = self.add("ReduceMax", longest, axes=[1], keepdims=1)
        return action, self.add("Max", hold, longest)

    def _first_maximum(self, flat: str) -> str:
        """(n, m) → (n, 1): index of the first maximum or, as in NumPy, of the first NaN."""
        marks = self.cast(self.add("IsNaN", flat), np.float32)
        is_any = self.cast(self.add("ReduceMax", marks, axes=[1], keepdims=1), np.bool_)
        scores = self.add("Where", is_any, marks, flat)
        return self.add("ArgMax", scores, axis=1, keepdims=1)

    def model(self, metadata: Mapping[str, str]) -> onnx.ModelProto:
        """The complete model, ready to serialize.

        Raises:
            ValueError: It is larger than a file can be.
        """
        from onnx import helper, numpy_helper

        from holdfast import __version__

        if sum(array.nbytes for array in self._constants.values()) > _LARGEST:
            raise InputError(f"the policy is too large: an .onnx file can hold {_LARGEST / 1e9:.2g} GB of weights")
        graph = helper.make_graph(
            self._nodes,
            "policy",
            [_declared(part) for part in self.inputs],
            [_declared(part) for part in self.outputs],
            [numpy_helper.from_array(array, name) for name, array in self._constants.items()],
        )
        model = helper.make_model(
            graph,
            producer_name="holdfast",
            producer_version=__version__,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_FORMAT,
        )
        helper.set_model_props(model, dict(metadata))
        return model

    def _new_name(self, kind: str) -> str:
        number = len(self._used)
        while f"{kind}_{number}" in self._used:
            number += 1
        self._used.add(f"{kind}_{number}")
        return f"{kind}_{number}"


def _declared(part: Tensor) -> onnx.ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(part.name, _type(part.dtype), ["n", *part.shape])


def _type(dtype: Any) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
