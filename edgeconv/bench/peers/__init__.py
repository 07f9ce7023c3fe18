"""What one would use instead: a literal table of peers, a class of a few lines each, none of them needed.

A peer does the very same work by the calls that the users of its library write (picture and result on its device), or
says in what it differs: another border, a result rounded elsewhere, planes instead of HWC. Its result is checked
against the oracle of just that work before it is timed. A new peer costs a class and a line here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import numpy as np

from edgeconv.bench.candidates import Bench, BenchCandidate, Ready
from edgeconv.bench.grid import ALL
from edgeconv.bench.peers.base import Peer
from edgeconv.core.choices import DeviceName
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.methods.options import Options


@dataclass(frozen=True)
class PeerEntry:
    """One line of the table: where the class lives, and what a list may say without importing it."""

    name: str
    device: DeviceName
    location: str
    summary: str
    written: bool = False
    """Whether a person writes the arithmetic in a language for kernels; else a library has it."""


_HERE = "edgeconv.bench.peers"

PEERS: tuple[PeerEntry, ...] = (
    PeerEntry("opencv-filter2d", "cpu", f"{_HERE}.opencv:OpenCVCalls", "cv2.filter2D, Sobel, cvtColor, transform"),
    PeerEntry("scipy", "cpu", f"{_HERE}.images:SciPy", "scipy.ndimage.correlate, the picture whole"),
    PeerEntry("skimage", "cpu", f"{_HERE}.images:ScikitImage", "skimage.filters, its named filters"),
    PeerEntry("kornia-rs", "cpu", f"{_HERE}.images:KorniaRs", "kornia_rs.imgproc.sobel of float32"),
    PeerEntry("torch", "cpu", f"{_HERE}.torch:ChannelsLast", "conv2d, channels last, float32"),
    PeerEntry("torch-nchw", "cpu", f"{_HERE}.torch:Planes", "conv2d on planes, float32"),
    PeerEntry("torch-unfold", "cpu", f"{_HERE}.torch:Unfold", "unfold and matmul: its own im2col"),
    PeerEntry("jax", "cpu", f"{_HERE}.jax:JAX", "lax.conv_general_dilated, HWC"),
    PeerEntry("torch-compile", "cpu", f"{_HERE}.torch:TorchCompile", "shifted multiply-adds, fused", written=True),
    PeerEntry("jax-shifts", "cpu", f"{_HERE}.jax:JAXShifts", "shifted multiply-adds under jax.jit", written=True),
    PeerEntry("numba", "cpu", f"{_HERE}.numba:OnCPU", "flat rows, strips in parallel", written=True),
    PeerEntry("halide", "cpu", f"{_HERE}.halide:Halide", "flat rows, scheduled by hand", written=True),
    PeerEntry("onnxruntime", "cpu", f"{_HERE}.onnx:ONNXRuntime", "one model, HWC in and out"),
    PeerEntry("openvino", "cpu", f"{_HERE}.onnx:OpenVINO", "the same model"),
    PeerEntry("pyvips", "cpu", f"{_HERE}.images:Vips", "libvips conv, memory to memory"),
    PeerEntry("torch", "cuda", f"{_HERE}.torch:ChannelsLast", "conv2d, channels last, float32 with TF32 off"),
    PeerEntry("torch-nchw", "cuda", f"{_HERE}.torch:Planes", "conv2d on planes, float32 with TF32 off"),
    PeerEntry("torch-half", "cuda", f"{_HERE}.torch:Half", "conv2d, channels last, float16"),
    PeerEntry("torch-unfold", "cuda", f"{_HERE}.torch:Unfold", "unfold and matmul: its own im2col"),
    PeerEntry("jax", "cuda", f"{_HERE}.jax:JAX", "lax.conv_general_dilated, HWC; time with its launch"),
    PeerEntry("triton", "cuda", f"{_HERE}.triton:Triton", "flat rows or tiles, tuned", written=True),
    PeerEntry("torch-compile", "cuda", f"{_HERE}.torch:TorchCompile", "shifted multiply-adds, fused", written=True),
    PeerEntry(
        "jax-shifts", "cuda", f"{_HERE}.jax:JAXShifts", "multiply-adds under jax.jit; time with launch", written=True
    ),
    PeerEntry("numba", "cuda", f"{_HERE}.numba:OnGPU", "one thread for each pixel, or for each sample", written=True),
    PeerEntry("cudnn-graph", "cuda", f"{_HERE}.nvidia:CuDNNGraph", "cuDNN's graph API, float32"),
    PeerEntry("cupy-ndimage", "cuda", f"{_HERE}.images:CuPy", "cupyx.scipy.ndimage.correlate, the picture whole"),
    PeerEntry("npp", "cuda", f"{_HERE}.nvidia:NPP", "its fixed Laplace and Sobel, else nppiFilterBorder"),
    PeerEntry("cvcuda", "cuda", f"{_HERE}.nvidia:CVCUDA", "cvcuda.conv2d and cvcuda.laplacian"),
    PeerEntry("cucim", "cuda", f"{_HERE}.images:CuCIM", "cucim.skimage.filters, its named filters"),
)


class PeerCandidate(BenchCandidate):
    """A peer as a candidate."""

    kind = "peer"

    def __init__(self, entry: PeerEntry, options: Options) -> None:
        self.label = self.name = entry.name
        self.device, self.options = entry.device, options
        self._peer = _load(entry)

    @property
    def version(self) -> str:
        """Of the library."""
        return self._peer.version()

    def unavailable_reason(self) -> str | None:
        return self._peer.unavailable_reason()

    def prepare(self, bench: Bench) -> Ready:
        if bench.problem.dtype == np.float64 and not self._peer.has_double:
            raise UnavailableError("it is measured in float32 only")
        return self._peer.prepare(bench.problem, bench.image_host)


@cache
def _load(entry: PeerEntry) -> Peer:
    module, _, name = entry.location.partition(":")
    peer: Peer = getattr(import_module(module), name)(entry.device)
    return peer


def peer_candidates(
    words: Iterable[str], device: DeviceName, options: Options
) -> tuple[list[PeerCandidate], list[tuple[str, str]]]:
    """The peers of `device` that `words` name and that are installed, and (name, reason) of those that are not."""
    words = list(words)
    names = list(dict.fromkeys(entry.name for entry in PEERS))
    for word in words:
        if word not in (ALL, *names):
            raise UsageError(f"Peer '{word}' is not known: use {ALL}, none or some of {', '.join(names)}.")
    here: list[PeerCandidate] = []
    missing = []
    for entry in PEERS:
        if entry.device == device and (ALL in words or entry.name in words):
            candidate = PeerCandidate(entry, options)
            reason = candidate.unavailable_reason()
            if reason is None:
                here.append(candidate)
            else:
                missing.append((entry.name, reason))
    return here, missing
