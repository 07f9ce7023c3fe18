"""Exact figures against plain NumPy on awkward shapes, and on pairs that a person can check by hand."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from problems import AWKWARD_SHAPES, random_image

from edgeconv.difference import figures
from edgeconv.difference.figures import Allowance, Box, Region, of_pair, ulp_distance
from edgeconv.difference.scale import scale_for
from edgeconv.difference.text import share
from edgeconv.errors import UsageError

DTYPES = ("uint8", "uint16", "float16", "float32")


def flat(dtype: str = "uint8", value: float = 10) -> np.ndarray:
    """8 wide, 6 high, RGB, one value."""
    return np.full((6, 8, 3), value, dtype)


BOXES = (Box(0, 0, 3, 2), Box(2, 1, 9, 9), Box(9, 9, 9, 9), Box(20, 5, 22, 16), Box(0, 16, 22, 16))
"""Regions that overlap, touch sides and each other, and lie across strips."""
ALLOWANCES = {
    "exact": Allowance(),
    "allowed": Allowance(atol=2, rtol=0.01),
    "border": Allowance(ignore_border=2),
    "regions": Allowance(ignore_border=1, ignored_regions=BOXES),
    "few": Allowance(atol=3, max_count=60),
    "fewer": Allowance(atol=3, max_count=50, ignore_border=1),
}
CASES = [
    *((*shape, None, name) for shape in AWKWARD_SHAPES for name in ("exact", "allowed")),
    *((17, 23, rows, name) for rows in (1, 4, 100) for name in ALLOWANCES),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("height", "width", "rows", "name"), CASES)
def test_figures_are_those_of_plain_numpy(
    monkeypatch: pytest.MonkeyPatch, dtype: str, height: int, width: int, rows: int | None, name: str
) -> None:
    """However the picture is cut into strips of `rows`, and whatever is not judged."""
    rng, allowance = np.random.default_rng(height * width), ALLOWANCES[name]
    reference = (100 * np.abs(random_image(height, width, "float32"))).astype(dtype)
    other = reference.copy()
    changed = rng.random(reference.shape) < 0.2
    other[changed] = (other[changed] + rng.integers(1, 5, int(changed.sum()))).astype(dtype)
    if rows is not None:
        monkeypatch.setattr(figures, "STRIP_SAMPLES", dict.fromkeys((1, 2, 4), rows * width * 3))
    found = of_pair(reference, other, allowance)

    margin = allowance.ignore_border
    judged = np.zeros((height, width), bool)
    judged[margin : height - margin, margin : width - margin] = True
    for box in allowance.ignored_regions:
        judged[box.top : box.bottom + 1, box.left : box.right + 1] = False
    difference = other.astype(np.float64) - reference
    beyond = np.abs(difference) > allowance.atol + allowance.rtol * np.abs(reference.astype(np.float64))
    peak = np.abs(reference).max() if dtype.startswith("f") else np.iinfo(dtype).max
    assert found.ignored_samples == 3 * np.count_nonzero(~judged)
    assert found.ignored_differing_samples == np.count_nonzero(beyond[~judged])
    for part, index in zip((found.judged, *found.channels.values()), (slice(None), 0, 1, 2), strict=True):
        apart = difference[judged][:, index]
        assert (part.samples, part.unequal_samples) == (apart.size, np.count_nonzero(apart))
        assert part.differing_samples == np.count_nonzero(beyond[judged][:, index])
        assert part.max_abs == np.abs(apart).max(initial=0)
        assert (part.mean, part.mean_abs) == pytest.approx((apart.mean(), np.abs(apart).mean()))
        assert part.rmse == pytest.approx(np.sqrt((apart**2).mean()))
        assert part.rmse == 0 or part.psnr_db == pytest.approx(20 * np.log10(float(peak) / part.rmse))
        classes = scale_for(dtype).classes(np.abs(apart)).ravel()
        assert list(part.histogram) == np.bincount(classes, minlength=len(part.histogram)).tolist()
    assert found.same == (np.count_nonzero(beyond[judged]) <= allowance.max_count)
    pixels = beyond.any(axis=2) & judged
    assert found.differing_pixels == pixels.sum()
    assert found.region_count == cv2.connectedComponents(pixels.view(np.uint8))[0] - 1
    if found.worst is not None:
        largest = np.where(judged[..., None], np.abs(difference), 0).max(axis=2)
        assert (found.worst.y, found.worst.x) == np.unravel_index(largest.argmax(), largest.shape)


def drawn(differs: np.ndarray) -> tuple[int, tuple[Region, ...]]:
    """How many regions a mask has, and those that are listed."""
    pixels = differs.astype(np.uint8)[:, :, None]
    found = of_pair(np.zeros_like(pixels), pixels)
    return found.region_count, found.regions


def test_the_largest_first_and_those_of_one_size_from_the_top_and_then_from_the_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        ".......##.#",
        "....##.....",
        "...........",
        "##.......##",
        "...#..#..#.",
        "..#....#...",
        "###.....#..",
    ]
    expected = (
        Region(0, 4, 3, 6, 5),  # around a corner
        Region(9, 3, 10, 4, 3),
        Region(6, 4, 8, 6, 3),  # by their corners alone
        Region(7, 0, 8, 0, 2),
        Region(4, 1, 5, 1, 2),
        Region(0, 3, 1, 3, 2),
        Region(10, 0, 10, 0, 1),
    )
    for listed in (10, 3):
        monkeypatch.setattr(figures, "MAX_LISTED", listed)
        assert drawn(np.array([[letter == "#" for letter in row] for row in rows])) == (7, expected[:listed])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ulp_distance_counts_floats_between(dtype: str) -> None:
    kind = np.dtype(dtype).type
    one, tiny, largest = kind(1), np.nextafter(kind(0), kind(1)), np.finfo(kind).max
    pairs = [
        (one, np.nextafter(one, kind(2)), 1),
        (kind(0), kind(-0.0), 0),
        (tiny, -tiny, 2),
        (largest, kind(np.inf), 1),
        (-largest, largest, min(2 * int(largest.view(f"u{largest.itemsize}")), np.iinfo(np.int64).max)),
        (kind(np.nan), kind(np.nan), -1),
        (one, kind(np.nan), -1),
    ]
    reference, other, expected = (np.array(column) for column in zip(*pairs, strict=True))
    assert ulp_distance(reference.astype(dtype), other.astype(dtype)).tolist() == expected.tolist()


def test_float64_is_compared_as_it_is() -> None:
    """Neither rounded to float32, nor beyond a range of its own sums."""
    reference = np.ones((4, 5, 1))
    other = reference.copy()
    other[1, 2, 0] = np.nextafter(1.0, 2.0)
    figures = of_pair(reference, other, Allowance())
    assert (figures.differing_pixels, figures.judged.max_abs, figures.judged.max_ulp) == (1, 2.0**-52, 1)
    other[1, 2, 0] = -1e300
    whole = of_pair(reference, other, Allowance()).judged
    assert whole.rmse == pytest.approx(1e300 / np.sqrt(20))
    assert np.isfinite(whole.psnr_db)


def test_nan_equals_nan_and_an_infinity_itself_but_neither_equals_anything_else() -> None:
    reference, other = flat("float32", 1), flat("float32", 1)
    reference[0, 0], other[0, 0] = (np.nan, np.inf, -np.inf), (np.nan, np.inf, -np.inf)
    assert of_pair(reference, other, Allowance()).judged.unequal_samples == 0
    other[0, 0] = (1, -np.inf, 3e38)
    other[2, 2, 0] = 1.5
    whole = of_pair(reference, other, Allowance(atol=1e38, rtol=1)).judged
    assert (whole.unequal_samples, whole.unbounded_samples, whole.differing_samples) == (4, 3, 3)
    assert whole.max_abs == math.inf
    assert whole.mean_abs == pytest.approx(0.5 / 141)
    assert whole.histogram[-1] == 3
    worst = of_pair(reference, other, Allowance(ignore_border=1)).worst
    assert worst is not None
    assert (worst.y, worst.x, worst.difference) == (2, 2, 0.5), "what is not judged is not the largest, infinite or not"


def test_ulp_is_a_way_to_be_accepted() -> None:
    reference = flat("float32", 1)
    other = reference.copy()
    other[1, 1, 0] = np.nextafter(np.float32(1), np.float32(2))
    other[4, 4, 0] = 1.001
    figures = of_pair(reference, other, Allowance(ulp=1))
    assert (figures.judged.unequal_samples, figures.judged.differing_samples) == (2, 1)
    assert figures.judged.max_ulp == round(0.001 * 2**23)
    other[4, 4, 0] = np.nan  # no number is as far from a number as ULP allows
    for one, two in ((reference, other), (other, reference)):
        assert of_pair(one, two, Allowance(ulp=2**31)).judged.differing_samples == 1


BEYOND = [Box(0, 0, 8, 1), Box(5, 0, 4, 1), Box(0, 6, 1, 6), Box(0, 0, 7, 5)]


@pytest.mark.parametrize(
    "allowance",
    [
        *(Allowance(atol=-1), Allowance(rtol=math.nan), Allowance(ulp=1), Allowance(ignore_border=3)),
        *(Allowance(ignored_regions=(box,)) for box in BEYOND),
    ],
)
def test_an_allowance_without_meaning_is_refused(allowance: Allowance) -> None:
    with pytest.raises(UsageError):
        of_pair(flat(), flat(), allowance)


def test_a_share_is_never_rounded_to_none_or_all() -> None:
    part = of_pair(flat(), flat()).judged
    part.samples = 50_000_000
    shown = {0: "0 %", 1: "0.000002 %", 50_000: "0.1 %", 49_999_999: "over 99 %", 50_000_000: "100 %"}
    for part.differing_samples, expected in shown.items():
        part.differing_share = part.differing_samples / part.samples
        assert share(part) == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_magnitude_has_its_class(dtype: str) -> None:
    scale = scale_for(dtype)
    bounds = np.array(scale.lower_bounds)
    assert scale.classes(bounds).tolist() == list(range(len(bounds)))
    below = np.nextafter(bounds[1:], -np.inf)
    assert scale.classes(below).tolist() == list(range(len(bounds) - 1))
    assert len(scale.labels) == len(scale.colours) == len(bounds)
    linear = (np.array(scale.colours[: len(bounds) - dtype.startswith("f")]) / 255) ** 2.2
    contrast = linear @ (0.2126, 0.7152, 0.0722) + 0.05  # WCAG 2.2, with one power for its two pieces
    steps = contrast[1:] / contrast[:-1]
    assert np.all((steps > 1.49) | (steps == 1) & (np.arange(len(steps)) > 0)), steps
    if dtype != "float32":
        largest = np.iinfo(dtype).max if dtype.startswith("u") else math.inf
        assert scale.classes(np.array([largest])) == [len(bounds) - 1]
