"""OpenVINO on the CPU, tuned for latency: the same ONNX model, arrays shared with it."""

from __future__ import annotations

from importlib import import_module
from io import BytesIO
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

SETTINGS = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
"""Without the second it computes in bfloat16 where the processor can."""


class OpenVINO(Peer):
    """The CPU plug-in."""

    distributions = ("openvino",)
    module = "openvino"

    def unavailable_reason(self) -> str | None:
        problem = import_problem("onnx")
        return f"{problem}, and it writes the model (pip install onnx)" if problem else super().unavailable_reason()

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        openvino = import_module("openvino")
        core = openvino.Core()
        settings = {**SETTINGS, "INFERENCE_NUM_THREADS": str(usable_threads())}
        compiled = core.compile_model(core.read_model(BytesIO(onnx_model(problem))), "CPU", settings)
        request = compiled.create_infer_request()
        out = np.empty(problem.output_shape, problem.output_dtype)
        request.set_input_tensor(openvino.Tensor(image_host, shared_memory=True))
        request.set_output_tensor(openvino.Tensor(out, shared_memory=True))
        return Ready(request.infer, lambda: out, problem, tolerance=TOLERANCE)
