"""Grey pictures and filter banks through `edgeconv run`: which files there are, what they hold, what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Finished, edgeconv
from problems import random_image

from edgeconv.api.convolve import convolve
from edgeconv.core import cost
from edgeconv.core.request import make_request
from edgeconv.errors import ImageWriteError
from edgeconv.io.encoding import encode_image, write_image
from edgeconv.io.reading import read_image

BANK = ["sobel-x", "sobel-y", "laplacian8"]
HEIGHT, WIDTH = 13, 17
NAMED = "photo_sobel-x,sobel-y,laplacian8_reference_s1.json"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_image(random_image(HEIGHT, WIDTH, "uint8"), "photo.png")
    return tmp_path


def run(*words: object) -> Finished:
    return edgeconv("run", *words, "-v", "-m", "reference", "--samples", "0")


def there(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "photo.png")


def report_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(name).read_text())
    return found


def bank(picture: np.ndarray, filters: Any = BANK, **rules: Any) -> np.ndarray:
    found: np.ndarray = convolve(picture, filters, "reference", **rules)
    return found


# --- grey -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dtype", "output"),
    [
        ("grey.png", "uint8", "png"),
        ("grey.png", "uint16", "png"),
        ("grey.tiff", "uint16", "png"),
        ("grey.tiff", "float32", "tiff"),
        ("grey.tiff", "float64", "tiff"),
        ("grey.npy", "float16", "npy"),
        ("grey.bmp", "uint8", "png"),
    ],
)
def test_a_grey_file_stays_grey(folder: Path, name: str, dtype: str, output: str) -> None:
    grey = random_image(HEIGHT, WIDTH, dtype)[:, :, :1].copy()
    write_image(grey, name)
    done = run(name)
    assert (done.code, done.err) == (0, "")
    assert f"{WIDTH}×{HEIGHT}×1 {dtype}" in done.text
    assert np.array_equal(read_image(f"grey_sobel_reference_s1.{output}").pixels, bank(grey, "sobel"))
    found = report_of("grey_sobel_reference_s1.json")
    assert (found["input"]["channels"], found["output"]["channels"]) == (1, 1)
    assert found["counts"]["nominal_flops"] == 2 * 2 * 9 * HEIGHT * WIDTH


# --- the files of a bank --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", ["mix", "each", "luma"])
def test_a_bank_is_a_picture_for_each_filter(folder: Path, channels: str) -> None:
    """As a new user would write it; under `each` of RGB they are RGB, else grey."""
    done = run("photo.png", "--filters", ",".join(BANK), "--channels", channels)
    assert (done.code, done.err) == (0, "")
    rules = "" if channels == "each" else f"_{channels}"
    named = NAMED.replace("_reference", f"{rules}_reference")
    paths = [f"photo_{name}{rules}_reference_s1.png" for name in BANK]
    assert there(folder) == sorted([*paths, named])
    computed = bank(read_image("photo.png").pixels, channels=channels)
    depth = 3 if channels == "each" else 1
    for number, path in enumerate(paths):
        pixels = read_image(path).pixels
        assert pixels.shape == (HEIGHT, WIDTH, depth)
        assert np.array_equal(pixels, computed[:, :, number :: len(BANK)])
    found = report_of(named)
    assert found["problem"]["filter"]["name"] == ",".join(BANK)
    assert found["output"]["channels"] == depth * len(BANK)
    assert [(each["filter"], each["file"]) for each in found["output"]["files"]] == list(zip(BANK, paths, strict=True))
    assert found["output"]["file_bytes"] == sum(Path(path).stat().st_size for path in paths)
    assert found["counts"]["nominal_flops"] == 2 * 9 * (3 if channels != "each" else 1) * depth * 3 * HEIGHT * WIDTH
    counts = cost.count(make_request(BANK, channels=channels).problem((HEIGHT, WIDTH, 3), "uint8"))
    assert found["counts"]["fewest_bytes"] == counts.fewest_bytes == HEIGHT * WIDTH * (3 + 3 * depth)
    assert f"3 files: {', '.join(paths)}  {WIDTH}×{HEIGHT}×{depth} uint8 each" in done.text


@pytest.mark.parametrize("channels", ["mix", "each"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_a_file_named_tiff_or_npy_holds_all(folder: Path, channels: str, dtype: str) -> None:
    picture = random_image(HEIGHT, WIDTH, dtype)
    np.save("a.npy", picture)
    computed = bank(picture, channels=channels)
    for name in ("all.npy", "all.tif"):
        assert run("a.npy", "--filters", ",".join(BANK), "--channels", channels, "-o", name).code == 0
        Path("all.json").unlink()
    assert np.array_equal(np.load("all.npy"), computed)
    tifffile = pytest.importorskip("tifffile")
    with tifffile.TiffFile("all.tif") as file:
        assert len(file.pages) == len(BANK)
        for number, page in enumerate(file.pages):
            pixels = page.asarray().reshape(HEIGHT, WIDTH, -1)
            assert pixels.dtype == dtype
            assert np.array_equal(pixels, computed[:, :, number :: len(BANK)])


def test_weights_of_ones_own_are_numbered(folder: Path) -> None:
    weights = np.random.default_rng(1).uniform(-1, 1, (4, 3, 3, 3))
    Path("mine.json").write_text(json.dumps(weights.tolist()))
    np.save("mine.npy", weights)
    for kernel in ("mine.json", "mine.npy"):
        assert run("photo.png", "--kernel-file", kernel, "-o", f"{kernel}.png").code == 0
        for number in range(4):
            pixels = read_image(f"{kernel}_k{number:02}.png").pixels
            assert np.array_equal(pixels, bank(read_image("photo.png").pixels, weights)[:, :, [number]])


def test_standard_output_gets_all_as_npy(folder: Path) -> None:
    done = run("photo.png", "--filters", ",".join(BANK), "-o", "-")
    assert done.code == 0
    (folder / "out.npy").write_bytes(done.out)
    assert np.array_equal(np.load("out.npy"), bank(read_image("photo.png").pixels))


def test_a_kernel_of_256_filters_says_its_largest_bound(folder: Path) -> None:
    np.save("many.npy", np.random.default_rng(1).uniform(-1, 1, (256, 1, 3, 3)))
    np.save("a.npy", random_image(HEIGHT, WIDTH, "float32"))
    done = run("a.npy", "--kernel-file", "many.npy", "-o", "all.npy")
    assert done.code == 0
    assert "largest error bound" in done.text
    assert len(report_of("all.json")["check"]["bound_by_channel"]) == 3 * 256
    assert run("a.npy", "--kernel-file", "many.npy", "-o", "b.tiff").code == 0
    done = run("photo.png", "--kernel-file", "many.npy", "-o", "c/")
    assert "256 files: c/photo_k000_reference_s1.png" in done.text
    assert len(there(folder / "c")) == 257


# --- what is refused ------------------------------------------------------------------------------------------------


def test_a_format_of_one_picture_does_not_take_a_bank() -> None:
    with pytest.raises(ImageWriteError, match=r"PNG holds one picture, not 2: use \.tiff or \.npy"):
        encode_image(np.zeros((3, 4, 2), np.uint8), "a.png", bank=2)
    with pytest.raises(ImageWriteError, match=r"TIFF cannot hold float16 samples: use \.npy"):
        encode_image(np.zeros((3, 4, 2), np.float16), "a.tif", bank=2)
