"""`edgeconv bench`: measure a grid; `bench ab`: two versions, by turns; `bench gemm`, `bench conv`: ladders."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgeconv.cli.printing import columns, has_colours, say, say_drawn, say_lines
from edgeconv.core.option import Only, Positional
from edgeconv.core.safe_text import visible
from edgeconv.options import (
    BenchOutput,
    ConvLadder,
    Filtering,
    GemmLadder,
    GridAxes,
    Ladder,
    MethodOptions,
    Pairing,
    Reading,
    Replacing,
    Timing,
)

if TYPE_CHECKING:
    from edgeconv.bench.record import BenchRecord, BenchRow
    from edgeconv.export.tables import Table


def grid(
    axes: GridAxes,
    filtering: Annotated[Filtering, Only("padding", "border", "output_mode")],
    timing: Timing,
    method: Annotated[MethodOptions, Only("threads", "workspace_limit")],
    target: BenchOutput,
    replacing: Replacing,
    reading: Annotated[Reading, Only("max_pixels", "max_bytes", "strict")],
    pictures: Annotated[
        list[str] | None, Positional("Pictures or folders, resized to --sizes. Default: noise.")
    ] = None,
) -> None:
    """Measure a grid of cases, methods and peers.

    Each method and peer is checked first, then timed by turns beside a plain copy. See also --help of
    'edgeconv bench ab', 'bench gemm' and 'bench conv'. Ends with 1 where a method is wrong or
    disqualified, and where none could be timed.
    """
    from edgeconv.bench.arguments import chosen_grid, parse_rules
    from edgeconv.bench.runner import BenchRun, run
    from edgeconv.errors import EXIT_DIFFERENT, UsageError
    from edgeconv.export import export
    from edgeconv.export.spoken import case_line, summary_lines
    from edgeconv.io.resize import find_pictures
    from edgeconv.run.progress import Progress

    formats, left_out = _formats(target.formats)
    if target.stop_after is not None and not target.stop_after >= 0:
        raise UsageError(f"--stop-after {target.stop_after} is not a number of seconds from 0.")
    path = target.output / f"{target.name}.json"
    plan = BenchRun(
        grid=chosen_grid(axes),
        rules=parse_rules(timing, filtering),
        options=method.options(),
        pictures=tuple(map(str, find_pictures(pictures))) if pictures else (),
        read_rules=replace(reading.rules(), rgb=True),  # the cases of a grid have three channels
        path=path,
        resume=target.resume,
        stop_after_seconds=target.stop_after,
        command=tuple(sys.argv[1:]),
    )
    _make_room(target.output, target.name, target.resume or replacing.overwrite)
    shown: list[Progress] = []

    def progress(done: int, total: int, note: str) -> None:
        if not shown:
            shown.append(Progress(total, "Mpixel"))
        shown[0].update(done, note)

    def told(rows: Sequence[BenchRow]) -> None:
        for bar in shown:
            bar.clear()
        say(case_line(rows))

    try:
        record = run(plan, progress, told)
    finally:
        for bar in shown:
            bar.clear()
    say_lines("\n".join(["", *map(visible, summary_lines(record))]))
    for written in [path, *export([record], [name for name in formats if name != "json"], target.output, target.name)]:
        say(written)
    _say_surface(record)
    _say_notes(record, left_out)
    methods = [row for row in record.rows if row.kind == "method"]
    none_timed = record.complete and methods and not any(row.timings for row in methods)
    if none_timed or any(row.status in ("wrong", "disqualified") for row in methods):
        raise typer.Exit(EXIT_DIFFERENT)


def _say_surface(record: BenchRecord) -> None:
    """The table that a bench ends with; of drawn cases their distribution."""
    from edgeconv.export.spoken import summary_tables

    for table in summary_tables(record):
        _say_table(table)


def _say_table(table: Table) -> None:
    """As Markdown, or drawn for a terminal."""
    from edgeconv.export import markdown, terminal

    width = columns(sys.stdout)
    if width is None:
        say_lines(markdown.as_text(table), nl=False)
    else:
        say_drawn(terminal.draw(table, width, has_colours(sys.stdout)))


def _formats(text: str) -> tuple[list[str], dict[str, str]]:
    """The formats that are wanted; and of `all` those that cannot be made here, with the reason. Raises UsageError."""
    from edgeconv.export import EXPORTERS, find_exporter

    wanted = [item.strip() for item in text.split(",")]
    for name in wanted if wanted != ["all"] else ():
        find_exporter(name)
    if wanted != ["all"]:
        return wanted, {}
    reasons = {entry.name: entry.unavailable_reason() for entry in EXPORTERS}
    left_out = {name: reason for name, reason in reasons.items() if reason is not None}
    return [name for name in reasons if name not in left_out], left_out


def _say_notes(record: BenchRecord, left_out: dict[str, str]) -> None:
    for warning in record.warnings:
        say(f"edgeconv: {warning}", err=True)
    for name, reason in left_out.items():
        say(f"edgeconv: format {name} left out: {reason}", err=True)


def _make_room(folder: Path, name: str, replace: bool) -> None:
    """Make the folder of a bench; what an earlier one of that name left there stays, unless it may be replaced."""
    from edgeconv.errors import ImageWriteError
    from edgeconv.io.files import make_folder

    make_folder(folder)
    try:
        taken = [path for path in sorted(folder.iterdir()) if path.name.startswith((f"{name}.", f"{name}_"))]
    except OSError as error:
        raise ImageWriteError(f"Output folder '{folder}' cannot be used: {error.strerror}.") from None
    if taken and not replace:
        raise ImageWriteError(f"Output '{taken[0]}' exists: pass --resume, --overwrite, or another --name.")


def ab(
    a: Annotated[str, Positional("A source folder, a git revision, or the Python of another environment.")],
    b: Annotated[str, Positional("The version in question.")],
    pairing: Pairing,
    replacing: Replacing,
) -> None:
    """Time two versions by turns, over pairs of processes.

    Each row is a public call. B is slower where the whole interval of B / A is above the margin; then the command ends
    with 1, and where no row could run. Rows without a verdict need more time.
    """
    from edgeconv.bench.ab import Pairs, compare_sides, side_of
    from edgeconv.bench.ab_cases import GUARD, chosen
    from edgeconv.bench.arguments import parse_share
    from edgeconv.bench.record import to_json
    from edgeconv.diff.outputs import Outputs
    from edgeconv.errors import EXIT_DIFFERENT, UsageError
    from edgeconv.export import ab as shown
    from edgeconv.run.progress import Progress

    if not pairing.time_limit > 0 or (pairing.pairs is not None and pairing.pairs < 1):
        raise UsageError("--time-limit must be above 0, and --pairs a whole number from 1.")
    margin, planted = parse_share("--fail-on", pairing.fail_on), parse_share("--plant", pairing.plant)
    cases = chosen(pairing.rows or GUARD, pairing.only)
    outputs = Outputs((str(pairing.rows),), replacing.overwrite)
    if pairing.output is not None:
        outputs.reserve_file(pairing.output)
    line = Progress(len(cases), "rows")
    try:
        with side_of(a) as first, side_of(b) as second:
            pairs = Pairs(pairing.time_limit, pairing.pairs, planted, line.update)
            record = compare_sides(first, second, cases, pairs)
    finally:
        line.close()
    if pairing.output is not None:
        outputs.add(pairing.output, to_json(record))
    outputs.write()
    _say_table(shown.table(record, margin))
    say(shown.summary(record, margin))
    if all(row.cannot for row in record.rows) or any(row.verdict(margin) == "slower" for row in record.rows):
        raise typer.Exit(EXIT_DIFFERENT)


def gemm(ladder: GemmLadder, replacing: Replacing) -> None:
    """Time the ladder of matrix products on a GPU.

    From one thread per element to cuBLAS; ends with 1 where one is wrong.
    """
    from edgeconv.bench.ladders.gemm_kernels import REALS
    from edgeconv.errors import UsageError

    chosen = [word.strip() for word in ladder.dtypes.split(",")]
    if not set(chosen) <= set(REALS):
        raise UsageError(f"--dtypes '{ladder.dtypes}' is not {' or '.join(REALS)}, or both with a comma.")
    _climb("gemm", ladder, ladder.sizes, chosen, ladder.output, replacing)


def conv(ladder: ConvLadder, replacing: Replacing) -> None:
    """Time the ladder of convolutions on a GPU.

    From the textbook kernel to the method itself; ends with 1 where one is wrong.
    """
    from edgeconv.bench.ladders.conv_kernels import STRIDES
    from edgeconv.errors import UsageError

    chosen = [int(word) if word.strip().isdecimal() else 0 for word in ladder.strides.split(",")]
    if not set(chosen) <= set(STRIDES):
        raise UsageError(f"--strides '{ladder.strides}' are not some of {', '.join(map(str, STRIDES))}.")
    _climb("conv", ladder, ladder.sizes, chosen, ladder.output, replacing)


def _climb(
    name: str, ladder: Ladder, sizes_text: str, others: Sequence[Any], output: Path, replacing: Replacing
) -> None:
    """Measure a ladder at all sizes, and each of `others` (types or strides); write the record and show it."""
    from importlib import import_module

    from edgeconv.diff.outputs import Outputs
    from edgeconv.errors import EXIT_DIFFERENT, UnavailableError, UsageError
    from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
    from edgeconv.io.resize import parse_sizes

    sizes, seconds = parse_sizes(sizes_text), ladder.time_limit
    if not seconds > 0:
        raise UsageError("--time-limit must be above 0.")
    Outputs((), replacing.overwrite).reserve_file(output)
    reason = cuda_unavailable_reason()
    if reason is not None:
        raise UnavailableError(f"'edgeconv bench {name}' needs an NVIDIA GPU: {reason}.")
    from edgeconv.bench.record import to_json
    from edgeconv.bench.watch import Watch, gpu_reader
    from edgeconv.core.timing import Budget
    from edgeconv.export import ladders
    from edgeconv.io.files import write_bytes_atomically
    from edgeconv.run.progress import Progress
    from edgeconv.runtime.devices import get_device

    steps = import_module(f"edgeconv.bench.ladders.{name}")
    budget = Budget(min_samples=5, max_samples=50, time_limit_seconds=seconds, turns=3)
    line = Progress(len(sizes) * len(others), "cases")
    try:
        device, watch = get_device("cuda"), Watch("cuda", gpu_reader())
        record = steps.measure(sizes, others, ladder.blocks, budget, device, watch, line.update)
    finally:
        line.close()
    write_bytes_atomically(output, to_json(record))
    _say_table(ladders.every_row(record))
    say(output)
    if not all(row.right for row in record.rows):
        raise typer.Exit(EXIT_DIFFERENT)


COMMANDS: dict[str, Callable[..., None]] = {"grid": grid, "ab": ab, "gemm": gemm, "conv": conv}
"""By the word behind `edgeconv bench`; no word is the first."""
