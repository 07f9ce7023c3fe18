"""`edgeconv bench`: measure a grid; `bench compare`: two records, row by row; `bench gemm`, `bench conv`: ladders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from edgeconv.cli import comparing, shared_options
from edgeconv.cli.printing import say, say_lines
from edgeconv.cli.unused_options import RefusingCommand

GRID_COMMAND = "grid"

BlocksWord = Annotated[str, typer.Option("--blocks", help="Thread-block shapes of each step: usual or all.")]
LadderTime = Annotated[float, typer.Option("--time-limit", help="Seconds of sampling a row.")]
RecordPath = Annotated[Path, typer.Option("--output", "-o", help="The record, as JSON.")]


class _GridUnlessNamed(TyperGroup):
    """`edgeconv bench --grid lab` is `edgeconv bench grid --grid lab`: a first word that is no command is a picture."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See click.Group.parse_args."""
        if not args or args[0] not in self.commands:
            args = [GRID_COMMAND, *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest


app = typer.Typer(cls=_GridUnlessNamed, add_completion=False)


@app.command(GRID_COMMAND, hidden=True, cls=RefusingCommand)
def grid(
    pictures: Annotated[
        list[str] | None, typer.Argument(help="Pictures or folders, resized to --sizes. Default: noise.")
    ] = None,
    grid_name: Annotated[
        str, typer.Option("--grid", help="lab, gpu, processor, quick, or a TOML file; the options below change it.")
    ] = "quick",
    sizes: Annotated[str | None, typer.Option(help="Longest sides: '128,512', or '128:4096' for doublings.")] = None,
    strides: Annotated[str | None, typer.Option(help="'1,2,3'.")] = None,
    methods: Annotated[
        str | None,
        typer.Option(help="all, or names with options: 'sliding,im2col:gemm=cublas,cudnn:find,implicit:math=tf32'."),
    ] = None,
    peers: Annotated[str | None, typer.Option(help="all, none, or names: what else one could use.")] = None,
    dtypes: Annotated[str | None, typer.Option(help="uint8, uint16, float16, float32, or all.")] = None,
    filters: Annotated[
        str | None, typer.Option(help="Names of 'edgeconv filters', random, random-whole, or all.")
    ] = None,
    channels: Annotated[str | None, typer.Option(help="mix, each, luma, or all.")] = None,
    devices: Annotated[str | None, typer.Option(help="cpu, cuda, or all.")] = None,
    padding: shared_options.Padding = "same",
    border: shared_options.BorderWord = "zero",
    output_mode: shared_options.OutputModeWord = None,
    l2: Annotated[str, typer.Option(help="State of the last-level cache: both, cold or warm.")] = "both",
    noise: Annotated[str, typer.Option(help="Stop sampling at (p90 − p10) / median of this.")] = "2%",
    time_limit: Annotated[float, typer.Option(help="Seconds of sampling an entrant, work and L2 state.")] = 0.12,
    samples: Annotated[int, typer.Option(help="Most samples an entrant, work and L2 state.")] = 100,
    check: Annotated[str, typer.Option(help="Compare with the float64 oracle before timing: sample or full.")] = (
        "sample"
    ),
    around: Annotated[bool, typer.Option(help="Also time the bus, end to end, decoding and encoding.")] = True,
    threads: shared_options.Threads = None,
    workspace_limit: shared_options.WorkspaceLimit = shared_options.DEFAULT_WORKSPACE_LIMIT,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files (made if missing).")] = Path(
        "results"
    ),
    name: Annotated[str, typer.Option(help="Stem of the files' names.")] = "bench",
    formats: Annotated[
        str, typer.Option(help="json, csv, markdown, html, plot, or all that can be made here.")
    ] = "all",
    stop_after: Annotated[
        float | None, typer.Option(help="Seconds after which no further work is begun; --resume goes on.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a record that was stopped.")] = False,
    overwrite: comparing.Overwrite = False,
    max_pixels: shared_options.MaxPixels = shared_options.DEFAULT_MAX_PIXELS,
    max_bytes: shared_options.MaxBytes = shared_options.DEFAULT_MAX_BYTES,
    strict: shared_options.Strict = False,
) -> None:
    """Measure a grid of works: each method and peer is checked first, then timed by turns beside a plain copy.

    See also --help of 'edgeconv bench compare', 'bench gemm' and 'bench conv'. Ends with 1 where a method's output is
    wrong.
    """
    import sys

    from edgeconv.bench.arguments import chosen_grid, parse_rules
    from edgeconv.bench.runner import BenchRun, run
    from edgeconv.cli.options import parse_options, parse_read_rules
    from edgeconv.errors import EXIT_DIFFERENT, UsageError
    from edgeconv.export import EXPORTERS, export, find_exporter
    from edgeconv.io.resize import find_pictures
    from edgeconv.run.progress import Progress

    axes = {
        "sizes": sizes,
        "strides": strides,
        "methods": methods,
        "peers": peers,
        "dtypes": dtypes,
        "filters": filters,
        "channels": channels,
        "devices": devices,
    }
    rules = parse_rules(l2, noise, time_limit, samples, check, around, padding, border, output_mode)
    reasons = {entry.name: entry.unavailable_reason() for entry in EXPORTERS}
    wanted = [item.strip() for item in formats.split(",")]
    if wanted == ["all"]:
        wanted = [entry for entry, reason in reasons.items() if reason is None]
    for entry in wanted:
        find_exporter(entry)
    if stop_after is not None and not stop_after >= 0:
        raise UsageError(f"--stop-after {stop_after} is not a number of seconds from 0.")
    plan = BenchRun(
        grid=chosen_grid(grid_name, axes),
        rules=rules,
        options=parse_options(workspace_limit, threads, "fma", "own", False),
        pictures=tuple(map(str, find_pictures(pictures))) if pictures else (),
        read_rules=parse_read_rules(max_pixels, max_bytes, strict),
        path=output / f"{name}.json",
        resume=resume,
        stop_after_seconds=stop_after,
        command=tuple(sys.argv[1:]),
    )
    _make_room(output, name, resume or overwrite)
    shown: list[Progress] = []

    def progress(done: int, total: int, note: str) -> None:
        if not shown:
            shown.append(Progress(total, "Mpixel"))
        shown[0].update(done, note)

    try:
        record = run(plan, progress)
    finally:
        for line in shown:
            line.close()
    for path in [output / f"{name}.json", *export([record], [item for item in wanted if item != "json"], output, name)]:
        say(path)
    for warning in record["warnings"]:
        say(f"edgeconv: {warning}", err=True)
    for entry, reason in reasons.items():
        if formats == "all" and reason is not None:
            say(f"edgeconv: format {entry} left out: {reason}", err=True)
    if any(row["status"] == "wrong" and row["kind"] == "method" for row in record["rows"]):
        raise typer.Exit(EXIT_DIFFERENT)


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


@app.command("compare", cls=RefusingCommand)
def compare(
    base: Annotated[Path, typer.Argument(help="The record to measure against.")],
    new: Annotated[Path, typer.Argument(help="The record in question.")],
    fail_on: Annotated[str, typer.Option(help="Statistic and margin: median:5%, p90:10%.")] = "median:5%",
    allow: Annotated[
        str,
        typer.Option(
            help="Compare although these differ: machine, clocks, versions, options, pictures, grid, load (by commas)."
        ),
    ] = "",
    markdown: Annotated[Path | None, typer.Option(help="Write the table to this file too.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
    overwrite: comparing.Overwrite = False,
) -> None:
    """Same, faster, slower or ambiguous, row by row, from the samples. Ends with 1 only for a real slowdown."""
    from edgeconv.bench.compare import UNLIKES, parse_gate, to_junit, to_markdown
    from edgeconv.bench.compare import compare as compare_records
    from edgeconv.bench.record import read_record
    from edgeconv.diff.outputs import Outputs
    from edgeconv.errors import EXIT_DIFFERENT, UsageError
    from edgeconv.io.files import utf8

    allowed = tuple(word.strip() for word in allow.split(",") if word.strip())
    for word in allowed:
        if word not in UNLIKES:
            raise UsageError(f"--allow '{word}' is not one of {', '.join(UNLIKES)}.")
    outputs = Outputs((str(base), str(new)), overwrite)
    for path in (markdown, junit):
        if path is not None:
            outputs.reserve_file(path)
    comparison = compare_records(read_record(base), read_record(new), parse_gate(fail_on), allowed)
    text = to_markdown(comparison)
    if markdown is not None:
        outputs.add(markdown, utf8(text))
    if junit is not None:
        outputs.add(junit, to_junit(comparison))
    outputs.write()
    say_lines(text, nl=False)
    if not comparison.passed:
        raise typer.Exit(EXIT_DIFFERENT)


@app.command("gemm", cls=RefusingCommand)
def gemm(
    sizes: Annotated[str, typer.Option(help="Sides: '512,1024', or '512:8192' for every doubling.")] = "512:8192",
    dtypes: Annotated[str, typer.Option(help="float32, float64, or both with a comma.")] = "float32,float64",
    blocks: BlocksWord = "usual",
    time_limit: LadderTime = 0.2,
    output: RecordPath = Path("gemm.json"),
    overwrite: comparing.Overwrite = False,
) -> None:
    """The ladder of matrix products on a GPU, from a thread an element to cuBLAS; ends with 1 where one is wrong."""
    from edgeconv.bench.ladders.gemm_kernels import REALS
    from edgeconv.errors import UsageError
    from edgeconv.io.resize import parse_sizes

    chosen = [word.strip() for word in dtypes.split(",")]
    if not set(chosen) <= set(REALS):
        raise UsageError(f"--dtypes '{dtypes}' is not {' or '.join(REALS)}, or both with a comma.")
    _ladder("gemm", parse_sizes(sizes), chosen, blocks, time_limit, output, overwrite)


@app.command("conv", cls=RefusingCommand)
def conv(
    sizes: Annotated[str, typer.Option(help="Sides: '512,1024', or '128:4096' for every doubling.")] = "128:4096",
    strides: Annotated[str, typer.Option(help="'1,2,3'.")] = "1,2,3",
    blocks: BlocksWord = "usual",
    time_limit: LadderTime = 0.2,
    output: RecordPath = Path("conv.json"),
    overwrite: comparing.Overwrite = False,
) -> None:
    """The ladder of convolutions on a GPU, from the textbook kernel to the shipped; ends with 1 where one is wrong."""
    from edgeconv.bench.ladders.conv_kernels import STRIDES
    from edgeconv.errors import UsageError
    from edgeconv.io.resize import parse_sizes

    chosen = [int(word) if word.strip().isdecimal() else 0 for word in strides.split(",")]
    if not set(chosen) <= set(STRIDES):
        raise UsageError(f"--strides '{strides}' are not some of {', '.join(map(str, STRIDES))}.")
    _ladder("conv", parse_sizes(sizes), chosen, blocks, time_limit, output, overwrite)


def _ladder(
    name: str,
    sizes: Sequence[int],
    others: Sequence[Any],
    blocks: str,
    seconds: float,
    output: Path,
    overwrite: bool,
) -> None:
    """Measure a ladder at all sizes, and each of `others` (types or strides); write the record and show it."""
    from importlib import import_module

    from edgeconv.diff.outputs import Outputs
    from edgeconv.errors import EXIT_DIFFERENT, UnavailableError, UsageError
    from edgeconv.hardware.cuda.probe import cuda_unavailable_reason

    if blocks not in ("usual", "all"):
        raise UsageError(f"--blocks '{blocks}' is not one of usual, all.")
    if not seconds > 0:
        raise UsageError("--time-limit must be above 0.")
    Outputs((), overwrite).reserve_file(output)
    reason = cuda_unavailable_reason()
    if reason is not None:
        raise UnavailableError(f"'edgeconv bench {name}' needs an NVIDIA GPU: {reason}.")
    from edgeconv.bench.record import to_json
    from edgeconv.bench.watch import Watch, gpu_reader
    from edgeconv.core.timing import Budget
    from edgeconv.export.markdown import every_row
    from edgeconv.io.files import write_bytes_atomically
    from edgeconv.run.progress import Progress
    from edgeconv.runtime.devices import get_device

    ladder = import_module(f"edgeconv.bench.ladders.{name}")
    budget = Budget(min_samples=5, max_samples=50, time_limit_seconds=seconds, turns=3)
    line = Progress(len(sizes) * len(others), "works")
    try:
        device, watch = get_device("cuda"), Watch("cuda", gpu_reader())
        record = ladder.measure(sizes, others, blocks, budget, device, watch, line.update)
    finally:
        line.close()
    write_bytes_atomically(output, to_json(record))
    say_lines(every_row(record))
    say(output)
    if not all(row["right"] for row in record["rows"]):
        raise typer.Exit(EXIT_DIFFERENT)
