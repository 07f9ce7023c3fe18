"""JPEG on the GPU is the host's to within rounding, and whatever it does not do is the host's to the bit."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from batch_folders import contents
from command import edgeconv
from damaged import BAD_FILES
from picture_files import exif, saved
from selection import drawn_pairs

from edgeconv.api import check
from edgeconv.batch.verify import verify
from edgeconv.core.request import make_request
from edgeconv.io.encoding import write_image
from edgeconv.io.formats.jpeg import read_header
from edgeconv.io.gpu_jpeg import INSTALL, GpuJpeg, nvimgcodec_version
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import decode_image, read_image
from edgeconv.methods import require
from edgeconv.methods.options import Options

pytestmark = pytest.mark.gpu

SAMPLINGS = {name: getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{name}") for name in ("411", "420", "422", "440", "444")}
"""How colours are stored: at the same resolution as brightness (444), at half of it each way (420), and so on."""

MOST_OFF, MEAN_OFF = 4, 0.1
"""How far samples may lie from libjpeg's: rounding of the transform, of the colours, and of what lies between them."""


def photo(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Something smooth and colourful (HWC RGB, uint8)."""
    coarse = np.random.default_rng(seed).integers(0, 256, (height // 16 + 2, width // 16 + 2, 3), dtype=np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


def jpeg(pixels: np.ndarray, sampling: str = "420", *, progressive: bool = False, restart: int = 0) -> bytes:
    """A file by OpenCV, from RGB or grey."""
    flags = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, SAMPLINGS[sampling], cv2.IMWRITE_JPEG_PROGRESSIVE, int(progressive)]
    bgr = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR) if pixels.ndim == 3 else pixels
    return bytes(cv2.imencode(".jpg", bgr, [*flags, cv2.IMWRITE_JPEG_RST_INTERVAL, restart])[1])


@pytest.fixture(scope="module")
def gpu() -> GpuJpeg:
    if nvimgcodec_version() == "none":  # one that is there and does not work is a failure
        pytest.skip(f"nvImageCodec is not installed ({INSTALL})")
    return GpuJpeg()


def decoded(gpu: GpuJpeg, data: bytes) -> Any:
    """The pixels of one file alone."""
    (pixels,) = gpu.decode([(data, read_header(data))])
    return pixels


def assert_near(decoded: np.ndarray, expected: np.ndarray) -> None:
    off = np.abs(decoded.astype(int) - expected)
    assert decoded.shape == expected.shape
    assert (off.max() <= MOST_OFF, off.mean() <= MEAN_OFF) == (True, True), f"{off.max()} at most, {off.mean()} mean"


COLOURS = drawn_pairs(
    [((240, 320), (555, 777), (1, 8), (17, 9)), tuple(SAMPLINGS), (False, True)], lambda shape, *rest: True
)


@pytest.mark.parametrize(("shape", "sampling", "progressive"), COLOURS)
def test_colours_at_any_resolution(gpu: GpuJpeg, shape: tuple[int, int], sampling: str, progressive: bool) -> None:
    data = jpeg(photo(*shape), sampling, progressive=progressive)
    assert read_header(data).gpu_jpeg
    pixels = decoded(gpu, data)
    assert pixels.flags.c_contiguous
    assert_near(pixels.get(), decode_image(data, "x.jpg").pixels)


def test_grey_and_restart_markers(gpu: GpuJpeg) -> None:
    for data in (jpeg(photo(100, 130)[..., 0]), jpeg(photo(100, 130), restart=4), saved(photo(64, 80), "JPEG", "L")):
        expected = decode_image(data, "x.jpg", ReadRules(rgb=True)).pixels  # a reader takes the first channel of grey
        assert_near(decoded(gpu, data).get(), expected)


def test_every_orientation(gpu: GpuJpeg) -> None:
    files = [saved(photo(120, 200), "JPEG", exif=exif(orientation), quality=95) for orientation in range(1, 9)]
    for data, pixels in zip(files, gpu.decode([(data, read_header(data)) for data in files]), strict=True):
        assert pixels.flags.c_contiguous
        assert_near(pixels.get(), decode_image(data, "x.jpg").pixels)


def test_what_decoders_read_differently_is_left_to_the_host(gpu: GpuJpeg) -> None:
    for data in (
        saved(photo(64, 80), "JPEG", "CMYK"),
        saved(photo(64, 80), "JPEG", keep_rgb=True),
        jpeg(photo(17, 3)),
    ):
        assert decoded(gpu, data) is None


def test_an_encoded_picture_is_what_the_host_would_have_written_to_within_the_loss(gpu: GpuJpeg) -> None:
    import cupy

    pixels = photo(300, 401)
    for quality in (None, 30):
        encoded, again = gpu.encode([cupy.asarray(pixels)] * 2, quality)
        assert encoded is not None
        assert encoded == again
        flags = [] if quality is None else [cv2.IMWRITE_JPEG_QUALITY, quality]
        of_host = bytes(cv2.imencode(".jpg", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), flags)[1])
        losses = [
            np.mean((decode_image(data, "x.jpg").pixels.astype(float) - pixels) ** 2) for data in (encoded, of_host)
        ]
        assert losses[0] <= 1.1 * losses[1] + 0.1
        assert len(encoded) <= 1.2 * len(of_host)


def test_threads_share_the_gpu_and_get_their_own_pictures(gpu: GpuJpeg) -> None:
    import cupy

    files = [jpeg(photo(100 + 10 * index, 200, index)) for index in range(40)]
    headers = [read_header(data) for data in files]
    alone = [decoded(gpu, data).get() for data in files]

    def some(first: int) -> tuple[bool, list[bytes | None]]:
        numbers = range(first, 40, 7)
        with cupy.cuda.Stream(non_blocking=True):
            pictures = gpu.decode([(files[number], headers[number]) for number in numbers])
            same = all(map(np.array_equal, (each.get() for each in pictures), (alone[number] for number in numbers)))
            return same, gpu.encode(pictures, None)

    with ThreadPoolExecutor(7) as pool:
        results = list(pool.map(some, list(range(7)) * 8))
    assert all(same for same, _ in results)
    assert [encoded for _, encoded in results[:7]] * 7 == [encoded for _, encoded in results[7:]]


def test_damage_inside_the_data_ends_nothing(gpu: GpuJpeg) -> None:
    whole = jpeg(photo(200, 300))
    before, header = decoded(gpu, whole).get(), read_header(whole)
    rng = np.random.default_rng(5)
    start = whole.index(b"\xff\xda") + 14
    files = []
    for _ in range(200):
        damaged = bytearray(whole)
        for place in rng.integers(start, len(whole) - 2, 8):
            damaged[place] = int(rng.integers(0, 255))
        files += [bytes(damaged), whole]
    for first in range(0, len(files), 40):
        pictures = gpu.decode([(data, header) for data in files[first : first + 40]])
        assert all(np.array_equal(pixels.get(), before) for pixels in pictures[1::2])
        assert {pixels.shape for pixels in pictures[::2] if pixels is not None} == {before.shape}
    assert np.array_equal(decoded(gpu, whole).get(), before)


@pytest.fixture
def photos(tmp_path: Path, gpu: GpuJpeg) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for index, shape in enumerate([(64, 64), (517, 301), (900, 1200), (900, 1200), (37, 2049)]):
        (folder / f"{index}.jpg").write_bytes(jpeg(photo(*shape, index), progressive=index == 1))
    (folder / "turned.jpg").write_bytes(saved(photo(120, 200), "JPEG", exif=exif(6)))
    (folder / "cmyk.jpg").write_bytes(saved(photo(120, 200), "JPEG", "CMYK"))
    write_image(photo(80, 90), folder / "a.png")
    return folder


def test_a_batch_by_the_gpu_is_the_hosts_but_for_rounding(photos: Path) -> None:
    for bad in BAD_FILES:
        if bad.name.endswith(".jpg"):
            (photos / f"bad_{bad.name}").write_bytes(bad.data)
    summaries, folders = [], []
    for number, codec in enumerate(("host", "gpu", "gpu")):
        folders.append(photos.parent / str(number))
        words = ("--device", "cuda", "--channels", "each", "--format", "jpg", "--name", "{stem}{ext}", "--json")
        done = edgeconv("batch", photos, "-o", folders[-1], *words, "--jpeg-codec", codec)
        assert done.code == 1, done.err
        summaries.append(json.loads(done.text))
    by_host, by_gpu, again = map(contents, folders)
    assert by_gpu == again
    assert (
        by_gpu.keys() == by_host.keys() == {f"{path.stem}.jpg" for path in photos.iterdir() if "bad" not in path.name}
    )
    failures = [sorted(failed["error"] for failed in summary["failures"]) for summary in summaries]
    assert failures[0] == failures[1] == failures[2] != []
    assert summaries[1]["notes"] == summaries[0]["notes"]
    for name in by_host:
        host, gpu = (read_image(folder / name).pixels.astype(float) for folder in folders[:2])
        assert np.abs(host - gpu).mean() < 3, name
    assert {finding.state for finding in verify(folders[1]).findings} == {"same"}


@pytest.mark.parametrize("rules", [{}, {"output_mode": "normalize"}, {"channels": "luma"}, {"threshold": 40}], ids=str)
def test_what_is_filtered_is_what_the_gpu_decoded(photos: Path, gpu: GpuJpeg, rules: dict[str, Any]) -> None:
    request = make_request("sobel", **rules)
    words = [word for name, value in rules.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    common = ("--filter", "sobel", "--method", "sliding", "--device", "cuda", "--jpeg-codec", "gpu", *words)
    for format in ("png", "jpg"):
        out = photos.parent / format
        done = edgeconv("batch", photos, "-o", out, *common, "--format", format, "--name", "{stem}{ext}")
        assert done.code == 0, done.err
        for path in photos.glob("[0-9].jpg"):
            data = path.read_bytes()
            pixels = decoded(gpu, data).get()
            problem = request.problem(pixels.shape, pixels.dtype)
            raw = np.empty(problem.output_shape, problem.output_dtype)
            require("sliding", "cpu").prepare(problem, Options()).run(pixels, raw)
            expected = request.mask(request.finish(raw, pixels.dtype, image=pixels))
            got = read_image(out / f"{path.stem}.{format}").pixels[..., : expected.shape[2]]
            if format == "png":
                assert check.check(pixels, raw, problem).passed
                assert np.abs(got.astype(int) - expected).max() <= (problem.output_channels == 1), path.name
            elif "threshold" not in rules:  # two encoders' ringing around black and white has no bound here
                by_host = decode_image(jpeg(np.squeeze(expected)), "x.jpg").pixels[..., : expected.shape[2]]
                losses = [np.abs(pixels.astype(float) - expected).mean() for pixels in (got, by_host)]
                assert losses[0] <= 1.1 * losses[1] + 0.1, path.name
