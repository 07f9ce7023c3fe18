"""Which axes an output has, by one table through every door: `plan`, `convolve`, `canny`, `out=`, and written files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from command import edgeconv
from selection import covering, pairs_then_slow

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
    of_flat: Shape | None
    of_one: Shape | None
    of_rgb: Shape
    pages: int = 1
    """Pictures that come out: several of a bank with several filters."""
    written: str = ""
    """The options that name the filter, where its Python value is not a name or a list of names."""

    def __str__(self) -> str:
        return self.name

    @property
    def command(self) -> list[str]:
        filter, *rules = self.words.items()
        named = self.written or (
            f"--filter {filter[1]}" if isinstance(filter[1], str) else f"--filters {','.join(filter[1])}"
        )
        return [
            *named.split(),
            *(part for name, value in rules for part in (f"--{name.replace('_', '-')}", str(value))),
        ]


LUMA: dict[str, Any] = {"filter": "sobel", "channels": "luma"}
WAYS = [
    Way("one filter", {"filter": "sobel"}, FLAT, ONE, RGB),
    Way("each", {"filter": "sobel", "channels": "each"}, FLAT, ONE, RGB),
    Way("luma", LUMA, FLAT, ONE, FLAT),
    Way("luma, fewer", LUMA | {"stride": 2, "padding": "valid"}, (9, 4), (9, 4, 1), (9, 4)),
    Way("luma, normalized", LUMA | {"output_mode": "normalize"}, FLAT, ONE, FLAT),
    Way("bank of three", {"filter": ["sobel", "scharr", "prewitt"], "channels": "mix"}, *[RGB] * 3, pages=3),
    Way("bank of one, mix", {"filter": ["sobel"], "channels": "mix"}, ONE, ONE, ONE),
    Way("bank of one, luma", LUMA | {"filter": ["sobel"]}, ONE, ONE, ONE),
    Way("bank of one", {"filter": ["sobel"]}, ONE, ONE, RGB),
    Way("weights 1×1×3×3", {"filter": WEIGHTS[1]}, ONE, ONE, RGB, written="--kernel-file weights1.npy"),
    Way("weights 1×3×3×3", {"filter": WEIGHTS[3]}, None, None, ONE, written="--kernel-file weights3.npy"),
    Way("canny", {"filter": CANNY}, FLAT, ONE, FLAT, written="--filter canny --thresholds 60,120"),
    Way("magnitude", {"filter": package.chain("sobel")}, FLAT, ONE, FLAT, written="--chain sobel"),
    Way("smoothing", {"filter": package.chain("gaussian")}, FLAT, ONE, RGB, written="--chain gaussian"),
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


@pytest.mark.parametrize(
    ("way", "given", "output"),
    pairs_then_slow(PICTURES, lambda row: (row[0].name, row[1]), several=True, together=1),
    ids=str,
)
def test_files_in_and_out(
    way: Way, given: Shape, output: Shape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An NPY has the shape of the array; other formats have no axis for one channel. A grey TIFF is (H, W, 1)."""
    monkeypatch.chdir(tmp_path)
    image = picture_of(given)
    expected = package.convolve(image, device="cpu", **way.words)
    for channels, weights in WEIGHTS.items():
        np.save(f"weights{channels}.npy", weights)
    words = (*way.command, "--device", "cpu")
    page = output[:2] if way.pages > 1 or output[-1] == 1 else output
    for source in ("in.npy", "in.tiff") if len(given) == 3 else ("in.npy",):
        write_image(image, source)
        by_tiles = source == "in.tiff" and way.name != "canny"
        for name in (
            "out.npy",
            "out.tiff",
            *(["out.png"] if way.pages == 1 else []),
            *(["tiles.tiff"] if by_tiles else []),
        ):
            more = ("--tile", 16) if name == "tiles.tiff" else ()
            done = edgeconv("run", source, *words, *more, "--samples", 0, "--check", "none", "--overwrite", "-o", name)
            assert done.code == 0, done.err
            if name == "out.npy":
                assert np.load(name).shape == output
                assert np.array_equal(np.load(name), expected)
            else:
                _, pages = cv2.imreadmulti(name, flags=cv2.IMREAD_UNCHANGED)
                assert [found.shape for found in pages] == [page] * way.pages
        done = edgeconv(
            "batch", source, *words, "--format", "npy", "--name", "{stem}.npy", "-o", source.replace(".", "-")
        )
        assert done.code == 0, done.err
        assert np.array_equal(np.load(f"{source.replace('.', '-')}/in.npy"), expected)


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
