"""Undo and redo against a plain list of what was seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from meet import TurnedClock

from edgeconv.view.timeline import MERGE_SECONDS, MOST_STEPS, Timeline


@given(st.lists(st.one_of(st.integers(0, 5), st.sampled_from(["undo", "redo"])), max_size=60))
def test_undo_and_redo_walk_what_was_seen(steps: list[int | str]) -> None:
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
        assert (timeline.can_undo, timeline.can_redo) == (place > 0, place < len(seen) - 1)


def test_quick_changes_of_one_knob_are_one_step() -> None:
    clock = TurnedClock()
    timeline = Timeline("", clock)
    for text in ("1", "12", "123"):
        timeline.change(text, "stride")
        clock.now += MERGE_SECONDS / 2
    timeline.undo()
    assert timeline.present == ""


def test_a_rest_or_another_knob_begins_a_new_step() -> None:
    clock = TurnedClock()
    timeline = Timeline(0, clock)
    timeline.change(1, "stride")
    timeline.change(2, "border")
    clock.now += 2 * MERGE_SECONDS
    timeline.change(3, "border")
    seen = []
    while timeline.undo():
        seen.append(timeline.present)
    assert seen == [2, 1, 0]


def test_a_change_after_undo_is_never_merged_into_the_past() -> None:
    """Of several steps, so that there is a past to be merged into."""
    for walk, expected in ((("undo",), [1, 0]), (("undo", "redo"), [2, 1, 0]), (("undo", "undo"), [0])):
        timeline = Timeline(0, TurnedClock())
        timeline.change(1, "other")
        timeline.change(2, "a")
        for step in walk:
            assert getattr(timeline, step)()
        timeline.change(3, "a")
        seen = []
        while timeline.undo():
            seen.append(timeline.present)
        assert seen == expected, walk


def test_the_past_is_bounded() -> None:
    timeline = Timeline(0)
    for value in range(1, 2 * MOST_STEPS):
        timeline.change(value)
    steps = 0
    while timeline.undo():
        steps += 1
    assert steps == MOST_STEPS
