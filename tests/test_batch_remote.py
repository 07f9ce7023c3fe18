"""`edgeconv batch` from and to stores of objects: the same results as on this machine, and a ledger of segments."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from batch_folders import RULES, SUFFIX, contents, run_here, settings_for
from command import Finished
from command import edgeconv as run_command
from object_store import Store, serving
from problems import random_image
from selection import few_then_slow

from edgeconv.batch import ledger, plan, segments
from edgeconv.batch.engines import local_cluster
from edgeconv.batch.engines.local_cluster import Seat
from edgeconv.batch.pipeline import Batch
from edgeconv.batch.stores import is_remote, store_of
from edgeconv.errors import UnavailableError
from edgeconv.io.files import NameTakenError
from edgeconv.io.image import write_image

IN, OUT = "s3://bucket/photos", "s3://bucket/edges"


def edgeconv(*arguments: object) -> Finished:
    """The command as a new process would run it: fsspec keeps file systems and what it listed for the whole process."""
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    return run_command(*arguments)


@pytest.fixture
def store(photos: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A bucket that holds the photos, of which nothing is known: the one before may still answer where it is."""
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    with serving() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        for name, data in contents(photos).items():
            store.objects[f"bucket/photos/{name}"] = data
        yield store


@pytest.fixture
def memory() -> Iterator[str]:
    """An empty place in this process's memory."""
    files = fsspec.filesystem("memory")
    yield "memory://edges"
    files.rm("/", recursive=True)


def outputs(store: Store, place: str = OUT) -> dict[str, bytes]:
    """What the bucket holds below `place`, the ledger left out."""
    top = place.removeprefix("s3://") + "/"
    found = {name.removeprefix(top): data for name, data in store.objects.items() if name.startswith(top)}
    return {name: data for name, data in found.items() if not name.startswith(segments.SEGMENTS_NAME)}


@pytest.mark.parametrize(
    "engine", few_then_slow([[], ["--scheduler", "local", "--jobs", "2"]]), ids=["here", "cluster"]
)
def test_a_bucket_gets_the_very_bytes_that_a_folder_gets(photos: Path, store: Store, engine: list[str]) -> None:
    store.objects["bucket/photos/bad.png"] = b"not a picture"
    run_here([photos], photos.parent / "here", recursive=True)
    done = edgeconv("batch", IN, "-r", "-o", OUT, *RULES, *engine, "--json")
    assert (done.code, len(done.error_lines)) == (1, 1), done.err
    assert "s3://bucket/photos/bad.png: is not a picture" in done.err
    assert outputs(store) == contents(photos.parent / "here")
    again = json.loads(edgeconv("batch", IN, "-r", "-o", OUT, *RULES, "--resume", "--json").text)
    assert (again["done"], again["skipped"], again["failed"]) == (0, 3, 1)
    assert "3 of 3 outputs" in edgeconv("verify", OUT).text
    assert {method for method, _ in store.requests} <= {"GET", "HEAD", "PUT", "DELETE"}
    assert {path.partition("/")[0] for _, path in store.requests} == {"bucket"}
    assert all(path.startswith("bucket/edges/") for method, path in store.requests if method in ("PUT", "DELETE"))


def test_a_bucket_is_taken_down_into_a_folder_and_a_folder_up_into_a_bucket(photos: Path, store: Store) -> None:
    out = photos.parent / "down"
    assert edgeconv("batch", f"{IN}/a.png", f"{IN}/deep", "-o", out, *RULES, "--name", "{stem}{ext}").code == 2
    assert edgeconv("batch", f"{IN}/b.tiff", f"{IN}/deep", "-o", out, *RULES).code == 0
    assert set(contents(out)) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png"}
    assert edgeconv("batch", photos, "-r", "-o", OUT, *RULES).code == 0
    assert set(outputs(store)) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png", f"deep/a{SUFFIX}.png"}


def test_verify_names_what_somebody_changed_in_a_bucket(store: Store) -> None:
    assert edgeconv("batch", IN, "-r", "-o", OUT, *RULES).code == 0
    store.objects[f"bucket/edges/a{SUFFIX}.png"] += b"!"
    del store.objects[f"bucket/edges/b{SUFFIX}.png"]
    found = edgeconv("verify", OUT)
    assert found.code == 1
    assert set(found.text.splitlines()) >= {f"changed: a{SUFFIX}.png", f"missing: b{SUFFIX}.png"}
    assert edgeconv("verify", IN).code == 2
    refused = edgeconv("batch", IN, "-o", OUT, *RULES)
    assert refused.code == 1
    assert "--overwrite" in refused.err
    assert outputs(store)[f"a{SUFFIX}.png"].endswith(b"!")


def test_what_arrives_in_part_is_no_output(photos: Path, store: Store) -> None:
    store.cut_short = True
    done = edgeconv("batch", photos / "a.png", "-o", OUT, *RULES)
    assert done.code == 2  # the ledger fares no better
    assert "bytes arrived" in done.err
    assert not outputs(store)


def test_an_output_that_would_be_an_input_is_found_in_a_bucket_too(store: Store) -> None:
    before = dict(store.objects)
    done = edgeconv("batch", IN, "-o", IN, *RULES, "--name", "{stem}{ext}", "--overwrite")
    assert (done.code, len(done.error_lines)) == (2, 1)
    assert "one of the inputs" in done.err
    assert store.objects == before


def test_outputs_beside_their_inputs_are_not_filtered_again(store: Store) -> None:
    for counts in ((3, 0), (0, 3)):
        summary = json.loads(edgeconv("batch", IN, "-r", "-o", IN, *RULES, "--resume", "--json").text)
        assert (summary["done"], summary["skipped"], summary["earlier_outputs"]) == (*counts, counts[1])
    below = edgeconv("batch", "s3://bucket", "-r", "-o", IN, *RULES)
    assert (below.code, len(below.error_lines)) == (2, 1)
    assert "No picture was found" in below.err


@pytest.mark.parametrize(
    ("place", "code", "words"),
    [
        ("s3://bucket/missing", 2, ["s3://bucket/missing", "no such object"]),
        ("s3://bucket/photos/c.png", 1, ["c.png", "no such object"]),
        ("nosuch://bucket/a.png", 2, ["nosuch"]),
    ],
)
def test_bad_places_get_one_line(store: Store, place: str, code: int, words: list[str]) -> None:
    done = edgeconv("batch", place, "-o", OUT, *RULES)
    assert (done.code, len(done.error_lines)) == (code, 1), done.err
    for word in words:
        assert word in done.err
    assert not outputs(store)


def test_a_store_that_does_not_answer_is_a_failure_of_each_picture(photos: Path, store: Store) -> None:
    out = photos.parent / "out"
    listed = photos.parent / "list.txt"
    listed.write_text(f"{IN}/a.png\n{IN}/gone.png\n{photos / 'b.tiff'}\n", encoding="utf-8")
    store.objects["bucket/photos/gone.png"] = b""
    done = edgeconv("batch", "--files-from", listed, "-o", out, *RULES)
    assert (done.code, len(done.error_lines)) == (1, 1), done.err
    assert "0 bytes" in done.err
    assert set(contents(out)) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png"}


def test_segments_are_put_once_and_read_in_order(photos: Path, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MOST_ROWS", 2)
    run_here([photos], memory, recursive=True)
    place = ledger.place_of(memory)
    first = store_of(place).names(place)
    assert len(first) == 2
    before = segments.read_segments(place)
    write_image(random_image(8, 9, "uint8"), photos / "a.png")
    assert run_here([photos], memory, recursive=True, resume=True).done == 1
    assert store_of(place).names(place)[:2] == first
    assert segments.read_segments(place).startswith(before)
    rows = ledger.done_by_output(ledger.read_rows(memory))
    assert rows[f"a{SUFFIX}.png"].input_sha256 == ledger.sha256_of((photos / "a.png").read_bytes())
    assert {finding.state for finding in ledger.verify(memory)} == {"same"}


def test_rows_come_back_in_the_order_of_runs_and_segments(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past ten and a hundred of both, by whatever names a store has sorted them."""
    monkeypatch.setattr(segments, "MOST_ROWS", 1)
    place, written = ledger.place_of(memory), []
    for run in (2, 9, 10, 11, 99, 100, 1_000_000):
        with segments.SegmentLedger(place, run) as book:
            for number in range(12):
                written.append(f"{run} {number}")
                book.append(ledger.LedgerRow(written[-1], written[-1], 1, "x", "p", "o", 2, "y", "done", 0.1, None))
    assert [row.input for row in ledger.read_rows(memory)] == written


def test_segments_that_arrived_empty_or_in_part_cost_no_other_row(photos: Path, memory: str) -> None:
    run_here([photos], memory)
    place = ledger.place_of(memory)
    store_of(memory).write(f"{place}/0.jsonl", b"")
    store_of(memory).write(f"{place}/1.jsonl", b'{"input": "b", "inp')
    assert {finding.state for finding in ledger.verify(memory)} == {"same"}
    assert len(ledger.verify(memory)) == 2
    assert ledger.damaged_lines(memory) == [(place, 1)]


def test_an_object_that_appears_at_the_last_moment_is_not_replaced(store: Store, memory: str) -> None:
    for place in (OUT, memory):
        put = store_of(place).write_output
        put(place, "a.png", b"1", replace=False)
        with pytest.raises(NameTakenError):
            put(place, "a.png", b"2", replace=False)
        assert store_of(place).read(f"{place}/a.png") == b"1"
        put(place, "a.png", b"2", replace=True)
        assert store_of(place).read(f"{place}/a.png") == b"2"


def test_a_row_of_a_bucket_that_names_what_is_outside_is_foreign(photos: Path, memory: str) -> None:
    run_here([photos / "a.png"], memory)
    store_of(memory).write("memory://secret", b"secret")
    place = ledger.place_of(memory)
    (line,) = segments.read_segments(place).splitlines()
    row = json.loads(line) | {"output": "../secret", "output_sha256": ledger.sha256_of(b"secret")}
    store_of(memory).write(f"{place}/s.jsonl", json.dumps(row).encode())
    assert [finding.state for finding in ledger.verify(memory)] == ["same", "foreign"]


def test_a_store_with_real_folders_gets_those_that_it_needs(photos: Path) -> None:
    out = photos.parent / "made" / "edges"
    summary = run_here([photos], f"local://{out}", recursive=True)
    assert (summary.done, summary.failures) == (3, [])
    assert {path.name for path in out.iterdir()} == {f"a{SUFFIX}.png", f"b{SUFFIX}.png", "deep", "edgeconv-ledger"}


def test_memory_of_one_process_is_no_place_for_several(photos: Path, memory: str) -> None:
    with local_cluster.local_cluster([Seat(1)]) as engine, pytest.raises(UnavailableError, match="does not see"):
        Batch(plan.find_tasks([photos], False).tasks, settings_for(memory), engine).run()


def test_a_url_of_this_machine_is_a_path(photos: Path) -> None:
    out = photos.parent / "the edges"
    done = edgeconv("batch", photos.as_uri(), "-o", out.as_uri(), *RULES)
    assert done.code == 0, done.err
    assert set(contents(out)) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png"}
    assert (out / ledger.LEDGER_NAME).is_file()
    assert edgeconv("verify", out.as_uri()).code == 0


def test_what_is_remote_is_told_by_its_scheme() -> None:
    assert [is_remote(place) for place in ("s3://b/k", "memory://x", "C:/a", "C://a", "/a://b", "a:b", "-")] == [
        True,
        True,
        *[False] * 5,
    ]


def test_without_fsspec_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(UnavailableError, match=r"pip install '\.\[remote\]'"):
        store_of("s3://bucket/a").read("s3://bucket/a")
