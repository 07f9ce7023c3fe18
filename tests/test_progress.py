"""What the progress line says, with a clock that the test turns."""

from __future__ import annotations

import io

import pytest

from edgeconv.cli.progress import Progress
from edgeconv.core.text import duration_text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (65, "1 min 05 s"), (3600, "1 h 00 min"), (7625, "2 h 07 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_the_line_is_as_wide_as_the_terminal_and_gone_when_done(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = io.StringIO()
    Progress("pictures", silent).update(1, 2)
    assert silent.getvalue() == ""
    monkeypatch.setenv("COLUMNS", "70")
    watched, now = io.StringIO(), [0.0]
    watched.isatty = lambda: True
    with Progress("pictures", watched, lambda: now[0]) as progress:
        for done, note in ((10, "1 failed"), (11, "too soon"), (40, "a note that is longer than the line")):
            now[0] += 5.0 if note != "too soon" else 0.01
            progress.update(done, 40, note)
    first, last, cleared = watched.getvalue().strip("\r").split("\r")
    assert first.rstrip() == "[######                  ] 10/40 pictures, 2/s, 15 s left, 1 failed"
    assert (len(first), len(last), cleared.strip()) == (69, 69, "")
