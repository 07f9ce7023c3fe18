"""`edgeconv batch` from and to stores of objects: the same results as on this machine, and a ledger that stays here."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from batch_folders import RULES, SUFFIX, a_row, contents, run_here
from command import Finished
from command import edgeconv as run_command
from object_store import Store, serving
from selection import few_then_slow

from edgeconv.batch import ledger
from edgeconv.batch.engines.cluster import local_cluster
from edgeconv.batch.stores import is_remote, store_of
from edgeconv.batch.verify import verify
from edgeconv.errors import EdgeconvError, ImageReadError, UnavailableError
from edgeconv.io.atomic import NameTakenError

IN, OUT = "s3://bucket/photos", "s3://bucket/edges"


def edgeconv(*arguments: object) -> Finished:
    """The command as a new process would run it: fsspec keeps file systems and what it listed for the whole process."""
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    return run_command(*arguments)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this user's data is, the ledgers of URLs among them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


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
    """What the bucket holds below `place`."""
    top = place.removeprefix("s3://") + "/"
    return {name.removeprefix(top): data for name, data in store.objects.items() if name.startswith(top)}


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


def test_what_somebody_changed_in_a_bucket_is_named_and_left(store: Store) -> None:
    assert edgeconv("batch", IN, "-r", "-o", OUT, *RULES).code == 0
    store.objects[f"bucket/edges/a{SUFFIX}.png"] += b"!"
    del store.objects[f"bucket/edges/b{SUFFIX}.png"]
    found = edgeconv("verify", OUT)
    assert found.code == 1
    assert set(found.text.splitlines()) >= {f"changed: a{SUFFIX}.png", f"missing: b{SUFFIX}.png"}
    refused = edgeconv("batch", IN, "-o", OUT, *RULES)
    assert refused.code == 1
    assert "--overwrite" in refused.err
    assert outputs(store)[f"a{SUFFIX}.png"].endswith(b"!")


def test_what_arrives_in_part_is_no_output(photos: Path, store: Store) -> None:
    store.cut_short = True
    done = edgeconv("batch", photos / "a.png", "-o", OUT, *RULES)
    assert done.code == 1
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


def test_the_ledger_of_a_bucket_is_here_and_its_place_is_said(store: Store, state: Path, tmp_path: Path) -> None:
    said = edgeconv("batch", IN, "-o", OUT, *RULES).text.splitlines()[-1].split()
    place = ledger.ledger_folder(OUT)
    assert said == ["ledger", f"{place}/{ledger.LEDGER_NAME}"]
    assert Path(place).is_relative_to(state)
    assert len({place, ledger.ledger_folder(OUT + "/"), ledger.ledger_folder("s3://bucket/other")}) == 2
    assert not any("ledger" in name for name in store.objects)
    own = ("--ledger", tmp_path / "own")
    assert edgeconv("verify", OUT, *own).code == 2
    again = edgeconv("batch", IN, "-o", OUT, *RULES, *own, "--resume", "--json")
    assert (again.code, json.loads(again.text)["done"]) == (0, 2), "the outputs are found in place, byte for byte"
    assert "2 of 2 outputs" in edgeconv("verify", OUT, *own).text


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
    fsspec.filesystem("memory").pipe_file("/secret", b"secret")
    with (Path(ledger.ledger_folder(memory)) / ledger.LEDGER_NAME).open("ab") as book:
        book.write(a_row("b", ledger.sha256_of(b"secret"), output="../secret").to_line(2))
    assert [finding.state for finding in verify(memory).findings] == ["same", "foreign"]


def test_a_store_with_real_folders_gets_those_that_it_needs(photos: Path) -> None:
    out = photos.parent / "made" / "edges"
    summary = run_here([photos], f"local://{out}", recursive=True)
    assert (summary.done, summary.failures) == (3, [])
    assert {path.name for path in out.iterdir()} == {f"a{SUFFIX}.png", f"b{SUFFIX}.png", "deep"}


def test_memory_of_one_process_is_no_place_for_several(photos: Path, memory: str) -> None:
    with local_cluster([{"nthreads": 1}], 60.0, print) as engine, pytest.raises(UnavailableError, match="does not see"):
        run_here([photos], memory, engine=engine)


def test_a_url_of_this_machine_is_a_path(photos: Path) -> None:
    remote = [place for place in ("s3://b/k", "memory://x", "C:/a", "C://a", "/a://b", "a:b", "-") if is_remote(place)]
    assert remote == ["s3://b/k", "memory://x"]
    out = photos.parent / "the edges"
    done = edgeconv("batch", photos.as_uri(), "-o", out.as_uri(), *RULES)
    assert done.code == 0, done.err
    assert set(contents(out)) == {f"a{SUFFIX}.png", f"b{SUFFIX}.png"}
    assert (out / ledger.LEDGER_NAME).is_file()
    assert edgeconv("verify", out.as_uri()).code == 0


def test_without_fsspec_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(UnavailableError, match=r"pip install '\.\[remote\]'"):
        store_of("s3://bucket/a").read("s3://bucket/a")


def test_an_object_is_called_empty_only_where_it_is(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some stores refuse a range of an empty object, and any store may refuse another one."""
    files = fsspec.filesystem("memory")
    files.pipe("/edges/empty.png", b"")
    files.pipe("/edges/full.png", b"x")

    def refused(*words: object, **more: object) -> bytes:
        raise ValueError("no such range")

    monkeypatch.setattr(type(files), "cat_file", refused)
    with pytest.raises(ImageReadError, match="the object is empty"):
        store_of(memory).read(f"{memory}/empty.png")
    with pytest.raises(EdgeconvError, match="no such range"):
        store_of(memory).read(f"{memory}/full.png")
