"""What `edgeconv diff` and `edgeconv compare` write about a comparison: figures first, then pages and pictures of them.

Everything is computed before the first file is written, so an error leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from edgeconv.core.records import RecordHead
from edgeconv.core.text import TextRow, bytes_text, visible
from edgeconv.difference import pictures, text
from edgeconv.difference.compare import compare
from edgeconv.difference.figures import Allowance
from edgeconv.difference.ignored import NO_REGIONS, IgnoredRegions
from edgeconv.difference.inputs import Input
from edgeconv.difference.page import Page
from edgeconv.errors import EXIT_DIFFERENT, EXIT_OK, UsageError
from edgeconv.io import junit
from edgeconv.io.outputs import Outputs
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules


@dataclass(frozen=True)
class Wanted:
    """The allowance, and what to write."""

    allowance: Allowance = field(default_factory=Allowance)
    html: str | None = None
    junit: str | None = None
    pictures: str | None = None
    """A folder."""
    page_limit_bytes: int = 256 * 2**20
    overwrite: bool = False
    rules: ReadRules = DEFAULT_RULES
    """Which pictures are refused."""
    convert: str | None = None
    ignored: IgnoredRegions = NO_REGIONS
    ssim: bool = False

    def allowed(self, picture: str | None = None) -> Allowance:
        """The allowance with the regions that are ignored in a picture, by its relative name in two folders."""
        return replace(self.allowance, ignored_regions=self.ignored.of(picture))


@dataclass(frozen=True)
class DiffOutcome:
    """What a comparison found and wrote."""

    exit_code: int
    record: RecordHead
    shown: text.Paragraphs
    written: list[tuple[Path, int]]
    """(file, bytes)."""

    @property
    def ending(self) -> str:
        """A line for each file."""
        return "\n".join(f"wrote {visible(path)} ({bytes_text(size)})" for path, size in self.written)


def run(
    reference: Input,
    others: Sequence[Input],
    wanted: Wanted,
    *,
    title: str = "",
    remarks: Sequence[str] = (),
    protect: Sequence[str] = (),
    can_ignore: bool = True,
) -> DiffOutcome:
    """Compare `others` with `reference` and write what is wanted. Raises EdgeconvError; then nothing is written.

    `title` and `remarks` are shown with the figures; `protect` names files that no output may replace, beside the
    inputs themselves. `can_ignore`: whether the page offers to draw regions for --ignore.
    """
    with Outputs([reference.name, *(other.name for other in others), *protect], wanted.overwrite) as outputs:
        for path in filter(None, (wanted.html, wanted.junit)):
            outputs.reserve(path)
        record = compare(reference, others, wanted.allowed(), wanted.ssim)
        if wanted.junit is not None:
            cases = [text.case(label, record, index) for index, label in enumerate(record.labels[1:])]
            outputs.add(Path(wanted.junit), junit.to_xml("edgeconv diff", cases))
        if wanted.html is not None:
            page = Page(title or f"edgeconv diff: {record.labels[0]}", wanted.page_limit_bytes)
            if page.add("", reference, others, record) is None:
                limit = bytes_text(wanted.page_limit_bytes)
                raise UsageError(f"The page would be larger than --page-limit ({limit}): raise it, or compare less.")
            outputs.add(Path(wanted.html), page.encode(text.summary(record), record.same, remarks, can_ignore))
        if wanted.pictures is not None:
            for name, png in pictures.comparison_pictures(record, reference, others):
                outputs.add(outputs.reserve(name, wanted.pictures), png)
        written = outputs.put()
    shown = text.paragraphs(record)
    if remarks:
        shown.append([TextRow("", remark) for remark in remarks])
    return DiffOutcome(EXIT_OK if record.same else EXIT_DIFFERENT, record, shown, written)
