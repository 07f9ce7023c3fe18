"""Pictures on a page: of a run while they are still those of the run."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from browser import Browser
from command import edgeconv
from picture_files import smooth_image
from problems import save_image

from edgeconv.export import run_pictures as module
from edgeconv.export.run_pictures import SIDE, run_pictures
from edgeconv.export.schemas import read
from edgeconv.io.reading import decode_image

QUICK = ("--samples", 0, "--check", "none", "--method", "opencv", "--device", "cpu")
HEIGHT, WIDTH = 60, 90


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A picture, and in `out` what one run made of it."""
    save_image(smooth_image(HEIGHT, WIDTH), tmp_path / "photo.png")
    done = edgeconv("run", "photo.png", "-o", "out/", *QUICK, cwd=tmp_path)
    assert done.code == 0, done.err
    return tmp_path


def shown(report: Path, *folders: Path) -> tuple[list[str], list[str]]:
    """First words of what is shown, and the files that are not."""
    found, missing = run_pictures([read(report)], folders)
    return [title.split(",")[0].split(":")[0] for title, _ in found], missing


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def test_the_page_shows_the_picture_and_its_edges(browser: Browser, folder: Path) -> None:
    report, edges = only(folder, "out/*.json"), only(folder, "out/*.png")
    assert edgeconv("report", report, "--html", "page.html", cwd=folder).code == 0
    browser.problems.clear()
    browser.open(folder / "page.html")
    pictures = "[...document.querySelectorAll('.pictures img')]"
    browser.wait_until(f"{pictures}.every((e) => e.complete)")
    assert browser.run(f"{pictures}.map((e) => [e.naturalWidth, e.naturalHeight])") == [[WIDTH, HEIGHT]] * 2
    assert browser.run(f"{pictures}.map((e) => e.alt.split(/[:,]/)[0])") == ["photo.png", edges.name]
    assert browser.run("document.querySelector('.summary').innerText").count("\n") >= 2
    assert f"Wrote: out/{edges.name}" in browser.run("document.querySelector('.summary').innerText")
    assert browser.problems == []


def test_files_are_found_beside_the_report_and_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, edges = only(folder, "out/*.json"), only(folder, "out/*.png")
    monkeypatch.chdir(folder / "out")
    assert shown(report, report.parent) == ([edges.name], ["photo.png"])
    monkeypatch.chdir(folder)
    assert shown(report) == (["photo.png", edges.name], [])


def test_what_has_changed_since_the_run_is_not_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    report, edges = only(folder, "out/*.json"), only(folder, "out/*.png")
    changed = smooth_image(HEIGHT, WIDTH)
    changed[3, 4, 1] ^= 1
    save_image(changed, folder / "photo.png")
    edges.write_bytes(edges.read_bytes()[:-5])
    assert shown(report) == ([], ["photo.png", f"out/{edges.name}"])
    (folder / "photo.png").unlink()
    (folder / "photo.png").mkdir()
    edges.unlink()
    assert shown(report) == ([], ["photo.png", f"out/{edges.name}"])


def test_a_page_shows_twelve_runs_and_names_the_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = read(only(folder, "out/*.json"))
    reports = [copy.deepcopy(report) for _ in range(13)]
    for number, each in enumerate(reports):
        each.input.file, each.output.file = f"{number}.png", f"{number}_edges.png"
    monkeypatch.setattr(module, "_thumbnail", lambda *_: b"a picture")
    found, missing = run_pictures(reports, ())
    assert [title.split(",")[0].split(":")[0] for title, _ in found[-2:]] == ["11.png", "11_edges.png"]
    assert (len(found), missing) == (24, ["12.png", "12_edges.png"])


@pytest.mark.parametrize(
    ("words", "dtype", "channels"),
    [
        (("--output-mode", "raw", "--format", "npy"), np.uint8, 3),
        (("--channels", "luma"), np.uint16, 3),
        (("--rgb",), np.uint8, 1),
        (("--filters", "sobel-x,sobel-y"), np.uint8, 3),
    ],
)
def test_outputs_of_every_kind_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], dtype: type, channels: int
) -> None:
    picture = np.resize(smooth_image(700, 40).astype(dtype), (1200, 40, channels))
    save_image(picture, tmp_path / "photo.png")
    done = edgeconv("run", "photo.png", "-o", "out/", *QUICK, *words, cwd=tmp_path)
    assert done.code == 0, done.err
    monkeypatch.chdir(tmp_path)
    found, missing = run_pictures([read(only(tmp_path, "out/*.json"))], ())
    assert (len(found), missing) == (3 if "--filters" in words else 2, [])
    sizes = [decode_image(webp, title).pixels.shape for title, webp in found]
    assert {size[:2] for size in sizes} == {(400, 14)}
    assert max(sizes[0]) <= SIDE
