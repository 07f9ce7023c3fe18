"""What one would use instead: a literal table of peers, a class of a few lines each, none of them needed.

A peer does the very same work by the calls that the users of its library write (picture and result on its device), or
says in what it differs: another border, a result rounded elsewhere, planes instead of HWC. Its result is checked
against the oracle of just that work before it is timed. A new peer costs a class and a line here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module

from edgeconv.bench.grid import ALL
from edgeconv.bench.peers.base import Peer
from edgeconv.core.choices import DeviceName
from edgeconv.errors import UsageError


@dataclass(frozen=True)
class PeerEntry:
    """One line of the table, which a list may show without importing the class."""

    name: str
    device: DeviceName
    location: str
    """The module here and its class."""
    summary: str
    written: bool = False
    """Whether a person writes the arithmetic in a language for kernels; else a library has it."""

    def candidate(self) -> Peer:
        """The peer itself."""
        module, _, kind = self.location.partition(":")
        peer: Peer = getattr(import_module(f"{__name__}.{module}"), kind)(self.name, self.device)
        return peer


PEERS: tuple[PeerEntry, ...] = (
    PeerEntry("opencv-filter2d", "cpu", "images:OpenCVCalls", "cv2.filter2D, Sobel, cvtColor, transform"),
    PeerEntry("scipy", "cpu", "images:SciPy", "scipy.ndimage.correlate, the picture whole"),
    PeerEntry("skimage", "cpu", "images:ScikitImage", "skimage.filters, its named filters"),
    PeerEntry("kornia-rs", "cpu", "images:KorniaRs", "kornia_rs.imgproc.sobel of float32"),
    PeerEntry("pyvips", "cpu", "images:Vips", "libvips conv, memory to memory"),
    PeerEntry("torch", "cpu", "torch:ChannelsLast", "conv2d, channels last, float32"),
    PeerEntry("torch-nchw", "cpu", "torch:Planes", "conv2d on planes, float32"),
    PeerEntry("torch-unfold", "cpu", "torch:Unfold", "unfold and matmul: its own im2col"),
    PeerEntry("jax", "cpu", "jax:JAX", "lax.conv_general_dilated, HWC"),
    PeerEntry("torch-compile", "cpu", "torch:TorchCompile", "shifted multiply-adds, fused", written=True),
    PeerEntry("jax-shifts", "cpu", "jax:JAXShifts", "shifted multiply-adds under jax.jit", written=True),
    PeerEntry("numba", "cpu", "numba:NumbaOnCPU", "flat rows, strips in parallel", written=True),
    PeerEntry("halide", "cpu", "kernels:Halide", "flat rows, scheduled by hand", written=True),
    PeerEntry("onnxruntime", "cpu", "onnx:ONNXRuntime", "one model, HWC in and out"),
    PeerEntry("openvino", "cpu", "onnx:OpenVINO", "the same model"),
    PeerEntry("torch", "cuda", "torch:ChannelsLast", "conv2d, channels last, float32 with TF32 off"),
    PeerEntry("torch-nchw", "cuda", "torch:Planes", "conv2d on planes, float32 with TF32 off"),
    PeerEntry("torch-half", "cuda", "torch:Half", "conv2d, channels last, float16"),
    PeerEntry("torch-unfold", "cuda", "torch:Unfold", "unfold and matmul: its own im2col"),
    PeerEntry("jax", "cuda", "jax:JAX", "lax.conv_general_dilated, HWC; time with its launch"),
    PeerEntry("triton", "cuda", "kernels:Triton", "flat rows or tiles, tuned", written=True),
    PeerEntry("torch-compile", "cuda", "torch:TorchCompile", "shifted multiply-adds, fused", written=True),
    PeerEntry("jax-shifts", "cuda", "jax:JAXShifts", "multiply-adds under jax.jit; time with launch", written=True),
    PeerEntry("numba", "cuda", "numba:NumbaOnGPU", "one thread for each pixel, or for each sample", written=True),
    PeerEntry("cudnn-graph", "cuda", "nvidia:CuDNNGraph", "cuDNN's graph API, float32"),
    PeerEntry("cupy-ndimage", "cuda", "images:CuPy", "cupyx.scipy.ndimage.correlate, the picture whole"),
    PeerEntry("npp", "cuda", "nvidia:NPP", "its fixed Laplace and Sobel, else nppiFilterBorder"),
    PeerEntry("cvcuda", "cuda", "nvidia:CVCUDA", "cvcuda.conv2d and cvcuda.laplacian"),
    PeerEntry("cucim", "cuda", "images:CuCIM", "cucim.skimage.filters, its named filters"),
)


def peer_candidates(words: Iterable[str], device: DeviceName) -> tuple[list[Peer], dict[str, str]]:
    """The peers of `device` that `words` name and that are installed, and by name why the others are left out."""
    words, names = list(words), list(dict.fromkeys(entry.name for entry in PEERS))
    for word in words:
        if word not in (ALL, *names):
            raise UsageError(f"Peer '{word}' is not known: use {ALL}, none or some of {', '.join(names)}.")
    named = [entry for entry in PEERS if entry.device == device and (ALL in words or entry.name in words)]
    found = [(peer, peer.unavailable_reason()) for peer in (entry.candidate() for entry in named)]
    return [peer for peer, why in found if why is None], {peer.name: why for peer, why in found if why is not None}
