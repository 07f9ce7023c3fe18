"""cuDNN's graph API through NVIDIA's own front end, HWC in memory, in float32 without TensorFloat-32.

Source: the documentation of nvidia-cudnn-frontend. Its heuristics choose the engine; `cudnn` and `cudnn:find` among
the methods are the older interface (v7).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import Peer
from edgeconv.bench.peers.convolutions import TOLERANCE
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError


class Graph(Peer):
    """One convolution as a graph."""

    distributions = ("nvidia-cudnn-frontend",)
    module = "cudnn"

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        plain = problem.directions == 1 and problem.output_mode == "raw" and problem.border == "zero"
        if not plain or problem.dtype != np.float32 or problem.groups != 1:
            raise UnavailableError("it is asked for one direction of a float32 picture, raw, with a zero border")
        cudnn, cupy = import_module("cudnn"), import_module("cupy")
        handle = cudnn.create_handle()
        cudnn.set_stream(handle=handle, stream=cupy.cuda.get_current_stream().ptr)
        real = cudnn.data_type.FLOAT
        graph = cudnn.pygraph(io_data_type=real, intermediate_data_type=real, compute_data_type=real, handle=handle)

        def tensor(name: str, outer: int, height: int, width: int, channels: int) -> Any:
            strides = [height * width * channels, 1, width * channels, channels]
            return graph.tensor(name=name, dim=[outer, channels, height, width], stride=strides, data_type=real)

        image = tensor("image", 1, *problem.input_shape)
        kernels = tensor("weights", problem.output_channels, KERNEL_SIZE, KERNEL_SIZE, problem.in_channels)
        result = graph.conv_fprop(
            image=image,
            weight=kernels,
            padding=[problem.padding] * 2,
            stride=[problem.stride] * 2,
            dilation=[1, 1],
        )
        height, width, outputs = problem.output_shape
        result.set_output(True).set_data_type(real).set_dim([1, outputs, height, width])
        result.set_stride([height * width * outputs, 1, width * outputs, outputs])
        try:
            graph.validate()
            graph.build_operation_graph()
            graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
            reduced = (cudnn.numerical_note.TENSOR_CORE, cudnn.numerical_note.DOWN_CONVERT_INPUTS)
            graph.deselect_numeric_notes(list(reduced))
            graph.check_support()
            graph.build_plans()
        except cudnn.cudnnGraphNotSupportedError as error:
            raise UnavailableError(f"cuDNN has no engine for this case: {str(error).splitlines()[0]}") from error
        out = cupy.empty(problem.output_shape, np.float32)
        weights = np.ascontiguousarray(problem.dense_weights()[0].transpose(0, 2, 3, 1))
        held = {image: cupy.asarray(image_host), kernels: cupy.asarray(weights), result: out}
        workspace = cupy.empty(max(graph.get_workspace_size(), 1), np.uint8)

        def run() -> None:
            graph.execute(held, workspace, handle=handle)

        return Ready(run, lambda: out.get(), problem, tolerance=TOLERANCE, workspace_bytes=workspace.size)
