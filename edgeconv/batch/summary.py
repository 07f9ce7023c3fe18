"""How a batch goes: what became of one picture, and the sums over all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from edgeconv.batch.row import LedgerRow
from edgeconv.core.records import Amount, Meta, Natural, Part, Positive, keyed_by
from edgeconv.io.image import SAID_NOTE

Stage = Literal[
    "read", "decode", "set_up", "host_to_device", "convolve", "device_to_host", "threshold", "encode", "write"
]
STAGES: tuple[Stage, ...] = get_args(Stage)
"""In the order of one picture; on the CPU nothing crosses a bus."""
SAID = f"{SAID_NOTE}complaints, each in its row of the ledger"
"""In place of the messages themselves, which differ from picture to picture."""


@dataclass(frozen=True)
class PictureResult:
    """What became of one picture in this run."""

    source: str
    state: Literal["done", "skipped", "failed", "dropped"]
    """`skipped`: done before and unchanged. `dropped`: not begun, because the batch was stopped."""
    error: str | None
    stage_seconds: dict[str, float]
    notes: tuple[str, ...] = ()
    """What decoding dropped or changed, one phrase each."""
    row: LedgerRow | None = None
    """For the ledger; None where there is nothing new to keep."""


class FailedPicture(Part):
    """A picture that gave no output, and why."""

    input: str
    error: str


class BatchSummary(Part):
    """What `edgeconv batch --json` prints. Stage seconds are summed over all workers."""

    pictures: Natural
    done: Natural
    skipped: Annotated[Natural, Meta(description="done before and unchanged since")]
    failed: Natural
    seconds: Amount
    workers: Positive
    stopped_because: str | None
    stage_seconds: Annotated[dict[str, Amount], keyed_by(STAGES)]
    failures: list[FailedPicture]
    notes: Annotated[dict[str, Natural], Meta(description="pictures to which each note applies")]
    left_overs: Annotated[list[str], Meta(description="half-written files of killed runs, removed at the start")]
    peak_bytes: Annotated[dict[str, Natural | None], Meta(description="most memory held at once, by device")]
    pictures_per_second: Amount
    slowest_stage: str
    earlier_outputs: Annotated[Natural, Meta(description="outputs of earlier runs in the folder of the inputs")]
    passed_over: Annotated[dict[str, Natural], Meta(description="files that are not pictures, by suffix")]


@dataclass
class Summary:
    """How a batch went. Stage seconds are summed over all workers."""

    pictures: int
    done: int = 0
    skipped: int = 0
    """Done before and unchanged since."""
    failed: int = 0
    seconds: float = 0.0
    workers: int = 1
    stopped_because: str | None = None
    stage_seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    failures: list[tuple[str, str]] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    """Pictures to which each note applies, those that were skipped included."""
    left_overs: list[str] = field(default_factory=list)
    """Half-written files of killed runs that were removed at the start."""
    peak_bytes: dict[str, int | None] = field(default_factory=dict)
    """Most memory held at once, by device: of this process since it started, and of the pool on a GPU."""

    def count(self, outcome: PictureResult) -> None:
        """Add one picture."""
        for stage, seconds in outcome.stage_seconds.items():
            self.stage_seconds[stage] += seconds
        self.notes.update(SAID if note.startswith(SAID_NOTE) else note for note in outcome.notes)
        if outcome.state == "done":
            self.done += 1
        elif outcome.state == "skipped":
            self.skipped += 1
        elif outcome.state == "failed":
            self.failed += 1
            self.failures.append((outcome.source, outcome.error or "failed"))

    @property
    def finished(self) -> int:
        """Pictures that need no more work in this run."""
        return self.done + self.skipped + self.failed

    @property
    def pictures_per_second(self) -> float:
        """Of those that were done."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def slowest_stage(self) -> str:
        """The stage that most worker time went into."""
        return max(self.stage_seconds, key=lambda stage: self.stage_seconds[stage])

    def record(self, earlier_outputs: int = 0, passed_over: Mapping[str, int] | None = None) -> BatchSummary:
        """As `--json` prints it; the two that a batch does not count itself are those of the command."""
        return BatchSummary(
            pictures=self.pictures,
            done=self.done,
            skipped=self.skipped,
            failed=self.failed,
            seconds=self.seconds,
            workers=self.workers,
            stopped_because=self.stopped_because,
            stage_seconds=dict(self.stage_seconds),
            failures=[FailedPicture(source, error) for source, error in self.failures],
            notes=dict(self.notes),
            left_overs=list(self.left_overs),
            peak_bytes=dict(self.peak_bytes),
            pictures_per_second=self.pictures_per_second,
            slowest_stage=self.slowest_stage,
            earlier_outputs=earlier_outputs,
            passed_over=dict(passed_over or {}),
        )
