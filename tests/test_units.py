"""Counts and sizes as text, with the values at which each changes its form; times: test_report_text.py."""

from __future__ import annotations

import pytest

from edgeconv.core.units import counted, parse_bytes
from edgeconv.errors import UsageError


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
