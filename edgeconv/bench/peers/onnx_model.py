"""The work as an ONNX model, HWC in and out, for the runtimes that read one.

picture (height, width, 3) ── cast, transpose ── Conv ── join directions ── store ── transpose ── result
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from edgeconv.bench.peers.convolutions import grouped
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError

OPSET = 17
IR_VERSION = 9
"""Read by every runtime since 2023."""


def onnx_model(problem: Problem) -> bytes:
    """The serialised model; its input is `picture`, its output `result`."""
    if problem.border != "zero":
        raise UnavailableError("ONNX's Conv knows a zero border")
    onnx = import_module("onnx")
    helper, numpy_helper, types = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    weights = grouped(problem)
    height, width, channels = problem.output_shape
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(name: str, value: Any) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def then(kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    value = then("Cast", "picture", to=types.FLOAT)
    value = then("Unsqueeze", then("Transpose", value, perm=[2, 0, 1]), constant("batch", [0]))
    value = then(
        "Conv",
        value,
        constant("weights", weights.weights),
        strides=[problem.stride] * 2,
        pads=[problem.padding] * 4,
        group=weights.groups,
    )
    if weights.directions > 1:
        value = then("Reshape", value, constant("apart", [*weights.split, height, width]))
        if problem.combine == "magnitude":
            squares = then("ReduceSum", then("Mul", value, value), constant("directions", [1]), keepdims=0)
            value = then("Sqrt", squares)
        else:
            value = then("ReduceMax", value, axes=[1], keepdims=0)
        value = then("Reshape", value, constant("together", [1, channels, height, width]))
    if problem.output_mode == "abs":
        value = then("Abs", value)
    if problem.output_dtype.kind == "u":
        largest = float(np.iinfo(problem.output_dtype).max)
        low, high = constant("low", np.float32(0)), constant("high", np.float32(largest))
        value = then("Clip", then("Round", value), low, high)
    value = then("Transpose", then("Squeeze", value, "batch"), perm=[1, 2, 0])
    kinds = [helper.np_dtype_to_tensor_dtype(kind) for kind in (problem.dtype, problem.output_dtype)]
    nodes.append(helper.make_node("Cast", [value], ["result"], to=kinds[1]))
    graph = helper.make_graph(
        nodes,
        "edgeconv",
        [helper.make_tensor_value_info("picture", kinds[0], problem.input_shape)],
        [helper.make_tensor_value_info("result", kinds[1], problem.output_shape)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    serialised: bytes = model.SerializeToString()
    return serialised
