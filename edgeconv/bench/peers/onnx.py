"""One ONNX model, HWC in and out, for two runtimes on the CPU; arrays are bound beforehand.

    picture (height, width, channels) ── cast, transpose ── Conv ── join directions ── store ── transpose ── result

Source: the operators of ONNX (opset 17); "I/O binding" of ONNX Runtime; "Performance hints" of OpenVINO.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from io import BytesIO
from typing import Any

import numpy as np

from edgeconv.bench.candidates import Bench, Ready
from edgeconv.bench.peers.base import DTYPES, HALO, TOLERANCE, Library, grouped
from edgeconv.core.problem import Problem
from edgeconv.hardware.threads import usable_threads

OPSET, IR_VERSION = 17, 9
"""Read by every runtime since 2023."""


def onnx_runtime(problem: Problem, bench: Bench) -> Ready:
    """CPUExecutionProvider."""
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = usable_threads()
    session = runtime.InferenceSession(_model(problem), options, providers=["CPUExecutionProvider"])
    out = np.empty(problem.output_shape, problem.output_dtype)
    held = [runtime.OrtValue.ortvalue_from_numpy(array) for array in (bench.image_host, out)]
    binding = session.io_binding()
    binding.bind_ortvalue_input("picture", held[0])
    binding.bind_ortvalue_output("result", held[1])
    return Ready(lambda: session.run_with_iobinding(binding), lambda: held[1].numpy(), problem, tolerance=TOLERANCE)


def openvino(problem: Problem, bench: Bench) -> Ready:
    """The CPU plug-in, tuned for latency; without the hint of precision it takes bfloat16 where the CPU has it."""
    module = import_module("openvino")
    core = module.Core()
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": str(usable_threads()),
    }
    compiled = core.compile_model(core.read_model(BytesIO(_model(problem))), "CPU", settings)
    request = compiled.create_infer_request()
    out = np.empty(problem.output_shape, problem.output_dtype)
    request.set_input_tensor(module.Tensor(bench.image_host, shared_memory=True))
    request.set_output_tensor(module.Tensor(out, shared_memory=True))
    return Ready(request.infer, lambda: out, problem, tolerance=TOLERANCE)


def _model(problem: Problem) -> bytes:
    """The serialised model; its input is `picture`, its output `result`."""
    onnx = import_module("onnx")
    helper, numpy_helper, types = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    kernels, split = grouped(problem)
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
    strides, pads = [problem.stride] * 2, [HALO] * 4
    value = then("Conv", value, constant("weights", kernels), strides=strides, pads=pads, group=problem.groups)
    if problem.directions > 1:
        value = then("Reshape", value, constant("apart", [*split, height, width]))
        squares = then("ReduceSum", then("Mul", value, value), constant("directions", [1]), keepdims=0)
        value = then("Reshape", then("Sqrt", squares), constant("together", [1, channels, height, width]))
    if problem.output_mode == "abs":
        value = then("Abs", value)
    if problem.output_dtype.kind == "u":
        ends = ("low", 0), ("high", np.iinfo(problem.output_dtype).max)
        value = then("Clip", then("Round", value), *(constant(name, np.float32(end)) for name, end in ends))
    value = then("Transpose", then("Squeeze", value, "batch"), perm=[1, 2, 0])
    kinds = [helper.np_dtype_to_tensor_dtype(kind) for kind in (problem.dtype, problem.output_dtype)]
    nodes.append(helper.make_node("Cast", [value], ["result"], to=kinds[1]))
    picture = helper.make_tensor_value_info("picture", kinds[0], problem.input_shape)
    result = helper.make_tensor_value_info("result", kinds[1], problem.output_shape)
    graph = helper.make_graph(nodes, "edgeconv", [picture], [result], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    serialised: bytes = model.SerializeToString()
    return serialised


_library = partial(Library, needs=("onnx",), dtypes=(*DTYPES, "float16"), borders=("zero",))
ONNX_RUNTIME = _library(onnx_runtime, "onnxruntime", ("onnxruntime",))
OPENVINO = _library(openvino, "openvino", ("openvino",))
