"""Canny on CUDA: every kernel from its own source on the CPU under sanitizers, and on a GPU, against the oracle."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from canny_pictures import CannyCase, canny_chain, cuda_plan, picture_of, random_cases
from kernel_work import Fault, all_right, assert_detected, sanitizer_library
from selection import few_then_slow

from edgeconv.core.canny import TANGENT_22, TANGENT_BITS
from edgeconv.hardware.cuda.kernels import FOLDER
from edgeconv.methods.cuda.canny import THIN_PIXELS, THIN_REACH, limits_of_pairs

needs_sanitizers = pytest.mark.skipif(
    sanitizer_library() is None, reason="needs g++ with AddressSanitizer on Linux (apt install g++)"
)
USUAL = canny_chain(100, 300)

# --- what the kernels are built on --------------------------------------------------------------------------------


def constants_of(source: str) -> dict[str, int]:
    """The hexadecimal constants of a kernel's source."""
    text = (FOLDER / "methods" / "cuda" / source).read_text(encoding="utf-8")
    return {name: int(value, 16) for name, value in re.findall(r"(\w+) = (0x[0-9A-F]+)", text)}


def half_of(pair: int) -> float:
    """The number of a pair of equal halves."""
    assert pair >> 16 == pair & 0xFFFF
    return float(np.uint16(pair & 0xFFFF).view(np.float16))


def rounded(values: Any) -> Any:
    """To the nearest halves; products and sums of a few halves are exact before that."""
    return np.asarray(values, np.float64).astype(np.float16).astype(np.float64)


def test_two_steps_of_half_precision_tell_the_sectors_of_all_gradients() -> None:
    """As a whole-number comparison does, for every pair of magnitudes of 8 bits."""
    found = constants_of("canny_thin.cu")
    tangent, rest, large = (half_of(found[name]) for name in ("MINUS_TANGENT", "TANGENT_REST", "LARGE"))
    assert -tangent - rest == TANGENT_22 / (1 << TANGENT_BITS)
    x, y = np.arange(1021)[:, np.newaxis], np.arange(1021)[np.newaxis]
    across, down = (side * 2.0**-24 * large for side in (x, y))
    assert (rounded(across) == across).all()

    def below_tangent(a: Any, b: Any) -> Any:
        return np.signbit(rounded(b * rest + rounded(b * tangent + a)))

    flat = y << TANGENT_BITS < x * TANGENT_22
    steep = y << TANGENT_BITS > x * TANGENT_22 + (x << TANGENT_BITS + 1)
    np.testing.assert_array_equal(below_tangent(down, across), flat)
    np.testing.assert_array_equal(below_tangent(across, down), steep)


def test_thresholds_beyond_every_magnitude_stay_what_pairs_can_hold() -> None:
    assert limits_of_pairs(canny_chain(1e9, 1e300)) == (2047 * 0x10001, 0)
    assert limits_of_pairs(canny_chain(300.5, 100.9)) == (100 * 0x10001, 200 * 0x10001)
    low, high = np.array(limits_of_pairs(canny_chain(10, 1e150, l2=True)), np.uint32).view(np.float32) * 2.0**48
    assert (low, low + high) == (100, 1 << 22)


# --- on the CPU -----------------------------------------------------------------------------------------------------


WIDTHS = tuple(range(THIN_PIXELS + THIN_REACH - 1, 30))
"""Every place of the right edge in a thread's row, and one that is too narrow for it."""
CASES = (
    tuple(CannyCase("noise", (9, width), canny_chain(100, 900)) for width in WIDTHS),
    tuple(CannyCase("smooth", (6, width), canny_chain(60, 200, blur=5), seed=3) for width in WIDTHS[:THIN_PIXELS]),
    tuple(CannyCase("few levels", (7, width, 3), canny_chain(400, 900, True, 3)) for width in WIDTHS[:THIN_PIXELS]),
    (
        *(CannyCase("few levels", (height, 40), canny_chain(100, 900, blur=5)) for height in range(1, 9)),
        *(CannyCase("smooth", (9, width, 3), canny_chain(9e3, 9e4, blur=3), "uint16") for width in (1, 2, 31, 33, 70)),
        CannyCase("smooth", (40, 70), canny_chain(60, 200), pictures=3, offset_samples=3),
        *(CannyCase(kind, (70, 66), canny_chain(100, 300)) for kind in ("spiral", "comb")),
    ),
    tuple(CannyCase("noise", (130, 200), canny_chain(100, 900), seed=seed) for seed in (4, 6, 9, 17, 57)),
    (CannyCase("spiral", (200, 150), canny_chain(100, 300)), CannyCase("comb", (131, 193), canny_chain(100, 300))),
)
"""Each place of the right edge; small heights, samples of 16 bits, batches; pieces of edges that only the corner of a
tile joins to a strong one, to the lower left and right in three tiles of a row (found by taking single contacts away);
and paths through all tiles."""
LARGE = 1
"""Of the last cases."""


@needs_sanitizers
@pytest.mark.parametrize(
    "cases", few_then_slow(CASES, len(CASES) - LARGE), ids=lambda cases: f"{cases[0].kind} {cases[0].shape}"
)
def test_kernels_on_the_cpu(libraries: Path, cases: tuple[CannyCase, ...]) -> None:
    all_right(cases, libraries)


@needs_sanitizers
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_pictures_on_the_cpu(libraries: Path, seed: int) -> None:
    all_right(random_cases(10, seed), libraries)


FAULTS = (
    Fault(
        "the outer size is not 0 beyond the picture",
        CannyCase("noise", (40, 40), canny_chain(100, 900)),
        "methods/cuda/canny_thin.cu",
        r"outer = masked\(size, place\.inside\)",
        "outer = size",
        "wrong: edge map",
    ),
    Fault(
        "tiles are not joined below",
        CannyCase("spiral", (200, 150), canny_chain(100, 300)),
        "methods/cuda/canny_hysteresis.cu",
        r"has_below = down \+ 1 < size\.tiles_down",
        "has_below = false",
        "wrong: edges",
    ),
)


@needs_sanitizers
@pytest.mark.parametrize("fault", few_then_slow(FAULTS), ids=lambda fault: fault.what)
def test_a_fault_is_detected(tmp_path: Path, libraries: Path, fault: Fault) -> None:
    assert_detected(tmp_path / "sources", libraries, fault)


# --- on a GPU -------------------------------------------------------------------------------------------------------


def placed_on_gpu(array: Any, offset_samples: int) -> Any:
    """A copy on the GPU, some samples past an aligned address."""
    import cupy

    copy = cupy.empty(array.size + offset_samples, array.dtype)[offset_samples:].reshape(array.shape)
    copy[...] = cupy.asarray(array)
    return copy


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(5))
def test_random_pictures_on_a_gpu(seed: int) -> None:
    import cupy

    for case in random_cases(400, 100 + seed, 150):
        pictures = case.batch()
        source = placed_on_gpu(pictures, case.offset_samples)
        out = placed_on_gpu(np.full((*pictures.shape[:3], 1), 165, np.uint8), case.offset_samples)
        case.plan().run(source, out)
        case.check(cupy.asnumpy(out), "edges")


@pytest.mark.gpu
@pytest.mark.gpu_alone
@pytest.mark.parametrize(
    ("kind", "shape"),
    [("noise", (2160, 3840, 3)), ("smooth", (4096, 4096)), ("spiral", (4096, 4096)), ("comb", (1777, 5003))],
)
def test_large_pictures_on_a_gpu_are_as_by_opencv(kind: str, shape: tuple[int, ...]) -> None:
    import cupy

    picture = picture_of(kind, shape, 1)
    out = cupy.empty(shape[:2], np.uint8)
    cuda_plan(shape, "uint8", USUAL).run(cupy.asarray(picture), out)
    np.testing.assert_array_equal(cupy.asnumpy(out), cv2.Canny(picture, USUAL.low, USUAL.high))


@pytest.mark.gpu
def test_a_run_goes_to_the_current_stream_and_into_a_graph() -> None:
    import cupy

    picture = picture_of("smooth", (300, 400), 1)
    plan = cuda_plan(picture.shape, "uint8", USUAL)
    image, out = cupy.asarray(picture), cupy.zeros(picture.shape, np.uint8)
    plan.run(image, out)
    expected, stream = cupy.asnumpy(out), cupy.cuda.Stream(non_blocking=True)
    out[...] = 7
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        plan.run(image, out)
        graph = stream.end_capture()
        graph.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(cupy.asnumpy(out), expected)
    assert expected.any()
