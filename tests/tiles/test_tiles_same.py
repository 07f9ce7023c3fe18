"""Tiles give the whole picture's bytes: every method, filter, type, border, padding and stride, at any seam."""

from __future__ import annotations

import numpy as np
import pytest
from canny_pictures import picture_of
from hypothesis import given, settings
from hypothesis import strategies as st
from pieces import ArraySource, assert_same, by_tiles, by_whole, shows_seams
from problems import random_image
from selection import few_then_slow

from edgeconv.api.auto import Choice
from edgeconv.core import chains
from edgeconv.core.chains import make_chain
from edgeconv.core.choices import BORDERS, CHANNELS
from edgeconv.core.filters import filter_names
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.core.request import make_request
from edgeconv.methods import method_names
from edgeconv.run.tiles import settled

SIDES = st.integers(1, 70)
RANDOM_KERNEL = np.random.default_rng(5).uniform(-1, 1, (3, 3)).tolist()
FILTERS = (*filter_names(), RANDOM_KERNEL, ["sobel-x", "sobel-y"], ["sobel", "scharr"])


def test_auto_on_a_gpu_takes_what_adds_in_one_order_everywhere():
    sliding, asked = (Choice("sliding", "cuda", "for a test", word) for word in ("auto", "sliding"))
    for dtype in INPUT_DTYPES:
        problem = make_request("sobel").problem((64, 64, 3), np.dtype(dtype))
        other = "implicit" if dtype in ("float16", "float32") else "sliding"
        assert settled(sliding, problem).method == other
        assert settled(asked, problem) is asked


@pytest.mark.parametrize("part", few_then_slow(range(4)))
@settings(max_examples=50, deadline=None)
@given(
    height=SIDES,
    width=SIDES,
    tile=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    chunk=st.tuples(st.integers(1, 80), st.integers(1, 80)),
    stride=st.integers(1, 4),
    padding=st.integers(0, 9),
    border=st.sampled_from(BORDERS),
    dtype=st.sampled_from(INPUT_DTYPES),
    filter=st.sampled_from(FILTERS),
    channels=st.sampled_from(CHANNELS),
    grey=st.booleans(),
    output_mode=st.sampled_from(("abs", "raw")),
    method=st.sampled_from(method_names("cpu")),
    kept_bytes=st.sampled_from((0, 2000, 2**20)),
    seed=st.integers(0, 2**16),
)
def test_tiles_give_the_bytes_of_the_whole_picture(
    part, height, width, tile, chunk, stride, padding, border, dtype, filter, channels, grey, output_mode, method,
    kept_bytes, seed,
) -> None:  # fmt: skip
    """Each part draws examples of its own."""
    if min(height, width) + 2 * padding < KERNEL_SIZE:
        return
    channels = "each" if grey else channels
    request = make_request(
        filter, channels=channels, stride=stride, padding=padding, border=border, output_mode=output_mode
    )
    pixels = np.ascontiguousarray(random_image(height, width, dtype, seed)[:, :, : 1 if grey else 3])
    if shows_seams(request, method, dtype):
        method = "sliding"
    got = by_tiles(ArraySource(pixels, chunk), request, tile, method, kept_bytes=kept_bytes)
    assert_same(got, by_whole(pixels, request, method))


@pytest.mark.parametrize("method", method_names("cpu"))
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_tiles_wider_than_a_methods_own_blocks_give_the_same_bytes(method: str, stride: int) -> None:
    """From 8 MiB on the CPU engine stores past the caches and reads rows where they lie; tiles stay below that."""
    request = make_request("sharpen", channels="each", stride=stride)
    pixels = random_image(1100, 1700, "uint8")
    assert_same(by_tiles(ArraySource(pixels), request, (256, 512), method), by_whole(pixels, request, method))


@pytest.mark.parametrize("method", ["sliding", "im2col"])
def test_floats_above_a_methods_own_blocks_give_the_same_bytes(method: str) -> None:
    request = make_request(RANDOM_KERNEL, border="reflect")
    pixels = random_image(500, 2500, "float32")
    assert_same(by_tiles(ArraySource(pixels), request, (96, 1024), method), by_whole(pixels, request, method))


@pytest.mark.parametrize(
    "stages", ["gaussian", "gaussian5,sobel", "scharr,direction", "gaussian,gaussian5,prewitt,thin", "sobel,thin"]
)
@pytest.mark.parametrize("shape", [(1, 1, 3), (3, 90, 1), (71, 5, 3), (97, 130, 3)])
@pytest.mark.parametrize("tile", [(16, 16), (32, 48), (1000, 16)])
def test_tiles_of_a_chain_give_the_bytes_of_the_whole(stages: str, shape: tuple, tile: tuple[int, int]) -> None:
    for dtype in ("uint8", "uint16"):
        picture = picture_of("few levels", shape, 5, dtype)
        request = make_request(make_chain(stages, gradient=None if stages == "gaussian" else "l2"))
        expected = chains.compute(picture, request.picture_problem(picture.shape, picture.dtype))
        assert_same(by_tiles(ArraySource(picture, (13, 29)), request, tile, "reference"), expected)


@pytest.mark.parametrize(
    ("filter", "channels", "dtype", "shows"),
    [
        ("kirsch", "mix", "uint8", False),
        ("kirsch", "mix", "uint16", False),
        ("sobel", "each", "uint8", False),
        ("sobel", "mix", "float32", True),
        (RANDOM_KERNEL, "each", "uint8", True),
        ("sobel", "luma", "uint8", True),
        ("sobel", "each", "uint16", True),
    ],
)
def test_a_method_whose_seams_would_show_is_refused(filter, channels: str, dtype: str, shows: bool) -> None:
    request = make_request(filter, channels=channels)
    assert shows_seams(request, "opencv", dtype) is shows
    assert not shows_seams(request, "sliding", dtype)


@pytest.mark.parametrize(("tile", "kept_bytes", "decoded"), [(16, 2**20, 16), (32, 2**20, 16), (16, 0, 100)])
def test_no_chunk_is_decoded_twice_where_there_is_room(tile: int, kept_bytes: int, decoded: int) -> None:
    """Where nothing may be kept, each of 4 tiles an axis reaches 2, 3, 3 and 2 chunks."""
    source = ArraySource(random_image(64, 64, "uint8"), (16, 16))
    by_tiles(source, make_request(), (tile, tile), "opencv", kept_bytes=kept_bytes)
    assert len(source.loaded) == decoded
