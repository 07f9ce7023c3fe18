"""Who decodes and encodes the pictures of a batch: what is asked of a GPU, and what stays with the host.

What a GPU makes of it is in test_gpu_jpeg.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from batch_folders import processor_for, settings_for
from picture_files import exif, png, saved, smooth_image

from edgeconv.batch import process, run
from edgeconv.batch.engines.cluster_worker import Terms, check, maker_here
from edgeconv.batch.process import PictureWork
from edgeconv.batch.settings import Settings
from edgeconv.batch.stores import Task
from edgeconv.errors import ImageWriteError, UnavailableError
from edgeconv.io.formats import jpeg
from edgeconv.io.formats.base import Header
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import decode_image

PIXELS = smooth_image(40, 56)


def with_adobe(transform: int) -> bytes:
    """A picture whose colours Adobe's segment says the kind of: 0 as they are, 1 YCbCr."""
    plain = saved(PIXELS, "JPEG")
    return plain[:2] + b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00" + bytes([transform]) + plain[2:]


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (saved(PIXELS, "JPEG"), True),
        (saved(PIXELS, "JPEG", "L"), True),
        (saved(PIXELS, "JPEG", progressive=True), True),
        (with_adobe(1), True),
        (with_adobe(0), False),
        (saved(PIXELS, "JPEG", "CMYK"), False),
        (saved(PIXELS, "JPEG", keep_rgb=True), False),
        (saved(PIXELS, "JPEG").replace(b"\xff\xc0", b"\xff\xc9", 1), False),
        (saved(PIXELS, "JPEG", "L").replace(b"\xff\xc0", b"\xff\xc3", 1), False),
    ],
    ids=["YCbCr", "grey", "progressive", "Adobe 1", "Adobe 0", "CMYK", "RGB", "arithmetic code", "lossless"],
)
def test_a_gpu_is_given_what_every_decoder_reads_alike(data: bytes, answer: bool) -> None:
    assert jpeg.read_header(data).gpu_jpeg is answer


class FakeGpu:
    """Decodes to a picture that no other decoder gives, and encodes to bytes that no other encoder gives."""

    def decode(self, data: bytes, header: Header) -> Any:
        can = header.gpu_jpeg and header.width > 8
        return np.full(header.shape(rgb=True), 7, np.uint8) if can else None

    def encode(self, pixels: Any, quality: int | None) -> bytes:
        if pixels.max() == 0:
            raise RuntimeError("no room")
        return f"{pixels.shape} at {quality}".encode()


@pytest.fixture
def by_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    monkeypatch.setattr(process, "the_gpu", FakeGpu)
    return settings_for(tmp_path, format="jpg", quality=50, jpeg_codec="gpu")


def decoded(data: bytes, settings: Settings) -> PictureWork:
    """The work on a file, behind the stage that decodes it."""
    by = processor_for(settings)
    work = by.begin(Task("a.jpg", PurePosixPath(), ""))
    work.data = data
    by.decode([work])
    return work


@pytest.mark.parametrize(
    ("data", "on_gpu", "notes"),
    [
        (saved(PIXELS, "JPEG", exif=exif(6)), True, ("orientation 6 applied",)),
        (saved(PIXELS, "JPEG", "L"), True, ()),
        (saved(PIXELS, "JPEG", "CMYK"), False, ()),
        (saved(PIXELS[:, :7], "JPEG"), False, ("JPEG decoded by the host, not by the GPU",)),
        (png(PIXELS), False, ()),
    ],
    ids=["turned", "grey", "CMYK", "refused by the GPU", "PNG"],
)
def test_the_gpu_decodes_jpeg_and_the_host_the_rest(
    by_gpu: Settings, data: bytes, on_gpu: bool, notes: tuple[str, ...]
) -> None:
    """What the GPU refuses is said. It decodes all JPEG to three channels; only --rgb leaves those of grey."""
    for settings in (by_gpu, replace(by_gpu, rules=ReadRules(rgb=True))):
        picture, expected = decoded(data, settings).picture, decode_image(data, "a.jpg", settings.rules)
        pixels = np.full_like(expected.pixels, 7) if on_gpu else expected.pixels
        assert np.array_equal(picture.pixels, pixels)
        assert set(picture.notes) == {*expected.notes, *notes}


def test_a_file_is_looked_through_before_the_gpu_gets_it(by_gpu: Settings) -> None:
    assert "cut short" in str(decoded(saved(PIXELS, "JPEG")[:-40], by_gpu).row.error)


def test_the_gpu_encodes_rgb_of_8_bits_and_the_host_the_rest(by_gpu: Settings) -> None:
    assert process.encode(PIXELS, "a.jpg", by_gpu) == b"(40, 56, 3) at 50"
    assert bytes(process.encode(PIXELS[..., :1], "a.jpg", by_gpu)).startswith(jpeg.SIGNATURE)
    assert not process.encodes_on_gpu((70_000, 8, 3), np.dtype("uint8"), by_gpu)
    assert not process.encodes_on_gpu((8, 8, 3), np.dtype("uint16"), by_gpu)
    for others in ({"format": "png"}, {"format": None}, {"jpeg_codec": "host"}):
        assert not process.encodes_on_gpu((8, 8, 3), np.dtype("uint8"), replace(by_gpu, **others))
    with pytest.raises(ImageWriteError, match=r"a\.jpg: JPEG: it cannot be encoded on the GPU \(no room\)"):
        process.encode(np.zeros_like(PIXELS), "a.jpg", by_gpu)


def test_pictures_that_are_filtered_elsewhere_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = settings_for(tmp_path, jpeg_codec="gpu", device="cpu")
    monkeypatch.setattr(run, "require_gpu_jpeg", lambda: None)
    with pytest.raises(UnavailableError, match="--device cuda, or --jpeg-codec host"):
        run.require_jpeg_codec(settings, "auto", "for a test")
    run.require_jpeg_codec(settings_for(tmp_path), "cpu", "")


def test_a_worker_without_the_codec_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgeconv.io.gpu_jpeg.gpu_jpeg_unavailable_reason", lambda: "there is none")
    check(Terms(maker_here()))
    with pytest.raises(UnavailableError, match="there is none"):
        check(Terms(maker_here("gpu"), jpeg_codec="gpu"))


def test_who_encodes_counts_as_a_parameter(tmp_path: Path) -> None:
    of_gpu, of_host, as_ever = (
        settings_for(tmp_path, format="jpg", **more).parameters_sha256()
        for more in ({"jpeg_codec": "gpu"}, {"jpeg_codec": "host"}, {})
    )
    assert of_host == as_ever != of_gpu
