"""Who decodes and encodes the pictures of a batch: what is asked of a GPU, and what stays with the host.

What a GPU makes of it is in test_gpu_jpeg.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from batch_folders import processor_for, settings_for
from picture_files import exif, png, saved, smooth_image

from edgeconv.batch import engines, process, run
from edgeconv.batch.engines.cluster_worker import Terms, check, maker_here
from edgeconv.batch.process import PictureWork
from edgeconv.batch.settings import Settings
from edgeconv.batch.stores import Task
from edgeconv.batch.summary import PictureResult
from edgeconv.core.request import make_request
from edgeconv.errors import UnavailableError
from edgeconv.io.formats import jpeg
from edgeconv.io.formats.base import Header
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import Picture, decode_image

PIXELS = smooth_image(40, 56)


def with_adobe(transform: int) -> bytes:
    """A picture whose colours Adobe's segment says the kind of: 0 as they are, 1 YCbCr."""
    plain = saved(PIXELS, "JPEG")
    return plain[:2] + b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00" + bytes([transform]) + plain[2:]


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (saved(PIXELS, "JPEG"), True),
        (saved(PIXELS, "JPEG", "L"), True),
        (saved(PIXELS, "JPEG", progressive=True), True),
        (with_adobe(1), True),
        (with_adobe(0), False),
        (saved(PIXELS, "JPEG", "CMYK"), False),
        (saved(PIXELS, "JPEG", keep_rgb=True), False),
        (saved(PIXELS, "JPEG").replace(b"\xff\xc0", b"\xff\xc9", 1), False),
        (saved(PIXELS, "JPEG", "L").replace(b"\xff\xc0", b"\xff\xc3", 1), False),
    ],
    ids=["YCbCr", "grey", "progressive", "Adobe 1", "Adobe 0", "CMYK", "RGB", "arithmetic code", "lossless"],
)
def test_a_gpu_is_given_what_every_decoder_reads_alike(data: bytes, answer: bool) -> None:
    assert jpeg.read_header(data).gpu_jpeg is answer


class FakeGpu:
    """Decodes to a picture that no other decoder gives, and encodes to bytes that no other encoder gives."""

    def decode(self, files: list[tuple[bytes, Header]]) -> list[Any]:
        def one(header: Header) -> Any:
            return np.full(header.shape(rgb=True), 7, np.uint8) if header.width > 8 else None

        return [one(header) for _, header in files]

    def encode(self, pictures: list[Any], quality: int | None) -> list[bytes | None]:
        return [f"{pixels.shape} at {quality}".encode() if pixels.max() else None for pixels in pictures]


@pytest.fixture
def by_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    monkeypatch.setattr(process, "the_gpu", FakeGpu)
    (tmp_path / "out").mkdir()
    return settings_for(tmp_path / "out", format="jpg", quality=50, jpeg_codec="gpu")


def decoded(settings: Settings, *files: bytes) -> list[PictureWork]:
    """The works on files, behind the stage that decodes them."""
    by, folder = processor_for(settings), Path(settings.output)
    works = []
    for number, data in enumerate(files):
        path = folder / f"{number}.jpg"
        path.write_bytes(data)
        works.append(by.begin(Task(str(path), PurePosixPath(), "")))
    by.read(works)
    by.decode(works)
    return works


KINDS: list[tuple[bytes, bool, tuple[str, ...]]] = [
    (saved(PIXELS, "JPEG", exif=exif(6)), True, ("orientation 6 applied",)),
    (saved(PIXELS, "JPEG", "L"), True, ()),
    (saved(PIXELS, "JPEG", "CMYK"), False, ()),
    (saved(PIXELS[:, :7], "JPEG"), False, ("JPEG decoded by the host, not by the GPU",)),
    (saved(PIXELS[:30], "JPEG"), True, ()),
    (png(PIXELS), False, ()),
]
"""Files, whether the GPU decodes them, and what is said: turned, grey, CMYK, too narrow, of another size, PNG."""


def test_the_gpu_decodes_jpeg_and_the_host_the_rest(by_gpu: Settings) -> None:
    """What the GPU refuses is said. It decodes all JPEG to three channels; only --rgb leaves those of grey."""
    for settings in (by_gpu, replace(by_gpu, rules=ReadRules(rgb=True))):
        works = decoded(settings, *(data for data, _, _ in KINDS))
        for work, (data, on_gpu, notes) in zip(works, KINDS, strict=True):
            picture, expected = work.picture, decode_image(data, work.task.source, settings.rules)
            assert picture is not None
            pixels = np.full_like(expected.pixels, 7) if on_gpu else expected.pixels
            assert np.array_equal(picture.pixels, pixels)
            assert set(picture.notes) == {*expected.notes, *notes}


def test_a_file_is_looked_through_before_the_gpu_gets_it_and_costs_only_itself(by_gpu: Settings) -> None:
    whole = saved(PIXELS, "JPEG")
    works = decoded(by_gpu, whole, whole[:-40], b"no picture", whole)
    assert [work.is_open for work in works] == [True, False, False, True]
    assert "cut short" in str(works[1].row.error)
    assert "is not a picture" in str(works[2].row.error)


@pytest.mark.parametrize(("most", "most_bytes", "longest"), [(3, 2**30, 3), (64, 2**30, 64), (64, 1, 1)])
def test_jpegs_go_by_lists_and_the_others_beside_them(
    by_gpu: Settings, monkeypatch: pytest.MonkeyPatch, most: int, most_bytes: int, longest: int
) -> None:
    """The last list is what is left; a list of more pixels than may be held ends with the first picture too many."""
    lists: list[int] = []

    class Counted(FakeGpu):
        def decode(self, files: list[tuple[bytes, Header]]) -> list[Any]:
            lists.append(len(files))
            return super().decode(files)

    monkeypatch.setattr(process, "the_gpu", Counted)
    monkeypatch.setattr(engines, "MAX_LIST", most)
    monkeypatch.setattr(engines, "LIST_BYTES", most_bytes)
    folder = Path(by_gpu.output).parent / "in"
    folder.mkdir()
    for number in range(20):
        data = png(PIXELS) if number % 4 == 1 else saved(PIXELS[: 30 + number], "JPEG")
        (folder / f"{number}.jpg").write_bytes(data if number != 7 else data[:-40])
    tasks = [Task(str(path), PurePosixPath(), str(path)) for path in sorted(folder.iterdir())]
    settings = replace(by_gpu, request=make_request("sharpen", channels="each", border="replicate"), method="opencv")
    rows: list[PictureResult] = []
    found = list(engines.Threads(2, 20).run(processor_for(settings), tasks, lambda: False, rows.append))
    assert sorted(result.row.input for result in found) == [task.source for task in tasks]
    assert [result.row.error for result in found if result.row.status == "failed"] != []
    assert {Path(result.row.input).stem for result in rows if result.row.status == "failed"} == {"7"}
    assert sum(lists) == 14
    assert max(lists) <= longest


def test_a_gpu_without_room_for_a_list_ends_no_batch(by_gpu: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(FakeGpu, "decode", no_room)
    monkeypatch.setattr(FakeGpu, "encode", no_room)
    data = saved(PIXELS, "JPEG")
    works = decoded(by_gpu, data, data)
    for work in works:
        assert work.picture is not None
        assert np.array_equal(work.picture.pixels, decode_image(data, "a.jpg").pixels)
        assert "JPEG decoded by the host, not by the GPU" in work.row.notes
        work.output = PIXELS
    processor_for(by_gpu).encode(works)
    assert all("it cannot be encoded on the GPU" in str(work.row.error) for work in works)


def test_pictures_of_one_list_have_outputs_of_their_own(by_gpu: Settings) -> None:
    settings = replace(by_gpu, request=make_request("sharpen", channels="each", border="replicate"), method="opencv")
    by, values = processor_for(settings), (5, 9, 2)
    works = [by.begin(Task(f"{value}.jpg", PurePosixPath(), "")) for value in values]
    for work, value in zip(works, values, strict=True):
        work.picture = Picture(np.full_like(PIXELS, value), work.task.source, "JPEG")
    by.filter(works)
    assert [set(work.output.ravel().tolist()) for work in works] == [{value} for value in values]


def test_the_gpu_encodes_rgb_of_8_bits_and_the_host_the_rest(by_gpu: Settings) -> None:
    by = processor_for(by_gpu)
    works = [by.begin(Task(f"{name}.jpg", PurePosixPath(), "")) for name in "abc"]
    for work, output in zip(works, (PIXELS, PIXELS[..., :1], np.zeros_like(PIXELS)), strict=True):
        work.output = output
    by.encode(works)
    assert works[0].encoded == b"(40, 56, 3) at 50"
    assert bytes(works[1].encoded).startswith(jpeg.SIGNATURE)
    assert str(works[2].row.error).endswith(".jpg: JPEG: it cannot be encoded on the GPU.")
    assert not process.encodes_on_gpu((70_000, 8, 3), np.dtype("uint8"), by_gpu)
    assert not process.encodes_on_gpu((8, 8, 3), np.dtype("uint16"), by_gpu)
    for others in ({"format": "png"}, {"format": None}, {"jpeg_codec": "host"}):
        assert not process.encodes_on_gpu((8, 8, 3), np.dtype("uint8"), replace(by_gpu, **others))


def test_pictures_that_are_filtered_elsewhere_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = settings_for(tmp_path, jpeg_codec="gpu", device="cpu")
    monkeypatch.setattr(run, "require_gpu_jpeg", lambda: None)
    with pytest.raises(UnavailableError, match="--device cuda, or --jpeg-codec host"):
        run.require_jpeg_codec(settings, "auto", "for a test")
    run.require_jpeg_codec(settings_for(tmp_path), "cpu", "")


def test_a_worker_without_the_codec_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgeconv.io.gpu_jpeg.gpu_jpeg_unavailable_reason", lambda: "there is none")
    check(Terms(maker_here()))
    with pytest.raises(UnavailableError, match="there is none"):
        check(Terms(maker_here("gpu"), jpeg_codec="gpu"))
