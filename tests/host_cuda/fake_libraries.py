"""What the plans ask of cuBLAS and cuDNN, in NumPy on host memory, so that the kernels before and after run too.

Only what one call of each computes: `gemm` counts in columns first like BLAS, and the convolution is NHWC with a zero
border. Descriptors, statuses and rankings of the real cuDNN are tested elsewhere (test_libcudnn.py).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np


def memory(address: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """The array that lies at `address`, C order."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape)) * kind.itemsize
    return np.frombuffer((ctypes.c_ubyte * count).from_address(address), kind).reshape(shape)


def columns_first(
    kind: type[np.floating[Any]], address: int, rows: int, columns: int, leading: int, transposed: bool
) -> np.ndarray:
    """A BLAS operand as a (rows, columns) array, whichever way it is stored."""
    if transposed:
        return memory(address, (rows, leading), kind)[:, :columns]
    return memory(address, (columns, leading), kind)[:, :rows].T


def gemm(
    kind: type[np.floating[Any]],
    handle: int,
    transpose_a: int,
    transpose_b: int,
    m: int,
    n: int,
    k: int,
    alpha: int,
    a: int,
    leading_a: int,
    b: int,
    leading_b: int,
    beta: int,
    c: int,
    leading_c: int,
) -> None:
    """C = alpha · op(A) · op(B) + beta · C, C being m × n."""
    left = columns_first(kind, a, m, k, leading_a, bool(transpose_a))
    right = columns_first(kind, b, k, n, leading_b, bool(transpose_b))
    result = columns_first(kind, c, m, n, leading_c, transposed=False)
    (scale,), (keep,) = memory(alpha, (1,), kind), memory(beta, (1,), kind)
    product = scale * (left.astype(np.float64) @ right)
    result[...] = product + keep * result if keep else product


CUBLAS = SimpleNamespace(
    CUBLAS_OP_N=0,
    CUBLAS_OP_T=1,
    CUBLAS_DEFAULT_MATH=0,
    CUBLAS_PEDANTIC_MATH=2,
    setStream=lambda handle, stream: None,
    setMathMode=lambda handle, mode: None,
    sgemm=partial(gemm, np.float32),
    dgemm=partial(gemm, np.float64),
)


@dataclass(frozen=True)
class Shape:
    """A tensor's or a filter's descriptor: type, then N, C, H, W or K, C, H, W."""

    dtype: Any
    first: int
    channels: int
    height: int
    width: int

    def nhwc(self, address: int) -> np.ndarray:
        kind = np.float16 if self.dtype.name == "HALF" else np.float32
        return memory(address, (self.first, self.height, self.width, self.channels), kind)


class Convolution:
    """The convolution's descriptor."""

    def __init__(self, padding: int, stride: int, math: Any) -> None:
        self.padding, self.stride = padding, stride

    def set_math(self, math: Any) -> None:
        """Arithmetic is the same here whatever it is called."""


class Handle:
    """cuDNN with one algorithm."""

    def set_stream(self, stream: int) -> None:
        """There are no streams here."""

    def rank(self, work: Any) -> tuple[Any, ...]:
        from edgeconv.methods.cuda.libcudnn import Algorithm, MathType, Performance

        return (Performance(Algorithm.IMPLICIT_GEMM, MathType.FMA, 0, None, 0, True),)

    def workspace_bytes(self, work: Any, algorithm: Any) -> int:
        return 0

    def forward(
        self, work: Any, algorithm: Any, source: int, weights: int, result: int, workspace: int, workspace_bytes: int
    ) -> None:
        """One NHWC convolution with a zero border, summed in float64."""
        padding, stride = work.convolution.padding, work.convolution.stride
        pads = ((0, 0), (padding, padding), (padding, padding), (0, 0))
        padded = np.pad(work.source.nhwc(source), pads).astype(np.float64)
        filters, out = work.weights.nhwc(weights).astype(np.float64), work.result.nhwc(result)
        sums = np.zeros(out.shape)
        for u in range(work.weights.height):
            for v in range(work.weights.width):
                rows = slice(u, u + (out.shape[1] - 1) * stride + 1, stride)
                columns = slice(v, v + (out.shape[2] - 1) * stride + 1, stride)
                sums += padded[:, rows, columns] @ filters[:, u, v].T
        out[...] = sums


def install_cudnn() -> None:
    """Put this file's cuDNN in the place of the real one."""
    from edgeconv.methods.cuda import cudnn, libcudnn

    cudnn.Handle = Handle  # type: ignore[misc, assignment]
    cudnn.Convolution = Convolution  # type: ignore[misc, assignment]
    cudnn.TensorShape = cudnn.FilterShape = Shape  # type: ignore[misc, assignment]
    libcudnn.version = lambda: "none: NumPy in its place"  # type: ignore[assignment]
