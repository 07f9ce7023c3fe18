"""`edgeconv bench`: measure a grid; `bench ab`: two versions, by turns; `bench gemm`, `bench conv`: ladders."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from edgeconv.cli.printing import columns, has_colours, say, say_drawn, say_lines
from edgeconv.cli.progress import Progress
from edgeconv.core.option import Only, Positional
from edgeconv.core.text import visible
from edgeconv.errors import EXIT_DIFFERENT, EXIT_OK
from edgeconv.options import BenchFiltering, BenchOutput, ConvLadder, GemmLadder, GridAxes, Pairing, Timing

if TYPE_CHECKING:
    from edgeconv.bench.ladders.base import LadderTable
    from edgeconv.bench.record import BenchRow
    from edgeconv.page import Table


def grid(
    axes: GridAxes,
    filtering: Annotated[BenchFiltering, Only(("padding", "border", "output_mode"))],
    timing: Timing,
    target: BenchOutput,
) -> int:
    """Measure a grid of cases, methods and peers.

    Each method and peer is checked first, then timed by turns beside a plain copy. See also --help of
    'edgeconv bench ab', 'bench gemm' and 'bench conv'. Ends with 1 where a method is wrong or
    disqualified, and where none could be timed.
    """
    from edgeconv.bench.grid import chosen_grid, parse_rules
    from edgeconv.bench.runner import run
    from edgeconv.bench.synthetic import DRAWN_FILTERS, bench_filter
    from edgeconv.export import export, parse_formats
    from edgeconv.export.console_summary import case_line, summary_lines, summary_tables

    formats = parse_formats(target.formats)
    path = target.output / f"{target.name}.json"
    cases, rules = chosen_grid(axes), parse_rules(timing, filtering)
    for name in {name for part in cases.parts for name in part.filters} - set(DRAWN_FILTERS):
        bench_filter(name, "mix")  # refuses a chain before anything is written
    _make_room(target.output, target.name, target.resume or target.overwrite)

    def told(rows: Sequence[BenchRow]) -> None:
        line.clear()
        say(case_line(rows))

    with Progress("cases") as line:
        record = run(cases, rules, path, target.resume, target.stop_after, sys.argv[1:], line.update, told)
    say_lines("\n".join(["", *map(visible, summary_lines(record))]))
    for written in [path, *export([record], formats, target.output, target.name)]:
        say(written)
    for table in summary_tables(record):
        _say_table(table)
    for note in record.warnings:
        say(f"edgeconv: {note}", err=True)
    methods = [row for row in record.rows if row.kind == "method"]
    none_timed = record.complete and methods and not any(row.timings for row in methods)
    wrong = any(row.status in ("wrong", "disqualified") for row in methods)
    return EXIT_DIFFERENT if none_timed or wrong else EXIT_OK


def _say_table(table: Table) -> None:
    """As Markdown, or drawn for a terminal."""
    from edgeconv.export import markdown, terminal

    width = columns(sys.stdout)
    if width is None:
        say_lines(markdown.as_text(table), nl=False)
    else:
        say_drawn(terminal.draw(table, width, has_colours(sys.stdout)))


def _make_room(folder: Path, name: str, replace: bool) -> None:
    """Make the folder of a bench; what an earlier one of that name left there stays, unless it may be replaced."""
    from edgeconv.errors import ImageWriteError
    from edgeconv.io.atomic import make_folder

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
    axes: Annotated[
        GridAxes, Only(("sizes", "strides", "methods", "dtypes", "filters", "channels", "devices", "seed", "cases"))
    ],
    pairing: Pairing,
) -> int:
    """Time two versions by turns, in pairs of processes.

    Each row is a public call. B is slower where the whole interval of B / A is above the margin; then the command ends
    with 1, and where no row could run. Rows without a verdict need more time.
    """
    from edgeconv.bench.ab import ab_cases, compare_sides, side_of
    from edgeconv.bench.grid import chosen_grid, parse_share
    from edgeconv.core.records import to_json
    from edgeconv.export.tables import comparison, comparison_text
    from edgeconv.io.outputs import Outputs

    margin = parse_share("--fail-on", pairing.fail_on)
    cases = ab_cases(chosen_grid(replace(axes, grid=pairing.grid)))
    with Outputs([pairing.grid], pairing.overwrite) as outputs:
        output = None if pairing.output is None else outputs.reserve(pairing.output)
        with Progress("rows") as line, side_of(a) as first, side_of(b) as second:
            record = compare_sides(first, second, cases, pairing.time_limit, line.update)
        if output is not None:
            outputs.add(output, to_json(record))
        outputs.put()
    _say_table(comparison(record, margin))
    say(comparison_text(record, margin))
    failed = all(row.cannot for row in record.rows) or any(row.verdict(margin) == "slower" for row in record.rows)
    return EXIT_DIFFERENT if failed else EXIT_OK


def gemm(ladder: GemmLadder) -> int:
    """Time the ladder of matrix products on a GPU.

    From one thread per element to cuBLAS; ends with 1 where one is wrong.
    """
    from edgeconv.bench.ladders.gemm import LADDER, REALS

    return _climb(LADDER, ladder, _chosen("--dtypes", ladder.dtypes, REALS))


def conv(ladder: ConvLadder) -> int:
    """Time the ladder of convolutions on a GPU.

    From the textbook kernel to the method itself; ends with 1 where one is wrong.
    """
    from edgeconv.bench.ladders.conv import LADDER, STRIDES

    return _climb(LADDER, ladder, _chosen("--strides", ladder.strides, STRIDES))


def _chosen(flag: str, text: str, known: Iterable[Any]) -> list[Any]:
    """Some of what is known, by words between commas."""
    from edgeconv.errors import UsageError

    of_word, words = {str(each): each for each in known}, [word.strip() for word in text.split(",")]
    if not set(words) <= set(of_word):
        raise UsageError(f"{flag} '{text}' are not some of {', '.join(of_word)}, with commas.")
    return [of_word[word] for word in words]


def _climb(table: LadderTable, ladder: GemmLadder | ConvLadder, others: list[Any]) -> int:
    """Measure a ladder at all sizes, and each of some types or strides; write the record and show it."""
    from edgeconv.core.records import to_json
    from edgeconv.core.timing import Budget
    from edgeconv.errors import UnavailableError
    from edgeconv.export.rows import every_row
    from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
    from edgeconv.hardware.devices import get_device
    from edgeconv.io.outputs import Outputs
    from edgeconv.io.resize import parse_sizes

    sizes = parse_sizes(ladder.sizes)
    budget = Budget(min_samples=5, max_samples=50, time_limit_seconds=ladder.time_limit, turns=3)
    with Outputs(overwrite=ladder.overwrite) as outputs:
        output = outputs.reserve(ladder.output)
        if (reason := cuda_unavailable_reason()) is not None:
            raise UnavailableError(f"'edgeconv {table.kind}' needs an NVIDIA GPU: {reason}.")
        with Progress("cases") as line:
            record = table.measure(sizes, others, ladder.blocks, budget, get_device("cuda"), line.update)
        outputs.add(output, to_json(record))
        outputs.put()
    _say_table(every_row(record))
    say(output)
    return EXIT_OK if all(row.right for row in record.rows) else EXIT_DIFFERENT
