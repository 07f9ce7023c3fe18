"""ONNX Runtime on the CPU: the work as one model, its input and output bound to arrays beforehand."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import Peer
from edgeconv.bench.peers.convolutions import TOLERANCE
from edgeconv.bench.peers.onnx_model import onnx_model
from edgeconv.core.optional import import_problem
from edgeconv.core.problem import Problem
from edgeconv.hardware.threads import usable_threads


class ONNXRuntime(Peer):
    """CPUExecutionProvider."""

    distributions = ("onnxruntime",)
    module = "onnxruntime"

    def unavailable_reason(self) -> str | None:
        problem = import_problem("onnx")
        return f"{problem}, and it writes the model (pip install onnx)" if problem else super().unavailable_reason()

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = usable_threads()
        session = runtime.InferenceSession(onnx_model(problem), options, providers=["CPUExecutionProvider"])
        out = np.empty(problem.output_shape, problem.output_dtype)
        held = [runtime.OrtValue.ortvalue_from_numpy(array) for array in (image_host, out)]
        binding = session.io_binding()
        binding.bind_ortvalue_input("picture", held[0])
        binding.bind_ortvalue_output("result", held[1])
        return Ready(lambda: session.run_with_iobinding(binding), lambda: held[1].numpy(), problem, tolerance=TOLERANCE)
