"""Two folders, compared picture by picture by relative name, and accepting the second as the new baseline.

    same        equal within the allowance (files that are equal byte for byte are not decoded)
    changed     the same layout, other values
    layout      another size, number of channels or type
    new         only in the second folder
    missing     only in the first
    unreadable  one of the two cannot be decoded, or is a pipe, a socket or a device

Sub-folders are searched too; links to folders and names that begin with a dot are not.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, get_args

from edgeconv.core.records import Meta, Part, RecordHead, header
from edgeconv.core.text import TextRow
from edgeconv.difference import pictures, text
from edgeconv.difference.compare import DiffRecord, compare
from edgeconv.difference.inputs import FileInput
from edgeconv.difference.page import WORDS, Page
from edgeconv.difference.results import DiffOutcome, Wanted
from edgeconv.errors import (
    EXIT_DIFFERENT,
    EXIT_OK,
    ImageReadError,
    ImageWriteError,
    LayoutError,
    MemoryLimitError,
    UsageError,
)
from edgeconv.io import junit
from edgeconv.io.atomic import make_folder, reporting_errors, write_bytes_atomically
from edgeconv.io.contained_paths import ForeignFileError, place_inside
from edgeconv.io.files import are_same, read_bytes, special_file_problem, suffix_counts_text
from edgeconv.io.folder_lock import is_held, one_batch_in
from edgeconv.io.formats import SUFFIXES
from edgeconv.io.outputs import Outputs
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules

PairStatus = Literal["unreadable", "layout", "changed", "new", "missing", "same"]
STATUSES: tuple[PairStatus, ...] = get_args(PairStatus)
"""The first that occurs decides the exit code."""

EXIT_CODES: dict[PairStatus, int] = {
    "unreadable": ImageReadError.exit_code,
    "layout": LayoutError.exit_code,
    "same": EXIT_OK,
}
"""Of others it is EXIT_DIFFERENT."""

Inputs = tuple[FileInput, FileInput]
"""The picture in the baseline and in the new folder."""


class Pair(Part):
    """One relative name of both folders."""

    name: str
    status: PairStatus
    detail: Annotated[str, Meta(description="how it differs, or why it cannot be compared")] = ""
    diff: Annotated[DiffRecord | None, Meta(description="of pairs that were decoded")] = None

    @property
    def amount(self) -> float:
        """How much its pictures differ, where they can be compared: the RMSE as a share of the peak."""
        if self.diff is None:
            return 0.0
        (found,) = self.diff.comparisons
        return 1.0 if found.judged.unbounded_samples else found.judged.rmse / (found.peak or 1)


class FoldersRecord(RecordHead):
    """What `edgeconv diff` found in two folders."""

    kind: Literal["diff_folders"]
    same: bool
    baseline: str
    new: str
    pairs: list[Pair]


def run(baseline: Path, new: Path, wanted: Wanted, update: bool) -> DiffOutcome:
    """Compare two folders, write what is wanted, and with `update` make `baseline` like `new`.

    Raises EdgeconvError before anything is written; a picture that cannot be read is a line of the result, but
    `update` is then refused. While it runs, no batch writes into the baseline.
    """
    if wanted.pictures is not None:
        raise UsageError("--pictures is for pictures: leave it out for folders.")
    one, other = baseline.resolve(), new.resolve()
    if one == other or one in other.parents or other in one.parents:
        raise UsageError(f"{baseline} and {new} lie within each other: name two separate folders.")
    with Outputs([], wanted.overwrite) as outputs, one_batch_in(str(baseline)) if update else nullcontext():
        for path in filter(None, (wanted.html, wanted.junit)):
            outputs.reserve(path)
        pairs, passed_over = compare_folders(baseline, new, wanted)
        differing = [pair for pair in pairs if pair.status != "same"]
        if wanted.html is not None:
            page = Page(f"edgeconv diff: {baseline} and {new}", wanted.page_limit_bytes)
            for pair in sorted(differing, key=lambda pair: (STATUSES.index(pair.status), -pair.amount)):
                _list(page, pair, _inputs(baseline, new, pair.name, wanted))
            outputs.add(Path(wanted.html), page.encode(counts_text(pairs), not differing))
        if wanted.junit is not None:
            outputs.add(Path(wanted.junit), junit.to_xml("edgeconv diff", map(_case, pairs)))
        shown = [TextRow(pair.status, f"{pair.name}  {pair.detail}", "bad") for pair in differing]
        shown.append(TextRow("total", counts_text(pairs)))
        if passed_over:
            said = f"not compared, as edgeconv does not read such files: {suffix_counts_text(passed_over)}"
            shown.append(TextRow("note", said, "note"))
        worst = min((pair.status for pair in pairs), key=STATUSES.index)
        exit_code = EXIT_CODES.get(worst, EXIT_DIFFERENT)
        if update:
            shown.append(TextRow("update", accept(baseline, new, pairs, wanted.rules)))
            exit_code = EXIT_OK
        written = outputs.put()
    record = FoldersRecord(
        **header(),
        kind="diff_folders",
        same=not differing,
        baseline=str(baseline),
        new=str(new),
        pairs=pairs,
    )
    return DiffOutcome(exit_code, record, [shown], written)


def compare_folders(baseline: Path, new: Path, wanted: Wanted) -> tuple[list[Pair], Counter[str]]:
    """Every relative name of the two folders, sorted; and by suffix how many files are not pictures.

    Raises ImageReadError, UsageError.
    """
    passed_over: Counter[str] = Counter()
    listed = [_pictures_in(folder, passed_over) for folder in (baseline, new)]
    names = sorted(set.union(*listed))
    if not names:
        raise UsageError(f"{baseline} and {new} have no pictures: name folders that do.")
    pairs = []
    for name in names:
        inputs = _inputs(baseline, new, name, wanted)
        there = [each for each, in_folder in zip(inputs, listed, strict=True) if name in in_folder]
        pairs.append(_pair(name, inputs, there, wanted))
    return pairs, passed_over


def counts_text(pairs: Sequence[Pair]) -> str:
    """How many pairs there are of each status, such as `2 same; 1 changed`."""
    counts = Counter(pair.status for pair in pairs)
    return "; ".join(f"{counts[status]:,} {WORDS[status][1]}" for status in reversed(STATUSES) if status in counts)


def accept(baseline: Path, new: Path, pairs: Sequence[Pair], rules: ReadRules = DEFAULT_RULES) -> str:
    """Make `baseline` like `new` and return a summary; nothing is lost, and no file is ever half-written.

    Replaced and removed files are copied to a folder beside the baseline. Raises ImageReadError, before anything is
    changed, where a picture cannot be read; ImageWriteError where a file cannot be written.
    """
    unreadable = [pair.name for pair in pairs if pair.status == "unreadable"]
    if unreadable:
        raise ImageReadError(f"Nothing was updated, as {', '.join(unreadable)} cannot be read: repair or remove it.")
    replaced = [pair.name for pair in pairs if pair.status in ("changed", "layout")]
    added = [pair.name for pair in pairs if pair.status == "new"]
    removed = [pair.name for pair in pairs if pair.status == "missing"]
    if not (replaced or added or removed):
        return "the baseline needs no update"
    if is_held(str(new)):
        raise ImageReadError(f"Nothing was updated, as a batch is writing into {new}: wait until it has ended.")
    for name in replaced + added + removed:
        try:
            place_inside(baseline, name)
        except ForeignFileError as error:
            raise ImageWriteError(
                f"Nothing was updated: {baseline / name} {error}: replace the link by a file."
            ) from None
    now = datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S.%f")
    old = baseline.resolve().with_name(f"{baseline.resolve().name}.before-{now}")
    for name in replaced + removed:
        make_folder((old / name).parent)
        content = read_bytes(baseline / name, rules.max_bytes)
        write_bytes_atomically(old / name, content, mode_of=baseline / name)
    for name in replaced + added:
        make_folder((baseline / name).parent)
        write_bytes_atomically(baseline / name, read_bytes(new / name, rules.max_bytes))
    for name in removed:
        with reporting_errors(baseline / name):
            (baseline / name).unlink()
    said = f"baseline {baseline}: {len(replaced)} replaced, {len(added)} added, {len(removed)} removed"
    return f"{said}; the old files are in {old}" if replaced or removed else said


def _inputs(baseline: Path, new: Path, name: str, wanted: Wanted) -> Inputs:
    first, second = (FileInput(str(folder / name), wanted.convert, wanted.rules) for folder in (baseline, new))
    return first, second


def _pair(name: str, inputs: Inputs, there: Sequence[FileInput], wanted: Wanted) -> Pair:
    """What becomes of a name; of its two pictures those are `there` that the folders listed."""
    before, after = inputs
    if problem := next(filter(None, (special_file_problem(each.name) for each in there)), None):
        return Pair(name, "unreadable", problem)
    if there == [before]:
        return Pair(name, "missing", "not in the new folder")
    if there == [after]:
        return Pair(name, "new", "not in the baseline")
    try:
        if are_same(before.name, after.name):
            return Pair(name, "same", "the files are equal byte for byte")
        found = compare(before, [after], wanted.allowed(name), wanted.ssim)
    except LayoutError as error:
        return Pair(name, "layout", str(error))
    except (ImageReadError, MemoryLimitError) as error:
        return Pair(name, "unreadable", str(error))
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    return Pair(name, "same" if found.same else "changed", text.summary(found), found)


def _pictures_in(folder: Path, passed_over: Counter[str]) -> set[str]:
    """Names relative to `folder`, with forward slashes; other files are counted by suffix.

    Raises ImageReadError for a folder that cannot be listed: what is in it would pass for missing.
    """

    def refuse(error: OSError) -> None:
        raise ImageReadError(
            f"{error.filename}: the folder cannot be listed ({error.strerror}): check its permissions."
        ) from None

    found = set()
    for place, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.startswith("."):
                continue
            if Path(name).suffix.lower() in SUFFIXES:
                found.add((Path(place) / name).relative_to(folder).as_posix())
            else:
                passed_over[Path(name).suffix.lower()] += 1
    return found


def _list(page: Page, pair: Pair, inputs: Inputs) -> None:
    """Show a pair in the gallery; the viewer opens what has changed, as far as its pictures fit into the page."""
    before, after = inputs
    detail, thumbnails, opens = pair.detail, {}, None
    if pair.diff is not None:
        thumbnails = pictures.changed_thumbnails(before, after, pair.diff.comparisons[0].regions)
        opens = page.add(pair.name, before, [after], pair.diff)
        if opens is None:
            detail += " (not in the viewer: the page would be larger than --page-limit)"
    alone = {pictures.REFERENCE: (before, ("layout", "missing")), pictures.NEW: (after, ("layout", "new"))}
    for label, (source, statuses) in alone.items():
        if pair.status in statuses:
            try:
                thumbnails[label] = pictures.alone(source.load().pixels)
            except (ImageReadError, MemoryLimitError) as error:
                detail += f"; {error}"
    page.list_pair(pair.name, pair.status, detail, thumbnails, opens)


def _case(pair: Pair) -> junit.JUnitCase:
    if pair.diff is not None:
        return text.case(pair.name, pair.diff, 0)
    outcomes: dict[PairStatus, junit.JUnitOutcome] = {"same": "passed", "unreadable": "error"}
    return junit.JUnitCase(pair.name, outcomes.get(pair.status, "failure"), f"{pair.status}: {pair.detail}")
