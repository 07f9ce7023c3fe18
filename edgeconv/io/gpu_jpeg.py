"""JPEG on an NVIDIA GPU, through nvImageCodec: only compressed bytes are transferred, pixels stay in GPU memory.

Decoding uses nvJPEG's hybrid backend, which works on every GPU: for progressive files and for pictures below a million
pixels a host thread decodes the Huffman code, everything else runs on the GPU. Samples differ from libjpeg's by
rounding, and an encoded file has other bytes, so this is used only on request. The hardware JPEG engine of some GPUs is
not used: its samples differ again.

Source: https://docs.nvidia.com/cuda/nvimagecodec/py_api.html, of nvImageCodec 0.9.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from queue import Empty, LifoQueue
from typing import Any

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.optional import install
from edgeconv.errors import UnavailableError, one_line
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.hardware.threads import usable_threads
from edgeconv.io.decoding import TURNS
from edgeconv.io.formats.base import Header

QUALITY = 95
"""Where none is asked for: OpenCV's default, which the host's encoder uses."""
NARROWEST = 8
"""In narrower pictures libjpeg does not interpolate colours that are stored at half their resolution; GPUs do."""
MADE_AT_ONCE = 4
"""Decoders that are set up side by side; that takes a second or two, and the driver does little of it in parallel."""
INSTALL = f"{install('nvimgcodec13')}; nvimgcodec12 beside CuPy for CUDA 12"


def nvimgcodec_version() -> str:
    """The version of nvImageCodec that is installed, or `none`."""
    return str(_nvimgcodec().__version__) if _is_installed() else "none"


@cache
def gpu_jpeg_unavailable_reason() -> str | None:
    """Why no JPEG can be decoded on a GPU here, as a sentence without a full stop, or None where one can."""
    reason = cuda_unavailable_reason()
    if reason is not None:
        return reason
    if not _is_installed():
        return f"nvImageCodec is not installed ({INSTALL})"
    try:
        the_gpu()
    except (ImportError, OSError, RuntimeError, MemoryError, AttributeError, TypeError) as error:
        return f"nvImageCodec cannot be used ({one_line(error)})"
    return None


def require_gpu_jpeg() -> None:
    """Raise UnavailableError where no JPEG can be decoded on a GPU here."""
    reason = gpu_jpeg_unavailable_reason()
    if reason is not None:
        raise UnavailableError(f"JPEG on the GPU does not work here: {reason}.")


class _Tools:
    """A decoder and an encoder, for one thread at a time, and their stream, to which the memory of images goes back."""

    def __init__(self) -> None:
        """Takes over a second, mostly at the first picture, which is therefore a test picture."""
        import cupy

        codec = _nvimgcodec()
        self.stream = cupy.cuda.Stream(non_blocking=True)
        backends = [codec.Backend(codec.HYBRID_CPU_GPU)]
        self.decoder = codec.Decoder(max_num_cpu_threads=1, backends=backends, options=":fancy_upsampling=1")
        self.encoder = codec.Encoder(max_num_cpu_threads=1)
        black = cupy.zeros((8, 8, RGB_CHANNELS), cupy.uint8)
        first = self.encoder.encode(black, "jpeg", params=_params(QUALITY), cuda_stream=self.stream.ptr)
        if first is None:
            raise RuntimeError("it encodes nothing")
        again = codec.CodeStream(bytes(memoryview(first)))
        if self.decoder.decode(again, cuda_stream=self.stream.ptr) is None:
            raise RuntimeError("it decodes nothing")


class GpuJpeg:
    """The decoders and encoders of one GPU, for any number of threads.

    They are made as the threads need them, a few at a time, so that a short batch does not wait for all of them.
    """

    def __init__(self, most: int | None = None) -> None:
        """Up to `most` decoders, by default one per core; the first is created at once. Raises RuntimeError."""
        codec = _nvimgcodec()
        self._codec = codec
        self._as_stored = codec.DecodeParams(apply_exif_orientation=False)
        self._unmade = threading.Semaphore((most or usable_threads()) - 1)
        self._making = threading.Semaphore(MADE_AT_ONCE)
        self._free: LifoQueue[_Tools] = LifoQueue()
        self._free.put(_Tools())

    @contextmanager
    def _tools(self) -> Iterator[_Tools]:
        tools = self._free_or_new()
        try:
            yield tools
        finally:
            self._free.put(tools)

    def _free_or_new(self) -> _Tools:
        with suppress(Empty):
            return self._free.get_nowait()
        if self._making.acquire(blocking=False):
            try:
                if self._unmade.acquire(blocking=False):
                    with suppress(RuntimeError, MemoryError):  # no room for more: those that are there will do
                        return _Tools()
            finally:
                self._making.release()
        return self._free.get()

    def decode(self, data: bytes, header: Header) -> Any:
        """A `Decoder` of reading.py: a CuPy array (HWC RGB, uint8); None for what the host decodes otherwise."""
        import cupy

        if not header.gpu_jpeg or header.width < NARROWEST:
            return None
        with self._tools() as tools:
            try:
                image = tools.decoder.decode(
                    self._codec.CodeStream(data), params=self._as_stored, cuda_stream=tools.stream.ptr
                )
                tools.stream.synchronize()
            except RuntimeError:
                return None
            if image is None:
                return None
            pixels = cupy.asarray(image)
            if pixels.shape != (header.height, header.width, RGB_CHANNELS):
                return None
            transposed, flipped = TURNS[header.orientation]
            upright = pixels.swapaxes(0, 1) if transposed else pixels
            upright = cupy.ascontiguousarray(cupy.flip(upright, flipped) if flipped else upright)
            cupy.cuda.get_current_stream().synchronize()  # the next image may be given this one's memory
            return upright

    def encode(self, pixels: Any, quality: int | None) -> bytes:
        """The bytes of a JPEG file with a CuPy array (HWC RGB, uint8), colours at half their resolution.

        Raises RuntimeError.
        """
        import cupy

        params = _params(QUALITY if quality is None else quality)
        cupy.cuda.get_current_stream().synchronize()
        with self._tools() as tools:
            encoded = tools.encoder.encode(pixels, "jpeg", params=params, cuda_stream=tools.stream.ptr)
            if encoded is None:
                raise RuntimeError("nvImageCodec could not encode it")
            return bytes(memoryview(encoded))


_MAKING = threading.Lock()


def the_gpu() -> GpuJpeg:
    """The one of this process, made when it is first asked for."""
    with _MAKING:
        return _the_gpu()


@cache
def _the_gpu() -> GpuJpeg:
    return GpuJpeg()


@cache
def _nvimgcodec() -> Any:
    """The module, without its warnings about missing libraries for other formats, which are not used."""
    os.environ.setdefault("PYNVIMGCODEC_VERBOSITY", "0")
    with _standard_error_shut():
        return import_module("nvidia.nvimgcodec")


def _is_installed() -> bool:
    return find_spec("nvidia") is not None and find_spec("nvidia.nvimgcodec") is not None


def _params(quality: int) -> Any:
    codec = _nvimgcodec()
    return codec.EncodeParams(
        quality_type=codec.QualityType.QUALITY,
        quality_value=quality,
        chroma_subsampling=codec.ChromaSubsampling.CSS_420,
    )


@contextmanager
def _standard_error_shut() -> Iterator[None]:
    """Discard what a library prints to the process's standard error."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
