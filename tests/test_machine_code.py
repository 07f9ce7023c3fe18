"""Machine code that one process leaves for the next: found again, and never taken where anything is amiss."""

from __future__ import annotations

import os
import shutil
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cpu_problems import RANDOM, Case
from meet import run_program
from problems import image_of

from edgeconv.core.lowering import lower
from edgeconv.hardware import cache
from edgeconv.hardware.cpu import jit, mapped, processor
from edgeconv.methods import require
from edgeconv.methods.cpu.layout import make_layout
from edgeconv.methods.options import Options

KEY, PAYLOAD = "code\na subject", bytes(range(200))
DOES = """
import sys, numpy, edgeconv
image = numpy.arange(3 * 40 * 50, dtype=numpy.uint8).reshape(40, 50, 3)
out = edgeconv.convolve(image, "sobel", method="sliding", device="cpu", channels="each")
print("llvmlite" in sys.modules, hash(out.tobytes()), edgeconv.plan(image.shape, "uint8").explain() != "")
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where entries are."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def entry(place: Path) -> Path:
    """The one file that is there."""
    (found,) = place.iterdir()
    return found


# --- entries ----------------------------------------------------------------------------------------------------------


def test_what_was_written_is_read_by_its_key_alone(place: Path) -> None:
    assert cache.read(KEY) is None
    cache.write(KEY, PAYLOAD)
    assert (cache.read(KEY), cache.read(KEY + "!")) == (PAYLOAD, None)
    assert cache.held() == (1, entry(place).stat().st_size)
    shutil.copy(entry(place), place / cache._name(KEY + "!"))
    assert cache.read(KEY + "!") is None
    assert (place.stat().st_mode & 0o777, entry_mode(place)) == (0o700, {0o600})


def entry_mode(place: Path) -> set[int]:
    """The permissions of all entries."""
    return {each.stat().st_mode & 0o777 for each in place.iterdir()}


def test_an_entry_that_is_cut_or_changed_anywhere_is_none(place: Path) -> None:
    cache.write(KEY, PAYLOAD)
    whole = entry(place).read_bytes()
    for at in range(len(whole)):
        entry(place).write_bytes(whole[:at])
        assert cache.read(KEY) is None, f"cut at {at}"
        entry(place).write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        assert cache.read(KEY) is None, f"changed at {at}"
    entry(place).write_bytes(whole + b"\0")
    assert cache.read(KEY) is None
    cache.write(KEY, PAYLOAD)
    assert cache.read(KEY) == PAYLOAD


def open_to_others(place: Path) -> None:
    place.chmod(0o750)


def entry_open_to_others(place: Path) -> None:
    entry(place).chmod(0o644)


def link_to_a_folder(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.symlink_to(place.with_name("elsewhere"))


def link_to_an_entry(place: Path) -> None:
    there = entry(place)
    there.rename(place.with_name("elsewhere"))
    there.symlink_to(place.with_name("elsewhere"))


def pipe(place: Path) -> None:
    there = entry(place)
    there.unlink()
    os.mkfifo(there, 0o600)


def file_in_its_place(place: Path) -> None:
    shutil.rmtree(place)
    place.write_text("a file")


@pytest.mark.parametrize(
    "harm",
    [open_to_others, entry_open_to_others, link_to_a_folder, link_to_an_entry, pipe, file_in_its_place],
    ids=lambda harm: harm.__name__,
)
@pytest.mark.skipif(os.name == "nt", reason="permissions, links and pipes are those of POSIX")
def test_what_somebody_else_could_have_made_is_not_taken(place: Path, harm: Callable[[Path], None]) -> None:
    cache.write(KEY, PAYLOAD)
    harm(place)
    assert cache.read(KEY) is None
    cache.write(KEY + "!", PAYLOAD)


def test_another_user_s_folder_is_not_taken(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write(KEY, PAYLOAD)
    monkeypatch.setattr(os, "geteuid", lambda: place.stat().st_uid + 1)
    assert cache.read(KEY) is None


@pytest.mark.parametrize("word", cache.OFF)
def test_it_is_turned_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, word)
    cache.write(KEY, PAYLOAD)
    assert (cache.folder(), cache.read(KEY), cache.held()) == (None, None, (0, 0))


def test_a_folder_may_be_named_from_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(cache.VARIABLE, "kept/here")
    cache.write(KEY, PAYLOAD)
    assert (cache.read(KEY), len(list((tmp_path / "kept" / "here").iterdir()))) == (PAYLOAD, 1)
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", "kept")
    monkeypatch.setenv("LOCALAPPDATA", "kept")
    monkeypatch.setenv("HOME", "kept")
    assert cache.folder() is None


def test_a_writer_that_fails_or_is_stopped_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (OSError(28, "No space left on device"), KeyboardInterrupt()):

        def fails(*_: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr(os, "replace", fails)
        try:
            cache.write(KEY, PAYLOAD)
        except KeyboardInterrupt:
            assert isinstance(error, KeyboardInterrupt)
        assert list(place.iterdir()) == []


def test_the_oldest_go_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(PAYLOAD) + len(cache.HEADER) + cache.DIGEST_BYTES
    monkeypatch.setattr(cache, "MAX_BYTES", 3 * size)
    for number in range(5):
        cache.write(str(number), PAYLOAD)
        os.utime(place / cache._name(str(number)), (number, number))
    assert [cache.read(str(number)) is not None for number in range(5)] == [False, False, True, True, True]


def test_several_write_at_once() -> None:
    writers = [threading.Thread(target=lambda: [cache.write(KEY, PAYLOAD) for _ in range(30)]) for _ in range(4)]
    for writer in writers:
        writer.start()
    found = {cache.read(KEY) for _ in range(100)}
    for writer in writers:
        writer.join()
    assert found <= {None, PAYLOAD}
    assert cache.read(KEY) == PAYLOAD


# --- code -------------------------------------------------------------------------------------------------------------


def test_a_second_process_compiles_nothing_and_gives_the_same_bytes(place: Path) -> None:
    first, second = (run_program(DOES, EDGECONV_CACHE=str(place), PYTHONHASHSEED="0") for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout.startswith("True ")
    assert second.stdout == first.stdout.replace("True ", "False ", 1)
    for damaged in place.iterdir():
        damaged.write_bytes(damaged.read_bytes()[:-1])
    assert run_program(DOES, EDGECONV_CACHE=str(place), PYTHONHASHSEED="0").stdout == first.stdout
    assert run_program(DOES, EDGECONV_CACHE="off", PYTHONHASHSEED="0").stdout == first.stdout


def keys_of(monkeypatch: pytest.MonkeyPatch, case: Case) -> list[str]:
    """What a plan looks for in the cache."""
    asked: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(cache, "read", asked.append)
        jit.compiled.cache_clear()
        require("sliding", "cpu").prepare(case.problem(), Options(threads=1))
        jit.compiled.cache_clear()
    return [key for key in asked if key.startswith("code")]


def test_all_that_decides_the_code_decides_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("sobel", "each", "uint8", "abs")
    (key,) = keys_of(monkeypatch, case)
    assert keys_of(monkeypatch, case) == [key]
    other = Case("sobel", "each", "uint8", "clip")
    here = jit.processor()
    lesser = processor.Processor(here.triple, "x86-64", "-avx", 16, has_half=False)
    sources = tmp_path / "edgeconv"
    shutil.copytree(Path(jit.__file__).parents[2], sources, ignore=shutil.ignore_patterns("*.cu", "__pycache__"))
    different = [keys_of(monkeypatch, other)]
    for name, value in (("processor", lambda: lesser), ("_library", lambda: b"another LLVM")):
        with monkeypatch.context() as patch:
            patch.setattr(jit, name, value)
            jit._origin.cache_clear()
            different.append(keys_of(patch, case))
    for room in jit.WRITERS:
        path = min((sources / room).glob("[a-z]*.py"))
        was = path.read_text(encoding="utf-8")
        with monkeypatch.context() as patch:
            patch.setattr(jit, "__file__", str(sources / "hardware" / "cpu" / "jit.py"))
            jit._origin.cache_clear()
            assert keys_of(patch, case) == [key]
            path.write_text(was + "# changed\n", encoding="utf-8")
            jit._origin.cache_clear()
            different.append(keys_of(patch, case))
        path.write_text(was, encoding="utf-8")
    jit._origin.cache_clear()
    assert len({key, *(found for (found,) in different)}) == 1 + len(different)


def test_subjects_that_differ_have_texts_that_differ() -> None:
    cases = [
        Case(name, channels, dtype, "raw", stride=stride)
        for name in ("sobel", "kirsch", "laplacian8", "emboss", RANDOM)
        for channels in ("mix", "each", "luma")
        for dtype in ("uint8", "uint16", "float32")
        for stride in (1, 2)
    ]
    layouts = {
        make_layout(lower(case.problem()), jit.processor(), 1000, columns=False, streaming=streaming, fetching=fetching)
        for case in cases
        for streaming, fetching in ((False, False), (False, True), (True, True))
    }
    assert len(layouts) == len(set(map(repr, layouts))) > len(cases)
    assert not any("..." in repr(each) for each in layouts)


@pytest.mark.parametrize("channels", ["mix", "each"])
def test_where_memory_may_not_become_code_llvm_links_the_same(channels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Case("sobel", channels, "uint8", "abs", shape=(31, 45)).problem()
    outputs = []
    for error in (None, OSError, AttributeError, struct.error):

        def fails(data: bytes, error: type[Exception] | None = error) -> mapped.MappedObject:
            if error is not None:
                raise error
            return mapped.MappedObject(data)

        monkeypatch.setattr(jit, "MappedObject", fails)
        jit.compiled.cache_clear()
        out = np.zeros(problem.output_shape, problem.output_dtype)
        require("sliding", "cpu").prepare(problem, Options(threads=1)).run(image_of(problem), out)
        outputs.append(out)
    jit.compiled.cache_clear()
    for out in outputs[1:]:
        np.testing.assert_array_equal(out, outputs[0])
