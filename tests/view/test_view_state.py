"""The window's state without a window."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from edgeconv.diff.methods import REFERENCE
from edgeconv.errors import UsageError
from edgeconv.methods import METHODS
from edgeconv.view.parameters import Parameters
from edgeconv.view.sources import INPUT, OUTPUT, REFERENCE_OUTPUT, ViewSource, computed_sources, labels
from edgeconv.view.state import MODES, MOST_RECENT, MOST_RUNS, Model, find_mode

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


def test_without_a_picture_there_is_nothing_to_ask_for() -> None:
    model = Model()
    assert model.next_request() is None
    assert model.command() is None


def test_only_the_newest_request_is_accepted() -> None:
    model = model_with("a.png")
    first, second = model.next_request(), model.next_request()
    assert first is not None
    assert second is not None
    assert not model.accepts(first.generation)
    assert model.accepts(second.generation)


def test_asking_for_what_is_seen_makes_nothing_stale() -> None:
    model = model_with("a.png")
    newest = model.next_request()
    assert model.request() == newest


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


def test_the_reference_is_that_of_compare() -> None:
    assert (REFERENCE_OUTPUT.name, REFERENCE_OUTPUT.device) == REFERENCE


def test_swapping_and_showing() -> None:
    model = model_with("a.png")
    assert model.show(mode=find_mode("split"), left=REFERENCE_OUTPUT)
    assert not model.show(left=REFERENCE_OUTPUT)
    model.swap()
    request = model.next_request()
    assert request is not None
    assert (request.mode.name, request.left, request.right) == ("split", OUTPUT, REFERENCE_OUTPUT)


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


def test_every_file_that_is_open_is_an_input() -> None:
    model = model_with("a.png", "b.png")
    assert model.inputs() == [os.path.abspath("a.png"), os.path.abspath("b.png")]


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


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_modes_are_found_by_name(mode) -> None:
    assert find_mode(mode.name) is mode
    assert mode.needs_both == (mode.name != "single")


def test_an_unknown_mode_is_the_first() -> None:
    assert find_mode("of a later version") is MODES[0]


def test_the_command_line_names_the_picture_and_what_is_not_usual() -> None:
    model = model_with("a.png")
    model.edit(filter="sobel")
    assert model.command() == f"edgeconv run {os.path.abspath('a.png')} --filter=sobel"
