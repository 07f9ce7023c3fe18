"""What a user would run on a CPU instead, each the way its own documentation does it, for benchmark_cpu.py.

Every peer takes a Problem and its picture (HWC) and gives back a function that computes it once and returns the
result as an HWC array; what can be set up before (weights, sessions, output buffers) is. A peer that is not
installed, or has no way to do the problem, is left out.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeconv.core.problem import Problem

Run = Callable[[], NDArray[Any]]
Prepare = Callable[[Problem, NDArray[Any]], Run]


def peer_versions() -> dict[str, str]:
    """Installed versions of the peers and of what edgeconv itself stands on."""
    names = ("opencv-python-headless", "torch", "openvino", "onnxruntime", "pyvips", "numpy", "llvmlite", "isal")
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = version(name)
        except ModuleNotFoundError:
            continue
    return found


# --- OpenCV -----------------------------------------------------------------------------------------------------


def opencv_filter(problem: Problem, image: NDArray[Any]) -> Run:
    """uint8 a channel: `abs` by way of int16 and convertScaleAbs, `clip` straight to uint8; buffers reused."""
    kernel = problem.weights[0, 0, 0]
    wide = np.empty(problem.output_shape, np.int16)
    out = np.empty(problem.output_shape, np.uint8)

    def absolute() -> NDArray[Any]:
        cv2.filter2D(image, cv2.CV_16S, kernel, dst=wide, borderType=cv2.BORDER_CONSTANT)
        cv2.convertScaleAbs(wide, dst=out)
        return out

    def clipped() -> NDArray[Any]:
        cv2.filter2D(image, cv2.CV_8U, kernel, dst=out, borderType=cv2.BORDER_CONSTANT)
        return out

    return clipped if problem.output_mode == "clip" else absolute


def opencv_magnitude(problem: Problem, image: NDArray[Any]) -> Run:
    """Two Sobels to float32, magnitude, convert; buffers reused."""
    gx, gy, length = (np.empty(problem.output_shape, np.float32) for _ in range(3))
    out = np.empty(problem.output_shape, np.uint8)

    def run() -> NDArray[Any]:
        cv2.Sobel(image, cv2.CV_32F, 1, 0, dst=gx, borderType=cv2.BORDER_CONSTANT)
        cv2.Sobel(image, cv2.CV_32F, 0, 1, dst=gy, borderType=cv2.BORDER_CONSTANT)
        cv2.magnitude(gx, gy, magnitude=length)
        cv2.convertScaleAbs(length, dst=out)
        return out

    return run


# --- PyTorch ----------------------------------------------------------------------------------------------------


def torch_channels_last(problem: Problem, image: NDArray[Any]) -> Run:
    """conv2d on a channels-last tensor that shares the HWC array's memory."""
    import torch

    x = torch.from_numpy(image).permute(2, 0, 1)[None]
    weight = torch.from_numpy(problem.weights[0].copy()).to(memory_format=torch.channels_last)

    def run() -> NDArray[Any]:
        with torch.inference_mode():
            y = torch.nn.functional.conv2d(x, weight, stride=problem.stride, padding=problem.padding)
        return np.asarray(y[0].permute(1, 2, 0).numpy())

    return run


def torch_unfold(problem: Problem, image: NDArray[Any]) -> Run:
    """PyTorch's own im2col: unfold, then one matrix product; NCHW, so its result is planar."""
    import torch

    x = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))[None]
    weight = torch.from_numpy(problem.weights[0].reshape(problem.output_channels, -1).copy())
    height, width, channels = problem.output_shape

    def run() -> NDArray[Any]:
        with torch.inference_mode():
            columns = torch.nn.functional.unfold(x, 3, padding=problem.padding, stride=problem.stride)
            y = weight @ columns[0]
        return np.asarray(y.numpy()).reshape(channels, height, width).transpose(1, 2, 0)

    return run


# --- OpenVINO and ONNX Runtime ----------------------------------------------------------------------------------


def openvino_nhwc(problem: Problem, image: NDArray[Any]) -> Run:
    """A compiled model with NHWC in and out, true float32, latency hint, arrays shared with the runtime."""
    import openvino as ov
    from openvino import opset13 as ops

    picture = ops.parameter([1, *problem.input_shape], np.float32)
    planar = ops.transpose(picture, [0, 3, 1, 2])
    sides = [problem.padding, problem.padding]
    convolved = ops.convolution(planar, problem.weights[0], [problem.stride] * 2, sides, sides, [1, 1])
    model = ov.Model([ops.transpose(convolved, [0, 2, 3, 1])], [picture])
    hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = ov.Core().compile_model(model, "CPU", hints).create_infer_request()
    out = np.empty((1, *problem.output_shape), np.float32)
    request.set_input_tensor(ov.Tensor(image[np.newaxis], shared_memory=True))
    request.set_output_tensor(ov.Tensor(out, shared_memory=True))

    def run() -> NDArray[Any]:
        request.infer()
        result: NDArray[Any] = out[0]
        return result

    return run


def onnxruntime_nhwc(problem: Problem, image: NDArray[Any]) -> Run:
    """A session with NHWC in and out (transposes inside the model, where its optimiser may fold them)."""
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper

    shape_in, shape_out = [1, *problem.input_shape], [1, *problem.output_shape]
    nodes = [
        helper.make_node("Transpose", ["x"], ["planar"], perm=[0, 3, 1, 2]),
        helper.make_node(
            "Conv", ["planar", "w"], ["convolved"], strides=[problem.stride] * 2, pads=[problem.padding] * 4
        ),
        helper.make_node("Transpose", ["convolved"], ["y"], perm=[0, 2, 3, 1]),
    ]
    graph = helper.make_graph(
        nodes,
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape_in)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape_out)],
        [numpy_helper.from_array(problem.weights[0].copy(), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    out = np.empty(shape_out, np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", image[np.newaxis])
    binding.bind_output("y", "cpu", 0, np.float32, shape_out, out.ctypes.data)

    def run() -> NDArray[Any]:
        session.run_with_iobinding(binding)
        result: NDArray[Any] = out[0]
        return result

    return run


# --- whole commands ---------------------------------------------------------------------------------------------

OPENCV_SCRIPT = """
import sys, cv2, numpy as np
image = cv2.imread(sys.argv[1])
kernel = np.array([[1, 1, 1], [1, -8, 1], [1, 1, 1]], np.float32)
edges = cv2.convertScaleAbs(cv2.filter2D(image, cv2.CV_16S, kernel, borderType=cv2.BORDER_CONSTANT))
cv2.imwrite(sys.argv[2], edges)
"""

PYVIPS_SCRIPT = """
import sys, pyvips
image = pyvips.Image.new_from_file(sys.argv[1], access="sequential")
kernel = pyvips.Image.new_from_array([[1, 1, 1], [1, -8, 1], [1, 1, 1]])
edges = image.conv(kernel, precision="integer").abs().cast("uchar")
edges.write_to_file(sys.argv[2])
"""
"""libvips repeats the picture's edge pixels at the border. Options may follow the file's name, as in `e.png[...]`."""
