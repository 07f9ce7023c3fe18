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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.optional import install
from edgeconv.errors import UnavailableError, one_line
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.io.decoding import TURNS
from edgeconv.io.formats.base import Header

QUALITY = 95
"""Where none is asked for: OpenCV's default, which the host's encoder uses."""
NARROWEST = 8
"""In narrower pictures libjpeg does not interpolate colours that are stored at half their resolution; GPUs do."""
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


class GpuJpeg:
    """The decoder and the encoder of one GPU, for lists of pictures; a thread that comes meanwhile waits.

    Lists are what is quick: one by one, each picture waits for the host's part of the last. Two decoders at once, or a
    decoder beside an encoder, are slower than one after the other, as the host's part binds.
    """

    def __init__(self) -> None:
        """Takes over a second, mostly at the first picture, which is therefore a test picture. Raises RuntimeError."""
        import cupy

        self._codec = codec = _nvimgcodec()
        self._turn = threading.Lock()
        backends = [codec.Backend(codec.HYBRID_CPU_GPU)]
        # The host's part of a list wants all cores: with half of them a list takes almost twice as long.
        self._decoder = codec.Decoder(backends=backends, options=":fancy_upsampling=1")
        self._encoder = codec.Encoder()
        self._as_stored = codec.DecodeParams(apply_exif_orientation=False)
        (first,) = self.encode([cupy.zeros((8, 8, RGB_CHANNELS), cupy.uint8)], QUALITY)
        if first is None:
            raise RuntimeError("it encodes nothing")
        if self._decoded([first]) == [None]:
            raise RuntimeError("it decodes nothing")

    def decode(self, files: Sequence[tuple[bytes, Header]]) -> list[Any]:
        """A CuPy array (HWC RGB, uint8) of each file, upright, on the current stream; None of what the host decodes."""
        ours = [number for number, (_, header) in enumerate(files) if header.gpu_jpeg and header.width >= NARROWEST]
        found: list[Any] = [None] * len(files)
        with self._turn:
            images = self._decoded([files[number][0] for number in ours])
        for number, image in zip(ours, images, strict=True):
            found[number] = None if image is None else _upright(image, files[number][1])
        return found

    def _decoded(self, files: list[bytes]) -> list[Any]:
        """Images, and None of what cannot be decoded."""
        import cupy

        stream = cupy.cuda.get_current_stream().ptr
        try:
            streams = [self._codec.CodeStream(data) for data in files]
            images = self._decoder.decode(streams, params=self._as_stored, cuda_stream=stream) if files else []
        except RuntimeError:
            return [None] if len(files) == 1 else [image for data in files for image in self._decoded([data])]
        return list(images)

    def encode(self, pictures: Sequence[Any], quality: int | None) -> list[bytes | None]:
        """The bytes of a JPEG file of each CuPy array (HWC RGB, uint8), colours at half their resolution.

        None of what cannot be encoded.
        """
        import cupy

        stream, params = cupy.cuda.get_current_stream().ptr, _params(QUALITY if quality is None else quality)
        with self._turn:
            try:
                encoded = self._encoder.encode(list(pictures), "jpeg", params=params, cuda_stream=stream)
            except RuntimeError:
                encoded = [None] * len(pictures)
        return [None if each is None else bytes(memoryview(each)) for each in encoded]


def _upright(image: Any, header: Header) -> Any:
    """The pixels of a decoded image; None where they are not what the header says."""
    import cupy

    pixels = cupy.asarray(image)
    if pixels.shape != (header.height, header.width, RGB_CHANNELS):
        return None
    transposed, flipped = TURNS[header.orientation]
    turned = pixels.swapaxes(0, 1) if transposed else pixels
    # A copy in CuPy's memory: the image's own goes back to its library on the stream that it was decoded on.
    return (cupy.flip(turned, flipped) if flipped else turned).copy("C")


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
