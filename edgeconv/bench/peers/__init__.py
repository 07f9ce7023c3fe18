"""What one would use instead: a literal table of peers, a function of a few lines each, none of them needed.

A peer does the very same work by the calls that the users of its library write (picture and result on its device), or
says in what it differs: another border, a result rounded elsewhere, planes instead of HWC. Its result is checked
against the oracle of just that work before it is timed. A new peer costs a function and a line here.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgeconv.bench.grid import ALL
from edgeconv.bench.peers.base import Peer
from edgeconv.core.choices import DeviceName
from edgeconv.errors import UsageError

PEERS: tuple[Peer, ...] = (
    Peer("opencv-filter2d", "cpu", "images:OPENCV", "cv2.filter2D, Sobel, cvtColor, transform"),
    Peer("scipy", "cpu", "images:SCIPY", "scipy.ndimage.correlate, the picture whole"),
    Peer("skimage", "cpu", "images:SKIMAGE", "skimage.filters, its named filters"),
    Peer("kornia-rs", "cpu", "images:KORNIA", "kornia_rs.imgproc.sobel of float32"),
    Peer("pyvips", "cpu", "images:VIPS", "libvips conv, memory to memory"),
    Peer("torch", "cpu", "torch:CHANNELS_LAST", "conv2d, channels last, float32"),
    Peer("torch-nchw", "cpu", "torch:PLANES", "conv2d on planes, float32"),
    Peer("torch-unfold", "cpu", "torch:UNFOLD", "unfold and matmul: its own im2col"),
    Peer("jax", "cpu", "jax:CONVOLUTION", "lax.conv_general_dilated, HWC"),
    Peer("torch-compile", "cpu", "torch:COMPILED", "shifted multiply-adds, fused", written=True),
    Peer("jax-shifts", "cpu", "jax:SHIFTS", "shifted multiply-adds under jax.jit", written=True),
    Peer("numba", "cpu", "numba:ON_CPU", "flat rows, strips in parallel", written=True),
    Peer("halide", "cpu", "kernels:HALIDE", "flat rows, scheduled by hand", written=True),
    Peer("onnxruntime", "cpu", "onnx:ONNX_RUNTIME", "one model, HWC in and out"),
    Peer("openvino", "cpu", "onnx:OPENVINO", "the same model"),
    Peer("torch", "cuda", "torch:CHANNELS_LAST", "conv2d, channels last, float32 with TF32 off"),
    Peer("torch-nchw", "cuda", "torch:PLANES", "conv2d on planes, float32 with TF32 off"),
    Peer("torch-half", "cuda", "torch:HALF", "conv2d, channels last, float16"),
    Peer("torch-unfold", "cuda", "torch:UNFOLD", "unfold and matmul: its own im2col"),
    Peer("jax", "cuda", "jax:CONVOLUTION", "lax.conv_general_dilated, HWC; time with its launch"),
    Peer("triton", "cuda", "kernels:TRITON", "flat rows or tiles, tuned", written=True),
    Peer("torch-compile", "cuda", "torch:COMPILED", "shifted multiply-adds, fused", written=True),
    Peer("jax-shifts", "cuda", "jax:SHIFTS", "multiply-adds under jax.jit; time with launch", written=True),
    Peer("numba", "cuda", "numba:ON_GPU", "one thread for each pixel, or for each sample", written=True),
    Peer("cudnn-graph", "cuda", "nvidia:CUDNN_GRAPH", "cuDNN's graph API, float32"),
    Peer("cupy-ndimage", "cuda", "images:CUPY", "cupyx.scipy.ndimage.correlate, the picture whole"),
    Peer("npp", "cuda", "nvidia:NPP", "its fixed Laplace and Sobel, else nppiFilterBorder"),
    Peer("cvcuda", "cuda", "nvidia:CVCUDA", "cvcuda.conv2d and cvcuda.laplacian"),
    Peer("cucim", "cuda", "images:CUCIM", "cucim.skimage.filters, its named filters"),
)


def peer_candidates(words: Iterable[str], device: DeviceName) -> tuple[list[Peer], dict[str, str]]:
    """The peers of `device` that `words` name and that are installed, and by name why the others are left out."""
    words, names = list(words), list(dict.fromkeys(peer.name for peer in PEERS))
    for word in words:
        if word not in (ALL, *names):
            raise UsageError(f"Peer '{word}' is not known: use {ALL}, none or some of {', '.join(names)}.")
    named = [peer for peer in PEERS if peer.device == device and (ALL in words or peer.name in words)]
    found = [(peer, peer.unavailable_reason()) for peer in named]
    return [peer for peer, why in found if why is None], {peer.name: why for peer, why in found if why is not None}
