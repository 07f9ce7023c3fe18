"""Names of outputs: templates, collisions, what lies where one goes."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from edgeconv.batch.names import (
    Names,
    refuse_collisions,
)
from edgeconv.batch.task import Task
from edgeconv.errors import ImageWriteError, UsageError
from edgeconv.io.files import as_compared
from edgeconv.options import DEFAULT_NAME


def named(template: str = DEFAULT_NAME) -> Names:
    return Names(template, "sobel", "sliding", 3)


def task(source: str, folder: str = ".", problem: str | None = None, identity: str | None = None) -> Task:
    return Task(source, PurePosixPath(folder), identity or f"/in/{source}", problem)


# --- templates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "early"),
    [
        (DEFAULT_NAME, "a_sobel_sliding_s3.png"),
        ("{stem}_{width}x{height:05d}{ext}", "a_*x*.png"),
        ("{stem!s:>3}_{width!r}{ext}", "  a_*.png"),
        ("{stem:>3}{{x}}{ext}", "  a{x}.png"),
        ("{stem}{source_ext}-{stride:03d}{ext}", "a.tif-003.png"),
    ],
)
def test_an_early_name_has_a_star_for_what_is_known_late(template: str, early: str) -> None:
    assert named(template).early(task("a.tif"), ".png") == early


@pytest.mark.parametrize(
    ("one", "other", "template", "way"),
    [
        ("a.png", "a.jpg", "{stem}_x{ext}", "pass --name '{stem}{source_ext}_x{ext}', rename one, or filter"),
        ("a.png", "a.jpg", "{stem}_{stem}{ext}", "pass --name '{stem}{source_ext}_{stem}{ext}', rename one, or filter"),
        ("a.png", "a.PNG", "{stem}_x{ext}", "rename one, or filter"),
        ("a.png", "a.jpg", "{stem:s}_x{ext}", "rename one, or filter"),
        ("a.png", "a.jpg", "{stem}_{source_ext:s}{ext}", "rename one, or filter"),
    ],
)
def test_the_way_out_of_a_collision(one: str, other: str, template: str, way: str) -> None:
    assert named(template).way_out(task(one), task(other)).startswith(way)


LATE = {
    "{stem}_{width}x{height}{ext}": "",
    "{stem}x{width:04d}{ext}": "",
    "{stem}{source_ext}_{width}{ext}": "",
    "{stem}{width}{ext}": "runs {width} or {height}",
    "{stem}7{width}{ext}": "runs {width} or {height}",
    "{width}7{stem}{ext}": "runs {width} or {height}",
    "{height}{stem}{ext}": "runs {width} or {height}",
    "{stem}_{width!r}{ext}": "runs {width} or {height}",
    "{stem}_{width: >4}{ext}": "runs {width} or {height}",
    "{stem}{stride}{width}{ext}": "runs {width} or {height}",
    "{stem}_{source_ext}{width}{ext}": "apart from {stem}",
    "{stem}_{source_ext}{ext}": "",
    "{source_ext}_{stem}{ext}": "",
    "{stem}_{width}_{source_ext}{ext}": "apart from {stem}",
    "{source_ext}{stem}_{width}{ext}": "apart from {stem}",
}


@pytest.mark.parametrize(("template", "words"), LATE.items())
def test_sizes_that_could_make_two_names_one_are_refused(template: str, words: str) -> None:
    if not words:
        named(template).refuse_late_collisions()
        return
    with pytest.raises(UsageError) as raised:
        named(template).refuse_late_collisions()
    assert words in str(raised.value)


# --- collisions ------------------------------------------------------------------------------------------------------


def test_names_are_compared_without_case_and_accents_spelling() -> None:
    assert as_compared("Stra\u00dfE") == as_compared("STRASSE")
    assert as_compared("e\u0301") == as_compared("\u00c9")
    assert as_compared("a") != as_compared("b")


@pytest.mark.parametrize(
    ("one", "other", "collide"),
    [
        (task("a.png"), task("a.jpg"), True),
        (task("a.png"), task("A.jpg"), True),
        (task("a.png"), task("b.jpg"), False),
        (task("a.png"), task("a.jpg", "deep"), False),
        (task("a.png", "Deep"), task("a.jpg", "deep"), True),
        (task("a.png"), task("a.jpg", problem="is a pipe"), False),
        (task("a.png", problem="is a pipe"), task("a.jpg"), False),
    ],
)
def test_two_outputs_of_one_name(one: Task, other: Task, collide: bool) -> None:
    if not collide:
        refuse_collisions([one, other], "/out", named(), None)
        return
    with pytest.raises(ImageWriteError) as raised:
        refuse_collisions([one, other], "/out", named(), None)
    where = PurePosixPath("/out") / other.folder / f"{other.stem}_sobel_sliding_s3"
    assert str(raised.value).startswith(
        f"{other.source} and {one.source} would both be written to {where}: pass --name"
    )
