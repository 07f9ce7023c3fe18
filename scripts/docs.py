"""Write the tables, figures and plots of README.md and docs/, from the code and from records.

    python3 scripts/docs.py            writes what is out of date
    python3 scripts/docs.py --check    writes nothing; exit 1 where something is out of date

A table stands between `<!-- table NAME -->` and `<!-- end NAME -->`; `TABLES`, at the end, says in which document and
what makes it. One record gives the same plot everywhere, to the byte.
"""

from __future__ import annotations

import argparse
import inspect
import json
import lzma
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter, itemgetter
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import edgeconv
from edgeconv.bench.grid import GRIDS
from edgeconv.bench.peers import PEERS
from edgeconv.bench.record import BenchRecord
from edgeconv.bench.referee import FAULTS
from edgeconv.core.chains import STAGES
from edgeconv.core.choices import DEFAULT_FILTER
from edgeconv.core.filters import FILTERS
from edgeconv.core.lowering import FORMS
from edgeconv.core.option import Option, listed, options_of
from edgeconv.core.text import digits_text
from edgeconv.export import ladders
from edgeconv.export.banks import bank_map, bank_series
from edgeconv.export.document import documents as documents_of
from edgeconv.export.drawing import Curve, Lines, svg
from edgeconv.export.rows import run_tables
from edgeconv.export.schemas import read as read_shown
from edgeconv.export.tables import distribution, fastest, goals, leads_by_peer, lines_of, tally
from edgeconv.methods import METHODS
from edgeconv.methods.options import Options
from edgeconv.page import Table
from edgeconv.run.report import as_report
from edgeconv.view.qt.actions import listed_keys

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "docs" / "results"
COMMANDS = {
    "batch benchmark": "python3 scripts/benchmark_batch.py",
    "bench conv": "edgeconv bench conv",
    "bench gemm": "edgeconv bench gemm",
    "canny peers": "python3 scripts/benchmark_canny_peers.py",
    "run": "edgeconv run, as in scripts/gpu_acceptance.sh",
}
"""What makes a record of a kind whose records do not say it themselves."""
OF_ONE_MACHINE = re.compile(r" (?:--resume|--no-around|(?:-o|--formats|--name|--stop-after) \S+|--grid \S+\.toml)")
"""Options that change no figure, one that is gone, and the name of a file of cases, which the record holds itself."""
SOURCES: dict[str, set[str]] = {}
"""The records that the table in hand was made of, as its marker names them, with their days."""


def read(path: Path) -> dict[str, Any]:
    """What a record's file holds, packed or not; of a folder, what its files hold."""
    if path.is_dir():
        return {"reports": {each.stem: read(each) for each in sorted(path.glob("*.json"))}}
    data = path.read_bytes()
    return dict(json.loads(lzma.decompress(data) if path.suffix == ".xz" else data))


@cache
def kept(name: str) -> tuple[Path, dict[str, Any]]:
    """The file or folder of a record and what it holds; `batch/cpu` may be one of the reports of batch.json.xz."""
    path = next((path for path in RESULTS.glob(f"{name}*") if path.name.partition(".")[0] == Path(name).name), None)
    if path is not None:
        return path, read(path)
    path, held = kept(str(Path(name).parent))
    return path, held["reports"][Path(name).name]


def record(name: str) -> dict[str, Any]:
    """A record, which is noted as a source."""
    path, held = kept(name)
    head = next(iter(held["reports"].values())) if "reports" in held else held
    command = " ".join(["edgeconv", *head["command"]]) if "command" in head else COMMANDS.get(head.get("kind", ""))
    told = f"{path.relative_to(PROJECT)}, {OF_ONE_MACHINE.sub('', command or 'python3 scripts/fuzz.py')}"
    days = {each["created_utc"][:10] for each in held.get("reports", {"": held}).values() if "created_utc" in each}
    SOURCES.setdefault(told, set()).update(days)
    return held


parsed = cache(read_shown)


def bench(name: str) -> Any:
    """A record of `edgeconv bench` or of one of its ladders, which is noted as a source."""
    record(name)
    return parsed(kept(name)[0])


GPU, CPU = "h200/gpu", "two-core-epyc/processor"
CONV, GEMM = partial(bench, "bench_conv_h200"), partial(bench, "bench_gemm_h200")
Columns = dict[str, Callable[[Any], str]]
"""What a table's cell says of an entry, by its header."""


def table(entries: Iterable[Any], columns: Columns) -> str:
    """Lines of Markdown: one for each entry."""
    return lines_of(tuple(columns), ([cell(entry) for cell in columns.values()] for entry in entries))


def shown(made: Table) -> str:
    """Its lines."""
    return lines_of(made.header, made.rows)


# ---- tables of the code


def code(entry: Any) -> str:
    """An entry's name, set as code."""
    return f"`{entry.name}`"


def device(entry: Any) -> str:
    """`CPU` or `CUDA`."""
    return str(entry.device).upper()


def option_default(entry: Option) -> str:
    """What holds where a method's option is not given."""
    default = entry.default if entry.text is None else entry.text
    return "auto" if default is None else "not given" if default is False else str(default)


def methods_of(entry: Option) -> str:
    """The methods that an option concerns."""
    names = entry.methods
    return f"{listed(names, 'and')} ({(entry.device or '').upper()})" if names else "all"


def first_kernel(entry: Any) -> str:
    """The weights of a filter's first kernel."""
    rows = "; ".join(" ".join(f"{value:g}" for value in line) for line in entry.kernels[0])
    return f"`{rows}`" + (f" and {len(entry.kernels) - 1} more" if len(entry.kernels) > 1 else "")


METHOD: Columns = {"method": code, "device": device, "what it does": attrgetter("summary")}
OPTION: Columns = {
    "option": lambda entry: f"`{entry.flag}`",
    "behind a colon": lambda entry: f"`{entry.spelling}`" if entry.type is bool else f"`{entry.spelling}=`",
    "methods": methods_of,
    "takes": lambda entry: (
        listed(entry.choices) if entry.choices else "given or not" if entry.type is bool else "a number"
    ),
    "default": option_default,
}
FILTER: Columns = {
    "filter": lambda entry: code(entry) + (" (default)" if entry.name == DEFAULT_FILTER else ""),
    "kernel": first_kernel,
    "response": attrgetter("summary"),
    "source": attrgetter("source"),
}
STAGE: Columns = {
    "stage": code,
    "takes": attrgetter("takes"),
    "gives": attrgetter("gives"),
    "weights": lambda stage: f"`{' '.join(map(str, stage.weights))}`" if stage.weights else "–",
    "what it does": attrgetter("summary"),
}
FORM: Columns = {
    "form": attrgetter("name"),
    "computes": attrgetter("computes"),
    "where": attrgetter("condition"),
    "error": attrgetter("error"),
}
PEER: Columns = {
    "peer": code,
    "device": device,
    "kind": lambda entry: "by hand" if entry.written else "library",
    "what it does": attrgetter("summary"),
}
KEYS: Columns = {"command": lambda keys: keys[0], "keys": lambda keys: ", ".join(f"`{key}`" for key in keys[1])}
FAULT: Columns = {"fault": lambda fault: f"`{fault[0]}`", "what was seen": lambda fault: fault[1]}


def signatures() -> str:
    """The functions of `edgeconv`, each below the first line of its docstring, and the names of its classes."""
    found = {name: getattr(edgeconv, name) for name in sorted(edgeconv.__all__)}
    said = []
    for name, function in found.items():
        if inspect.isfunction(function):
            taken = inspect.signature(function).parameters.values()
            short = inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in taken])
            summary = (inspect.getdoc(function) or "").partition("\n")[0]
            said += [f"# {summary}", *textwrap.wrap(f"{name}{short}", 116, subsequent_indent="    ")]
    classes = ", ".join(f"`{name}`" for name, each in found.items() if inspect.isclass(each))
    return "\n".join(["```python", *said, "```", "", f"Classes: {classes}.", ""])


# ---- tables of records


def runs(machine: str) -> str:
    """One line a report of `edgeconv run`, by stride."""
    made = map(as_report, record(f"run/{machine}")["reports"].values())
    return shown(run_tables(sorted(made, key=attrgetter("problem.stride")))[0])


def reader_fuzz() -> str:
    """What became of damaged pictures in the committed run of `scripts/fuzz.py reader`."""
    found = record("reader_fuzz")
    outcomes = ("refused", "said", "unseen", "harmless")
    rows = ([kind, *(f"{counts.get(each, 0):,}" for each in outcomes)] for kind, counts in found["counts"].items())
    decoders = (item for item in found["versions"].items() if item[0].startswith(("opencv", "pillow")))
    versions = ", ".join(map(" ".join, decoders))
    beside = f"{found['cases']:,} cases, {len(found['failures'])} failures; {versions}.\n\n"
    return beside + lines_of(("kind of file", *outcomes), rows)


BATCH, ON_GPU, POOL = "edgeconv batch", "edgeconv batch, JPEG on the GPU", "OpenCV pool"
"""As scripts/benchmark_batch.py calls them."""


def batch_speed(**machines: str) -> str:
    """Pictures per second, one line per machine, and how many times the rate of a pool of OpenCV loops."""
    rows = []
    for name, machine in machines.items():
        found = record(f"batch/{name}")
        rates, steady = found["pictures_per_second"], found["first_summary"]["steady_pictures_per_second"]
        cells = {who: digits_text(rate, 3) for who, rate in (rates | {"after the first": steady}).items()}
        cells |= {"machine": machine, "rounds": str(len(found["samples_seconds"][BATCH]))}
        rows.append(cells | {"batch / pool": f"{rates[BATCH] / rates[POOL]:.2f}"})
    columns = ("machine", "rounds", ON_GPU, BATCH, "after the first", POOL, "batch / pool", "pyvips pool")
    wanted = [name for name in columns if any(name in cells for cells in rows)]
    return lines_of(wanted, ([cells.get(name, "–") for name in wanted] for cells in rows))


TWO_CORES, H200 = "two cores of an AMD EPYC", "one NVIDIA H200, 16 cores"
CANNY_PEERS = {"canny_peers_h200": "one NVIDIA H200", "canny_peers_two_cores": TWO_CORES}
OF_EDGECONV = ("copy", "edgeconv", "edgeconv, end to end")
"""Candidates of scripts/benchmark_canny_peers.py that are no peers."""


def canny_peers() -> str:
    """Medians by case and side, of peers with how many times edgeconv's that is; a block for each record."""
    blocks = []
    for name, machine in CANNY_PEERS.items():
        timed = [row for row in record(f"small/{name}")["rows"] if "median_us" in row]
        candidates = list(dict.fromkeys(row["candidate"] for row in timed))
        cases: dict[tuple[str, int], dict[str, Any]] = {}
        for row in timed:
            cases.setdefault((row["case"], row["size"]), {})[row["candidate"]] = row
        cells = (
            [case, str(size), *(peer_cell(found, candidate) for candidate in candidates)]
            for (case, size), found in cases.items()
        )
        link = f"[{machine} (`{name}`)](results/small.json.xz)"
        blocks.append(f"{link}:\n\n{lines_of(('picture', 'side', *candidates), cells)}")
    return "\n".join(blocks)


def peer_cell(cells: dict[str, dict[str, Any]], candidate: str) -> str:
    """`420 µs`; of a peer `8,736 µs (20.8 ×), 2.2 % elsewhere`; – where it was left out."""
    if candidate not in cells:
        return "–"
    took, elsewhere = cells[candidate]["median_us"], cells[candidate].get("elsewhere", 0.0)
    text = f"{took:,.0f} µs" if took >= 100 else f"{took:.1f} µs"
    if candidate in OF_EDGECONV:
        return text
    own = cells["edgeconv, end to end" if candidate == "opencv on the host" else "edgeconv"]["median_us"]
    return f"{text} ({took / own:.3g} ×)" + (f", {elsewhere:.1%} elsewhere" if elsewhere else "")


def bench_table(name: str, make: Callable[[BenchRecord], Table], most: int | None = None) -> str:
    """A table of a bench record below its machine and its peers, without goals that are met; its first rows, or all."""
    found = bench(f"bench/{name}")
    made = make(found)
    names = ", ".join(facts.name for facts in found.machine.values())
    timed = sorted({row.candidate for row in found.rows if row.kind == "peer" and row.status == "measured"})
    below = f" {tally(made, 'row')}." if made.header[0] == "verdict" else ""
    rows = tuple(row for row in made.rows if row[0] != "met")[:most]
    head = f"{names}, {found.created_utc}. Peers with a time: {', '.join(timed)}.{below}"
    return f"{head}\n\n{shown(replace(made, rows=rows))}"


def banks(in_channels: int) -> str:
    """Every candidate over the number of filters, at 2048, stride 1, on float32."""
    wanted = (in_channels, 2048, 1, "float32")
    found = bank_series(bench("bench/h200/bank"))
    return "".join(
        shown(bank_map(each)) for each in found if (each.in_channels, each.size, each.stride, each.dtype) == wanted
    )


def flat_rows(name: str, wanted: Sequence[str] = ()) -> str:
    """Channels by themselves: µs of `sliding`, its share of the copy's speed, and the fastest peer."""
    works: dict[str, dict[int, dict[str, float]]] = {}
    for row in bench(f"bench/{name}/each").rows:
        work = f"{row.case.dtype}, {row.case.filter}"
        if row.status == "measured" and (not wanted or work in wanted):
            times = works.setdefault(work, {}).setdefault(row.case.size, {})
            times[row.candidate] = 1e6 * row.timings["cold"].median_seconds
    rows, shares = [], []
    for work, sizes in works.items():
        cells = []
        for times in sizes.values():
            copy, ours = times.pop("copy"), times.pop("sliding")
            peers = [f"; {median:.1f} {peer}" for peer, median in sorted(times.items(), key=itemgetter(1))]
            shares.append(copy / ours)
            cells.append(f"{ours:.1f} ({100 * shares[-1]:.0f} %)" + "".join(peers[:1]))
        rows.append([work, *cells])
    header = ("channels by themselves", *(f"{size}², µs" for size in next(iter(works.values()))))
    if wanted:
        return lines_of(header, rows)
    return f"{lines_of(header, rows)}\nGeometric mean of the shares: {100 * geometric_mean(shares):.0f} %.\n"


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
    ("27 shifted multiply-adds under `jax.jit`, with its launch", ("jax-shifts",), ""),
    ("edgeconv `textbook`: one thread per output value", ("textbook",), ""),
    ("PyTorch `conv2d`, the faster of both layouts", ("torch", "torch-nchw"), "PyTorch conv2d"),
    ("cuDNN, the fastest of its algorithms", ("cudnn", "cudnn:find", "cudnn-graph"), "cuDNN"),
    ("JAX `conv_general_dilated`, with its launch", ("jax",), ""),
    ("CuPy `ndimage.correlate`", ("cupy-ndimage",), ""),
)
"""A line of the table, whose fastest name counts at each size, and of the figure where the last is not empty."""
LIBRARIES = LINES[9:]

Seconds = dict[int, float]
"""Median seconds by the side of the picture."""


def measured() -> dict[str, Seconds]:
    """Medians with a cold L2 of everything that was measured at the case, and the plain kernel with its best blocks."""
    found: dict[str, Seconds] = {PLAIN: {}}
    for row in bench(f"bench/{GPU}").rows:
        case = row.case
        kind = (row.status, row.device, case.dtype, case.filter, case.channels, case.stride)
        if kind == ("measured", "cuda", "float32", "random", "mix", 1):
            found.setdefault(row.candidate, {})[case.size] = row.timings["cold"].median_seconds
    for step in CONV().rows:
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
FIGURE_SIZE = (860, 400)


def figure(text: str, grid: str, colours: Sequence[str]) -> str:
    """GFLOPS over size as SVG, both axes logarithmic, lines labelled at their ends."""
    drawn = [(label, fastest_of(names)) for _, names, label in LINES if label]
    sides = sorted(set.intersection(*(set(seconds) for _, seconds in drawn)))
    palette = {"ink": text, "grid": grid, **{label: colour for (label, _), colour in zip(drawn, colours, strict=True)}}
    curves = tuple(
        Curve(label, {side: gflops(side, seconds) for side in sides}, label, limit=label.startswith("limit"))
        for label, seconds in drawn
    )
    title = "Nominal GFLOPS over the side of the picture on one NVIDIA H200; float32, 3→3 channels, stride 1"
    of = "GFLOPS (nominal), float32, 3→3 channels, stride 1"
    return svg(
        Lines("gflops", title, title, "side of the picture, pixels", of, curves), palette, *FIGURE_SIZE, titled=False
    )


# ---- plots of records

PLOTS = {
    "plots/bench_conv_h200_bench_conv_bars_1.svg": "bench_conv_h200.json.xz",
    "bench/h200/plots/bank_banks_cuda_float32_2048_1_c1.svg": "bench/h200/bank.json.xz",
    "bench/h200/plots/bank_banks_cuda_float32_2048_1_c3.svg": "bench/h200/bank.json.xz",
}
"""Below docs/results: what pages show, by the name that `edgeconv report` gives it, and its record."""


@cache
def drawings(of: str) -> dict[str, str]:
    """Every plot of a record as SVG, by the name of its file."""
    start = Path(of).name.partition(".")[0]
    documents = tuple(documents_of([read_shown(RESULTS / of)]))
    return {f"{start}_{drawing.name}.svg": svg(drawing) for each in documents for drawing in each.drawings}


# ---- all of it

TABLES: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("README.md", "against-peers", against_peers),
    ("README.md", "each-peers", partial(flat_rows, "h200", ["uint8, sobel", "float16, sobel"])),
    ("docs/api.md", "signatures", signatures),
    ("docs/operation.md", "methods", lambda: table(METHODS, METHOD)),
    ("docs/operation.md", "filters", lambda: table(FILTERS, FILTER)),
    ("docs/bench.md", "method-options", lambda: table(options_of(Options), OPTION)),
    ("docs/bench.md", "peers", lambda: table(PEERS, PEER)),
    ("docs/bench.md", "grids", lambda: table(GRIDS, {"grid": code, "what it holds": attrgetter("summary")})),
    ("docs/bench.md", "faults", lambda: table(FAULTS.items(), FAULT)),
    ("docs/canny.md", "stages", lambda: table(STAGES, STAGE)),
    ("docs/canny.md", "canny-peers", canny_peers),
    ("docs/cpu-engine.md", "forms", lambda: table(FORMS, FORM)),
    ("docs/view.md", "view-keys", lambda: table(listed_keys(), KEYS)),
    ("docs/results.md", "run-h200", partial(runs, "h200")),
    ("docs/results.md", "run-cpu", partial(runs, "two-core-epyc")),
    ("docs/results.md", "bench-goals-h200", partial(bench_table, GPU, goals)),
    ("docs/results.md", "bench-goals-two-cores", partial(bench_table, CPU, goals)),
    ("docs/bench.md", "leads-h200", partial(bench_table, GPU, leads_by_peer, 8)),
    ("docs/bench.md", "leads-edges-h200", partial(bench_table, "h200/edges", leads_by_peer, 8)),
    ("docs/bench.md", "leads-each-h200", partial(bench_table, "h200/each", leads_by_peer, 8)),
    ("docs/bench.md", "leads-each-h100", partial(bench_table, "h100/each", leads_by_peer, 8)),
    ("docs/bench.md", "leads-two-cores", partial(bench_table, CPU, leads_by_peer, 8)),
    ("docs/bench.md", "leads-many-cores", partial(bench_table, "h200/many_cores", leads_by_peer, 8)),
    ("docs/bench.md", "leads-by-hand", partial(bench_table, "h200/many_cores_by_hand", leads_by_peer, 8)),
    ("docs/results.md", "lot-h200", lambda: shown(distribution(bench("bench/h200/surface")))),
    ("docs/banks.md", "banks-rgb", partial(banks, 3)),
    ("docs/banks.md", "banks-grey", partial(banks, 1)),
    ("docs/banks.md", "banks-cpu", partial(bench_table, "two-core-xeon-avx512/banks_cpu", fastest)),
    ("docs/batch.md", "batch-png", partial(batch_speed, cpu=TWO_CORES, h200=H200)),
    ("docs/batch.md", "batch-jpg", partial(batch_speed, h200_jpg=H200, cpu_jpg=TWO_CORES)),
    ("docs/kernels.md", "conv-ladder", lambda: shown(ladders.steps(CONV()))),
    ("docs/kernels.md", "conv-blocks", lambda: shown(ladders.conv_blocks(CONV()))),
    ("docs/kernels.md", "each-h200", partial(flat_rows, "h200")),
    ("docs/kernels.md", "each-h100", partial(flat_rows, "h100")),
    ("docs/kernels.md", "gemm-ladder", lambda: shown(ladders.steps(GEMM()))),
    ("docs/kernels.md", "gemm-sizes", lambda: shown(ladders.by_size(GEMM()))),
    ("docs/reading.md", "reader-fuzz", reader_fuzz),
)
"""Document, marker, maker."""


def renewed(text: str, marker: str, make: Callable[[], str]) -> str:
    """`text` with the lines of one table made anew, and the records that it was made of in its marker.

    Records of several days are refused unless the text between two headings says so.
    """
    marked = re.search(rf"<!-- table {marker}\b[^>]*-->\n.*?(<!-- end {marker} -->)", text, re.DOTALL)
    if marked is None:
        raise SystemExit(f"docs: error: the document of the table '{marker}' has no place for it.")
    SOURCES.clear()
    lines = make()
    sources = [f"{told} ({', '.join(sorted(days)) or 'no day'})" for told, days in SOURCES.items()]
    caption = text[: marked.start()].rpartition("\n## ")[2] + text[marked.end() :].partition("\n## ")[0]
    if len(set().union(*SOURCES.values())) > 1 and not re.search(r"another day|several\s+days", caption):
        raise SystemExit(f"docs: error: the table '{marker}' is of several days, and nothing beside it says so.")
    head = f"<!-- table {': '.join([marker, *filter(None, ['; '.join(sources)])])} -->\n"
    return text[: marked.start()] + head + lines + text[marked.start(1) :]


def made() -> dict[Path, str]:
    """What every document with a table, every figure and every plot should be."""
    texts: dict[Path, str] = {}
    for document, marker, make in TABLES:
        path = PROJECT / document
        texts[path] = renewed(texts.get(path) or path.read_text(encoding="utf-8"), marker, make)
    texts |= {RESULTS / name: drawings(of)[Path(name).name] for name, of in PLOTS.items()}
    return texts | {PROJECT / f"docs/pictures/gflops_{name}.svg": figure(*theme) for name, theme in THEMES.items()}


def stale() -> dict[Path, str]:
    """What is out of date, as it should be."""
    return {path: text for path, text in made().items() if not path.exists() or path.read_text("utf-8") != text}


def main() -> int:
    """Write, or with --check name what is out of date and exit 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="Write nothing; 1 where something is out of date.")
    asked = parser.parse_args()
    late = stale()
    if asked.check and late:
        names = ", ".join(path.relative_to(PROJECT).as_posix() for path in late)
        print(f"Out of date: {names}. Run python3 scripts/docs.py.", file=sys.stderr)
        return 1
    for path, text in late.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
