"""Filters are data: the numbers of each, and what makes no filter."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import edgeconv
from edgeconv.core.filters import (
    LUMA_WEIGHTS,
    Filter,
    custom_filter,
    filter_bank,
    filter_names,
    named_filter,
    parse_kernel,
    weight_set,
)
from edgeconv.core.problem import make_problem
from edgeconv.errors import UsageError
from edgeconv.io.kernel_file import read_kernel
from edgeconv.methods.options import Options
from edgeconv.methods.reference import Reference
from edgeconv.run.naming import filter_word

AS_PRINTED = {
    "laplacian4": " 0  1  0 /  1 -4  1 /  0  1  0",
    "laplacian8": " 1  1  1 /  1 -8  1 /  1  1  1",
    "sobel-x": "-1  0  1 / -2  0  2 / -1  0  1",
    "sobel-y": "-1 -2 -1 /  0  0  0 /  1  2  1",
    "scharr-x": "-3  0  3 / -10 0 10 / -3  0  3",
    "scharr-y": "-3 -10 -3 / 0  0  0 /  3 10  3",
    "prewitt-x": "-1  0  1 / -1  0  1 / -1  0  1",
    "prewitt-y": "-1 -1 -1 /  0  0  0 /  1  1  1",
    "sharpen": " 0 -1  0 / -1  5 -1 /  0 -1  0",
    "emboss": "-2 -1  0 / -1  1  1 /  0  1  2",
    "identity": " 0  0  0 /  0  1  0 /  0  0  0",
    "sobel": "-1  0  1 / -2  0  2 / -1  0  1",
    "scharr": "-3  0  3 / -10 0 10 / -3  0  3",
    "prewitt": "-1  0  1 / -1  0  1 / -1  0  1",
    "kirsch": " 5  5  5 / -3  0 -3 / -3 -3 -3",
    "robinson": " 1  2  1 /  0  0  0 / -1 -2 -1",
}
"""The first kernel of each, as the sources print it; fuzz/oracle.py has all, by itself."""


def test_the_numbers_are_those_that_the_sources_print() -> None:
    assert tuple(AS_PRINTED) == filter_names()
    for name, printed in AS_PRINTED.items():
        rows = [[float(number) for number in row.split()] for row in printed.split("/")]
        assert named_filter(name).kernels[0].tolist() == rows, name
        assert named_filter(name).kernels.dtype == np.float32, name


def test_compass_kernels_are_eight_different_turns() -> None:
    for name in ("kirsch", "robinson"):
        kernels = named_filter(name).kernels
        assert len({kernel.tobytes() for kernel in kernels}) == 8
        assert len({tuple(sorted(kernel.ravel())) for kernel in kernels}) == 1


LUMA_IN_10_000 = {"bt601": (2990, 5870, 1140), "bt709": (2126, 7152, 722)}
"""R, G and B. Sources: ITU-R BT.601-7, section 2.5.1; ITU-R BT.709-6, section 3.2."""


def test_every_luma_is_known_to_the_tests_and_that_of_grey_is_that_grey() -> None:
    assert set(LUMA_WEIGHTS) == set(LUMA_IN_10_000)
    assert all(sum(shares) == 10_000 for shares in LUMA_IN_10_000.values())


@pytest.mark.parametrize("name", LUMA_IN_10_000)
def test_luma_of_pure_colours_through_the_python_door(name: str) -> None:
    colours = np.zeros((1, 3, 3), np.uint8)
    colours[0, [0, 1, 2], [0, 1, 2]] = 255
    for method in ("reference", "opencv"):
        rules = {"channels": "luma", "luma": name, "device": "cpu", "padding": "same"}
        out = edgeconv.convolve(colours, "identity", method, **rules)
        assert out.ravel().tolist() == [round(255 * share / 10_000) for share in LUMA_IN_10_000[name]]


def test_parse_kernel_reads_rows() -> None:
    expected = [[0, 1, 0], [1, -4, 1], [0, 1, 0]]
    assert parse_kernel("0,1,0;1,-4,1;0,1,0").kernels[0].tolist() == expected
    assert parse_kernel(" 0 1 0 ; 1 -4 1 ; 0 1 0 ;").kernels[0].tolist() == expected


@pytest.mark.parametrize(
    "text", ["", "1,2,3", "1,2,3;4,5,6;7,8", "a,b,c;1,2,3;4,5,6", "nan,0,0;0,0,0;0,0,0", "1e39,0,0;0,0,0;0,0,0"]
)
def test_a_bad_kernel_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_kernel(text)


def test_kernel_files(tmp_path) -> None:
    (tmp_path / "k.json").write_text(json.dumps([[0, 1, 0], [1, -4, 1], [0, 1, 0]]))
    (tmp_path / "k.csv").write_text("0, 1, 0\n1, -4, 1\n0, 1, 0\n")
    (tmp_path / "full.json").write_text(json.dumps(np.arange(81).reshape(3, 3, 3, 3).tolist()))
    laplacian = named_filter("laplacian4").kernels
    assert np.array_equal(read_kernel(tmp_path / "k.json").kernels, laplacian)
    assert np.array_equal(read_kernel(tmp_path / "k.csv").kernels, laplacian)
    full = read_kernel(tmp_path / "full.json")
    assert full.is_full_set
    assert weight_set(full, "mix").weights[0, 2, 1, 0, 2] == 2 * 27 + 9 + 2
    with pytest.raises(UsageError, match="needs --channels mix"):
        weight_set(full, "each")


@pytest.mark.parametrize(
    "values", [np.full((3, 3), 1j), np.ma.masked_array(np.ones((3, 3)), np.eye(3)), [[10**400] * 3] * 3]
)
def test_values_that_are_no_real_numbers_are_refused(values) -> None:
    with pytest.raises(UsageError):
        custom_filter(values)


def test_the_table_cannot_be_changed_by_accident() -> None:
    with pytest.raises(ValueError, match="read-only"):
        named_filter("sobel").kernels[0, 0, 0] = 7


def test_weights_may_be_fractions() -> None:
    assert np.array_equal(parse_kernel("1/9 1/9 1/9; 0,-2/4,1/8; .5/2 1 -1").kernels[0].ravel()[:1], [1 / 9])
    assert parse_kernel("0,0,0;-2/4,1/8,.5/2;0,0,0").kernels[0, 1].tolist() == [-0.5, 0.125, 0.25]
    for cell in ("1/0", "1/", "/3", "1/2/3", "1//2"):
        with pytest.raises(UsageError, match="has a cell that is not a number"):
            parse_kernel(f"{cell},0,0;0,0,0;0,0,0")


# --- grey pictures and banks ------------------------------------------------------------------------------------------

BANK = ("sobel-x", "laplacian4")


def test_a_bank_by_channels_has_the_filters_of_red_first() -> None:
    """Output c·K + k is filter k of channel c."""
    made = weight_set(filter_bank(BANK), "each")
    assert (made.weights.shape, made.groups) == ((1, 6, 1, 3, 3), 3)
    for channel, number in np.ndindex(3, 2):
        assert np.array_equal(made.weights[0, channel * 2 + number, 0], named_filter(BANK[number]).kernels[0])
    picture = np.zeros((3, 3, 3), np.float32)
    picture[1, 1] = (1, 10, 100)
    out = np.empty((1, 1, 6), np.float32)
    problem = make_problem(picture.shape, picture.dtype, made, padding=0)
    Reference().prepare(problem, Options()).run(picture, out)
    assert out.ravel().tolist() == [0, -4, 0, -40, 0, -400]


def test_an_array_of_filters_is_a_bank_for_pictures_of_as_many_channels() -> None:
    grey, colour = (np.arange(5 * channels * 9, dtype=float).reshape(5, channels, 3, 3) for channels in (1, 3))
    assert np.array_equal(weight_set(custom_filter(colour), "mix").weights[0], colour)
    assert np.array_equal(weight_set(custom_filter(grey), "mix", in_channels=1).weights[0], grey)
    assert weight_set(custom_filter(grey), "mix").weights.shape == (1, 5, 3, 3, 3)
    with pytest.raises(UsageError, match="the picture is grey"):
        weight_set(custom_filter(colour), "mix", in_channels=1)
    with pytest.raises(UsageError, match="needs --channels mix"):
        weight_set(custom_filter(colour), "each")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], "1 to 256 filters, not 0"),
        (["sobel-x"] * 257, "1 to 256 filters, not 257"),
        (["sobel-x", "sobol"], "'sobol' is not known"),
        (["sobel-x", "sobel"], r"'sobel-x' \(single\) and 'sobel' \(magnitude\)"),
        (["kirsch", "laplacian8"], r"'kirsch' \(maximum\) and 'laplacian8' \(single\)"),
        (["sobel-x", custom_filter(np.ones((2, 3, 3, 3)))], "is a bank itself"),
    ],
)
def test_filters_that_make_no_bank_are_refused(members: list[str | Filter], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        filter_bank(members)


@pytest.mark.parametrize(
    "shape", [(0, 3, 3, 3), (257, 3, 3, 3), (4, 2, 3, 3), (4, 3, 3, 5), (4, 3, 3), (1, 4, 3, 3, 3)]
)
def test_arrays_that_make_no_bank_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="must be 3×3, or K×C×3×3"):
        custom_filter(np.ones(shape))


def test_a_filter_of_the_table_is_known_by_its_values() -> None:
    """Another process has a copy of it; a kernel of one's own is not the table's, whatever it is called."""
    chosen = named_filter("laplacian8")
    assert filter_word(pickle.loads(pickle.dumps(chosen))) == "laplacian8"
    assert filter_word(replace(chosen, kernels=2 * chosen.kernels)).startswith("laplacian8-")
