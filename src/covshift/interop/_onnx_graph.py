"""Writing a graph of ONNX operators, line by line."""

from typing import Any

import numpy as np
import numpy.typing as npt

OPSET = 18
IR_VERSION = 9  # what runtimes since 2023 read


class Graph:
    """Operators and constants in the order in which they are added; values go by name."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._outputs: list[Any] = []

    def constant(self, values: npt.ArrayLike) -> str:
        """Add a constant; numbers are in double precision unless they are integers."""
        array = np.asarray(values)
        if array.dtype.kind == "f":
            array = array.astype(np.float64)
        name = f"constant{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator; return the name of its result."""
        name = f"{operator.lower()}{len(self._nodes)}"
        self._nodes.append(
            self._onnx.helper.make_node(operator, list(inputs), [name], **attributes)
        )
        return name

    def cast(self, value: str, dtype: npt.DTypeLike) -> str:
        """Add a conversion to another type of number."""
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", value, to=kind)

    def output(self, name: str, value: str, dtype: npt.DTypeLike, *columns: int) -> None:
        """Give a value a name and make it an output of rows, by columns if there are some."""
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(
            self._onnx.helper.make_tensor_value_info(name, kind, ["rows", *columns])
        )

    def model(self, n_features: int, properties: dict[str, str]) -> Any:
        """Return the whole, whose input is ``X``: rows by features in single precision."""
        helper = self._onnx.helper
        rows = helper.make_tensor_value_info(
            "X", self._onnx.TensorProto.FLOAT, ["rows", n_features]
        )
        graph = helper.make_graph(
            self._nodes, "covshift", [rows], self._outputs, initializer=self._constants
        )
        model = helper.make_model(
            graph,
            producer_name="covshift",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        helper.set_model_props(model, properties)
        return model
