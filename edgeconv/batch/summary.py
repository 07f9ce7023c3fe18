"""How a batch goes: what became of one picture, the sums over all of them, and how a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from edgeconv.batch.ledger import LedgerRow
from edgeconv.core.records import Amount, Meta, Natural, Part, Positive, Struct, field, keyed_by
from edgeconv.core.text import counted, digits_text, duration_text, seconds_text, share_text, visible
from edgeconv.io.files import suffix_counts_text
from edgeconv.io.reading import SAID_NOTE

Stage = Literal[
    "read", "decode", "set_up", "host_to_device", "convolve", "device_to_host", "threshold", "encode", "write"
]
STAGES: tuple[Stage, ...] = get_args(Stage)
"""In the order of one picture; on the CPU nothing crosses a bus."""
SAID = f"{SAID_NOTE}complaints, each in its row of the ledger"
"""In place of the messages themselves, which differ from picture to picture."""

OF_AN_EARLIER_RUN = "(in an earlier run; --retry-failed tries again)"
ROUNDED_SECONDS = 10
"""From here on, whole seconds."""
LINKS_NAMED = 3


class PictureResult(Struct, frozen=True):
    """What became of one picture in this run."""

    row: LedgerRow
    new: bool = True
    """Whether the ledger lacks the row: it has that of an earlier run, which still holds."""
    stage_seconds: dict[str, float] = field(default_factory=dict)


class FailedPicture(Part):
    """A picture that gave no output, and why."""

    input: str
    error: str


class BatchSummary(Part):
    """What `edgeconv batch --json` prints. Stage seconds are summed over all workers."""

    pictures: Natural
    workers: Positive
    method: str
    device: str
    why: Annotated[str, Meta(description="why this method and device")]
    ledger: Annotated[str, Meta(description="the file to which the rows of this batch were added")]
    done: Natural = 0
    skipped: Annotated[Natural, Meta(description="done before and unchanged since")] = 0
    failed: Natural = 0
    seconds: Amount = 0.0
    stopped_because: str | None = None
    stage_seconds: Annotated[dict[str, Amount], keyed_by(STAGES)] = field(
        default_factory=lambda: dict.fromkeys(STAGES, 0.0)
    )
    failures: list[FailedPicture] = field(default_factory=list)
    notes: Annotated[dict[str, Natural], Meta(description="pictures to which each note applies")] = field(
        default_factory=dict
    )
    left_overs: Annotated[list[str], Meta(description="half-written files of killed runs, removed at the start")] = (
        field(default_factory=list)
    )
    peak_bytes: Annotated[dict[str, Natural | None], Meta(description="most memory held at once, by device")] = field(
        default_factory=dict
    )
    pictures_per_second: Amount = 0.0
    start_up_seconds: Annotated[Amount, Meta(description="until the first picture was done")] = 0.0
    steady_pictures_per_second: Annotated[Amount, Meta(description="of those after the first")] = 0.0
    slowest_stage: str = STAGES[0]
    earlier_outputs: Annotated[Natural, Meta(description="outputs of earlier runs in the folder of the inputs")] = 0
    passed_over: Annotated[dict[str, Natural], Meta(description="files that are not pictures, by suffix")] = field(
        default_factory=dict
    )

    def count(self, result: PictureResult, seconds: float) -> None:
        """Add one picture, `seconds` after the start."""
        for stage, taken in result.stage_seconds.items():
            self.stage_seconds[stage] += taken
        row = result.row
        for note in row.notes:
            told = SAID if note.startswith(SAID_NOTE) else note
            self.notes[told] = self.notes.get(told, 0) + 1
        if row.status == "failed":
            self.failed += 1
            said = row.error or "failed"
            self.failures.append(FailedPicture(row.input, said if result.new else f"{said} {OF_AN_EARLIER_RUN}"))
        elif result.new:
            self.done += 1
            self.start_up_seconds = self.start_up_seconds or seconds
        else:
            self.skipped += 1
        self.seconds = seconds
        self.pictures_per_second = self.done / seconds if seconds > 0 else 0.0
        if self.done > 1 and seconds > self.start_up_seconds:
            self.steady_pictures_per_second = (self.done - 1) / (seconds - self.start_up_seconds)
        self.slowest_stage = max(self.stage_seconds, key=lambda stage: self.stage_seconds[stage])

    @property
    def finished(self) -> int:
        """Pictures that need no more work in this run."""
        return self.done + self.skipped + self.failed

    @property
    def note(self) -> str:
        """Failures so far and the stage that takes most of the time, to stand beside the progress."""
        failed = f"{self.failed} failed, " if self.failed else ""
        return f"{failed}mostly {self.slowest_stage}"


def links_note(links: Sequence[str]) -> str:
    """That links to folders were not searched, with the first by name."""
    more = f" and {len(links) - LINKS_NAMED} more" if len(links) > LINKS_NAMED else ""
    return f"links to folders were not searched: {', '.join(links[:LINKS_NAMED])}{more}; name them to include them."


def stage_lines(stage_seconds: dict[str, float]) -> list[str]:
    """One line per stage that took time, in order, with its share of the time of all."""
    total = sum(stage_seconds.values())
    return [
        f"{stage.replace('_', ' '):<15}{seconds_text(seconds):>8} {share_text(seconds / total):>7}"
        for stage, seconds in stage_seconds.items()
        if seconds > 0
    ]


def summary_text(summary: BatchSummary) -> str:
    """The summary for a person, in a few lines."""
    counts = f"{summary.done} done, {summary.skipped} unchanged since an earlier run, {summary.failed} failed"
    left = summary.pictures - summary.finished
    lines = [f"pictures  {summary.pictures}: {counts}" + (f", {left} not started" if left else "")]
    if summary.earlier_outputs:
        lines.append(f"left out  {counted(summary.earlier_outputs, 'output')} of earlier runs in the same folder")
    if summary.passed_over:
        lines.append(f"skipped   {suffix_counts_text(summary.passed_over)}")
    if summary.stopped_because:
        lines.append(f"stopped   {summary.stopped_because}; continue with --resume")
    lines.append(f"method    {summary.method} on {summary.device} ({summary.why})")
    if summary.done:
        rate = f"{digits_text(summary.pictures_per_second, 3)} pictures/s with {counted(summary.workers, 'worker')}"
        taken = duration_text if summary.seconds >= ROUNDED_SECONDS else seconds_text
        steady = summary.steady_pictures_per_second
        after = f", {digits_text(steady, 3)}/s after the first" if steady else ""
        lines.append(f"time      {taken(summary.seconds)}, {rate}{after}")
        stages = stage_lines(summary.stage_seconds)
        lines += [f"{'' if number else 'stages':<10}{line}" for number, line in enumerate(stages)]
    held = (f"{count / 2**20:,.0f} MiB ({device})" for device, count in summary.peak_bytes.items() if count is not None)
    if memory := ", ".join(held):
        lines.append(f"memory    at most {memory}")
    for note, count in sorted(summary.notes.items(), key=lambda item: -item[1]):
        lines.append(f"note      {visible(note)}: {count}")
    lines += [f"removed   {visible(path)}, half-written by a run that was killed" for path in summary.left_overs]
    return "\n".join([*lines, f"ledger    {visible(summary.ledger)}"])
