"""From values to samples: rounding noise is not stretched, and NaN and infinities take no part in the range."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from edgeconv import convolve
from edgeconv.core import output
from edgeconv.core.output import NO_RANGE, finite_range, magnitude, store, stretch
from edgeconv.core.problem import StoredMode
from edgeconv.core.request import make_request
from edgeconv.methods import METHODS

ON_CPU = [entry.name for entry in METHODS if entry.device == "cpu" and entry.unavailable_reason() is None]


def stripes(dtype: str) -> np.ndarray:
    """Rows that are all equal: a derivative along y is 0 everywhere."""
    row = np.random.default_rng(7).integers(0, 256, (1, 40, 3))
    return np.repeat(row, 30, axis=0).astype(dtype) if dtype != "float32" else np.repeat(row / 255, 30, 0).astype(dtype)


@pytest.mark.parametrize("method", ON_CPU)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_rounding_noise_of_a_flat_answer_is_flat(method: str, dtype: str) -> None:
    rules: dict[str, Any] = {"filter": "sobel-y", "channels": "luma", "border": "replicate", "device": "cpu"}
    out = convolve(stripes(dtype), method=method, output_mode="normalize", **rules)
    assert not out.any(), f"{method} {dtype}: up to {out.max()}"


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_one_level_in_one_sample_is_no_noise(dtype: str) -> None:
    picture = stripes(dtype)
    picture[15, 20, 2] += 1 if picture.dtype.kind == "u" else 1e-5
    for channels in ("luma", "each"):
        rules: dict[str, Any] = {"channels": channels, "border": "replicate", "device": "cpu", "method": "sliding"}
        out = convolve(picture, filter="sobel-y", output_mode="normalize", **rules)
        assert out.max() == (1.0 if out.dtype.kind == "f" else np.iinfo(out.dtype).max)


def test_without_the_picture_whole_numbers_are_as_bright_as_their_type() -> None:
    request = make_request("sobel-y", channels="luma", output_mode="normalize")
    noise = np.array([[[0.0], [5e-5]]], np.float32)
    assert not request.finish(noise, "uint8").any()
    assert request.finish(noise, "uint8", image=np.ones((1, 2, 3), np.uint8)).max() == 255


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("flat", [False, True])
def test_what_is_no_number_stays_and_the_others_fill_the_range(odd: float, flat: bool) -> None:
    raw = np.array([[[2.0], [2.0 if flat else 4.0], [odd], [2.0 if flat else 3.0]]], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = stretch(raw, *finite_range(raw), np.dtype(np.float32))
    expected = [0.0, 0.0, odd, 0.0] if flat else [0.0, 1.0, odd, 0.5]
    np.testing.assert_array_equal(out.ravel(), np.array(expected, np.float32))


def test_a_picture_without_any_number_is_left_as_it_is() -> None:
    nothing = np.full((2, 2, 1), np.nan, np.float32)
    assert np.isnan(stretch(nothing, *finite_range(nothing), np.dtype(np.float32))).all()
    assert finite_range(nothing) == NO_RANGE
    assert magnitude(NO_RANGE) == 0.0


@pytest.mark.parametrize("mode", ["raw", "abs"])
def test_a_value_beyond_float16_is_infinite_without_a_warning(mode: StoredMode) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(store(np.array([1e6, -1e6]), mode, np.dtype(np.float16))).all()


HALVES = [Fraction(number, 2) for number in range(-9, 14)]
"""Every other one lies between two whole numbers."""


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("mode", ["abs", "clip"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_halves_are_stored_as_the_even_neighbour(kind: str, mode: StoredMode, dtype: str) -> None:
    """As Python's own `round` has it, at both ends of the type too."""
    white = np.iinfo(dtype).max
    values = [*HALVES, *(white + half for half in HALVES), Fraction(1, 3), Fraction(-5, 3), Fraction(10**6)]
    expected = [min(white, max(0, round(abs(value) if mode == "abs" else value))) for value in values]
    stored = store(np.array([float(value) for value in values], kind), mode, np.dtype(dtype))
    assert stored.dtype == dtype
    assert stored.tolist() == expected


@pytest.mark.parametrize(("dtype", "white"), [("uint8", 255), ("uint16", 65535)])
@pytest.mark.parametrize("low", [0, -100])
def test_halves_are_stretched_to_the_even_neighbour(low: int, dtype: str, white: int) -> None:
    """A range of twice the type's: every odd value lands between two levels."""
    steps = [*range(8), 2 * white - 3, 2 * white - 1, 2 * white]
    raw = np.array(steps, np.float32)[np.newaxis, :, np.newaxis] + low
    assert stretch(raw, *finite_range(raw), np.dtype(dtype)).ravel().tolist() == [
        round(Fraction(step, 2)) for step in steps
    ]


@pytest.mark.parametrize("samples", [84, 83, 1, 130])
def test_a_picture_is_stretched_in_strips_of_whole_rows(monkeypatch: pytest.MonkeyPatch, samples: int) -> None:
    """Of 14 pixels with three channels: 42 samples a row."""
    values = np.random.default_rng(1).uniform(-50, 300, (10, 14, 3))
    monkeypatch.setattr(output, "STRIP_SAMPLES", samples)
    expected = np.rint((values + 50) * (255 / 350)).astype(np.uint8)
    assert np.array_equal(stretch(values, -50.0, 300.0, np.dtype(np.uint8)), expected)
