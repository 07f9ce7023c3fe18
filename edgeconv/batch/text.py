"""What a person reads about a batch: the note beside its progress, and the summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgeconv.batch.ledger import place_of
from edgeconv.batch.settings import Settings
from edgeconv.batch.summary import Summary
from edgeconv.core.safe_text import visible
from edgeconv.core.units import counted, digits_text, duration_text, seconds_text, share_text
from edgeconv.io.skipped_files import suffix_counts_text

ROUNDED_SECONDS = 10
"""From here on, whole seconds."""
WATERFALL_WIDTH = 40
LINKS_NAMED = 3


def note(summary: Summary) -> str:
    """Failures so far and the stage that takes most of the time."""
    failed = f"{summary.failed} failed, " if summary.failed else ""
    return f"{failed}mostly {summary.slowest_stage}"


def links_note(links: Sequence[str]) -> str:
    """That links to folders were not searched, with the first by name."""
    more = f" and {len(links) - LINKS_NAMED} more" if len(links) > LINKS_NAMED else ""
    return f"links to folders were not searched: {', '.join(links[:LINKS_NAMED])}{more}; name them to include them."


def skipped_files_note(suffixes: Mapping[str, int]) -> str:
    """That files of other kinds were skipped, and how many of each."""
    return f"skipped, as edgeconv does not read such files: {suffix_counts_text(suffixes)}"


def waterfall(stage_seconds: dict[str, float]) -> list[str]:
    """One line per stage that took time, in order; each bar starts where the one before it ends."""
    total = sum(stage_seconds.values())
    lines, before = [], 0.0
    for stage, seconds in stage_seconds.items():
        if seconds > 0:
            start, before = int(before / total * WATERFALL_WIDTH), before + seconds
            bar = "#" * max(1, int(before / total * WATERFALL_WIDTH) - start)
            took = f"{seconds_text(seconds):>8} {share_text(seconds / total):>7}  "
            lines.append(f"{stage.replace('_', ' '):<15}{took}{' ' * start}{bar}")
    return lines


def summary_text(
    summary: Summary,
    settings: Settings,
    earlier_outputs: int = 0,
    skipped_files: Mapping[str, int] | None = None,
) -> str:
    """A few lines; `earlier_outputs` is the number of files skipped as outputs of earlier runs.

    `skipped_files` counts those that are not pictures, by suffix.
    """
    choice = settings.choice
    counts = f"{summary.done} done, {summary.skipped} unchanged since an earlier run, {summary.failed} failed"
    left = summary.pictures - summary.finished
    lines = [f"pictures  {summary.pictures}: {counts}" + (f", {left} not started" if left else "")]
    if earlier_outputs:
        lines.append(f"left out  {counted(earlier_outputs, 'output')} of earlier runs in the same folder")
    if skipped_files:
        lines.append(f"skipped   {suffix_counts_text(skipped_files)}")
    if summary.stopped_because:
        lines.append(f"stopped   {summary.stopped_because}; continue with --resume")
    lines.append(f"method    {choice.method} on {choice.device} ({choice.why})")
    if summary.done:
        rate = f"{digits_text(summary.pictures_per_second, 3)} pictures/s with {counted(summary.workers, 'worker')}"
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
