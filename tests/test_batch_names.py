"""Names of outputs: templates, collisions, what lies where one goes, and what stands in the summary."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from batch_folders import run_here, settings_for

from edgeconv.batch.names import Names, refuse_collisions, refuse_device_name
from edgeconv.batch.stores import Task
from edgeconv.errors import ImageWriteError, UsageError
from edgeconv.io.files import as_compared
from edgeconv.options import DEFAULT_NAME


def named(template: str = DEFAULT_NAME) -> Names:
    return Names(template, "sobel", "sliding", 3)


def task(source: str, folder: str = ".", problem: str | None = None, identity: str | None = None) -> Task:
    return Task(source, PurePosixPath(folder), identity or f"/in/{source}", problem)


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
        ("a.png", "a.PNG", "{stem}_x{ext}", "rename one, or filter"),
        ("a.png", "a.jpg", "{stem:s}_x{ext}", "rename one, or filter"),
        ("a.png", "a.jpg", "{stem}_{source_ext:s}{ext}", "rename one, or filter"),
    ],
)
def test_the_way_out_of_a_collision(one: str, other: str, template: str, way: str) -> None:
    assert named(template).way_out(task(one), task(other)).startswith(way)


def test_names_with_a_size_are_not_overwritten_where_several_processes_write(photos: Path, out: Path) -> None:
    sized = {"name": "{stem}{width}{ext}", "overwrite": True}
    with pytest.raises(UsageError, match="would replace each other"):
        run_here([photos], out, share=(1, 2), **sized)
    assert not out.exists()
    assert run_here([photos], out, **sized).done == 2
    assert run_here([photos], out, share=(1, 2), **sized | {"overwrite": False}).failed == 0


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [("NUL.png", True), ("com1.a.png", True), ("Con", True), ("CON_x.png", False), ("COM10.png", False), ("a", False)],
)
def test_an_output_is_not_named_like_a_device_of_windows(name: str, is_refused: bool) -> None:
    if not is_refused:
        refuse_device_name(name)
        return
    with pytest.raises(ImageWriteError, match="reserves that name"):
        refuse_device_name(name)


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
        refuse_collisions([one, other], settings_for("/out"), named())
        return
    with pytest.raises(ImageWriteError) as raised:
        refuse_collisions([one, other], settings_for("/out"), named())
    where = PurePosixPath("/out") / other.folder / f"{other.stem}_sobel_sliding_s3"
    assert str(raised.value).startswith(
        f"{other.source} and {one.source} would both be written to {where}: pass --name"
    )
