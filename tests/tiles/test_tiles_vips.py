"""PNG, JPEG and WebP by pieces through libvips: the pixels of the door for whole pictures, and its strictness."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import edgeconv_process
from picture_files import exif, noisy, png, saved, smooth_image
from pieces import assert_same
from PIL import Image, ImageCms
from problems import random_image
from test_tiles_memory import run_marked
from test_tiles_tiff import pixels_of

from edgeconv.errors import ImageReadError
from edgeconv.io.image import read_image, write_image
from edgeconv.io.read_limits import ReadRules
from edgeconv.run.tiled.memory import MEBIBYTE
from edgeconv.run.tiled.sources import open_source

HEIGHT, WIDTH = 141, 203

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
MOVED = Image.fromarray(noisy(HEIGHT, WIDTH)[::-1])


def with_alpha(dtype: str) -> np.ndarray:
    pixels = random_image(HEIGHT, WIDTH, dtype)
    return np.concatenate([pixels, pixels[:, :, :1]], axis=2)


FILES = {
    "rgb.png": png(random_image(HEIGHT, WIDTH, "uint8")),
    "deep.png": png(random_image(HEIGHT, WIDTH, "uint16")),
    "grey.png": png(random_image(HEIGHT, WIDTH, "uint8")[:, :, :1].copy()),
    "deep grey.png": png(random_image(HEIGHT, WIDTH, "uint16")[:, :, :1].copy()),
    "alpha.png": png(with_alpha("uint8")),
    "deep alpha.png": png(with_alpha("uint16")),
    "palette.png": saved(noisy(HEIGHT, WIDTH), "PNG", mode="P"),
    "one bit.png": saved(noisy(HEIGHT, WIDTH), "PNG", mode="1"),
    "full.jpg": saved(noisy(HEIGHT, WIDTH), "JPEG", subsampling=0),
    "half.jpg": saved(noisy(HEIGHT, WIDTH), "JPEG", subsampling=2),
    "progressive.jpg": saved(noisy(HEIGHT, WIDTH), "JPEG", progressive=True),
    "grey.jpg": saved(noisy(HEIGHT, WIDTH), "JPEG", mode="L"),
    "lossy.webp": saved(noisy(HEIGHT, WIDTH), "WEBP"),
    "exact.webp": saved(noisy(HEIGHT, WIDTH), "WEBP", lossless=True),
    "profile.png": saved(noisy(HEIGHT, WIDTH), "PNG", icc_profile=PROFILE),
    "profile.jpg": saved(noisy(HEIGHT, WIDTH), "JPEG", icc_profile=PROFILE),
    "profile.webp": saved(noisy(HEIGHT, WIDTH), "WEBP", lossless=True, icc_profile=PROFILE),
    "moving.webp": saved(noisy(HEIGHT, WIDTH), "WEBP", lossless=True, save_all=True, append_images=[MOVED]),
    **{f"turned{turn}.jpg": saved(noisy(HEIGHT, WIDTH), "JPEG", exif=exif(turn)) for turn in range(2, 9)},
}


@pytest.mark.parametrize("rgb", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_pixels_and_notes_are_those_of_the_whole_picture(tmp_path: Path, name: str, rgb: bool) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    got, notes = pixels_of(tmp_path / name, rgb)
    whole = read_image(tmp_path / name, ReadRules(rgb=rgb))
    assert_same(got, whole.pixels)
    assert set(notes) == set(whole.notes)


@pytest.mark.parametrize("name", ["rgb.png", "half.jpg", "exact.webp"])
def test_a_file_that_is_cut_short_is_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name][: len(FILES[name]) * 2 // 3])
    says = "it cannot be opened|it cannot be decoded|the file is cut short"
    with pytest.raises(ImageReadError, match=f"{name}: (PNG|JPEG|WebP): ({says})") as error:
        pixels_of(tmp_path / name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("lost", [1, 5, 12])
def test_a_png_that_lacks_its_last_bytes_alone_is_refused_too(tmp_path: Path, lost: int) -> None:
    (tmp_path / "a.png").write_bytes(FILES["rgb.png"][:-lost])
    with pytest.raises(ImageReadError, match="the file is cut short"):
        open_source(tmp_path / "a.png")
    (tmp_path / "a.png").write_bytes(FILES["rgb.png"] + b"something behind it")
    open_source(tmp_path / "a.png").close()


def test_cmyk_is_refused_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "print.jpg").write_bytes(saved(noisy(), "JPEG", mode="CMYK"))
    with pytest.raises(ImageReadError, match=r"4 bands of uchar, cmyk.*convert it to RGB"):
        open_source(tmp_path / "print.jpg")


def test_a_png_larger_than_the_limit_is_filtered_under_it(tmp_path: Path) -> None:
    """6,000 × 6,000 are 103 MiB: libvips keeps them in a file of its own."""
    write_image(np.tile(smooth_image(600, 600), (10, 10, 1)), tmp_path / "large.png")
    words = ("--memory-limit", "400MiB", "--verify-tiles", "--device", "cpu", "--samples", 0)
    mark, record = run_marked(tmp_path / "large.png", "-o", tmp_path / "edges.tif", *words)
    assert record["tiles"]["proof"]["passed"]
    assert mark <= record["tiles"]["planned_bytes"] <= 400 * MEBIBYTE


@pytest.mark.slow
def test_a_limit_that_a_wide_jpeg_does_not_keep_to_is_refused_with_one_that_it_keeps_to(tmp_path: Path) -> None:
    """Under 300 MiB its tiles would be narrow: libvips looks at whole rows for each, and 343 MiB were measured."""
    write_image(np.tile(smooth_image(600, 600), (3, 20, 1)), tmp_path / "wide.jpg")
    words = (tmp_path / "wide.jpg", "-o", tmp_path / "edges.tif", "--device", "cpu", "--samples", 0)
    refused = edgeconv_process("run", *words, "--memory-limit", "300MiB")
    assert refused.code == 5
    limit = int(refused.err.split("--memory-limit ")[1].split("MiB")[0])
    mark, _ = run_marked(*words, "--memory-limit", f"{limit}MiB", "--verify-tiles")
    assert mark <= limit * MEBIBYTE, f"{mark / MEBIBYTE:.0f} MiB under a limit of {limit} MiB"
