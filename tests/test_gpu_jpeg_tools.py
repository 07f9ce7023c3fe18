"""Why JPEG cannot be decoded on a GPU, and what a library prints while it is loaded: no GPU is needed.

What the real one makes of pictures is in test_gpu_jpeg.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from edgeconv.io import gpu_jpeg


@pytest.fixture
def asked_anew() -> Iterator[None]:
    gpu_jpeg.gpu_jpeg_unavailable_reason.cache_clear()
    yield
    gpu_jpeg.gpu_jpeg_unavailable_reason.cache_clear()


def test_a_first_decoder_that_finds_no_room_is_a_reason(asked_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room() -> None:
        raise MemoryError("no room on the GPU")

    monkeypatch.setattr(gpu_jpeg, "cuda_unavailable_reason", lambda: None)
    monkeypatch.setattr(gpu_jpeg, "_is_installed", lambda: True)
    monkeypatch.setattr(gpu_jpeg, "the_gpu", no_room)
    assert gpu_jpeg.gpu_jpeg_unavailable_reason() == "nvImageCodec cannot be used (no room on the GPU)"


def test_nothing_that_an_import_prints_gets_out(capfd: pytest.CaptureFixture[str]) -> None:
    with gpu_jpeg._standard_error_shut():
        os.write(2, b"a library is missing\n")
    os.write(2, b"heard\n")
    assert capfd.readouterr().err == "heard\n"
