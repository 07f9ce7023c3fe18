"""Text from outside is text on every page: the tags of a page are the same whatever files are called."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from bench_records import TimedMethod, changed, measured
from command import PROJECT, edgeconv
from picture_files import saved
from problems import random_image
from run_reports import run_report

from edgeconv.core.records import Part, fields_of
from edgeconv.export import find_exporter
from edgeconv.export.kinds import read
from edgeconv.io.image import write_image

HOSTILE = "a\"'><taken onclick=taken>&lt;taken&gt;<!--DATA-->"
"""Ends an attribute, begins a tag and a comment, and is taken for another text where `&` is not escaped. It has no
slash, behind which alone a path is shown."""
HARMLESS = "harmless"
LADDER = PROJECT / "docs" / "results" / "bench_gemm_h200.json.xz"

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")


class Shape(HTMLParser):
    """The tags and attributes of a page in order, and its text and the values of its attributes.

    What is drawn in an SVG is a plotting library's, and another text is drawn otherwise; the SVG's own tag is ours.
    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, ...]] = []
        self.texts: list[str] = []
        self._drawings = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._drawings:
            self.tags.append((tag, *(name for name, _ in attrs)))
            self.texts += [value for _, value in attrs if value]
        self._drawings += tag == "svg"

    def handle_endtag(self, tag: str) -> None:
        self._drawings -= tag == "svg"
        if not self._drawings:
            self.tags.append((f"end of {tag}",))

    def handle_comment(self, data: str) -> None:
        if not self._drawings:
            self.tags.append(("comment",))

    def handle_data(self, data: str) -> None:
        if not self._drawings:
            self.texts.append(data)


def _drawn(folder: Path, name: str, seed: int) -> Path:
    path = folder / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    write_image(random_image(8, 9, "uint8", seed), path)
    return path


def _page_of(*words: object) -> str:
    done = edgeconv(*words, "--html", "page.html")
    assert done.code in (0, 1), done.err
    return Path("page.html").read_text(encoding="utf-8")


def diff(folder: Path, name: str) -> str:
    """Two pictures that differ, of one of which something was dropped, which is noted beside its name."""
    _drawn(folder / "one", name, 1)
    (folder / "two").mkdir()
    (folder / "two" / f"{name}2.png").write_bytes(saved(random_image(8, 9, "uint8", 2), "PNG", mode="RGBA"))
    return _page_of("diff", f"one/{name}.png", f"two/{name}2.png")


def diff_of_equals(folder: Path, name: str) -> str:
    """Three pictures that are the same, as the verdict says by name."""
    return _page_of("diff", *(_drawn(folder, f"{name}{number}", 1).name for number in range(3)))


def diff_of_folders(folder: Path, name: str) -> str:
    """Folders with a pair, one that is missing, one that is too many and one that cannot be read."""
    for seed, place in enumerate((f"{name}.old", f"{name}.new")):
        _drawn(folder / place, name, seed)
        _drawn(folder / place, f"{name} {'missing' if seed else 'too many'}", 3)
        (folder / place / f"{name} damaged.png").write_bytes(b"no picture")
    return _page_of("diff", f"{name}.old", f"{name}.new")


def compare(folder: Path, name: str) -> str:
    """Methods on a picture with a kernel from a file."""
    _drawn(folder, name, 1)
    (folder / f"{name}.json").write_text("[[0, 1, 0], [1, -4, 1], [0, 1, 0]]", encoding="ascii")
    return _page_of("compare", f"{name}.png", "--kernel-file", f"{name}.json")


LOOKED_UP = {"kind", "status", "lead_l2_state", "l2_state", "device", "channels", "filter"}
"""Keys of texts that exporters look things up by, so that no other text is possible there."""


def _with_every_text(record: Any, name: str, key: str = "") -> Any:
    """A record with `name` behind every text that it holds, but for those that are looked up."""
    if isinstance(record, Part):
        return changed(
            record, **{each: _with_every_text(value, name, each) for each, value in fields_of(record).items()}
        )
    if is_dataclass(record):
        again = copy.copy(record)
        for each in fields(record):  # past what it refuses
            object.__setattr__(again, each.name, _with_every_text(getattr(record, each.name), name, each.name))
        return again
    if isinstance(record, dict):
        return {each: _with_every_text(value, name, each) for each, value in record.items()}
    if isinstance(record, list | tuple):
        return [_with_every_text(value, name, key) for value in record]
    return f"{record}{name}" if isinstance(record, str) and key not in LOOKED_UP else record


def _exported(*records: Any) -> str:
    (page,) = find_exporter("html").load()(list(records)).values()
    return str(page.decode())


def bench(folder: Path, name: str) -> str:
    """The page of a bench record, with the name in every text of it."""
    with pytest.MonkeyPatch.context() as patch:
        made = measured(patch, TimedMethod("opencv", [1e-3], "opencv"))
    made.warnings.append("beware")
    changed(made.rows[1], status="wrong", reason="wrong")
    return _exported(_with_every_text(made, name))


def runs(folder: Path, name: str) -> str:
    """The page of two reports of runs, one of them wrong."""
    right = run_report("two-core-epyc", "cpu_sliding_s1")
    wrong = copy.deepcopy(right)
    wrong.check.passed = False
    return _exported(*(_with_every_text(one, name) for one in (right, wrong)))


def ladder(folder: Path, name: str) -> str:
    """The page of a ladder, with the name in every text of it."""
    return _exported(_with_every_text(read(LADDER), name))


@POSIX
@pytest.mark.filterwarnings("ignore:constrained_layout")  # of titles that are as long as no other
@pytest.mark.parametrize("make", [diff, diff_of_equals, diff_of_folders, compare, bench, runs, ladder])
def test_no_text_from_outside_becomes_markup(
    make: Callable[[Path, str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {}
    for name in (HARMLESS, HOSTILE):
        folder = tmp_path / str(len(pages))
        folder.mkdir()
        monkeypatch.chdir(folder)
        pages[name] = make(folder, name)
    shapes = {name: Shape(page) for name, page in pages.items()}
    assert shapes[HOSTILE].tags == shapes[HARMLESS].tags
    assert "<taken" not in pages[HOSTILE]  # in a script neither
    shown = [sum(text.count(name) for text in shape.texts) for name, shape in shapes.items()]
    scripts = sum(text.count(json.dumps(HOSTILE)[1:-1].replace("<", "\\u003c")) for text in shapes[HOSTILE].texts)
    assert shown[0] > 0
    assert shown[1] + scripts == shown[0]
