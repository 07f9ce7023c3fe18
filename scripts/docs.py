"""Write the tables, figures and plots of README.md, docs/ and the ladders' sources, from the code and from records.

    python3 scripts/docs.py            writes what is out of date
    python3 scripts/docs.py --check    writes nothing; exit 1 where something is out of date
    python3 scripts/docs.py --pack     moves small new records below docs/results into small.json.xz

A table stands between `<!-- table NAME -->` and `<!-- end NAME -->`, in a source behind `// `. The README's figure is
drawn here: one record gives the same bytes everywhere. Other plots that a page links to are drawn by matplotlib, whose
versions draw other bytes: each ends with the hash of its record, which is what --check compares.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from script_options import PROJECT, Arguments, stopped

from edgeconv.bench.grid import GRIDS
from edgeconv.bench.ladders.conv import KIND as CONV
from edgeconv.bench.ladders.conv import ConvRecord
from edgeconv.bench.ladders.conv_kernels import STRIDES
from edgeconv.bench.ladders.gemm import KIND as GEMM
from edgeconv.bench.ladders.gemm import GemmRecord
from edgeconv.bench.peers import PEERS
from edgeconv.bench.record import BenchRecord, BenchRow, read_record
from edgeconv.bench.referee.faults import FAULTS
from edgeconv.core.chains import STAGES
from edgeconv.core.choices import DEFAULT_FILTER
from edgeconv.core.cost import share_of_limit
from edgeconv.core.filters import FILTERS
from edgeconv.core.forms import FORMS
from edgeconv.core.option import listed, options_of
from edgeconv.core.units import seconds_text
from edgeconv.export import ladders, surface
from edgeconv.export.banks import bank_map, bank_series
from edgeconv.export.tables import Table, fastest, goals, lines_of, percent
from edgeconv.io.files import write_bytes_atomically
from edgeconv.io.records import read_record as read_kinds
from edgeconv.methods import METHODS
from edgeconv.methods.options import Options
from edgeconv.run.report import as_report
from edgeconv.view.qt.actions import listed_keys

RESULTS = PROJECT / "docs" / "results"
PAGES = (PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md")))
SOURCES = tuple(PROJECT / f"edgeconv/bench/ladders/{name}_kernels.cu" for name in ("conv", "gemm"))

# ---- records

SMALL = RESULTS / "small.json.xz"
SMALL_BYTES = 8192
"""Packed: two blocks of a disk."""


@cache
def record(name: str) -> dict[str, Any]:
    """`tiles_h200` from a file of its own or from small.json.xz."""
    found = next(RESULTS.glob(f"{name}.json*"), None)
    return dict(read(SMALL)["reports"][name] if found is None else read(found))


def read(path: Path) -> dict[str, Any]:
    """What a record's file holds, packed or not."""
    data = path.read_bytes()
    return dict(json.loads(lzma.decompress(data) if path.suffix == ".xz" else data))


def write_together(path: Path, reports: dict[str, Any]) -> None:
    """Put reports by name into a packed file, a line each, beside those that are in it."""
    earlier = read(path)["reports"] if path.exists() else {}
    lines = (f"{json.dumps(name)}: {json.dumps(report)}" for name, report in sorted((earlier | reports).items()))
    text = '{"kind": "runs", "reports": {\n' + ",\n".join(lines) + "\n}}\n"
    write_bytes_atomically(path, lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def pack() -> None:
    """Move unpacked records that are small enough together."""
    for path in sorted(RESULTS.glob("*.json")):
        if path.stem != "reader_fuzz" and len(lzma.compress(path.read_bytes())) <= SMALL_BYTES:
            write_together(SMALL, {path.stem: read(path)})
            path.unlink()


def bench(name: str) -> BenchRecord:
    """A record of `edgeconv bench`, by machine and name."""
    return read_record(RESULTS / "bench" / f"{name}.json.xz")


def conv() -> ConvRecord:
    """The record of `bench conv`."""
    return read_kinds(RESULTS / "bench_conv_h200.json.xz", {CONV: ConvRecord})


def gemm() -> GemmRecord:
    """The record of `bench gemm`."""
    return read_kinds(RESULTS / "bench_gemm_h200.json.xz", {GEMM: GemmRecord})


# ---- tables of the code


def shown(table: Table) -> str:
    """Its lines."""
    return lines_of(table.header, table.rows)


def methods() -> str:
    """The table of methods."""
    rows = ([f"`{entry.name}`", entry.device.upper(), entry.summary] for entry in METHODS)
    return lines_of(("method", "device", "what it does"), rows)


def method_options() -> str:
    """What a user may tell a method."""
    rows = []
    for entry in options_of(Options):
        names, device = entry.declared.methods, (entry.declared.device or "").upper()
        default = entry.default if entry.declared.text is None else entry.declared.text
        choices = listed(entry.choices) if entry.choices else "given or not" if entry.type is bool else "a number"
        spelling = entry.spelling if entry.type is bool else f"{entry.spelling}="
        preset = "auto" if default is None else "not given" if default is False else str(default)
        concerned = f"{listed(names, 'and')} ({device})" if names else "all"
        rows.append([f"`{entry.flag}`", f"`{spelling}`", concerned, choices, preset])
    return lines_of(("option", "behind a colon", "methods", "takes", "default"), rows)


def filters() -> str:
    """The table of filters."""
    rows = []
    for entry in FILTERS:
        first = "; ".join(" ".join(f"{value:g}" for value in line) for line in entry.kernels[0])
        kernels = f"`{first}`" + (f" and {entry.directions - 1} more" if entry.directions > 1 else "")
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


def forms() -> str:
    """The table of forms."""
    rows = [(form.name, form.computes, form.condition, form.error) for form in FORMS]
    return lines_of(("form", "computes", "where", "error"), rows)


def peers() -> str:
    """The table of peers."""
    kinds = {False: "library", True: "by hand"}
    rows = ([f"`{entry.name}`", entry.device.upper(), kinds[entry.written], entry.summary] for entry in PEERS)
    return lines_of(("peer", "device", "kind", "what it does"), rows)


def view_keys() -> str:
    """The keys of the window's commands."""
    rows = ([words, ", ".join(f"`{key}`" for key in keys)] for words, keys in listed_keys())
    return lines_of(("command", "keys"), rows)


# ---- tables of records


def run_reports(machine: str) -> str:
    """One line a report of scripts/run_matrix.py."""
    found = record(f"run/{machine}")["reports"]
    names = ((f"{entry.device}_{entry.name}_s{stride}", entry) for entry in METHODS for stride in STRIDES)
    rows = []
    for name, entry in names:
        if name not in found:
            continue
        report = as_report(found[name])
        timing, speed, check = report.timing, report.speed, report.check
        if not (timing.kernel and speed and check):
            raise stopped(f"the report {name} of {machine} was not timed and checked.")
        rates = (speed.kernel_gflops, speed.end_to_end_gflops, speed.gigabytes_per_second)
        rows.append(
            [
                f"`{entry.name}`",
                entry.device.upper(),
                str(report.problem.stride),
                seconds_text(timing.kernel.median_seconds),
                *(f"{rate:,.1f}" for rate in rates),
                percent(share_of_limit(speed.memory_floor_share)),
                seconds_text((timing.end_to_end or timing.kernel).median_seconds),
                f"{check.relative_error:.1g}",
            ]
        )
    header = ("method", "device", "stride", "kernel", "GFLOPS", "end to end GFLOPS", "GB/s", "of memory floor")
    return lines_of((*header, "end to end", "relative error"), rows)


def calls(name: str) -> str:
    """Microseconds from call to call, by the side of the picture, of scripts/benchmark_calls.py."""
    found = record(name)["calls_microseconds"]
    rows = [[what, *(f"{times[what]:.1f}" for times in found.values())] for what in next(iter(found.values()))]
    return lines_of(("µs from call to call", *(f"{side}×{side}" for side in found)), rows)


def diff_cost() -> str:
    """One line a pair of scripts/benchmark_diff.py."""
    rows = [
        [
            name.replace("_", " "),
            seconds_text(median(found["decoding_seconds"])),
            seconds_text(median(found["figures_seconds"])),
            f"{found['figures_over_decoding']:.2f} ×",
            f"{found['peak_over_one_picture']:.2f} ×",
            f"{found['page_bytes'] / 2**20:.1f} MiB",
        ]
        for name, found in record("diff/two-core-epyc")["pairs"].items()
    ]
    return lines_of(("against", "decoding both", "exact figures", "figures / decoding", "memory", "page"), rows)


def view_cost() -> str:
    """Openings and stalls of scripts/benchmark_view.py."""
    opening, stall = (record("view/two-core-epyc")[part] for part in ("opening", "stall"))
    found = {
        f"opening, from {words}": (opening[f"{part}_seconds"], opening[f"{part}_goal_seconds"])
        for part, words in (("process", "the start of the process"), ("application", "its first line"))
    }
    for method, seconds in stall["longest_seconds"].items():
        found[f"longest stall, `{method}`"] = (seconds, stall["goal_seconds"])
    rows = (
        [name, seconds_text(median(seconds)), seconds_text(max(seconds)), f"≤ {seconds_text(goal)}"]
        for name, (seconds, goal) in found.items()
    )
    return lines_of(("", "median", "most", "goal"), rows)


def reader_fuzz() -> str:
    """What became of damaged pictures in the committed run of `scripts/fuzz.py reader`."""
    found = record("reader_fuzz")
    outcomes = ("refused", "said", "unseen", "harmless")
    rows = ([kind, *(f"{counts.get(each, 0):,}" for each in outcomes)] for kind, counts in found["counts"].items())
    decoders = (item for item in found["versions"].items() if item[0].startswith(("opencv", "pillow")))
    versions = ", ".join(map(" ".join, decoders))
    beside = f"{found['cases']:,} cases, {len(found['failures'])} failures; {versions}.\n\n"
    return beside + lines_of(("kind of file", *outcomes), rows)


BATCH_COLUMNS = {
    "edgeconv batch, JPEG on the (card|GPU)": "batch, JPEG on the GPU",
    "edgeconv batch": "batch",
    "codecs only": "codecs alone",
    "share": "batch / codecs (goal 0.9)",
    "OpenCV loop": "OpenCV loop",
    "pyvips": "libvips",
    "ImageMagick mogrify": "mogrify",
}
"""Names in the records of scripts/benchmark_batch.py, and here."""


def batch_speed(on_gpu: bool, **machines: str) -> str:
    """Pictures per second, one line per machine."""
    columns = dict(list(BATCH_COLUMNS.items())[not on_gpu :])
    rows = []
    for name, machine in machines.items():
        found = record("batch")["reports"][name]
        cells = {"share": f"{found['share_of_codecs']:.2f}"}
        for key, value in found["pictures_per_second"].items():
            cells[key] = f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"
        picked = [next((cell for key, cell in cells.items() if re.fullmatch(each, key)), "–") for each in columns]
        rows.append([machine, str(len(found["samples_seconds"]["edgeconv batch"])), *picked])
    return lines_of(("machine", "rounds", *columns.values()), rows)


TWO_CORES = "two cores of an AMD EPYC"
TILES = {
    "tiles_two_cores": TWO_CORES,
    "tiles_beside_whole_two_cores": TWO_CORES,
    "tiles_h200": "one NVIDIA H200, 16 cores",
}
TILE_RUNS = {"tiles": "by tiles", "tiles_proved": "by tiles, `--verify-tiles`", "whole": "whole, without tiles"}


def in_small(name: str, text: str) -> str:
    """A link of a page below docs/ to a record that lies among others."""
    return f"[{text} (`{name}`)](results/{SMALL.name})"


def tiles() -> str:
    """Time and memory of runs by tiles, one line per run of scripts/benchmark_tiles.py."""
    rows = []
    for name, machine in TILES.items():
        found = record(name)
        picture = f"{in_small(name, '{0:,}×{0:,}'.format(found['side']))} ({found['picture_bytes'] / 1e9:.1f} GB)"
        for run, words in TILE_RUNS.items():
            if run in found["runs"]:
                row, limit = found["runs"][run], f"{found['limit_bytes'] / 2**20:,.0f} MiB"
                took, peak = f"{row['wall_seconds']:.1f} s", f"{row['peak_bytes'] / 2**20:,.0f} MiB"
                rows.append([picture, machine, words, "–" if run == "whole" else limit, took, peak])
    return lines_of(("picture", "machine", "how", "`--memory-limit`", "elapsed", "peak of the process"), rows)


CANNY_PEERS = {"canny_peers_h200": "one NVIDIA H200", "canny_peers_two_cores": TWO_CORES}
OF_EDGECONV = ("copy", "edgeconv", "edgeconv, end to end")
"""Candidates of scripts/benchmark_canny_peers.py that are no peers."""


def canny_peers() -> str:
    """Medians by case and side, of peers with how many times edgeconv's that is; a block for each record."""
    blocks = []
    for name, machine in CANNY_PEERS.items():
        timed = [row for row in record(name)["rows"] if "median_us" in row]
        candidates = list(dict.fromkeys(row["candidate"] for row in timed))
        cases: dict[tuple[str, int], dict[str, Any]] = {}
        for row in timed:
            cases.setdefault((row["case"], row["size"]), {})[row["candidate"]] = row
        table = [
            [case, str(size), *(_peer_cell(cells, candidate) for candidate in candidates)]
            for (case, size), cells in cases.items()
        ]
        blocks.append(f"{in_small(name, machine)}:\n\n{lines_of(('picture', 'side', *candidates), table)}")
    return "\n".join(blocks)


def _peer_cell(cells: dict[str, dict[str, Any]], candidate: str) -> str:
    """`420 µs`; of a peer `8,736 µs (20.8 ×), 2.2 % elsewhere`; – where it was left out."""
    if candidate not in cells:
        return "–"
    took, elsewhere = cells[candidate]["median_us"], cells[candidate].get("elsewhere", 0.0)
    text = f"{took:,.0f} µs" if took >= 100 else f"{took:.1f} µs"
    if candidate in OF_EDGECONV:
        return text
    own = cells["edgeconv, end to end" if candidate == "opencv on the host" else "edgeconv"]["median_us"]
    return f"{text} ({took / own:.3g} ×)" + (f", {elsewhere:.1%} elsewhere" if elsewhere else "")


def crew_wake() -> str:
    """Median and p90 of a job, by threads, kind of threads and state, of scripts/benchmark_crew.py."""
    jobs = [
        (what, state)
        for what in ("empty units", "all meet")
        for state in ("awake", "asleep", "asleep, bound to no core")
    ]
    found: dict[tuple[int, str], dict[tuple[str, str], str]] = {}
    for row in record("crew_h200_host")["wake"]:
        times = row["microseconds"]
        cells = found.setdefault((row["threads"], row["kind"]), {})
        cells[row["what"], row["state"]] = f"{times['median']:.1f} / {times['p90']:.1f}"
    rows = [[str(key[0]), key[1], *(cells.get(job, "") for job in jobs)] for key, cells in sorted(found.items())]
    return lines_of(("threads", "kind", *map(", ".join, jobs)), rows)


def bench_table(name: str, make: Callable[[BenchRecord], Table]) -> str:
    """A table of a bench record, below its machine and its peers."""
    found = bench(name)
    names = ", ".join(facts.name for facts in found.machine.values())
    timed = sorted({row.candidate for row in found.rows if row.kind == "peer" and row.status == "measured"})
    return f"{names}, {found.created_utc}. Peers with a time: {', '.join(timed)}.\n\n{shown(make(found))}"


def banks(in_channels: int) -> str:
    """Every candidate over the number of filters, at 2048, stride 1, on float32."""
    found = bank_series(bench("h200/bank"))
    wanted = (in_channels, 2048, 1, "float32")
    return "".join(
        shown(bank_map(each)) for each in found if (each.in_channels, each.size, each.stride, each.dtype) == wanted
    )


def banks_double() -> str:
    """The fastest shape of each bank of a sweep by scripts/sweep_cuda_sliding.py."""
    best: dict[tuple[int, ...], dict[str, Any]] = {}
    for row in record("tried/cuda_bank_double")["rows"]:
        best.setdefault((row["channels"], row["stride"], row["filters"]), row)
    rows = [
        (*map(str, key), f"{row['microseconds']:.1f} µs", f"{row['share_of_floor']:.2f}")
        for key, row in sorted(best.items())
    ]
    return lines_of(("channels", "stride", "filters", "`sliding`", "a copy's time over it"), rows)


def banks_cpu() -> str:
    """`sliding` beside the fastest peer of each bank."""
    cases: dict[tuple[Any, ...], list[BenchRow]] = {}
    for row in bench("two-core-xeon-avx512/banks_cpu").rows:
        if row.status == "measured":
            case = row.case
            cases.setdefault((case.dtype, case.filter, case.channels, case.stride, case.size), []).append(row)
    table = []
    for (dtype, filter_name, channels, stride, size), rows in sorted(cases.items()):
        own = next(row for row in rows if row.name == "sliding").timings["warm"]
        peer = min((row for row in rows if row.kind == "peer"), key=lambda row: row.timings["warm"].median_seconds)
        theirs = peer.timings["warm"].median_seconds
        assert own.p90_seconds is not None, "it is of many samples"
        table.append(
            [
                f"{dtype}, {filter_name}, {channels}",
                str(stride),
                str(size),
                f"{own.median_seconds * 1e6:,.0f} / {own.p90_seconds * 1e6:,.0f}",
                f"{theirs * 1e6:,.0f} ({peer.name})",
                f"{own.median_seconds / theirs:.2f}",
                f"{own.p90_seconds / own.median_seconds:.2f}",
            ]
        )
    header = ("case", "stride", "side", "sliding, µs, median / p90", "fastest peer", "ratio", "p90 / median")
    return lines_of(header, table)


# ---- the README's table and figure

SIZES = (1024, 2048, 4096)
LAST = SIZES[-1]
FLOPS_PER_PIXEL = 2 * 3 * 3 * 3 * 3
"""Nominal, of float32, 3→3 channels, stride 1."""
PLAIN = "constant"
"""The step of `edgeconv bench conv` that anyone who knows CUDA writes in twenty lines."""
LINES = (
    ("a plain copy of the same bytes, which is the limit", ("copy",), "limit: a plain copy"),
    ("edgeconv `sliding`", ("sliding",), "edgeconv sliding"),
    ("edgeconv `implicit`", ("implicit",), "edgeconv implicit"),
    ("edgeconv `im2col`", ("im2col",), ""),
    ("a plain kernel: one thread per pixel, weights as parameters", (PLAIN,), "a plain kernel"),
    ("a stencil in Triton, tile and warps tuned", ("triton",), ""),
    ("27 shifted multiply-adds under `torch.compile`", ("torch-compile",), ""),
    ("27 shifted multiply-adds under `jax.jit`", ("jax-shifts",), ""),
    ("edgeconv `textbook`: one thread per output value", ("textbook",), ""),
    ("PyTorch `conv2d`, the faster of both layouts", ("torch", "torch-nchw"), "PyTorch conv2d"),
    ("cuDNN, the fastest of its algorithms", ("cudnn", "cudnn:find", "cudnn-graph"), "cuDNN"),
    ("JAX `conv_general_dilated`", ("jax",), ""),
    ("CuPy `ndimage.correlate`", ("cupy-ndimage",), ""),
)
"""A line of the table, whose fastest name counts at each size, and of the figure where the last is not empty."""
LIBRARIES = LINES[9:]

Seconds = dict[int, float]
"""Median seconds by the side of the picture."""


@cache
def measured() -> dict[str, Seconds]:
    """Medians with a cold L2 of everything that was measured at the case, and the plain kernel with its best blocks."""
    found: dict[str, Seconds] = {PLAIN: {}}
    for row in bench("h200/gpu").rows:
        case = row.case
        kind = (row.status, row.device, case.dtype, case.filter, case.channels, case.stride)
        if kind == ("measured", "cuda", "float32", "random", "mix", 1):
            found.setdefault(row.candidate, {})[case.size] = row.timings["cold"].median_seconds
    for step in conv().rows:
        if (step.step, step.stride) == (PLAIN, 1) and step.timing:
            seconds = min(step.timing.median_seconds, found[PLAIN].get(step.size, math.inf))
            found[PLAIN][step.size] = seconds
    return found


def fastest_of(names: Sequence[str]) -> Seconds:
    """The least median at each size."""
    times = [measured().get(name, {}) for name in names]
    return {size: min(of[size] for of in times if size in of) for size in sorted({size for of in times for size in of})}


def gflops(side: int, seconds: Seconds) -> float:
    """Nominal."""
    return FLOPS_PER_PIXEL * side**2 / seconds[side] / 1e9


def against_peers() -> str:
    """The README's table, the fastest at the largest size first, and by how much `sliding` leads."""
    timed = [(words, seconds) for words, names, _ in LINES if (seconds := fastest_of(names))]
    copy = measured()["copy"]
    rows = []
    for words, seconds in sorted(timed, key=lambda line: line[1][LAST]):
        rate = "–" if seconds == copy else f"{gflops(LAST, seconds):,.0f}"
        share = f"{100 * copy[LAST] / seconds[LAST]:.0f}"
        rows.append([words, *(f"{seconds[size] * 1e6:,.1f}" for size in SIZES), rate, share])
    header = ("float32, 3→3 channels, stride 1", *(f"{size}², µs" for size in SIZES))
    lead = fastest_of([name for line in LIBRARIES for name in line[1]])[LAST] / measured()["sliding"][LAST]
    return (
        lines_of((*header, f"{LAST}², nominal GFLOPS", f"{LAST}², share of the copy's speed, %"), rows)
        + f"\nAt {LAST}², `sliding` is {lead:.1f} times as fast as the fastest library in this table.\n"
    )


THEMES = {
    "light": ("#24292f", "#d0d7de", ("#6e7781", "#0550ae", "#1a7f37", "#953800", "#8250df", "#cf222e")),
    "dark": ("#e6edf3", "#30363d", ("#8b949e", "#58a6ff", "#3fb950", "#f0883e", "#bc8cff", "#ff7b72")),
}
"""Text, grid, and the lines in their order."""
WIDTH, HEIGHT = 860, 400
LEFT, RIGHT, TOP, BOTTOM = 66, 176, 34, 46
LABEL_GAP = 17
"""Least distance between the middles of two labels."""


def figure(text: str, grid: str, colours: Sequence[str]) -> str:
    """GFLOPS over size as SVG, both axes logarithmic, lines labelled at their ends."""
    drawn = [(label, fastest_of(names)) for _, names, label in LINES if label]
    sides = sorted(set.intersection(*(set(seconds) for _, seconds in drawn)))
    curves = [(label, {side: gflops(side, seconds) for side in sides}) for label, seconds in drawn]
    every = [value for _, curve in curves for value in curve.values()]
    low, high = 10.0 ** math.floor(math.log10(min(every))), max(every) * 1.4

    def x(side: float) -> float:
        return LEFT + math.log(side / sides[0]) / math.log(sides[-1] / sides[0]) * (WIDTH - LEFT - RIGHT)

    def y(rate: float) -> float:
        return HEIGHT - BOTTOM - math.log(rate / low) / math.log(high / low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        f' role="img" font-family="system-ui, sans-serif" font-size="13" fill="{text}">',
        "<title>GFLOPS over the side of the picture on one NVIDIA H200; float32, 3→3 channels, stride 1</title>",
        f'<text x="{LEFT}" y="18" font-weight="600">GFLOPS (nominal), float32, 3→3 channels, stride 1</text>',
    ]
    for exponent in range(round(math.log10(low)), math.floor(math.log10(high)) + 1):
        height = y(10**exponent)
        parts.append(f'<path d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}" stroke="{grid}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{10**exponent:,}</text>')
    for side in sides:
        parts.append(f'<path d="M{x(side):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{grid}"/>')
        parts.append(f'<text x="{x(side):.1f}" y="{HEIGHT - BOTTOM + 19}" text-anchor="middle">{side}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">side of the picture, pixels</text>')
    places = _apart([y(curve[sides[-1]]) for _, curve in curves])
    for (label, curve), colour, place in zip(curves, colours, places, strict=True):
        points = [(x(side), y(curve[side])) for side in sides]
        path = "L".join(f"{across:.1f} {down:.1f}" for across, down in points)
        dashes = ' stroke-dasharray="6 5"' if label.startswith("limit") else ""
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2.2"{dashes}/>')
        if not dashes:
            parts += [f'<circle cx="{across:.1f}" cy="{down:.1f}" r="3.2" fill="{colour}"/>' for across, down in points]
        end_x, end_y = points[-1]
        parts.append(f'<path d="M{end_x + 5:.1f} {end_y:.1f}L{end_x + 14:.1f} {place:.1f}" stroke="{colour}"/>')
        parts.append(f'<text x="{end_x + 18:.1f}" y="{place + 4:.1f}" fill="{colour}">{escape(label)}</text>')
    return "\n".join((*parts, "</svg>", ""))


def _apart(places: list[float]) -> list[float]:
    """The places of labels, moved down as far as they would cover each other."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    for above, below in pairwise(order):
        places[below] = max(places[below], places[above] + LABEL_GAP)
    return places


# ---- plots of records

LINKED_PLOT = re.compile(r"\(([^()\s]*plots/[\w-]+\.svg)\)")


def linked_plots(pages: Iterable[Path]) -> dict[Path, Path]:
    """The plots that pages link to, each with the record beside its folder whose name it begins with."""
    found = {}
    for page in pages:
        for link in LINKED_PLOT.findall(page.read_text(encoding="utf-8")):
            plot = (page.parent / link).resolve()
            records = plot.parent.parent.glob("*.json*")
            of_name = [path for path in records if plot.name.startswith(f"{path.name.partition('.')[0]}_")]
            if not of_name:
                raise stopped(f"{page.name} shows {link}, which has no record.")
            found[plot] = max(of_name, key=lambda path: len(path.name))
    return found


def mark_of(path: Path) -> str:
    """The line that a plot of a record ends with."""
    return f"<!-- drawn from {path.name}, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()} -->\n"


def stale_plots(pages: Iterable[Path]) -> Iterator[Path]:
    """Plots that are missing, or not of their record, or that lie beside those and no page shows."""
    shown_ones = linked_plots(pages)
    for plot, path in shown_ones.items():
        if not plot.exists() or not plot.read_text(encoding="utf-8").endswith(mark_of(path)):
            yield plot
    for folder in {plot.parent for plot in shown_ones}:
        yield from sorted({*folder.glob("*.svg")} - {*shown_ones})


def draw_plots(pages: Iterable[Path]) -> None:
    """Draw what pages show anew, and remove what they no longer show."""
    from edgeconv.export.kinds import read as read_any
    from edgeconv.export.plot import export

    shown_ones = linked_plots(pages)
    for folder in {plot.parent for plot in shown_ones}:
        for plot in {*folder.glob("*.svg")} - {*shown_ones}:
            plot.unlink()
    for path in set(shown_ones.values()):
        stem = path.name.partition(".")[0]
        drawings = {f"{stem}{ending}": content for ending, content in export([read_any(path)]).items()}
        for plot in (plot for plot, of in shown_ones.items() if of == path):
            if plot.name not in drawings:
                raise stopped(f"{path} has no plot {plot.name}: {', '.join(drawings)}.")
            plot.parent.mkdir(exist_ok=True)
            plot.write_bytes(drawings[plot.name] + mark_of(path).encode())


# ---- all of it

GPU, CPU = "h200/gpu", "two-core-xeon-avx512/processor"
TABLES: dict[str, Callable[[], str]] = {
    "against-peers": against_peers,
    "methods": methods,
    "method-options": method_options,
    "filters": filters,
    "stages": stages,
    "forms": forms,
    "peers": peers,
    "grids": lambda: lines_of(("grid", "what it holds"), ([f"`{grid.name}`", grid.summary] for grid in GRIDS)),
    "faults": lambda: lines_of(("fault", "what was seen"), ([f"`{name}`", words] for name, words in FAULTS.items())),
    "view-keys": view_keys,
    "run-h200": lambda: run_reports("h200"),
    "run-cpu": lambda: run_reports("two-core-epyc"),
    "lot-h200": lambda: shown(surface.tables_of(bench("h200/surface"))[0]),
    "bench-goals-h200": lambda: bench_table(GPU, goals),
    "bench-goals-two-cores": lambda: bench_table(CPU, goals),
    "bench-fastest-cpu": lambda: bench_table(CPU, fastest),
    "banks-rgb": lambda: banks(3),
    "banks-grey": lambda: banks(1),
    "banks-double": banks_double,
    "banks-cpu": banks_cpu,
    "canny-peers": canny_peers,
    "batch-png": lambda: batch_speed(False, cpu=TWO_CORES, h200="one NVIDIA H200 and 16 cores"),
    "batch-jpg": lambda: batch_speed(True, h200_jpg="one NVIDIA H200 and 16 cores", cpu_jpg=TWO_CORES),
    "calls-gpu": lambda: calls("calls_h200"),
    "calls-cpu": lambda: calls("calls_h200_host"),
    "conv-ladder": lambda: shown(ladders.conv_steps(conv())),
    "conv-blocks": lambda: shown(ladders.conv_blocks(conv())),
    "gemm-ladder": lambda: shown(ladders.gemm_steps(gemm())),
    "gemm-sizes": lambda: shown(ladders.by_size(gemm())),
    "conv-ladder-source": lambda: "".join(f"{line}\n" for line in ladders.source(conv())),
    "gemm-ladder-source": lambda: "".join(f"{line}\n" for line in ladders.source(gemm())),
    "reader-fuzz": reader_fuzz,
    "tiles": tiles,
    "view-cost": view_cost,
    "diff-cost": diff_cost,
    "crew-wake": crew_wake,
}

MARKED = re.compile(
    r"(?P<open>(?P<comment>// |)<!-- table (?P<name>[\w-]+) -->\n).*?(?P<close>(?P=comment)<!-- end (?P=name) -->)",
    re.DOTALL,
)


def renewed(text: str) -> str:
    """`text` with every marked table made anew."""

    def fill(found: re.Match[str]) -> str:
        lines = TABLES[found["name"]]().splitlines(keepends=True)
        return found["open"] + "".join(found["comment"] + line for line in lines) + found["close"]

    return MARKED.sub(fill, text)


def made() -> dict[Path, str]:
    """What every page, source and figure should be."""
    texts = {path: renewed(path.read_text(encoding="utf-8")) for path in (*PAGES, *SOURCES)}
    return texts | {PROJECT / f"docs/pictures/gflops_{name}.svg": figure(*theme) for name, theme in THEMES.items()}


def main() -> int:
    """Write, or with --check name what is out of date and exit 1."""
    parser = Arguments(__doc__)
    parser.add_argument(
        "--check", action="store_true", help="Write nothing; end with 1 where something is out of date."
    )
    parser.add_argument("--pack", action="store_true", help="First move small new records together.")
    asked = parser.parse_args()
    if asked.pack:
        pack()
    stale = {path: text for path, text in made().items() if not path.exists() or path.read_text("utf-8") != text}
    plots = list(stale_plots(PAGES))
    if asked.check:
        names = ", ".join(path.relative_to(PROJECT).as_posix() for path in (*stale, *plots))
        if names:
            print(f"Out of date: {names}. Run python3 scripts/docs.py.", file=sys.stderr)
        return 1 if names else 0
    for path, text in stale.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    if plots:
        draw_plots(PAGES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
