"""What the plans ask of cuBLAS and cuDNN, in NumPy on host memory, so that the kernels before and after run too.

Only what one call of each computes: `gemm` counts in columns first like BLAS, and the convolution has a zero
border. Descriptors, statuses and rankings of the real cuDNN are tested elsewhere (test_libcudnn.py).
"""

from __future__ import annotations

import ctypes
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np

HALF = 2
"""cudnnDataType_t."""
NHWC = 1
"""cudnnTensorFormat_t; no type has this number."""


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


class Cudnn:
    """The functions of cuDNN that a plan calls, with one algorithm; each answers success."""

    def __init__(self) -> None:
        self._settings: dict[int, tuple[int, ...]] = {}
        self._numbers = count(1)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("cudnnSet") and name.endswith("dDescriptor"):
            return self._set
        return self._create if name.startswith("cudnnCreate") else lambda *arguments: 0

    def _create(self, created: Any) -> int:
        created._obj.value = next(self._numbers)
        return 0

    def _set(self, descriptor: Any, *settings: int) -> int:
        self._settings[descriptor._as_parameter_.value] = settings
        return 0

    def _get(self, descriptor: Any) -> tuple[int, ...]:
        return self._settings[descriptor._as_parameter_.value]

    def _array(self, descriptor: Any, address: int) -> np.ndarray:
        *kind_and_layout, first, channels, height, width = self._get(descriptor)
        kind = np.float16 if HALF in kind_and_layout else np.float32
        if NHWC in kind_and_layout:
            return memory(address, (first, height, width, channels), kind)
        return memory(address, (first, channels, height, width), kind).transpose(0, 2, 3, 1)

    def cudnnGetConvolution2dForwardOutputDim(self, rule: Any, source: Any, weights: Any, *sizes: Any) -> int:
        padding, _, stride, *_ = self._get(rule)
        (_, _, batch, _, *lengths), (_, _, responses, _, tap, _) = self._get(source), self._get(weights)
        long = [(length + 2 * padding - tap) // stride + 1 for length in lengths]
        for size, value in zip(sizes, (batch, responses, *long), strict=True):
            size._obj.value = value
        return 0

    def cudnnGetConvolutionForwardAlgorithmMaxCount(self, handle: Any, most: Any) -> int:
        most._obj.value = 1
        return 0

    def cudnnGetConvolutionForwardAlgorithm_v7(self, *arguments: Any) -> int:
        """A ranking of one line, all of it 0: algorithm, status and workspace."""
        *_, returned, _ = arguments
        returned._obj.value = 1
        return 0

    def cudnnConvolutionForward(self, handle: Any, one: Any, *arguments: Any) -> int:
        """A convolution of one group or several with a zero border, summed in float64."""
        source, x, weights, w, rule, _, _, _, _, result, y = arguments
        padding, _, stride, *_ = self._get(rule)
        pads = ((0, 0), (padding, padding), (padding, padding), (0, 0))
        padded = np.pad(self._array(source, x), pads).astype(np.float64)
        filters, out = self._array(weights, w).astype(np.float64), self._array(result, y)
        sums, groups = np.zeros(out.shape), padded.shape[-1] // filters.shape[-1]
        for u, v in np.ndindex(filters.shape[1:3]):
            rows = slice(u, u + (out.shape[1] - 1) * stride + 1, stride)
            columns = slice(v, v + (out.shape[2] - 1) * stride + 1, stride)
            reads = np.split(padded[:, rows, columns], groups, axis=-1)
            weights = np.split(filters[:, u, v], groups)
            sums += np.concatenate([each @ its.T for each, its in zip(reads, weights, strict=True)], axis=-1)
        out[...] = sums
        return 0


def install_cudnn() -> None:
    """Put this file's cuDNN in the place of the real one."""
    from edgeconv.methods.cuda import libcudnn

    cudnn: Any = Cudnn()
    cudnn.cudnnGetVersion = lambda: 0
    libcudnn.library = lambda: cudnn  # type: ignore[assignment]
