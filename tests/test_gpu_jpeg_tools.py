"""How threads share the decoders of a GPU, with a nvImageCodec that works on the host: no GPU is needed.

What the real one makes of pictures is in test_gpu_jpeg.py.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from picture_files import exif, saved, smooth_image

from edgeconv.io.formats.byte_source import ByteSource
from edgeconv.io.formats.jpeg import read_header
from edgeconv.io.image import decode_image, encode_image
from edgeconv.runtime.devices import gpu_jpeg
from edgeconv.runtime.devices.gpu_jpeg import GpuJpeg


class Decoder:
    """Decodes as the host does; takes a moment, and complains where two threads use it at once."""

    made: list[Decoder]
    refuses: bytes = b"refuse me"

    def __init__(self, **options: Any) -> None:
        if len(self.made) >= Most.decoders:
            raise MemoryError("no room on the GPU")
        self.made.append(self)
        self._alone = threading.Lock()

    def decode(self, data: bytes, params: Any = None, cuda_stream: int = 0) -> Any:
        assert self._alone.acquire(blocking=False), "two threads at once"
        try:
            time.sleep(0.002)
            if data.endswith(self.refuses):
                raise RuntimeError("refused")
            return decode_image(data, "x.jpg").pixels
        finally:
            self._alone.release()


class Encoder:
    """Encodes as the host does."""

    def __init__(self, **options: Any) -> None:
        pass

    def encode(self, pixels: Any, codec: str, params: Any, cuda_stream: int) -> Any:
        assert params.chroma_subsampling == "420"
        return None if pixels.shape[0] == 1 else encode_image(pixels, "x.jpg", quality=params.quality_value)


class Most:
    """How many decoders find room."""

    decoders = 99


class Stream:
    """Nothing waits."""

    ptr = 0

    def __init__(self, non_blocking: bool = False) -> None:
        pass

    def synchronize(self) -> None:
        pass


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Decoder]:
    """The decoders that there are, of the fake."""
    fake = SimpleNamespace(
        Decoder=Decoder,
        Encoder=Encoder,
        CodeStream=bytes,
        Backend=str,
        HYBRID_CPU_GPU="hybrid",
        QualityType=SimpleNamespace(QUALITY="quality"),
        ChromaSubsampling=SimpleNamespace(CSS_420="420"),
        DecodeParams=SimpleNamespace,
        EncodeParams=SimpleNamespace,
        __version__="0.0",
    )
    cupy = ModuleType("cupy")
    for name in ("asarray", "ascontiguousarray", "flip", "zeros", "uint8"):
        setattr(cupy, name, getattr(np, name))
    cupy.cuda = SimpleNamespace(Stream=Stream, get_current_stream=Stream)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(gpu_jpeg, "_nvimgcodec", lambda: fake)
    monkeypatch.setattr(Decoder, "made", [], raising=False)
    return Decoder.made


def test_the_first_decoder_is_there_at_once_and_more_come_as_threads_need_them(made: list[Decoder]) -> None:
    gpu = GpuJpeg(most=5)
    assert len(made) == 1
    files = [saved(smooth_image(16 + index, 24), "JPEG") for index in range(40)]
    with ThreadPoolExecutor(12) as pool:
        decoded = list(pool.map(lambda data: gpu.decode(data, read_header(ByteSource(data))), files))
    assert 1 < len(made) <= 5
    for data, pixels in zip(files, decoded, strict=True):
        assert np.array_equal(pixels, decode_image(data, "x.jpg").pixels)


def test_where_more_find_no_room_those_that_are_there_do_it(
    made: list[Decoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Most, "decoders", 2)
    gpu, data = GpuJpeg(most=9), saved(smooth_image(16, 24), "JPEG")
    with ThreadPoolExecutor(8) as pool:
        decoded = list(pool.map(lambda data: gpu.decode(data, read_header(ByteSource(data))), [data] * 30))
    assert len(made) == 2
    assert all(pixels is not None for pixels in decoded)


def test_a_first_decoder_that_finds_no_room_is_a_reason(made: list[Decoder], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_jpeg, "cuda_unavailable_reason", lambda: None)
    monkeypatch.setattr(gpu_jpeg, "_is_installed", lambda: True)
    monkeypatch.setattr(Most, "decoders", 0)
    gpu_jpeg.gpu_jpeg_unavailable_reason.cache_clear()
    try:
        assert gpu_jpeg.gpu_jpeg_unavailable_reason() == "nvImageCodec cannot be used (no room on the GPU)"
    finally:
        gpu_jpeg.gpu_jpeg_unavailable_reason.cache_clear()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_upright(made: list[Decoder], orientation: int) -> None:
    data = saved(smooth_image(24, 40), "JPEG", exif=exif(orientation))
    header = read_header(ByteSource(data))
    upright = decode_image(data, "x.jpg").pixels
    as_stored = saved(smooth_image(24, 40), "JPEG")
    gpu = GpuJpeg(most=1)
    turned = gpu.decode(as_stored, header)
    assert turned.flags.c_contiguous
    assert np.array_equal(turned, upright)


def test_what_it_cannot_do_is_left_to_the_host(made: list[Decoder]) -> None:
    gpu = GpuJpeg(most=1)
    whole = saved(smooth_image(24, 40), "JPEG")
    for data in (
        saved(smooth_image(24, 40), "JPEG", "CMYK"),
        saved(smooth_image(24, 7), "JPEG"),
        whole + Decoder.refuses,
    ):
        assert gpu.decode(data, read_header(ByteSource(data))) is None
    assert gpu.decode(whole, read_header(ByteSource(whole))) is not None


def test_it_encodes_at_the_quality_that_was_asked_for(made: list[Decoder]) -> None:
    gpu, pixels = GpuJpeg(most=1), smooth_image(64, 64)
    for quality in (None, 30):
        assert gpu.encode(pixels, quality) == bytes(encode_image(pixels, "x.jpg", quality=quality or 95))
    with pytest.raises(RuntimeError, match="could not encode"):
        gpu.encode(pixels[:1], None)


def test_nothing_that_an_import_prints_gets_out(capfd: pytest.CaptureFixture[str]) -> None:
    with gpu_jpeg._standard_error_shut():
        os.write(2, b"a library is missing\n")
    os.write(2, b"heard\n")
    assert capfd.readouterr().err == "heard\n"
