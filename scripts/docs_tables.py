"""Write the tables of README.md, docs/ and the ladders' sources from the code and from committed results.

A table stands between `<!-- table NAME -->` and `<!-- end NAME -->`, in a source behind `// `. Its rows come from the
tables in the package (methods, filters, steps) or from the reports under docs/results, never from a keyboard.
`--check` only compares.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from statistics import median
from typing import Any

import canny_tables
import committed
import crew_tables
import readme_figures
import surface_tables
from script_options import PROJECT, Arguments

from edgeconv.bench.grid import GRIDS
from edgeconv.bench.ladders.base import PROFILE, LadderProfile
from edgeconv.bench.ladders.conv import KIND as CONV
from edgeconv.bench.ladders.conv import ConvRecord
from edgeconv.bench.ladders.conv_kernels import STRIDES
from edgeconv.bench.ladders.gemm import KIND as GEMM
from edgeconv.bench.ladders.gemm import GemmRecord
from edgeconv.bench.peers import PEERS
from edgeconv.bench.record import BenchRecord, read_record
from edgeconv.bench.referee.faults import FAULTS
from edgeconv.core.chains import STAGES
from edgeconv.core.choices import DEFAULT_FILTER
from edgeconv.core.cost import share_of_limit
from edgeconv.core.filters import FILTERS
from edgeconv.core.option import listed, options_of
from edgeconv.core.units import seconds_text
from edgeconv.export import ladders
from edgeconv.export.banks import BankSeries, bank_header, bank_line, bank_map, bank_series
from edgeconv.export.tables import Table, fastest, goals, lines_of, percent
from edgeconv.io.records import read_record as read_kinds
from edgeconv.methods import METHODS
from edgeconv.methods.options import Options
from edgeconv.run.report import as_report
from edgeconv.view.qt.actions import listed_keys

SOURCES = tuple(f"edgeconv/bench/ladders/{name}_kernels.cu" for name in ("conv", "gemm"))
PAGES = (
    "README.md",
    *(
        f"docs/{name}.md"
        for name in (
            "operation",
            "canny",
            "results",
            "bench",
            "banks",
            "diff",
            "view",
            "kernels",
            "kernels-tried",
            "reading",
            "batch",
            "tiles",
            "api",
            "cpu-engine",
        )
    ),
    *SOURCES,
)

MARKED = re.compile(
    r"(?P<open>(?P<comment>// |)<!-- table (?P<name>[\w-]+) -->\n).*?(?P<close>(?P=comment)<!-- end (?P=name) -->)",
    re.DOTALL,
)


def methods() -> str:
    """The table of methods."""
    rows = ([f"`{entry.name}`", entry.device.upper(), entry.summary] for entry in METHODS)
    return lines_of(("method", "device", "what it does"), rows)


def method_options() -> str:
    """The table of what a user may tell a method."""
    rows = []
    for entry in options_of(Options):
        methods, device = entry.declared.methods, (entry.declared.device or "").upper()
        default = entry.default if entry.declared.text is None else entry.declared.text
        choices = listed(entry.choices) if entry.choices else "given or not" if entry.type is bool else "a number"
        spelling = entry.spelling if entry.type is bool else f"{entry.spelling}="
        shown = "auto" if default is None else "not given" if default is False else str(default)
        concerned = f"{listed(methods, 'and')} ({device})" if methods else "all"
        rows.append([f"`{entry.flag}`", f"`{spelling}`", concerned, choices, shown])
    return lines_of(("option", "behind a colon", "methods", "takes", "default"), rows)


def filters() -> str:
    """The table of filters."""

    def row(kernel: Any) -> str:
        return "; ".join(" ".join(f"{value:g}" for value in line) for line in kernel)

    rows = []
    for entry in FILTERS:
        kernels = f"`{row(entry.kernels[0])}`" + (f" and {entry.directions - 1} more" if entry.directions > 1 else "")
        mark = " (default)" if entry.name == DEFAULT_FILTER else ""
        rows.append([f"`{entry.name}`{mark}", kernels, entry.summary, entry.source])
    return lines_of(("filter", "kernel", "response", "source"), rows)


def stages() -> str:
    """The table of the stages of chains."""
    rows = []
    for stage in STAGES:
        weights = f"`{' '.join(map(str, stage.weights))}`" if stage.weights else "–"
        rows.append([f"`{stage.name}`", stage.takes, stage.gives, weights, stage.summary])
    return lines_of(("stage", "takes", "gives", "weights", "what it does"), rows)


def run_reports(machine: str) -> str:
    """One line a report of scripts/run_matrix.py."""
    found = committed.record(f"run/{machine}")["reports"]
    rows = []
    for entry in METHODS:
        for stride in STRIDES:
            name = f"{entry.device}_{entry.name}_s{stride}"
            if name not in found:
                continue
            report = as_report(found[name])
            timing, speed, check = report.timing, report.speed, report.check
            assert timing.kernel is not None  # all of them were timed and checked
            assert speed is not None
            assert check is not None
            end_to_end = timing.end_to_end or timing.kernel
            rows.append(
                [
                    f"`{entry.name}`",
                    entry.device.upper(),
                    str(report.problem.stride),
                    seconds_text(timing.kernel.median_seconds),
                    f"{speed.kernel_gflops:,.1f}",
                    f"{speed.end_to_end_gflops:,.1f}",
                    f"{speed.gigabytes_per_second:,.1f}",
                    percent(share_of_limit(speed.memory_floor_share)),
                    seconds_text(end_to_end.median_seconds),
                    f"{check.relative_error:.1g}",
                ]
            )
    header = ("method", "device", "stride", "kernel", "GFLOPS", "end to end GFLOPS", "GB/s", "of memory floor")
    return lines_of((*header, "end to end", "relative error"), rows)


def calls(name: str) -> str:
    """Microseconds from call to call, by the side of the picture, of scripts/benchmark_calls.py."""
    found = committed.record(name)["calls_microseconds"]
    sides = list(found)
    rows = [[what, *(f"{found[side][what]:.1f}" for side in sides)] for what in found[sides[0]]]
    return lines_of(("µs from call to call", *(f"{side}×{side}" for side in sides)), rows)


"""The jobs of such a record, in words."""


def batches(name: str) -> str:
    """Each batch in one call, beside a device copy of as many bytes, of scripts/benchmark_calls.py."""
    found = committed.record(name)["batches"]
    rows = [
        [
            f"{row['pictures']:,} of {row['side']}×{row['side']}",
            f"{row['dtype']}, {row['filter']}, {row['channels']}",
            seconds_text(row["copy_seconds"]),
            seconds_text(row["batch_seconds"]),
            f"{row['copy_seconds'] / row['batch_seconds']:.2f}",
        ]
        for row in found
    ]
    return lines_of(("pictures", "of", "copy", "one call", "of the copy's speed"), rows)


def diff_cost(machine: str) -> str:
    """One line a pair of scripts/benchmark_diff.py."""
    record = committed.record(f"diff/{machine}")
    rows = [
        [
            name.replace("_", " "),
            seconds_text(median(found["decoding_seconds"])),
            seconds_text(median(found["figures_seconds"])),
            f"{found['figures_over_decoding']:.2f} ×",
            f"{found['peak_over_one_picture']:.2f} ×",
            f"{found['page_bytes'] / 2**20:.1f} MiB",
        ]
        for name, found in record["pairs"].items()
    ]
    return lines_of(("against", "decoding both", "exact figures", "figures / decoding", "memory", "page"), rows)


def view_keys() -> str:
    """The keys of the window's commands."""
    rows = ([words, ", ".join(f"`{key}`" for key in keys)] for words, keys in listed_keys())
    return lines_of(("command", "keys"), rows)


def view_cost(machine: str) -> str:
    """Openings and stalls of scripts/benchmark_view.py."""
    record = committed.record(f"view/{machine}")
    opening, stall = record["opening"], record["stall"]
    found = {
        "opening, from the start of the process": (opening["process_seconds"], opening["process_goal_seconds"]),
        "opening, from its first line": (opening["application_seconds"], opening["application_goal_seconds"]),
    }
    found |= {
        f"longest stall, `{method}`": (seconds, stall["goal_seconds"])
        for method, seconds in stall["longest_seconds"].items()
    }
    rows = (
        [name, seconds_text(median(seconds)), seconds_text(max(seconds)), f"≤ {seconds_text(goal)}"]
        for name, (seconds, goal) in found.items()
    )
    return lines_of(("", "median", "most", "goal"), rows)


def reader_fuzz() -> str:
    """What became of damaged pictures in the run of scripts/fuzz_reader.py that is committed."""
    record = committed.record("reader_fuzz")
    outcomes = list(next(iter(record["outcomes"].values())))
    rows = ([kind, *(f"{counts[name]:,}" for name in outcomes)] for kind, counts in record["outcomes"].items())
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    beside = f"{record['cases']:,} cases, {len(record['failures'])} failures; {versions}.\n\n"
    return beside + lines_of(("kind of file", *outcomes), rows)


BATCH_COLUMNS = {
    "edgeconv batch": "batch",
    "codecs only": "codecs alone",
    "OpenCV loop": "OpenCV loop",
    "pyvips": "libvips",
    "ImageMagick mogrify": "mogrify",
}
"""Names in the records of scripts/benchmark_batch.py, and here."""
BATCH_ON_GPU = re.compile("edgeconv batch, JPEG on the (card|GPU)")


def batch_speed(machines: dict[str, str], on_gpu: bool = False) -> str:
    """Pictures per second, one line per machine."""
    rows = []
    for name, machine in machines.items():
        record = committed.one_of("batch", name)
        speed = record["pictures_per_second"]
        on_the_gpu = next((value for key, value in speed.items() if BATCH_ON_GPU.fullmatch(key)), None)
        figures = [_three_digits(speed.get(key)) for key in BATCH_COLUMNS]
        figures.insert(2, f"{record['share_of_codecs']:.2f}")
        if on_gpu:
            figures.insert(0, _three_digits(on_the_gpu))
        rounds = len(record["samples_seconds"]["edgeconv batch"])
        rows.append([machine, str(rounds), *figures])
    columns = list(BATCH_COLUMNS.values())
    columns.insert(2, "batch / codecs (goal 0.9)")
    return lines_of(("machine", "rounds", *(["batch, JPEG on the GPU"] if on_gpu else []), *columns), rows)


def _three_digits(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


TILES = {
    "tiles_two_cores": "two cores of an AMD EPYC",
    "tiles_beside_whole_two_cores": "two cores of an AMD EPYC",
    "tiles_h200": "one NVIDIA H200, 16 cores",
}
TILE_RUNS = {"tiles": "by tiles", "tiles_proved": "by tiles, `--verify-tiles`", "whole": "whole, without tiles"}


def tiles() -> str:
    """Time and memory of runs by tiles, one line per run of scripts/benchmark_tiles.py."""
    rows = []
    for name, machine in TILES.items():
        record = committed.record(name)
        side, limit = record["side"], record["limit_bytes"]
        link = committed.link(name, f"{side:,}×{side:,}")
        for run, words in TILE_RUNS.items():
            if run in record["runs"]:
                found = record["runs"][run]
                rows.append(
                    [
                        f"{link} ({record['picture_bytes'] / 1e9:.1f} GB)",
                        machine,
                        words,
                        "–" if run == "whole" else f"{limit / 2**20:,.0f} MiB",
                        f"{found['wall_seconds']:.1f} s",
                        f"{found['peak_bytes'] / 2**20:,.0f} MiB",
                    ]
                )
    return lines_of(("picture", "machine", "how", "`--memory-limit`", "elapsed", "peak of the process"), rows)


def faults() -> str:
    """What a candidate can be disqualified for."""
    return lines_of(("fault", "what was seen"), ([f"`{name}`", words] for name, words in FAULTS.items()))


def second_clock() -> str:
    """Of scripts/benchmark_second_clock.py."""
    found = committed.record("second_clock_h200")["rows"]
    rows = (
        [
            f"`{row['method']}`",
            f"{row['side']:,}²",
            seconds_text(row["edgeconv_median_seconds"]),
            seconds_text(row["nvbench_mean_seconds"]),
            f"{row['ratio']:.3f}",
        ]
        for row in found
    )
    return lines_of(("method", "size", "`edgeconv bench`, median", "nvbench, mean", "ratio"), rows)


def flushes() -> str:
    """Of scripts/benchmark_flush.py: a case and size in a line, the two flushes side by side."""
    found = committed.record("flush_h200")["rows"]
    rows = []
    for dirty, clean in zip(found[::2], found[1::2], strict=True):
        case = f"{dirty['dtype']}, {dirty['filter']}, {dirty['channels']}, stride {dirty['stride']}"
        cells = [
            cell
            for row in (dirty, clean)
            for cell in (
                seconds_text(row["floor_seconds"]),
                seconds_text(row["sliding_seconds"]),
                percent(row["share"]),
            )
        ]
        rows.append([case, f"{dirty['side']:,}²", *cells])
    dirty_names, clean_names = (
        [f"floor, {kind} L2", f"`sliding`, {kind} L2", f"share, {kind} L2"] for kind in ("dirty", "clean")
    )
    return lines_of(("case", "size", *dirty_names, *clean_names), rows)


def peers() -> str:
    """The table of peers."""
    kinds = {False: "library", True: "by hand"}
    rows = ([f"`{entry.name}`", entry.device.upper(), kinds[entry.written], entry.summary] for entry in PEERS)
    return lines_of(("peer", "device", "kind", "what it does"), rows)


def grids() -> str:
    """The table of named grids."""
    return lines_of(("grid", "what it holds"), ([f"`{grid.name}`", grid.summary] for grid in GRIDS))


def bench_table(machine: str, grid: str, make: Callable[[BenchRecord], Table]) -> str:
    """A table of a bench record, or a line that says that there is none yet."""
    path = committed.RESULTS / "bench" / machine / f"{grid}.json.xz"
    if not path.exists():
        return "Not measured yet.\n"
    record = read_record(path)
    table = make(record)
    names = ", ".join(facts.name for facts in record.machine.values())
    peers = sorted({row.candidate for row in record.rows if row.kind == "peer" and row.status == "measured"})
    beside = f"Peers with a time: {', '.join(peers)}." if peers else "No peers."
    return f"{names}, {record.created_utc}. {beside}\n\n" + lines_of(table.header, table.rows)


def bank_table(machine: str, in_channels: int, size: int = 2048) -> str:
    """Every candidate over the number of filters, at stride 1 on float32."""
    path = committed.RESULTS / "bench" / machine / "bank.json.xz"
    if not path.exists():
        return "Not measured yet.\n"
    record = read_record(path)
    wanted = (in_channels, size, 1, "float32")
    found = [series for series in bank_series(record) if (series.in_channels, *_kind(series)) == wanted]
    return "".join(lines_of(table.header, table.rows) for table in map(bank_map, found))


def wide_bank_table(machine: str) -> str:
    """Other sizes, strides and types, a line for each bank."""
    found = bank_series(read_record(committed.RESULTS / "bench" / machine / "bank_wide.json.xz"))
    candidates = list(dict.fromkeys(candidate for series in found for candidate in series.candidates))
    lines = [
        (series.dtype, str(series.size), str(series.stride), str(series.in_channels), *bank_line(point, candidates))
        for series in sorted(found, key=lambda series: (series.dtype, series.stride, series.size, -series.in_channels))
        for point in series.points
    ]
    return lines_of(("type", "size", "stride", "channels", *bank_header(candidates)), lines)


def _kind(series: BankSeries) -> tuple[int, int, str]:
    return series.size, series.stride, series.dtype


def conv() -> ConvRecord:
    """The record of `bench conv`."""
    return read_kinds(committed.RESULTS / "bench_conv_h200.json.xz", {CONV: ConvRecord})


def gemm() -> GemmRecord:
    """The record of `bench gemm`."""
    return read_kinds(committed.RESULTS / "bench_gemm_h200.json.xz", {GEMM: GemmRecord})


def profile() -> LadderProfile:
    """What the profiler counted of `bench conv`."""
    return read_kinds(committed.RESULTS / "conv_ladder_profile_h200.json", {PROFILE: LadderProfile})


def ladder(table: Table) -> str:
    """A table of a ladder."""
    return lines_of(table.header, table.rows)


def conv_sizes(stride: int) -> str:
    """Times of the convolutions over the sizes."""
    return ladder(ladders.conv_sizes(conv(), stride))


TABLES: dict[str, Callable[[], str]] = {
    "methods": methods,
    "method-options": method_options,
    "against-peers": lambda: f"{lines_of(readme_figures.HEADER, readme_figures.rows())}\n{readme_figures.leads()}",
    "filters": filters,
    "stages": stages,
    "canny-peers": lambda: canny_tables.peers(
        {
            "canny_peers_h200": "one NVIDIA H200",
            "canny_peers_h200_host": "16 cores of its host",
            "canny_peers_two_cores": "two cores of an AMD EPYC",
        }
    ),
    "banks-rgb": lambda: bank_table("h200", 3),
    "banks-grey": lambda: bank_table("h200", 1),
    "faults": faults,
    "peers": peers,
    "reader-fuzz": reader_fuzz,
    "batch-png": lambda: batch_speed(
        {
            "cpu": "two cores of an AMD EPYC",
            "h200": "one NVIDIA H200 and 16 cores",
        }
    ),
    "batch-jpg": lambda: batch_speed(
        {"h200_jpg": "one NVIDIA H200 and 16 cores", "cpu_jpg": "two cores of an AMD EPYC"}, on_gpu=True
    ),
    "tiles": tiles,
    "grids": grids,
    "run-h200": lambda: run_reports("h200"),
    "calls-gpu": lambda: calls("calls_h200"),
    "calls-cpu": lambda: calls("calls_h200_host"),
    "forms": surface_tables.forms,
    "banks-cpu": lambda: crew_tables.against_peers("two-core-xeon-avx512", "banks_cpu"),
    "banks-double": lambda: surface_tables.banks("tried/cuda_bank_double"),
    "lot-h200": lambda: surface_tables.lot("h200", 0),
    "crew-wake": lambda: crew_tables.wake("crew_h200_host"),
    "diff-cost": lambda: diff_cost("two-core-epyc"),
    "view-keys": view_keys,
    "view-cost": lambda: view_cost("two-core-epyc"),
    "bench-goals-h200": lambda: bench_table("h200", "gpu", goals),
    "bench-goals-two-cores": lambda: bench_table("two-core-xeon-avx512", "processor", goals),
    "bench-fastest-cpu": lambda: bench_table("two-core-xeon-avx512", "processor", fastest),
    "run-cpu": lambda: run_reports("two-core-epyc"),
    "conv-ladder": lambda: ladder(ladders.conv_steps(conv(), profile())),
    "conv-blocks": lambda: ladder(ladders.conv_blocks(conv())),
    "gemm-ladder": lambda: ladder(ladders.gemm_steps(gemm())),
    "gemm-sizes": lambda: ladder(ladders.gemm_sizes(gemm())),
    "conv-ladder-source": lambda: "".join(f"{line}\n" for line in ladders.conv_source(conv())),
    "gemm-ladder-source": lambda: "".join(f"{line}\n" for line in ladders.gemm_source(gemm())),
}


def renewed(text: str) -> str:
    """`text` with every marked table made anew."""

    def fill(found: re.Match[str]) -> str:
        lines = TABLES[found["name"]]().splitlines(keepends=True)
        return found["open"] + "".join(found["comment"] + line for line in lines) + found["close"]

    return MARKED.sub(fill, text)


def main() -> int:
    """Write, or with --check name the pages that are out of date and exit 1."""
    parser = Arguments(__doc__)
    parser.add_argument("--check", action="store_true", help="Write nothing; end with 1 where a page is out of date.")
    check = parser.parse_args().check
    stale = []
    for name in PAGES:
        page = PROJECT / name
        text = page.read_text(encoding="utf-8")
        fresh = renewed(text)
        if fresh != text:
            stale.append(name)
            if not check:
                page.write_text(fresh, encoding="utf-8", newline="\n")
    if check and stale:
        print(f"Out of date: {', '.join(stale)}. Run python3 scripts/docs_tables.py.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
