"""What a person reads about a batch: the note beside the progress bar and the summary at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgeconv.batch.ledger import place_of
from edgeconv.batch.settings import Settings
from edgeconv.batch.summary import Summary
from edgeconv.core.safe_text import visible
from edgeconv.core.units import seconds_text
from edgeconv.io.skipped_files import suffix_counts_text
from edgeconv.run.progress import duration_text

ROUNDED_SECONDS = 10
"""From here on a whole number of them is near enough."""
WATERFALL_WIDTH = 40

LINKS_NAMED = 3


def note(summary: Summary) -> str:
    """Failures so far and the stage that most time goes into."""
    failed = f"{summary.failed} failed, " if summary.failed else ""
    return f"{failed}mostly {summary.slowest_stage}"


def links_note(links: Sequence[str]) -> str:
    """That links to folders were not searched, and the first of them by name."""
    more = f" and {len(links) - LINKS_NAMED} more" if len(links) > LINKS_NAMED else ""
    return f"links to folders were not searched: {', '.join(links[:LINKS_NAMED])}{more}; name them to take them too."


def passed_over_note(kinds: Mapping[str, int]) -> str:
    """That files of other kinds were not taken, how many of which."""
    return f"not taken, as edgeconv reads no such files: {suffix_counts_text(kinds)}"


def waterfall(stage_seconds: dict[str, float]) -> list[str]:
    """A line a stage that took time, in the order of one picture; its bar starts where the one before it ends."""
    total = sum(stage_seconds.values())
    lines = []
    before = 0.0
    for stage, seconds in stage_seconds.items():
        if seconds > 0:
            start = int(before / total * WATERFALL_WIDTH)
            before += seconds
            bar = "#" * max(1, int(before / total * WATERFALL_WIDTH) - start)
            name = stage.replace("_", " ")
            lines.append(f"{name:<15}{seconds_text(seconds):>8} {seconds / total:>4.0%}  {' ' * start}{bar}")
    return lines


def summary_text(
    summary: Summary,
    settings: Settings,
    earlier_outputs: int = 0,
    passed_over: Mapping[str, int] | None = None,
) -> str:
    """A handful of lines; `earlier_outputs` are files that were passed over because earlier runs made them.

    `passed_over` are those that are no pictures, by suffix.
    """
    choice = settings.choice
    counts = f"{summary.done} done, {summary.skipped} unchanged since before, {summary.failed} failed"
    left = summary.pictures - summary.finished
    lines = [f"pictures  {summary.pictures}: {counts}" + (f", {left} not begun" if left else "")]
    if earlier_outputs:
        lines.append(f"left out  {earlier_outputs} outputs of earlier runs in the same folder")
    if passed_over:
        lines.append(f"not taken {suffix_counts_text(passed_over)}")
    if summary.stopped_because:
        lines.append(f"stopped   {summary.stopped_because}; go on with --resume")
    lines.append(f"method    {choice.method} on {choice.device} ({choice.why})")
    if summary.done:
        rate = f"{summary.pictures_per_second:.3g} pictures/s with {summary.workers} workers"
        taken = duration_text if summary.seconds >= ROUNDED_SECONDS else seconds_text
        lines.append(f"time      {taken(summary.seconds)}, {rate}")
        stages = waterfall(summary.stage_seconds)
        lines += [f"{'' if number else 'stages':<10}{line}" for number, line in enumerate(stages)]
    held = (f"{count / 2**20:,.0f} MiB ({device})" for device, count in summary.peak_bytes.items() if count is not None)
    if memory := ", ".join(held):
        lines.append(f"memory    at most {memory}")
    for note, count in summary.notes.most_common():
        lines.append(f"note      {visible(note)}: {count}")
    for path in summary.left_overs:
        lines.append(f"removed   {visible(path)}, half-written by a run that was killed")
    lines.append(f"ledger    {visible(place_of(settings.output, settings.share))}")
    return "\n".join(lines)
