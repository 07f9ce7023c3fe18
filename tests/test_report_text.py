"""What a report shows to a person: figures in units and digits that suit, and text that any file can hold."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from bench_records import changed
from command import PROJECT
from run_reports import all_run_reports, run_report

from edgeconv.core.text import broken, bytes_text, counted, digits_text, parse_bytes, seconds_text, share_text, wrapped
from edgeconv.errors import UsageError
from edgeconv.io.files import xml_text
from edgeconv.run import report_text
from edgeconv.run.report import as_report


@pytest.mark.parametrize(
    ("text_of", "values"),
    [
        # three digits, in the unit that suits once rounded
        (seconds_text, {0.0: "0 µs", 1e-9: "0.001 µs", 9.996e-7: "1 µs", 0.0009994: "999 µs", 0.0009996: "1 ms"}),
        (seconds_text, {59.96: "60 s", 999.6: "1,000 s", 12345.6: "12,346 s"}),
        # separators from a thousand on, and never rounded to zero
        (lambda value: digits_text(value, 4), {0.0: "0", 1.5e-6: "0.0000015", 999.94: "999.9", 999.96: "1,000"}),
        (share_text, {0.0: "0 %", 0.00012: "0.012 %", 0.0488: "4.9 %", 0.996: "100 %"}),
        (lambda count: counted(count, "box", "boxes"), {0: "0 boxes", 1: "1 box", 1000: "1,000 boxes", -1: "-1 boxes"}),
        (lambda count: counted(count, "region"), {0: "0 regions", 1: "1 region", 2: "2 regions"}),
        (bytes_text, {2**10: "1 KiB", 2**20: "1 MiB", 2**30: "1 GiB", 1.5 * 2**30: "1.5 GiB"}),
        (parse_bytes, {"0": 0, "3K": 3 * 1024, "2G": 2 * 1024**3, "2GiB": 2 * 1024**3, "2kib": 2048}),
    ],
)
def test_numbers_for_people(text_of: Any, values: dict[Any, Any]) -> None:
    assert {value: text_of(value) for value in values} == values


@pytest.mark.parametrize("text", ["", "K", "iB", "1.5G", "-1", "1T", "1B", "2 G", "GiB", "1Gi", "²"])
def test_what_is_no_number_of_bytes_is_refused_by_the_name_of_its_option(text: str) -> None:
    with pytest.raises(UsageError, match=rf"^--limit '{text}' is not a number of bytes: write 512M"):
        parse_bytes(text, "--limit")
    with pytest.raises(UsageError, match=rf"^'{text}' is not a number of bytes"):
        parse_bytes(text)


def test_a_broken_line_goes_on_four_columns_further_in() -> None:
    line = "  one two " + "three " * 12
    pieces = wrapped(line, 50)
    assert len(pieces) == 2
    assert [len(piece) - len(piece.lstrip()) for piece in pieces] == [2, 6]
    assert " ".join(pieces).split() == line.split()
    assert wrapped(line, None) == [line]


def test_a_bound_says_that_it_holds_before_samples_are_rounded() -> None:
    """A 16-bit sample may be a whole level off beside a bound of a quarter, and is right."""
    start = "error bound of each output channel in this picture before it is stored (float32)"
    for bounds, end in (([0.27, None], ": 0.27, none"), ([0.27, 0.1], ": 0.27, 0.1; at most one level off, .* a half")):
        check = SimpleNamespace(exact=False, arithmetic="float32", bound_by_channel=bounds)
        assert re.fullmatch(re.escape(start) + end, report_text.exactness_text(check, True))


@pytest.mark.parametrize(
    ("exact", "max_abs", "differing", "words"),
    [
        (True, 0.0, 0, "are equal to the float64 reference"),
        (False, 0.0, 0, "are equal to the float64 reference"),
        (True, 3e-5, 0, "largest error 3e-05, 1.2e-07 of the largest value where 4.8e-07 is allowed"),
        (False, 1.0, 7, "are within the error bound of the float64 reference, 7 of them off by at most 1"),
        (False, None, 0, "largest error infinite"),
    ],
)
def test_only_what_has_no_error_is_called_equal(exact: bool, max_abs: float | None, differing: int, words: str) -> None:
    check = changed(
        run_report("two-core-epyc", "cpu_sliding_s1").check,
        **{"exact": exact, "max_abs_error": max_abs, "differing_samples": differing, "arithmetic": "float32"},
        **{"relative_error": None if max_abs is None else 1.2e-7, "tolerance": 4.8e-7, "bound_by_channel": [1e-4]},
    )
    report = changed(run_report("two-core-epyc", "cpu_sliding_s1"), check=check)
    found = report_text.summary(report)[2]
    assert found.label == "right"
    assert words in found.text
    assert ("equal" in found.text) == (max_abs == 0)
    assert "equal" not in report_text.exactness_text(check, True)


@pytest.mark.parametrize(("decoded", "words"), [(80, "decoded once; "), (100, "decoded 1.25 times; ")])
def test_how_often_a_piece_was_decoded_is_of_one_pass(decoded: int, words: str) -> None:
    tiles = SimpleNamespace(
        **{"count": 1234, "columns": 512, "rows": 256, "passes": 2, "chunks": 40, "chunks_decoded": decoded},
        **{"whole_run_gflops": 1.234567, "peak_bytes": 3 * 2**20, "planned_bytes": 5 * 2**20, "limit_bytes": 7 * 2**20},
    )
    line, memory = (row.text for row in report_text._tile_rows(SimpleNamespace(tiles=tiles)))
    assert line.startswith("1,234 of 512×256, 2 passes, each piece of the input ")
    assert words in line
    assert line.endswith("the whole run 1.235 nominal GFLOPS")
    assert memory == "peak 3 MiB of the process, planned 5 MiB, limit 7 MiB"


def test_reports_from_before_bounds_were_derived_still_have_a_table() -> None:
    earlier = list(all_run_reports().values())
    assert earlier
    for report in map(as_report, earlier):
        assert any(row.text.startswith("right") for row in report_text.table(report))
        written, speed, verdict = report_text.summary(report)[:3]
        assert (written.label, speed.label, verdict.label, verdict.tone) == ("wrote", "speed", "right", "good")


def test_the_example_in_the_documents_is_what_a_committed_record_prints() -> None:
    rows = report_text.summary(run_report("example", "coast_sobel_sliding_s1"))
    shown = "\n".join(line for _, lines in broken(rows, None) for line in lines)
    assert shown in (PROJECT / "docs" / "usage.md").read_text(encoding="utf-8")


def test_text_for_xml_keeps_what_xml_allows_and_shows_the_rest() -> None:
    allowed = "a\t\n\x20\x7fé€\ud7ff\ue000\ufffd\U0001f600\U0010ffff"
    assert xml_text(allowed) == allowed
    ElementTree.fromstring(f"<x>{xml_text(allowed)}</x>")
    assert xml_text("\x00\x1b\ufffe\udcff") == r"\x00\x1b\ufffe\udcff"
