"""Times, numbers, counts and sizes as text, with the values at which each changes its form."""

from __future__ import annotations

import pytest

from edgeconv.core.units import counted, digits_text, parse_bytes, seconds_text
from edgeconv.errors import UsageError


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.00 µs"),
        (4e-9, "0.00 µs"),
        (6e-9, "0.01 µs"),
        (0.9994e-6, "1.00 µs"),
        (0.9996e-6, "1 µs"),
        (1e-6, "1 µs"),
        (12.34e-6, "12.3 µs"),
        (999.4e-6, "999 µs"),
        (999.6e-6, "1 ms"),
        (0.0215, "21.5 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1 s"),
        (59.94, "59.9 s"),
        (1234.5, "1,234 s"),
    ],
)
def test_a_time_has_three_digits_in_the_unit_that_suits(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.0, 3, "0"),
        (1.2345, 3, "1.23"),
        (999.4, 3, "999"),
        (999.6, 3, "1,000"),
        (1e7, 2, "10,000,000"),
        (12.0, 1, "1e+01"),
    ],
)
def test_digits_and_from_a_thousand_on_separators(value: float, digits: int, text: str) -> None:
    assert digits_text(value, digits) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 boxes"), (1, "1 box"), (2, "2 boxes"), (1000, "1,000 boxes"), (-1, "-1 boxes")]
)
def test_one_is_the_only_number_without_a_plural(count: int, text: str) -> None:
    assert counted(count, "box", "boxes") == text
    assert counted(count, "region") == text.replace("boxes", "regions").replace("box", "region")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("7", 7),
        ("3K", 3 * 1024),
        ("3k", 3 * 1024),
        ("5M", 5 * 1024**2),
        ("2G", 2 * 1024**3),
        ("2GiB", 2 * 1024**3),
        ("2kib", 2048),
    ],
)
def test_a_number_of_bytes(text: str, number: int) -> None:
    assert parse_bytes(text) == number


@pytest.mark.parametrize("text", ["", "K", "iB", "1.5G", "-1", "1T", "1B", "2 G", "GiB", "1Gi", "²"])
def test_what_is_no_number_of_bytes_is_refused_by_the_name_of_its_option(text: str) -> None:
    with pytest.raises(UsageError, match=rf"^--limit '{text}' is not a number of bytes: write 512M"):
        parse_bytes(text, "--limit")
