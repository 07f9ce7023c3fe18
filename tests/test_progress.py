"""What the progress line says, with a clock that the test turns."""

from __future__ import annotations

import io

import pytest

from edgeconv.run.progress import Progress, duration_text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (65, "1 min 05 s"), (3600, "1 h 00 min"), (7625, "2 h 07 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_the_line_tells_share_rate_time_left_and_note() -> None:
    line = Progress(40, "pictures").line(10, 5.0, "1 failed")
    assert line == "[######                  ] 10/40 pictures, 2/s, 15 s left, 1 failed"


def test_it_is_silent_where_nobody_watches_and_shorter_lines_cover_longer_ones() -> None:
    silent = io.StringIO()
    Progress(2, "pictures", silent).update(1)
    assert silent.getvalue() == ""
    now = [0.0]
    watched = io.StringIO()
    progress = Progress(2, "pictures", watched, lambda: now[0], shown=True)
    for done, note in ((1, "a long note"), (1, "too soon"), (2, "")):
        progress.update(done, note)
        now[0] += 0.01
    progress.close()
    drawn = watched.getvalue()
    assert "too soon" not in drawn
    assert drawn.endswith("\n")
    first, last = drawn.strip("\r\n").split("\r")
    assert len(last) >= len(first)
