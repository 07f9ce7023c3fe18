"""The window's state without a window."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from edgeconv.errors import UsageError
from edgeconv.methods import METHODS
from edgeconv.view.parameters import Parameters
from edgeconv.view.sources import INPUT, OUTPUT, REFERENCE_OUTPUT, ViewSource, computed_sources, labels
from edgeconv.view.state import MOST_RECENT, MOST_RUNS, Model

RECORD = SimpleNamespace(method=SimpleNamespace(name="sliding"), device=SimpleNamespace(kind="cpu"))


def model_with(*names: str) -> Model:
    model = Model()
    model.open(names)
    return model


def test_pictures_are_listed_once_and_walked_round() -> None:
    model = model_with("a.png", "b.png")
    assert model.picture == os.path.abspath("a.png")
    assert not model.open(["a.png"])
    assert [model.step(1), model.picture] == [True, os.path.abspath("b.png")]
    assert [model.step(1), model.picture] == [True, os.path.abspath("a.png")]
    assert not Model().step(1)


def test_edits_are_undone_and_wrong_words_change_nothing() -> None:
    model = model_with("a.png")
    assert model.edit(stride=2)
    assert not model.edit(stride=2)
    with pytest.raises(UsageError):
        model.edit(stride=0)
    with pytest.raises(UsageError):
        model.edit(threads=-1)
    assert model.parameters == Parameters(stride=2)
    assert model.undo()
    assert model.parameters == Parameters()
    assert model.redo()
    assert model.parameters == Parameters(stride=2)
    assert not model.redo()


def test_sides_may_be_anything_computed_or_another_file() -> None:
    model = model_with("a.png", "b.png")
    sources = model.sources()
    assert sources[:3] == (INPUT, OUTPUT, REFERENCE_OUTPUT)
    assert {(source.name, source.device) for source in sources if source.kind == "method"} == {
        (entry.name, entry.device) for entry in METHODS
    }
    assert sources[-1] == ViewSource("file", os.path.abspath("b.png"))
    assert len({source.label for source in sources}) == len(sources)


def test_the_current_picture_as_a_file_is_the_input() -> None:
    model = model_with("a.png", "b.png")
    model.show(left=ViewSource("file", os.path.abspath("b.png")))
    model.step(1)
    request = model.next_request()
    assert request is not None
    assert request.left == INPUT


def test_an_unreadable_picture_is_forgotten_everywhere() -> None:
    model = model_with("a.png", "b.png")
    bad = os.path.abspath("b.png")
    model.remember(bad)
    model.show(left=ViewSource("file", bad), right=ViewSource("file", bad))
    model.forget(bad)
    assert (model.left, model.right, model.recent) == (INPUT, OUTPUT, [])
    assert model.pictures == [os.path.abspath("a.png")]
    model.forget(os.path.abspath("a.png"))
    assert model.picture is None


def test_an_unreadable_picture_leads_back_to_the_one_before() -> None:
    model = model_with("a.png", "b.png", "c.png")
    model.step(1)
    model.step(-1)
    model.open(["bad.png"])
    model.forget(os.path.abspath("bad.png"))
    assert model.picture == os.path.abspath("a.png")
    model.forget(os.path.abspath("a.png"))
    assert model.picture == os.path.abspath("b.png")


def test_without_one_before_an_unreadable_picture_leads_to_the_first_of_the_list() -> None:
    model = model_with("bad.png", "b.png", "c.png")
    model.forget(os.path.abspath("bad.png"))
    assert model.picture == os.path.abspath("b.png")


def test_a_run_of_a_picture_that_was_taken_from_the_list_brings_it_back() -> None:
    model = model_with("a.png", "b.png")
    run = model.add_run(str(model.picture), Parameters(filter="sobel"), RECORD)
    model.forget(run.picture)
    assert model.restore(run)
    assert model.picture == run.picture
    assert model.step(1)


def test_files_of_one_name_are_told_apart_by_their_folders() -> None:
    files = [ViewSource("file", path) for path in ("/a/one/x.png", "/a/two/x.png", "/a/y.png", "/a/input")]
    assert list(labels([INPUT, *files]).values()) == ["input", "one/x.png", "two/x.png", "y.png", "a/input"]
    assert labels(computed_sources())[REFERENCE_OUTPUT] == "reference on CPU"


def test_recent_pictures_are_few_and_the_newest_first() -> None:
    model = Model()
    for number in range(2 * MOST_RECENT):
        model.remember(f"{number}.png")
    model.remember("5.png")
    model.remember("20.png")
    assert len(model.recent) == MOST_RECENT
    assert model.recent[:2] == ["20.png", "5.png"]


def test_runs_are_numbered_bounded_and_lead_back() -> None:
    model = model_with("a.png", "b.png")
    first = model.add_run(str(model.picture), Parameters(filter="sobel"), RECORD)
    assert first.method_label == "sliding on CPU"
    for _ in range(MOST_RUNS):
        model.add_run(str(model.picture), Parameters(), RECORD)
    assert len(model.runs) == MOST_RUNS
    assert model.runs[-1].number == MOST_RUNS + 1
    model.step(1)
    assert model.restore(first)
    assert (model.picture, model.parameters.filter) == (first.picture, "sobel")
    assert model.undo()
    assert model.parameters == Parameters()
