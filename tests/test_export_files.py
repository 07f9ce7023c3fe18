"""Exports: what each file holds, from a record with made-up times, and what the command replaces."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from pathlib import Path

import pytest
from bench_records import BrokenPeer, Peer, TimedMethod, WrongMethod, measured_once
from command import PROJECT, edgeconv, shell

from edgeconv.bench.ab import AbRecord
from edgeconv.bench.record import BenchRecord
from edgeconv.bench.summary import groups, winners
from edgeconv.core.records import as_type, to_json
from edgeconv.errors import UsageError
from edgeconv.export import EXPORTERS, find_exporter, parse_formats, terminal
from edgeconv.export.console_summary import case_line
from edgeconv.export.document import documents
from edgeconv.export.schemas import read
from edgeconv.export.tables import leads_by_peer

NASTY = "<script>alert('x')</script> & | pipe"


def made() -> BenchRecord:
    """Four candidates with each result, 8 and 16; the peer is slower, and something nasty stands where a text may."""
    peer, broken = Peer("peer", [4e-3]), BrokenPeer(NASTY, [])
    found = measured_once(TimedMethod("honest", [2e-3]), WrongMethod("hasty", [1e-6]), peer, broken)
    found.warnings.append(NASTY)
    return found


@pytest.fixture
def result() -> BenchRecord:
    return made()


@pytest.fixture(scope="module")
def page() -> str:
    """The page of that record."""
    return text_of(made(), "html")


def text_of(result: BenchRecord, name: str) -> str:
    (content,) = find_exporter(name)([result]).values()
    return content.decode()


def test_the_lead_is_over_the_fastest_peer_and_all_stand_in_a_table_the_least_first(result) -> None:
    for row in [row for row in result.rows if row.candidate == "peer"]:
        twin = copy.deepcopy(row)
        twin.candidate = "triton"
        for series in twin.timings.values():
            series.samples_seconds = [sample * 0.75 for sample in series.samples_seconds]
            series.median_seconds *= 0.75
        result.rows.append(twin)
    (group,) = groups(result)
    assert {(winner.peer.candidate, winner.ratio.ratio) for winner in winners(group)} == {("triton", 1.5)}
    rows = [row for row in group.rows if row.case.size == 8]
    assert ", 1.5 × [1.5, 1.5] faster than triton" in case_line(rows)
    nearest, other = leads_by_peer(result).rows
    assert nearest[0].startswith("1.5 ")
    assert nearest[2:] == ("triton", "CPU", "mix", "2", "1.50 ×")
    assert (other[2], other[-1]) == ("peer", "2.00 ×")
    for row in result.rows:  # lesser arithmetic does not win
        if row.candidate == "honest":
            row.options = replace(row.options, math="tf32")
    assert winners(groups(result)[0]) == []
    assert leads_by_peer(result).rows == ()


def test_formats_are_named_or_all_of_them() -> None:
    assert parse_formats("json, csv") == ["csv"]
    assert parse_formats("all") == [*EXPORTERS]
    with pytest.raises(UsageError, match="'pdf' is not one of json, csv"):
        parse_formats("csv,pdf")


# --- the page and the command -----------------------------------------------------------------------------------


def test_the_page_asks_for_nothing_and_says_everything(page: str) -> None:
    assert NASTY not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    for used in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', page):
        assert "".join(used) in identifiers


def test_the_report_command_makes_a_page_from_records(result, tmp_path) -> None:
    (tmp_path / "a.json").write_bytes(to_json(result))
    done = edgeconv("report", "a.json", "a.json", "--html", "r.html", "--csv", "r.csv", "--plots", "p", cwd=tmp_path)
    assert done.code == 0, done.err
    assert (tmp_path / "r.html").read_text(encoding="utf-8").count("<figure><h3>Nominal GFLOPS") == 2
    assert list((tmp_path / "p").glob("bench_1_gflops*.svg"))
    printed = edgeconv("report", "a.json", cwd=tmp_path)
    assert printed.text.startswith("# edgeconv bench 'test'")


@pytest.mark.parametrize(("output", "name"), [("--html", "./keep.json"), ("--csv", "link.json")])
def test_a_report_never_takes_the_place_of_its_record(result, tmp_path, output: str, name: str) -> None:
    kept = to_json(result)
    (tmp_path / "keep.json").write_bytes(kept)
    (tmp_path / "link.json").symlink_to("keep.json")
    done = edgeconv("report", "keep.json", output, name, "--overwrite", cwd=tmp_path)
    assert (done.code, len(done.error_lines)) == (2, 1)
    assert "is the input itself" in done.err
    assert (tmp_path / "keep.json").read_bytes() == kept


def test_what_is_there_is_replaced_only_when_asked_and_then_all_of_it(result, tmp_path) -> None:
    (tmp_path / "a.json").write_bytes(to_json(result))
    plot = tmp_path / "p" / "bench_gflops_1.svg"
    for path, option, says in (
        (tmp_path / "r.md", ("--markdown", "r.md"), "Output 'r.md' exists: pass --overwrite to replace it"),
        (plot, ("--plots", "p"), "--overwrite"),
    ):
        words = ("report", "a.json", "--csv", "r.csv", *option)
        path.parent.mkdir(exist_ok=True)
        path.write_text("precious", encoding="utf-8")
        refused = edgeconv(*words, cwd=tmp_path)
        assert (refused.code, len(refused.error_lines)) == (2, 1)
        assert says in refused.err
        assert not (tmp_path / "r.csv").exists()
        assert path.read_text(encoding="utf-8") == "precious"
        done = edgeconv(*words, "--overwrite", cwd=tmp_path)
        named = {tmp_path / line for line in done.text.splitlines()}
        assert named == {path for path in (path, *tmp_path.rglob("r.csv"), *plot.parent.glob("*"))}
        assert path.read_text(encoding="utf-8") != "precious"
        (tmp_path / "r.csv").unlink()


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="this system has no /dev/stdout")
def test_a_pipe_is_written_to_and_needs_no_leave_to_be_replaced(result, tmp_path) -> None:
    (tmp_path / "a.json").write_bytes(to_json(result))
    done = shell('"$0" -m edgeconv report a.json --csv /dev/stdout | cat', tmp_path)
    assert done.text.startswith("created_utc,"), done.err


# --- a terminal, and `bench ab` ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_nothing_breaks_inside_a_word_and_no_column_goes_silently(columns: int) -> None:
    (table, *_) = next(documents([read(PROJECT / "docs/results/bench/h200/gpu.json.xz")])).tables
    text = terminal.draw(table, columns, colours=False)
    assert max(map(len, text.splitlines())) <= columns
    found = re.search(r"No room for: (.*)\.", text, re.DOTALL)
    named = found[1].replace("\n", " ").split(", ") if found else []
    shown = len(table.header) - len(named)
    assert named == list(table.header[shown:])
    for words in (*table.header[:shown], *(cell for row in table.rows for cell in row[:shown])):
        assert set(words.split()) <= set(text.split())


def test_a_record_of_bench_ab_is_shown_again(tmp_path: Path) -> None:
    row = {"title": "sliding", "a_seconds": [[1e-3] * 4] * 5, "b_seconds": [[2e-3] * 4] * 5}
    head = {"schema_version": 1, "edgeconv_version": "0", "created_utc": "2001-02-03T04:05:06+00:00", "kind": "ab"}
    made = as_type({**head, "a": "old", "b": "new", "machine": {}, "planted": 0.0, "rows": [row]}, AbRecord)
    (tmp_path / "ab.json").write_bytes(to_json(made))
    done = edgeconv("report", "ab.json", "--html", "ab.html", "--csv", "ab.csv", cwd=tmp_path)
    assert done.code == 0, done.err
    shown = "1 row: 1 slower; geometric mean of B / A 2 [2, 2]"
    assert shown in (tmp_path / "ab.html").read_text(encoding="utf-8")
    printed = edgeconv("report", "ab.json", cwd=tmp_path).text
    assert shown in printed
    assert "| slower | sliding | 1 ms | 2 ms | 2 [2, 2] | 5 |" in printed
