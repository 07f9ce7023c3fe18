"""Tiles give the whole picture's bytes: every method, filter, type, border, padding and stride, at any seam."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pieces import ArraySource, assert_same, by_tiles, by_whole, in_one_chunk, random_cuts
from problems import random_image
from selection import few_then_slow

from edgeconv.api.auto import Choice
from edgeconv.core.choices import BORDERS, CHANNELS
from edgeconv.core.filters import filter_names
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.option import AUTO
from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.core.request import make_request
from edgeconv.errors import UsageError
from edgeconv.methods import method_names
from edgeconv.run.tiled.determinism import REPLACEMENTS, depends_on_tiling, is_exact, settle
from edgeconv.run.tiled.grid import even_cuts

SIDES = st.integers(1, 70)
RANDOM_KERNEL = np.random.default_rng(5).uniform(-1, 1, (3, 3)).tolist()


@pytest.mark.parametrize("part", few_then_slow(range(4)))
@settings(max_examples=50, deadline=None)
@given(
    height=SIDES,
    width=SIDES,
    tile=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    stride=st.integers(1, 4),
    padding=st.integers(0, 9),
    border=st.sampled_from(BORDERS),
    dtype=st.sampled_from(INPUT_DTYPES),
    filter=st.sampled_from((*filter_names(), RANDOM_KERNEL)),
    channels=st.sampled_from(CHANNELS),
    output_mode=st.sampled_from(("abs", "raw")),
    method=st.sampled_from(method_names("cpu")),
    shifted=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_tiles_give_the_bytes_of_the_whole_picture(
    part, height, width, tile, stride, padding, border, dtype, filter, channels, output_mode, method, shifted, seed
) -> None:
    """Each part draws examples of its own."""
    if min(height, width) + 2 * padding < KERNEL_SIZE:
        return
    request = make_request(
        filter, channels=channels, stride=stride, padding=padding, border=border, output_mode=output_mode
    )
    pixels = random_image(height, width, dtype, seed)
    method = settle(Choice(method, "cpu", "drawn"), AUTO, request.problem(pixels.shape, pixels.dtype)).method
    rng = np.random.default_rng(seed)
    source = ArraySource(pixels, random_cuts(rng, height), random_cuts(rng, width))
    got = by_tiles(source, request, tile, method, shifted=shifted, keep_bytes=int(rng.choice((0, 2000, 2**20))))
    assert_same(got, by_whole(pixels, request, method))


@pytest.mark.parametrize("method", method_names("cpu"))
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_tiles_wider_than_a_methods_own_blocks_give_the_same_bytes(method: str, stride: int) -> None:
    """From 8 MiB on the CPU engine stores past the caches and reads rows where they lie; tiles stay below that."""
    request = make_request("sharpen", channels="each", stride=stride)
    pixels = random_image(1100, 1700, "uint8")
    got = by_tiles(in_one_chunk(pixels), request, (256, 512), method)
    assert_same(got, by_whole(pixels, request, method))


def test_floats_above_a_methods_own_blocks_give_the_same_bytes() -> None:
    request = make_request(RANDOM_KERNEL, border="reflect")
    pixels = random_image(500, 2500, "float32")
    for method in ("sliding", "im2col"):
        got = by_tiles(in_one_chunk(pixels), request, (96, 1024), method)
        assert_same(got, by_whole(pixels, request, method))


def test_values_that_are_no_numbers_spread_as_in_the_whole_picture() -> None:
    pixels = random_image(40, 50, "float32")
    pixels[15, 16], pixels[31, 3], pixels[0, 0] = np.nan, np.inf, -np.inf
    request = make_request("sobel", channels="each", border="replicate")
    assert_same(by_tiles(in_one_chunk(pixels), request, (16, 16), "sliding"), by_whole(pixels, request, "sliding"))


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_methods_that_add_in_any_order_may_do_whole_numbers_only(dtype: str) -> None:
    exact = make_request("kirsch").problem((64, 64, 3), dtype)
    assert is_exact(exact)
    named = Choice("opencv", "cpu", "asked for by name")
    assert settle(named, "opencv", exact) is named


@pytest.mark.parametrize(
    ("filter", "channels", "dtype"),
    [
        ("sobel", "mix", "float32"),
        (RANDOM_KERNEL, "each", "uint8"),
        ("sobel", "luma", "uint8"),
        ("sobel", "each", "uint16"),
    ],
)
def test_a_method_whose_seams_would_show_refuses_or_is_not_chosen(filter, channels: str, dtype: str) -> None:
    problem = make_request(filter, channels=channels).problem((64, 64, 3), dtype)
    named = Choice("opencv", "cpu", "asked for by name")
    with pytest.raises(UsageError, match="use --method sliding"):
        settle(named, "opencv", problem)
    assert settle(named, "auto", problem).method == "sliding"


def test_float16_on_a_gpu_goes_to_a_method_whose_order_is_fixed() -> None:
    half = make_request("sobel").problem((64, 64, 3), "float16")
    chosen = Choice("sliding", "cuda", "the fastest")
    assert settle(chosen, AUTO, half).method == REPLACEMENTS["cuda"] == "implicit"
    with pytest.raises(UsageError, match="use --method implicit"):
        settle(chosen, "sliding", half)
    assert settle(chosen, AUTO, make_request("sobel").problem((64, 64, 3), "float32")) is chosen
    assert not any(depends_on_tiling(Choice(able, device, ""), half) for device, able in REPLACEMENTS.items())


def test_opencv_really_rounds_floats_by_place() -> None:
    """Why it must refuse; where this fails one day, the refusal can go."""
    request = make_request(RANDOM_KERNEL, channels="each")
    pixels = random_image(60, 203, "float32")
    whole = by_whole(pixels, request, "opencv")
    assert any(
        not np.array_equal(by_tiles(in_one_chunk(pixels), request, (60, side), "opencv"), whole)
        for side in (16, 17, 31)
    )


@pytest.mark.parametrize(("keep_bytes", "decoded"), [(2**20, 16), (0, 100)])
def test_no_chunk_is_decoded_twice_where_there_is_room(keep_bytes: int, decoded: int) -> None:
    """Where nothing may be kept, each of 4 tiles an axis reaches 2, 3, 3 and 2 chunks."""
    source = ArraySource(random_image(64, 64, "uint8"), even_cuts(64, 16), even_cuts(64, 16))
    by_tiles(source, make_request(), (16, 16), "opencv", keep_bytes=keep_bytes)
    assert len(source.loaded) == decoded
