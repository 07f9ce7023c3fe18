"""Every page for everyone: what axe finds, what the keyboard reaches and operates, and what a finger hits.

Pages: the diff of pictures, of two folders, `compare`, a bench with its ladder, and runs. axe-core comes by
`npm ci --prefix tests/axe` (.ci/run does it); without it those tests are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import Browser, chromium
from command import PROJECT, edgeconv
from picture_files import smooth_image
from test_export_expected import BARS, bench, ladder, runs

from edgeconv.bench import goals
from edgeconv.export import page
from edgeconv.io.encoding import write_image

pytestmark = pytest.mark.skipif(chromium() is None, reason="there is no Chromium here")

AXE = PROJECT / "tests" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
LEAST_TARGET = 44
"""CSS pixels of what a finger is to hit. Source: WCAG 2.2, 2.5.5."""
PHONE_WIDTH = 390
LONG = "long" * 50
"""A name without a place at which it could be broken."""
OPEN_ALL = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all of them."""
    folder = tmp_path_factory.mktemp("pages")
    picture = smooth_image(60, 90)
    for name in ("old", "new"):
        (folder / name).mkdir()
    for name, changed in (("much", 40), ("little", 1), ("same", 0)):
        other = picture.copy()
        other[5 : 5 + changed, 9:30] += 9
        write_image(picture, folder / "old" / f"{name}.png")
        write_image(other, folder / "new" / f"{name}.png")
    write_image(picture, folder / "old" / "gone.png")
    write_image(picture, folder / "new" / f"{LONG}.png")
    write_image(np.repeat(picture, 2, axis=0), folder / "old" / "size.png")
    write_image(picture, folder / "new" / "size.png")
    (folder / "old" / "torn.png").write_bytes((folder / "old" / "same.png").read_bytes()[:200])
    write_image(picture, folder / "new" / "torn.png")
    for words, code in (
        (f"diff old/much.png new/much.png new/little.png new/{LONG}.png --html pair.html", 1),
        ("diff old new --html folders.html", 2),
        ("compare old/much.png --html compare.html", 0),
        ("run old/much.png -o out/ --samples 3 --time-limit 0.01", 0),
    ):
        done = edgeconv(*words.split(), cwd=folder)
        assert done.code == code, done.err
    report = next((folder / "out").glob("*.json"))
    assert edgeconv("report", report, "--html", "run.html", cwd=folder).code == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(goals, "GOALS", BARS)
        (made,) = page.export([bench(patch), *runs(), ladder()]).values()
    (folder / "bench.html").write_bytes(made)
    return folder


PAGES = ("pair", "folders", "compare", "bench", "run")


@pytest.fixture
def window(browser: Browser) -> Iterator[Browser]:
    browser.problems.clear()
    yield browser
    browser.no_phone()
    browser.send("Emulation.setEmulatedMedia", features=[])
    assert browser.problems == []


# --- axe ----------------------------------------------------------------------------------------------------------


def violations(window: Browser) -> list[str]:
    """Rule, help and first element of all that axe finds wrong."""
    run = "axe.run(document, {resultTypes: ['violations']})"
    found = "(each) => `${each.id}: ${each.help}: ${each.nodes.map((node) => node.html.slice(0, 150)).join(' | ')}`"
    return window.run(f"{run}.then((result) => result.violations.map({found}))")


needs_axe = pytest.mark.skipif(not AXE.exists(), reason="axe-core is not here: npm ci --prefix tests/axe")


@needs_axe
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(window: Browser, pages: Path, name: str, scheme: str) -> None:
    window.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    window.open(pages / f"{name}.html")
    assert window.run("matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    window.run(OPEN_ALL)
    window.send("Runtime.evaluate", expression=AXE.read_text(encoding="utf-8"))
    pinned = json.loads((PROJECT / "tests" / "axe" / "package.json").read_text(encoding="utf-8"))
    assert window.run("axe.version") == pinned["dependencies"]["axe-core"]
    assert violations(window) == []
    for mode in ("side", "blink") if name == "pair" else ():
        window.run(f"document.getElementById('mode-{mode}').click()")
        window.run("document.getElementById('ignore-difference').click()")
        assert violations(window) == [], mode


@needs_axe
@pytest.mark.slow
def test_axe_finds_a_mistake_that_is_there(window: Browser, pages: Path) -> None:
    window.open(pages / "run.html")
    window.send("Runtime.evaluate", expression=AXE.read_text(encoding="utf-8"))
    window.run("document.querySelector('.pictures img').removeAttribute('alt')")
    window.run("document.querySelector('.soft').style.color = '#ccc'")
    assert [each.partition(":")[0] for each in violations(window)] == ["color-contrast", "image-alt"]


# --- the keyboard -------------------------------------------------------------------------------------------------

FOCUSED = """((known) => {
  const e = document.activeElement;
  if (!e || e === document.body || e === document.documentElement) return null;
  const { outlineStyle, outlineWidth } = getComputedStyle(e);
  const { left, right, top, bottom } = e.getBoundingClientRect();
  const seen = right > 0 && bottom > 0 && left < innerWidth && top < innerHeight;
  e.dataset.walked = (Number(e.dataset.walked) || 0) + 1;
  return {
    html: e.outerHTML.slice(0, 160),
    visits: Number(e.dataset.walked),
    selector: known.find((each) => e.matches(each)) ?? null,
    ring: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 && e.matches(":focus-visible"),
    seen,
  };
})"""
CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex='0']"
MISSED = f"""[...document.querySelectorAll({CONTROLS!r})]
  .filter((e) => !e.disabled && e.tabIndex >= 0 && !e.dataset.walked)
  .filter((e) => e.checkVisibility({{ visibilityProperty: true }}))
  .filter((e) => e.type !== "radio" || !document.querySelector(`[name=${{e.name}}][data-walked]`))
  .map((e) => e.outerHTML.slice(0, 160))"""

HERE = "document.activeElement"
VALUE = "document.getElementById({!r}).value"
Control = tuple[tuple[str, ...], str]

EVERYWHERE: dict[str, Control] = {
    "th button": (("Enter",), f"{HERE}.closest('th').ariaSort === 'ascending'"),
    ".wide": (("ArrowRight",), f"{HERE}.ariaLabel.length > 0"),
    "summary": (("Enter",), f"{HERE}.parentElement.open"),
}
"""Of each control: what is pressed, and what is then true."""

VIEWER = EVERYWHERE | {
    ".skip": ((), f"{HERE}.getAttribute('href') === '#stage'"),
    "[name=mode]": (("ArrowRight", "ArrowLeft"), "document.querySelector('[name=mode]:checked').dataset.walked > 0"),
    "#change": (("Enter",), "document.getElementById('announcer').textContent.length > 0"),
    "#input": (("End",), f"{HERE}.selectedIndex + 1 === {HERE}.length"),
    "#zoom-out": (("Enter",), f"parseFloat({VALUE.format('zoom')}) > 0"),
    "#zoom-in": ((" ",), f"parseFloat({VALUE.format('zoom')}) > 0"),
    "#actual": (("Enter",), f"{VALUE.format('zoom')} === '100 %'"),
    "#fit": (("Enter",), "!document.getElementById('stage').classList.contains('zoomed')"),
    "#previous-region": (("Enter",), f"{VALUE.format('region')}.startsWith('region ')"),
    "#next-region": (("Enter",), f"{VALUE.format('region')}.startsWith('region ')"),
    "#stage": (("ArrowRight", "n"), f"{VALUE.format('region')}.length > 0"),
    "#draw-region": (("Enter",), f"{HERE}.getAttribute('aria-pressed') === 'true'"),
    "#ignore-difference": (("Enter",), f"{VALUE.format('ignored-count')} === '1 ignored'"),
    "#remove-region": (("Enter",), f"{VALUE.format('ignored-count')} === 'none ignored'"),
    "#save-regions": ((), f"!{HERE}.disabled"),
}

GALLERY = VIEWER | {
    "#pairs": ((), "true"),
    ".pair": (("Enter", "Escape"), f"{HERE}.hasAttribute('aria-current')"),
    "#back": ((), "true"),
    "#previous-pair": (("Enter",), "document.getElementById('open-pair').textContent.length > 0"),
    "#next-pair": (("Enter",), "document.getElementById('open-pair').textContent.length > 0"),
}

REPORT = EVERYWHERE | {
    "nav a": ((), f"document.querySelector({HERE}.hash) !== null"),
    "input[type=search]": (("x", "Backspace"), f"{HERE}.value === ''"),
    ".all input": ((" ",), f"{HERE}.checked"),
}

WALKS = (
    ("pair", "d", VIEWER, "#input"),
    ("pair", "b", VIEWER, "#change"),
    ("compare", "d", VIEWER, "#input"),
    ("folders", "d", GALLERY, ".pair"),
    ("bench", "", REPORT, "nav a"),
    ("run", "", REPORT, "th button"),
)
"""A page, the key of its view, its controls, and one that must be met."""


@pytest.mark.parametrize(
    ("name", "view", "entries", "needed"),
    [WALKS[0], *(pytest.param(*walk, marks=pytest.mark.slow) for walk in WALKS[1:])],
)
def test_the_keyboard_alone_reaches_and_operates_everything(
    window: Browser, pages: Path, name: str, view: str, entries: dict[str, Control], needed: str
) -> None:
    """From the top with Tab: each control once, in view, with a ring that shows where one is, doing what it is for."""
    window.open(pages / f"{name}.html")
    if view:
        window.key(view)
    focused = f"{FOCUSED}({json.dumps(list(entries))})"
    met = set()
    for _ in range(600):
        window.press("Tab")
        found = window.run(focused)
        if found is None or found["visits"] > 1:
            break
        assert found["ring"], f"no ring: {found['html']}"
        assert found["seen"], f"out of view: {found['html']}"
        selector = found["selector"]
        assert selector is not None, f"no keys are known for {found['html']}"
        met.add(selector)
        keys, question = entries[selector]
        for key in keys:
            window.press(key)
        assert window.run(question) is True, f"{selector}: {question}"
    assert window.run(MISSED) == []
    assert needed in met


# --- a finger -----------------------------------------------------------------------------------------------------

SMALL = f"""[...document.querySelectorAll("a[href], button, select, summary, label:has(input), input[type=search]")]
  .filter((e) => e.checkVisibility({{ visibilityProperty: true }}) && e.getBoundingClientRect().right > 0)
  .map((e) => ({{ html: e.outerHTML.slice(0, 120), box: e.getBoundingClientRect() }}))
  .filter(({{ box }}) => Math.min(box.width, box.height) < {LEAST_TARGET})
  .map(({{ html, box }}) => `${{Math.round(box.width)}}×${{Math.round(box.height)}} ${{html}}`)"""


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_on_a_phone_everything_can_be_hit_and_nothing_is_cut(window: Browser, pages: Path, name: str) -> None:
    window.phone(PHONE_WIDTH)
    window.open(pages / f"{name}.html")
    window.run(OPEN_ALL)
    assert window.run("matchMedia('(pointer: coarse)').matches")
    assert window.run(SMALL) == []
    assert window.run("document.documentElement.scrollWidth") == PHONE_WIDTH
    assert window.run("document.querySelector('#controls')?.getBoundingClientRect().height ?? 0") <= 800 / 3
