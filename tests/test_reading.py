"""What is read of a file, a pipe or a device, what decoders say meanwhile, and what is refused on the way."""

from __future__ import annotations

import ctypes
import io
import json
import os
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from batch_folders import run_here
from bombs import Endless
from command import edgeconv, shell
from damaged import AVIF, BMP, GIF, JPEG, JPEG_2000, MOVING, PNG, TIFF, WEBP
from meet import join, outcome
from picture_files import Piped, exif, noisy, png, png_chunk, pnm, saved
from PIL import Image
from selection import few_then_slow

from edgeconv.batch import ledger
from edgeconv.batch.stores import store_of
from edgeconv.batch.summary import SAID
from edgeconv.bench.grid import chosen_grid, read_toml
from edgeconv.errors import ImageReadError, MemoryLimitError, UsageError
from edgeconv.export.schemas import read as read_record
from edgeconv.io import decoding
from edgeconv.io.files import SMALL_BYTES, read_bytes
from edgeconv.io.formats import FORMATS, messages
from edgeconv.io.formats import png as png_format
from edgeconv.io.formats import tiff as tiff_format
from edgeconv.io.formats.base import BadPicture
from edgeconv.io.kernel_file import read_kernel
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import SAID_NOTE, STEP_BYTES, decode_image, read_image
from edgeconv.options import GridAxes


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


WHOLE = {
    "PNG": PNG,
    "JPEG": JPEG,
    "TIFF": TIFF,
    "WebP": WEBP,
    "BMP": BMP,
    "NPY": npy(noisy()),
    "GIF": GIF,
    "PNM": pnm(noisy()),
    "JPEG 2000": JPEG_2000,
    "AVIF": AVIF,
}
OTHERS = {
    "moving GIF": MOVING,
    "text PNM": pnm(noisy(), text=True),
    "text PBM": pnm(noisy()[:, :, :1] // 128, largest=1, text=True),
    "AVIF with EXIF": saved(noisy(), "AVIF", exif=exif(6)),
}
"""Files of the same formats that are read by paths of their own."""

ENDS: dict[str, bytes] = {
    "zeros": bytes(2**16),
    "ones": b"\xff" * 2**16,
    "noise": random.Random(1).randbytes(2**16),
    "stuffed": b"\xff\0" * 2**15,
}
"""What may follow a picture."""


def complaining() -> bytes:
    """A JPEG with an end marker in its data: libjpeg says so and fills the rest with grey."""
    data = bytearray(saved(noisy(150, 200), "JPEG"))
    middle = len(data) // 2
    data[middle : middle + 2] = b"\xff\xd9"
    return bytes(data) + b"\xff\xd9"


# --- bounds -------------------------------------------------------------------------------------------------------


def test_every_format_has_a_whole_file_here() -> None:
    assert WHOLE.keys() == {entry.name for entry in FORMATS}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", WHOLE | OTHERS)
def test_what_follows_a_picture_in_its_file_or_stream_changes_nothing(
    name: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (WHOLE | OTHERS)[name]
    monkeypatch.setattr(sys, "stdin", Piped(io.BytesIO(data + ENDS[end])))
    np.testing.assert_array_equal(read_image("-").pixels, decode_image(data, name).pixels)


def test_an_endless_stream_is_read_to_the_limit_or_no_further_than_its_first_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for begin, said, most in (
        (PNG, "it has not ended, above the limit of 8,388,608 bytes: raise --max-bytes", 2**23 + STEP_BYTES),
        (b"", "is not a picture that edgeconv reads", 64),
    ):
        stream = Endless(begin, bytes)
        monkeypatch.setattr(sys, "stdin", Piped(stream))
        with pytest.raises(ImageReadError, match=said):
            read_image("-", ReadRules(max_bytes=2**23))
        assert stream.given <= most


@pytest.mark.parametrize("device", few_then_slow(["/dev/zero", "/dev/urandom"]))
def test_a_device(device: str, tmp_path: Path) -> None:
    for arguments in ((device,), ("-",)):
        line = f'ulimit -v 4000000; exec "$0" -m edgeconv run {arguments[0]} --method reference < {device}'
        done = shell(line, cwd=tmp_path)
        assert (done.code, len(done.error_lines)) == (2, 1)
        assert "is not a picture that edgeconv reads" in done.err


def test_a_named_pipe_and_a_device_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb") as stream:
            stream.write(PNG)

    writer = threading.Thread(target=write)
    writer.start()
    np.testing.assert_array_equal(read_image(pipe).pixels, noisy())
    join(writer)
    with pytest.raises(ImageReadError, match=r"/dev/null: the file is empty"):
        read_image("/dev/null")


def test_a_file_above_the_limit_of_bytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    path.write_bytes(PNG)
    os.truncate(path, 2**42)  # a hole: no bytes on the disk
    with pytest.raises(ImageReadError, match=r"it has 4,398,046,511,104 bytes, above the limit of .*: raise"):
        read_image(path)
    path.write_bytes(PNG)
    assert read_image(path, ReadRules(max_bytes=len(PNG))).pixels.shape == noisy().shape
    with pytest.raises(ImageReadError, match="raise --max-bytes"):
        read_image(path, ReadRules(max_bytes=len(PNG) - 1))


def test_a_stream_above_the_limit_of_bytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, data in WHOLE.items():
        monkeypatch.setattr(sys, "stdin", Piped(io.BytesIO(data)))
        with pytest.raises(ImageReadError, match="raise --max-bytes if it really is that large"):
            read_image("-", ReadRules(max_bytes=len(data) - 200))
        monkeypatch.setattr(sys, "stdin", Piped(io.BytesIO(data)))
        assert read_image("-", ReadRules(max_bytes=len(data))).pixels.size, name


@pytest.mark.parametrize(
    "command",
    [("run", "a.png"), ("resize", "a.png", "--sizes", "8"), ("diff", "a.png", "a.png"), ("compare", "a.png")],
    ids=lambda command: command[0],
)
def test_every_command_that_reads_a_picture_takes_the_rules(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    for words in (("--max-bytes", "1K"), ("--max-pixels", 40 * 60 - 1)):
        refused = edgeconv(*command, *words, cwd=tmp_path)
        assert (refused.code, len(refused.error_lines)) == (2, 1)
        assert f"raise {words[0]} if it really is that large" in refused.err


def test_an_object_of_a_store_is_read_up_to_the_limit(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://reading/a.png", "wb") as stream:
        stream.write(PNG)
    store = store_of("memory://reading/a.png")
    assert store.read("memory://reading/a.png") == PNG
    assert store.read("memory://reading/a.png", ReadRules(max_bytes=len(PNG))) == PNG
    with pytest.raises(ImageReadError, match="raise --max-bytes"):
        store.read("memory://reading/a.png", ReadRules(max_bytes=len(PNG) - 1))


def test_a_list_or_another_file_is_read_up_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(b"12345")
    assert read_bytes(path, 5) == b"12345"
    with pytest.raises(ImageReadError, match=r"list\.txt: has more than 4 bytes"):
        read_bytes(path, 4)
    stream = Endless(b"", bytes)
    monkeypatch.setattr(sys, "stdin", Piped(stream))
    with pytest.raises(ImageReadError, match="Standard input: has more than 1,000 bytes"):
        read_bytes("-", 1000)
    assert stream.given == 1001
    path.write_bytes(b"")
    with pytest.raises(ImageReadError, match="is empty"):
        read_bytes(path, 5)


# --- pieces and limits of the formats, in this process (test_reader_bombs.py has them under limits of memory) ------


def test_a_png_of_too_many_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png_format, "MOST_CHUNKS", 2)
    with pytest.raises(ImageReadError, match="more than 2 chunks"):
        decode_image(PNG, "odd")
    with pytest.raises(BadPicture, match="more than 2 chunks"):
        png_format.check_end(io.BytesIO(PNG))


# --- memory that is not there -------------------------------------------------------------------------------------


def exhausted(*_: Any, **__: Any) -> Any:
    raise MemoryError


def test_no_memory_for_the_walk_through_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    for target, name in ((tiff_format.np, "frombuffer"), (tiff_format, "picture_directory")):
        with monkeypatch.context() as patched:
            patched.setattr(target, name, exhausted)
            with pytest.raises(MemoryLimitError, match=r"a\.tif: not enough memory to parse [0-9,]+ bytes"):
                decode_image(TIFF, "a.tif")


def test_no_memory_for_the_bytes_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Exhausted(Endless):
        def read(self, size: int = -1) -> bytes:
            if self.given:
                raise MemoryError
            return super().read(size)

    monkeypatch.setattr(sys, "stdin", Piped(Exhausted(PNG, bytes)))
    with pytest.raises(MemoryLimitError, match="standard input: not enough memory to read it"):
        read_image("-")


@pytest.mark.parametrize("name", [*WHOLE, "CMYK", "TIFF deflate"])
def test_no_memory_for_pixels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {
        "CMYK": saved(noisy(), "JPEG", mode="CMYK"),
        "TIFF deflate": saved(noisy(), "TIFF", compression="tiff_deflate"),
    }
    monkeypatch.setattr(decoding, "_decode", exhausted)
    with pytest.raises(MemoryLimitError, match=r"60×40 pixels \(7,200 bytes decoded\)"):
        decode_image((WHOLE | others)[name], name)


# --- colours ------------------------------------------------------------------------------------------------------


def cmyk_samples() -> np.ndarray:
    """Blocks of 8 × 8 of one colour each, which JPEG keeps nearly as they are."""
    levels = np.random.default_rng(7).integers(0, 256, (12, 16, 4), np.uint8)
    return levels.repeat(8, axis=0).repeat(8, axis=1)


def test_cmyk_becomes_rgb_by_the_formula_and_as_pillow_does_it() -> None:
    stream = io.BytesIO()
    Image.fromarray(cmyk_samples(), "CMYK").save(stream, "JPEG", quality=100, subsampling=0)
    read = decode_image(stream.getvalue(), "cmyk.jpg")
    stored = Image.open(io.BytesIO(stream.getvalue()))
    np.testing.assert_array_equal(read.pixels, np.asarray(stored.convert("RGB")))
    c_m_y, k = np.asarray(stored).astype(np.float64)[:, :, :3], np.asarray(stored).astype(np.float64)[:, :, 3:]
    np.testing.assert_array_equal(read.pixels, np.rint(255 * (1 - c_m_y / 255) * (1 - k / 255)).astype(np.uint8))
    assert read.notes == ("CMYK converted to RGB",)
    upright, turned = (
        decode_image(saved(noisy(16, 24), "JPEG", mode="CMYK", exif=exif(n)), "a").pixels for n in (1, 6)
    )
    np.testing.assert_array_equal(turned, upright.swapaxes(0, 1)[:, ::-1])


# --- what decoders say --------------------------------------------------------------------------------------------


def fax() -> bytes:
    """A fax TIFF with a changed byte, about which libtiff has a line for nearly every row."""
    data = bytearray(saved(noisy(150, 200), "TIFF", mode="1", compression="group4"))
    data[1000] ^= 0x55
    return bytes(data)


SAYING = {
    "JPEG": (complaining, "Corrupt JPEG data: premature end of data segment"),
    "TIFF": (fax, "Bad code word"),
    "PNG": (lambda: png(noisy(), extra=png_chunk(b"iCCP", b"x\0\0abc")), "libpng warning: iCCP: too short"),
}

heard = pytest.mark.skipif(
    messages._CStream.make() is None, reason="the C library here lets nobody set its standard error"
)


@heard
@pytest.mark.parametrize("name", SAYING)
def test_what_a_decoder_says_is_a_note_and_under_strict_an_error(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    make, words = SAYING[name]
    (note,) = (note for note in decode_image(make(), "odd").notes if note.startswith(SAID_NOTE))
    assert words in note
    assert len(note) < 600
    assert note.endswith(" more") == (name == "TIFF")  # a line for nearly every row, of which three are shown
    with pytest.raises(
        ImageReadError, match=rf"odd: {name}: its decoder warns \(.*{words.split(':')[0]}.*leave --strict"
    ):
        decode_image(make(), "odd", ReadRules(strict=True))
    assert capfd.readouterr() == ("", "")


@heard
def test_words_stay_with_their_picture_in_any_number_of_threads() -> None:
    files = [PNG, *(make() for make, _ in SAYING.values()), JPEG, WEBP]
    alone = [decode_image(data, "x").notes for data in files]
    turns = [random.Random(3).randrange(len(files)) for _ in range(300)]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda turn: decode_image(files[turn], "x").notes, turns))
    assert together == [alone[turn] for turn in turns]


def test_a_forked_process_waits_for_no_thread_of_its_parent() -> None:
    """Those that were decoding do not exist there."""
    listener = messages.DecoderMessages()
    listener._decoding.add(messages.Turn())
    listener._alone_or_about_to_be = 1
    listener.forget()  # what a fork does in the child

    def decode() -> bool:
        with listener.turn(alone=True) as turn:
            return turn.was_alone

    assert outcome(decode)


@heard
def test_what_c_code_prints_before_and_behind_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """To the stream that it began with: NVRTC remembers it, and would close another one at the end."""
    library = ctypes.CDLL(None)
    stream = ctypes.c_void_p.in_dll(library, "stderr")
    before = stream.value
    for word in (b"before\n", b"between\n", b"behind\n"):
        library.fputs(word, stream)
        library.fflush(stream)
        assert decode_image(complaining(), "x").notes[-1].startswith(SAID_NOTE)
    assert (stream.value, capfd.readouterr().err) == (before, "before\nbetween\nbehind\n")


@heard
def test_the_report_and_the_ledger_tell_what_was_said(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "odd.jpg"
    path.write_bytes(complaining())
    done = edgeconv("run", path, "--method", "reference", "--samples", 0, "--json", cwd=tmp_path)
    assert done.err == ""
    (note,) = (note for note in json.loads(done.text)["input"]["notes"] if note.startswith(SAID_NOTE))
    (tmp_path / "in" / "other.png").write_bytes(PNG)
    summary = run_here([tmp_path / "in"], tmp_path / "out")
    rows = {Path(row.input).name: row.notes for row in ledger.read(tmp_path / "out").rows}
    assert note in rows["odd.jpg"]
    assert rows["other.png"] == ()
    assert summary.notes[SAID] == 1
    strict = edgeconv("batch", tmp_path / "in", "-o", tmp_path / "strict", "--method", "reference", "--strict")
    assert strict.code == 1
    assert {Path(row.input).name: row.status for row in ledger.read(tmp_path / "strict").rows} == {
        "odd.jpg": "failed",
        "other.png": "done",
    }


# --- kernels, grids, records --------------------------------------------------------------------------------------

DEEP = 100_000
KERNELS = {
    "deep.json": ("[" * DEEP, "nested too deeply"),
    "deep-closed.json": ("[" * 900 + "1" + "]" * 900, "is not a 3×3 table"),
    "long-number.json": ("1" * 10_000, "is not JSON"),
    "object.json": ('{"a": 1}', "is not a 3×3 table"),
    "list.json": ("[1]", "is 1: it must be 3×3"),
    "rows.json": ("[[1],[2,3]]", "is not a 3×3 table"),
    "short.csv": ("1,2\n", "Kernel"),
    "large.json": (" " * (SMALL_BYTES + 1), "has more than 1,048,576 bytes"),
    "wide.csv": ('"' + "1" * 200_000 + '"', "is not CSV"),
    "null.csv": ("1,2\0,3", "Kernel"),
    "letter.npy": ("X", "NPY header is damaged"),
    "text.npy": (npy(np.ones((2, 1, 3, 3), "U1")), "not one of numbers"),
    "two.npy": (npy(np.ones((2, 2, 3, 3))), "it must be 3×3, or K×C×3×3"),
    "nan.npy": (npy(np.full((2, 1, 3, 3), np.nan)), "not a finite"),
    "sum.npy": (npy(np.ones((2, 1, 3, 3))).replace(b"(2, 1, 3, 3)", b"(1<<50, 9, )"), "NPY"),
    "short.npy": (npy(np.ones((2, 1, 3, 3))).replace(b"(2, 1, 3, 3), }    ", b"(9999999999999, 9)}"), "cut short"),
}


GRIDS = {
    "other key": ("size = 3", "'size' is not one of"),
    "no size": ("sizes = [0]", "Sizes '0' are not"),
    "no stride": ("strides = [0]", "not whole numbers"),
    "seed alone": ("seed = 1", "seed must be"),
    "two parts to draw from": ("seed = 1\ncases = 2\n[[part]]\n[[part]]", "from one part"),
    "no filter": ("filters = ['nabla']", "'nabla' is not one of"),
    "no TOML": ("sizes = ", "is not TOML"),
    "no part": ("part = 3", "under"),
    "deep": ("a = " + "[" * DEEP, "nested too deeply"),
    "table": ("[dtypes]\na = 1", "Dtypes must be a word"),
    "truth": ("peers = true", "Peers must be a word"),
    "large": ("#" * (SMALL_BYTES + 1), "has more than 1,048,576 bytes"),
}


@pytest.mark.parametrize("name", KERNELS | GRIDS)
def test_an_odd_kernel_file_or_grid_is_refused_by_name(name: str, tmp_path: Path) -> None:
    text, says = (KERNELS | GRIDS)[name]
    path = tmp_path / (name if name in KERNELS else "odd.toml")
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises((UsageError, ImageReadError), match=says) as raised:
        read_kernel(path) if name in KERNELS else chosen_grid(GridAxes(str(path)))
    assert path.stem in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("read", [read_kernel, read_toml])
def test_a_pipe_or_a_device_is_no_kernel_and_no_grid(read: Callable[[Path], Any], tmp_path: Path) -> None:
    pipe, device = tmp_path / "pipe.json", tmp_path / "device.json"
    os.mkfifo(pipe)  # nobody writes to it: who opens it and waits, waits for ever
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        with pytest.raises(ImageReadError, match=rf"{path.name}.*pipe or a device, and must be a plain file"):
            outcome(lambda path=path: read(path))


def test_a_record_may_come_through_a_pipe_but_not_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep, device = tmp_path / "deep.json", tmp_path / "device.json"
    deep.write_text("[" * DEEP)
    device.symlink_to("/dev/zero")
    monkeypatch.setattr("edgeconv.io.records.RECORD_BYTES", 2**20)
    for path, says in ((deep, "nested too deeply"), (device, "has more than 1,048,576 bytes")):
        with pytest.raises((UsageError, ImageReadError), match=rf"{path.name}.*{says}"):
            read_record(path)
    done = shell('printf "{}" | "$0" -m edgeconv report /dev/stdin', cwd=tmp_path)
    assert "is not a record of edgeconv bench" in done.err
