"""Which axes an output has, by one table through every door: `plan`, `convolve`, `canny`, `out=`, and written files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from command import edgeconv
from selection import covering

import edgeconv as package
from edgeconv.errors import UsageError
from edgeconv.io.encoding import write_image
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import read_image

N, H, W = 2, 19, 10
Shape = tuple[int, ...]
FLAT, ONE, RGB = (H, W), (H, W, 1), (H, W, 3)
WEIGHTS = {channels: np.linspace(-1, 1, channels * 9).reshape(1, channels, 3, 3) for channels in (1, 3)}
CANNY = package.chain("canny", low=60, high=120)


@dataclass(frozen=True)
class Way:
    """What is computed, in Python and as a command, and what comes out of each shape; None where it is refused."""

    name: str
    words: dict[str, Any]
    command: str
    of_flat: Shape | None
    of_one: Shape | None
    of_rgb: Shape
    pages: int = 1
    """Pictures that come out: several of a bank with several filters."""

    def __str__(self) -> str:
        return self.name


WAYS = [
    Way("one filter", {"filter": "sobel"}, "--filter sobel", FLAT, ONE, RGB),
    Way("each", {"filter": "sobel", "channels": "each"}, "--filter sobel --channels each", FLAT, ONE, RGB),
    Way("luma", {"filter": "sobel", "channels": "luma"}, "--filter sobel --channels luma", FLAT, ONE, FLAT),
    Way(
        "luma, fewer",
        {"filter": "sobel", "channels": "luma", "stride": 2, "padding": "valid"},
        "--filter sobel --channels luma --stride 2 --padding valid",
        (9, 4),
        (9, 4, 1),
        (9, 4),
    ),
    Way(
        "luma, normalized",
        {"filter": "sobel", "channels": "luma", "output_mode": "normalize"},
        "--filter sobel --channels luma --output-mode normalize",
        FLAT,
        ONE,
        FLAT,
    ),
    Way("bank of three", {"filter": ["sobel", "scharr", "prewitt"]}, "--filters sobel,scharr,prewitt", *[RGB] * 3, 3),
    Way("bank of one", {"filter": ["sobel"]}, "--filters sobel", ONE, ONE, ONE),
    Way("bank of one, luma", {"filter": ["sobel"], "channels": "luma"}, "--filters sobel --channels luma", *[ONE] * 3),
    Way(
        "bank of one, each", {"filter": ["sobel"], "channels": "each"}, "--filters sobel --channels each", ONE, ONE, RGB
    ),
    Way("weights 1×1×3×3", {"filter": WEIGHTS[1]}, "--kernel-file weights1.npy", ONE, ONE, ONE),
    Way("weights 1×3×3×3", {"filter": WEIGHTS[3]}, "--kernel-file weights3.npy", None, None, ONE),
    Way("canny", {"filter": CANNY}, "--filter canny --thresholds 60,120", FLAT, ONE, FLAT),
    Way("magnitude", {"filter": package.chain("sobel")}, "--chain sobel", FLAT, ONE, FLAT),
    Way("smoothing", {"filter": package.chain("gaussian")}, "--chain gaussian", FLAT, ONE, RGB),
]
PICTURES: list[tuple[Way, Shape, Shape]] = [
    (way, given, output)
    for way in WAYS
    for given, output in ((FLAT, way.of_flat), (ONE, way.of_one), (RGB, way.of_rgb))
    if output is not None
]
A_COLUMN: list[tuple[Way, Shape, Shape]] = [(WAYS[0], (H, 1), (H, 1)), (WAYS[2], (H, 1, 3), (H, 1))]
"""A last axis of 1 that is the width."""
BATCHES = [
    (way, (count, *given), (count, *output)) for way, given, output in PICTURES for count in (1, N) if len(given) == 3
]
EVERY_ARRAY = [*PICTURES, *A_COLUMN, *BATCHES]
OVER_ARRAYS = pytest.mark.parametrize(("way", "given", "output"), EVERY_ARRAY, ids=str)


def picture_of(shape: Shape) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, shape, np.uint8)


def outputs_of(given: Shape, output: Shape) -> list[Shape]:
    """Every shape that `out` may have: one channel may have its axis or none."""
    axes = len(output) - (len(given) == 4)
    if axes == 2:
        return [output, (*output, 1)]
    return [output, output[:-1]] if output[-1] == 1 else [output]


def wrong_outputs(given: Shape, output: Shape) -> list[Shape]:
    right = outputs_of(given, output)
    wrong = [
        (*output, 2),
        (output[0] + 1, *output[1:]),
        output[::-1],
        (int(np.prod(output)),),
        output[:-1],
        (1, *output),
        output[1:],
        (*output, 1),
    ]
    return [shape for shape in wrong if shape not in right]


def check_arrays(way: Way, given: Shape, output: Shape, device: str, arrays: Any) -> None:
    """What a plan, `convolve` and each right `out` give, and what is said of each wrong one."""
    image = arrays.asarray(picture_of(given))
    plan = package.plan(given, "uint8", device=device, **way.words)
    assert plan.output_shape == output
    assert f"{'×'.join(map(str, output))} {plan.output_dtype}\n" in plan.explain()
    expected = plan(image)
    again = package.convolve(image, **way.words)
    assert expected.shape == again.shape == output
    assert arrays.array_equal(again, expected)
    assert package.convolve(picture_of(given), device=device, **way.words).shape == output
    mirrored = package.convolve(image[..., ::-1] if len(given) == 2 else image[..., ::-1, :], **way.words)
    assert mirrored.shape == output, "what is strided goes the long way"
    for shape in outputs_of(given, output):
        for call in (plan, lambda image, out: package.convolve(image, out=out, **way.words)):
            out = arrays.full(shape, 7, plan.output_dtype)
            assert call(image, out=out) is out
            assert arrays.array_equal(out.reshape(output), expected)
    shapes = " or ".join("×".join(map(str, right)) for right in outputs_of(given, output))
    for shape in wrong_outputs(given, output):
        out = arrays.full(shape, 7, plan.output_dtype)
        with pytest.raises(UsageError) as refused:
            plan(image, out=out)
        assert (out == 7).all()
        assert f"C-contiguous array of {shapes} {plan.output_dtype} where" in str(refused.value)


@OVER_ARRAYS
def test_arrays_in_and_out(way: Way, given: Shape, output: Shape) -> None:
    check_arrays(way, given, output, "cpu", np)
    if way.name == "canny":
        assert package.canny(picture_of(given), 60, 120, device="cpu").shape == output


@pytest.mark.parametrize("library", ["torch", "jax"])
@OVER_ARRAYS
def test_arrays_of_other_libraries(library: str, way: Way, given: Shape, output: Shape) -> None:
    module: Any = pytest.importorskip("jax.numpy" if library == "jax" else library)
    found = package.convolve(module.asarray(picture_of(given)), device="cpu", **way.words)
    assert type(found).__module__.startswith(("torch", "jax"))
    assert tuple(found.shape) == output


@pytest.mark.parametrize(("way", "given", "output"), PICTURES, ids=str)
def test_files_in_and_out(
    way: Way, given: Shape, output: Shape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An NPY has the shape of the array; other formats have no axis for one channel. A grey PNG is (H, W, 1)."""
    monkeypatch.chdir(tmp_path)
    image = picture_of(given)
    expected = package.convolve(image, device="cpu", **way.words)
    np.save("in.npy", image)
    for channels, weights in WEIGHTS.items():
        np.save(f"weights{channels}.npy", weights)
    sources = ["in.npy"]
    if len(given) == 3:
        write_image(image, "in.png")
        sources.append("in.png")
    words = (*way.command.split(), "--device", "cpu")
    for source in sources:
        for name in ("out.npy", "out.tiff", *(["out.png"] if way.pages == 1 else [])):
            done = edgeconv("run", source, *words, "--samples", 0, "--check", "none", "--overwrite", "-o", name)
            assert done.code == 0, done.err
            if name == "out.npy":
                assert np.load(name).shape == output
                assert np.array_equal(np.load(name), expected)
            else:
                _, pages = cv2.imreadmulti(name, flags=cv2.IMREAD_UNCHANGED)
                page = output[:2] if way.pages > 1 or output[-1] == 1 else output
                assert [found.shape for found in pages] == [page] * way.pages
        done = edgeconv(
            "batch", source, *words, "--format", "npy", "--name", "{stem}.npy", "-o", source.replace(".", "-")
        )
        assert done.code == 0, done.err
        assert np.array_equal(np.load(f"{source.replace('.', '-')}/in.npy"), expected)


@pytest.mark.parametrize("way", [way for way in WAYS if way.name != "canny"], ids=str)
def test_a_tiff_by_tiles(way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tifffile = pytest.importorskip("tifffile")
    monkeypatch.chdir(tmp_path)
    write_image(picture_of(RGB), "in.tiff")
    for channels, weights in WEIGHTS.items():
        np.save(f"weights{channels}.npy", weights)
    done = edgeconv("run", "in.tiff", *way.command.split(), "--device", "cpu", "--tile", 16, "-o", "out.tiff")
    assert done.code == 0, done.err
    page = way.of_rgb[:2] if way.pages > 1 or way.of_rgb[-1] == 1 else way.of_rgb
    assert [found.shape for found in tifffile.TiffFile("out.tiff").pages] == [page] * way.pages


def test_rgb_makes_three_channels_of_an_array_without_an_axis(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", picture_of(FLAT))
    assert read_image(tmp_path / "in.npy").shape == FLAT
    assert read_image(tmp_path / "in.npy", ReadRules(rgb=True)).shape == RGB
    for words, output in (((), RGB), (("--channels", "luma"), FLAT)):
        done = edgeconv("run", "in.npy", "--rgb", *words, "--overwrite", "-o", "out.npy", "--samples", 0, cwd=tmp_path)
        assert done.code == 0, done.err
        assert np.load(tmp_path / "out.npy").shape == output


COMPUTED = [each for each in EVERY_ARRAY if each[0].name not in ("magnitude", "smoothing")]
"""But for the chains that no kernel computes."""
EACH_ONCE = sorted(covering([(way.name, *shapes) for way, *shapes in COMPUTED], together=1))


@pytest.mark.gpu
@pytest.mark.parametrize(("way", "given", "output"), [COMPUTED[number] for number in EACH_ONCE], ids=str)
def test_arrays_on_a_gpu(way: Way, given: Shape, output: Shape) -> None:
    import cupy

    check_arrays(way, given, output, "cuda", cupy)
