"""The window's state without a window: pictures, sides, runs, undo, and levels of a picture."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from meet import TurnedClock
from problems import random_image

from edgeconv.difference import maps
from edgeconv.difference.scale import scale_for
from edgeconv.methods import METHODS
from edgeconv.view import layers
from edgeconv.view.parameters import Parameters
from edgeconv.view.state import (
    INPUT,
    MAX_RUNS,
    OUTPUT,
    REFERENCE_OUTPUT,
    Model,
    ViewSource,
    computed_sources,
    labels,
)
from edgeconv.view.timeline import MAX_STEPS, MERGE_SECONDS, Timeline


def record() -> SimpleNamespace:
    return SimpleNamespace(method=SimpleNamespace(name="sliding"), device=SimpleNamespace(kind="cpu"))


def model_with(*names: str) -> Model:
    model = Model()
    model.open(names)
    return model


def file(name: str) -> ViewSource:
    return ViewSource("file", os.path.abspath(name))


def test_pictures_are_listed_once_and_walked_round() -> None:
    model = model_with("a.png", "b.png")
    assert model.picture == os.path.abspath("a.png")
    assert not model.open(["a.png"])
    assert [model.step(1), model.picture] == [True, os.path.abspath("b.png")]
    assert [model.step(1), model.picture] == [True, os.path.abspath("a.png")]
    assert not Model().step(1)


def test_sides_may_be_anything_computed_or_another_file() -> None:
    model = model_with("a.png", "b.png")
    sources = model.sources()
    assert sources[:3] == (INPUT, OUTPUT, REFERENCE_OUTPUT)
    methods = {(source.name, source.device) for source in sources if source.kind == "method"}
    assert methods == {(entry.name, entry.device) for entry in METHODS}
    assert sources[-1] == file("b.png")
    assert len({source.label for source in sources}) == len(sources)
    files = [ViewSource("file", path) for path in ("/a/one/x.png", "/a/two/x.png", "/a/y.png", "/a/input")]
    assert list(labels([INPUT, *files]).values()) == ["input", "one/x.png", "two/x.png", "y.png", "a/input"]
    assert labels(computed_sources())[REFERENCE_OUTPUT] == "reference on CPU"


def test_the_current_picture_as_a_file_is_the_input() -> None:
    model = model_with("a.png", "b.png")
    model.show(left=file("b.png"))
    model.step(1)
    request = model.next_request()
    assert request is not None
    assert request.left == INPUT


@pytest.mark.parametrize("second", [False, True])
def test_a_difference_begins_with_what_one_asks_about_and_gives_way_again(second: bool) -> None:
    model = model_with("a.png", *["b.png"] * second)
    model.show("difference")
    assert (model.left, model.right) == ((INPUT, file("b.png")) if second else (REFERENCE_OUTPUT, OUTPUT))
    model.show("split")
    assert (model.left, model.right) == (INPUT, OUTPUT)
    model.show(left=OUTPUT, right=INPUT)
    model.show("difference")
    assert (model.left, model.right) == (OUTPUT, INPUT), "what was chosen stays"


@pytest.mark.parametrize(
    ("steps", "gone", "then"),
    [((), "b.png", "a.png"), ((1, -1), "bad.png", "a.png"), ((1,), "bad.png", "b.png"), ((), "a.png", "b.png")],
)
def test_an_unreadable_picture_leads_back_to_the_one_before(steps: tuple[int, ...], gone: str, then: str) -> None:
    model = model_with("a.png", "b.png", "c.png")
    for step in steps:
        model.step(step)
    if gone == "bad.png":
        model.open(["bad.png"])
    bad = os.path.abspath(gone)
    model.show(left=file(gone), right=file(gone))
    model.forget(bad)
    assert (model.left, model.right) == (INPUT, OUTPUT)
    assert model.picture == os.path.abspath(then)
    assert bad not in model.pictures


def test_runs_are_numbered_bounded_and_lead_back() -> None:
    model = model_with("a.png", "b.png")
    first = model.add_run(str(model.picture), Parameters(filter="scharr"), record())
    assert model.add_run("", Parameters(), first.record) is first
    assert first.method_label == "sliding on CPU"
    for _ in range(MAX_RUNS):
        model.add_run(str(model.picture), Parameters(), record())
    assert len(model.runs) == MAX_RUNS
    assert model.runs[-1].number == MAX_RUNS + 1
    model.forget(first.picture)
    assert model.restore(first)
    assert (model.picture, model.parameters.filter) == (first.picture, "scharr")
    assert first.picture in model.pictures
    assert model.timeline.undo()
    assert model.parameters == Parameters()


# --- undo ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.integers(0, 5), st.sampled_from(["undo", "redo"])), max_size=60))
def test_undo_and_redo_walk_what_was_seen(steps: list[int | str]) -> None:
    """Against a plain list."""
    timeline, seen, place = Timeline(0), [0], 0
    for step in steps:
        if step == "undo":
            assert timeline.undo() == (place > 0)
            place = max(0, place - 1)
        elif step == "redo":
            assert timeline.redo() == (place < len(seen) - 1)
            place = min(len(seen) - 1, place + 1)
        else:
            changed = timeline.change(step)
            assert changed == (step != seen[place])
            if changed:
                seen = [*seen[: place + 1], step]
                place += 1
        assert timeline.present == seen[place]
        assert (bool(timeline.past), bool(timeline.future)) == (place > 0, place < len(seen) - 1)


@pytest.mark.parametrize(
    ("steps", "past"),
    [
        ((("a", 1, 0.0), ("a", 2, 0.5), ("a", 3, 1.0)), [0]),
        ((("a", 1, 0.0), ("b", 2, 0.0), ("b", 3, 1.5)), [0, 1, 2]),
        ((("x", 1, 0.0), ("a", 2, 0.0), "undo", ("a", 3, 0.0)), [0, 1]),
        ((("x", 1, 0.0), ("a", 2, 0.0), "undo", "redo", ("a", 3, 0.0)), [0, 1, 2]),
        ((("x", 1, 0.0), ("a", 2, 0.0), "undo", "undo", ("a", 3, 0.0)), [0]),
    ],
)
def test_quick_changes_of_one_control_are_one_step_but_not_over_an_undo(steps: tuple, past: list[int]) -> None:
    """A step is (key, value, rest in units of `MERGE_SECONDS` before it)."""
    clock = TurnedClock()
    timeline = Timeline(0, clock)
    for step in steps:
        if isinstance(step, str):
            assert getattr(timeline, step)()
        else:
            clock.now += step[2] * MERGE_SECONDS
            timeline.change(step[1], step[0])
    assert timeline.past == past


def test_the_past_is_bounded() -> None:
    timeline = Timeline(0)
    for value in range(1, 2 * MAX_STEPS):
        timeline.change(value)
    assert timeline.past == list(range(MAX_STEPS - 1, 2 * MAX_STEPS - 1))


# --- levels of a picture --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (3, 700), (256, 256), (257, 511), (1030, 517)])
def test_every_level_is_the_average_of_whole_blocks(shape: tuple[int, int]) -> None:
    picture = random_image(*shape, np.uint8)
    made = layers.of_picture("", picture, 0, 255)
    assert made.levels[0] is picture, "no copy"
    for level in range(1, len(made.levels)):
        seen, expected = made.levels[level], maps.shrunk_view(picture, 1 << level)
        assert seen.shape == expected.shape
        inside = slice(0, shape[0] >> level), slice(0, shape[1] >> level)
        off = np.abs(seen[inside].astype(int) - expected[inside])
        assert off.max(initial=0) <= level, "an average of rounded averages may be a step off for each rounding"
    assert [made.level_for(zoom) for zoom in (8, 1, 0.51)] == [0, 0, 0]
    assert made.level_for(0.25) == min(2, len(made.levels) - 1)


def test_one_differing_pixel_is_seen_from_any_distance() -> None:
    classes = np.zeros((2050, 1999), np.uint8)
    classes[1234, 987] = 5
    scale = scale_for("uint8")
    made = layers.of_classes("", classes, scale, ())
    assert len(made.levels) > 5
    for level in range(len(made.levels)):
        seen = made.levels[level]
        assert tuple(seen[1234 >> level, 987 >> level]) == scale.colours[5]
        assert np.count_nonzero((seen != scale.colours[0]).any(axis=2)) == 1
