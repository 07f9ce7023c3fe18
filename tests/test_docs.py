"""README, documents and site: links and paths lead somewhere, examples run, plots and pictures are what they claim."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from command import PROJECT, script
from test_layers import LAYERS

import edgeconv
from edgeconv.core.choices import BORDERS, BORDERS_HERE

PAGES = sorted(
    path.relative_to(PROJECT).as_posix()
    for path in (*PROJECT.glob("*.md"), *(PROJECT / "docs").glob("*.md"), PROJECT / "images" / "README.md")
)
docs = script("docs")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
PATH = re.compile(r"(?<![\w./-])(?:\.\./)?((?:edgeconv|scripts|tests|docs|images|\.ci)/[\w./*-]*\w)")
MADE_LATER = {f"images/input_{side}.png" for side in (256, 512, 1024, 2048, 4096)}
"""Drawn by scripts/make_input.py, too large to be committed."""


def text_of(page: str) -> str:
    return (PROJECT / page).read_text(encoding="utf-8")


def named_paths(text: str) -> set[str]:
    """Paths of the project in a text; those with a capital placeholder such as NAME are for the reader to fill in."""
    return {path for path in PATH.findall(text) if not re.search(r"\b[A-Z]{4,}\b(?!\.md)", path)}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere_and_every_path_that_a_page_names_exists(page: str) -> None:
    text = text_of(page)
    links = LINK.findall(text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    assert [link for link in links if not ((PROJECT / page).parent / link).exists()] == []
    assert [path for path in sorted(named_paths(text) - MADE_LATER) if not list(PROJECT.glob(path))] == []


def test_the_readme_is_short_and_shows_a_picture_first() -> None:
    lines = text_of("README.md").splitlines()
    assert len(lines) <= 150
    order = ["coast.jpg", "bootstrap.py run", "```python", "<!-- table against-peers", "## What is inside"]
    places = [next(number for number, line in enumerate(lines) if words in line) for words in order]
    assert places == sorted(places)
    assert places[0] < 10


def test_the_readme_s_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", text_of("README.md"), re.DOTALL)
    assert len([line for line in code.splitlines() if line]) == 6
    monkeypatch.chdir(tmp_path)
    exec(code.replace("docs/pictures", str(PROJECT / "docs" / "pictures")), {})
    assert edgeconv.read_image(tmp_path / "edges.png").pixels.shape == (200, 320, 3)


@pytest.fixture(scope="module")
def coast() -> np.ndarray:
    return edgeconv.read_image(PROJECT / "docs" / "pictures" / "coast.jpg").pixels


def test_pictures_of_the_readme_are_small_files() -> None:
    for path in (PROJECT / "docs" / "pictures").iterdir():
        assert path.stat().st_size <= 300 * 1024, path.name


def test_the_edges_are_those_of_the_coast(coast: np.ndarray) -> None:
    """The picture of the edges is off by what WebP loses; the edges of another filter by three times as much."""
    rows = slice(160, 240)  # houses, lighthouse and rocks
    shown = edgeconv.read_image(PROJECT / "docs" / "pictures" / "coast_edges.webp").pixels[rows, :, 0].astype(int)

    def distance(name: str) -> float:
        found = edgeconv.convolve(coast[rows], name, "reference", channels="luma")
        return float(np.abs(found.astype(int) - shown)[1:-1].mean())

    right = distance("sobel")
    assert right < 5
    assert distance("prewitt") > 2 * right
    command = "edgeconv run docs/pictures/coast.jpg --channels luma"
    assert command in text_of("README.md")


def test_the_edges_by_canny_are_those_of_the_coast(coast: np.ndarray) -> None:
    shown = edgeconv.read_image(PROJECT / "docs" / "pictures" / "coast_canny.png").pixels[:, :, 0]
    found = edgeconv.canny(coast, 60, 150, blur=5, method="reference")
    assert np.count_nonzero(shown != found) < 0.01 * np.count_nonzero(found), "another JPEG decoder is a level off"
    assert set(np.unique(shown)) == {0, 255}
    assert "edgeconv run docs/pictures/coast.jpg --filter canny --thresholds 60,150 --blur 5" in text_of("README.md")


def test_the_architecture_page_has_the_layers_of_the_test() -> None:
    table = text_of("docs/architecture.md").partition("| --- | --- |\n")[2].partition("\n\n")[0]
    rows = [tuple(re.findall(r"`(\w+)`", line.split("|")[1])) for line in table.splitlines()]
    assert [set(row) for row in reversed(rows)] == [set(layer) for layer in LAYERS]


def test_the_operation_page_has_the_names_that_other_libraries_give_a_border() -> None:
    rows = re.findall(r"^\| `(\w+)` \|(.*)", text_of("docs/operation.md"), re.MULTILINE)
    named = {(name, ours) for ours, cells in rows if ours in BORDERS for name in re.findall(r"`(\w+)`", cells)}
    assert {pair for pair in named if pair[0] != "reflect"} == set(BORDERS_HERE.items())


def test_links_become_those_of_the_site() -> None:
    hooks = script("site_hooks")
    text = (
        "[a](docs/bench.md#figures) ![b](docs/pictures/coast.jpg) [c](CONTRIBUTING.md) [script](scripts/fuzz.py) "
        '[d](https://x.org/y.md) <img src="docs/pictures/gflops_light.svg"> [`edgeconv/errors.py`](edgeconv/errors.py)'
    )
    assert hooks.site_links(text, "README.md") == (
        "[a](bench.md#figures) ![b](pictures/coast.jpg) [c](contributing.md) script (`scripts/fuzz.py`) "
        '[d](https://x.org/y.md) <img src="pictures/gflops_light.svg"> `edgeconv/errors.py`'
    )
    assert hooks.site_links("[e](../CONTRIBUTING.md) [f](bench.md)", "docs/kernels.md") == (
        "[e](contributing.md) [f](bench.md)"
    )


# --- plots of docs/ are of the records beside them -----------------------------------------------------------------


def test_documents_figures_and_plots_are_of_their_records_and_shown() -> None:
    assert list(docs.stale()) == [], "run python3 scripts/docs.py"
    found = {path.relative_to(docs.RESULTS).as_posix() for path in docs.RESULTS.rglob("*.svg")}
    linked = {link.removeprefix("results/") for page in PAGES for link in LINK.findall(text_of(page)) if ".svg" in link}
    assert found == set(docs.PLOTS) == linked
