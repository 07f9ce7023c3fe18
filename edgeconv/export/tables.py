"""The tables that Markdown and HTML share, as rows of plain text; each format only draws them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edgeconv.bench.goals import MICROSECOND, outcomes
from edgeconv.bench.record import Record, Row, lead_account, lead_series
from edgeconv.bench.summary import Group, geometric_mean, groups, median, winners
from edgeconv.core.units import seconds_text

NOTHING = "–"


@dataclass(frozen=True)
class Table:
    """A header and rows of text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def machine_lines(record: Record) -> list[str]:
    """Where and with what the record was measured."""
    lines = []
    for device, facts in record["machine"].items():
        roof = record["roofs"][device]
        rest = ", ".join(
            f"{name.replace('_', ' ')} {value}" for name, value in facts.items() if name != "name" and value is not None
        )
        lines.append(f"{device.upper()}: {facts['name']} ({rest})")
        lines.append(
            f"{device.upper()} roof, measured in this run: copy {roof['copy_bytes_per_second'] / 1e9:,.1f} GB/s, "
            f"float32 multiply-adds {roof['fma_flops_per_second'] / 1e9:,.0f} GFLOPS ({roof['how']})"
        )
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return [*lines, f"edgeconv {record['edgeconv_version']}; {versions}"]


def left_out(record: Record) -> Table:
    """What was not measured, and why."""
    rows = tuple((entry["name"], entry["device"], entry["reason"]) for entry in record["left_out"])
    return Table("Left out", ("name", "device", "reason"), rows)


def fastest(record: Record) -> Table:
    """The fastest method at each work beside the fastest peer, in full arithmetic on both sides."""
    rows = []
    for group in groups(record):
        for winner in winners(group):
            work = winner.method["work"]
            peer, ratio = winner.peer, winner.ratio
            rows.append(
                (
                    group.title,
                    str(work["size"]),
                    winner.method["entrant"],
                    seconds_text(median(winner.method)),
                    NOTHING if peer is None else peer["entrant"],
                    NOTHING if peer is None else seconds_text(median(peer)),
                    NOTHING if ratio is None else str(ratio),
                )
            )
    header = ("work", "size", "fastest method", "median", "fastest peer", "median", "peer / method, 99 % interval")
    return Table("The fastest", header, tuple(rows))


def lead(record: Record) -> list[str]:
    """The lead over the fastest peer, as a geometric mean over the sizes of each group."""
    lines = []
    for group in groups(record):
        mean = geometric_mean(winner.ratio.ratio for winner in winners(group) if winner.ratio is not None)
        if mean is not None:
            lines.append(f"{group.title}: the fastest method takes 1/{mean:.2f} of the fastest peer's time")
    return lines


def goals(record: Record) -> Table:
    """The project's own bars that the record has rows for: goal, figure, met or missed."""
    rows = []
    for outcome in outcomes(record):
        goal = outcome.goal
        figure = f"{outcome.figure / MICROSECOND:.2f} µs" if goal.measure == "call" else f"{outcome.figure:.3g}"
        place = ("all", "all") if outcome.size is None else (str(outcome.size), str(outcome.stride))
        verdict = ("met", "") if outcome.met else (f"MISSED by {outcome.short_by:.1%}", goal.binds)
        rows.append((goal.work, *place, outcome.words, outcome.entrant, figure, *verdict))
    return Table("Goals", ("work", "size", "stride", "goal", "by", "figure", "", "what binds it"), tuple(rows))


def over_size(group: Group, title: str, cell: Callable[[Row], str]) -> Table:
    """One line an entrant, one column a size."""
    rows = []
    for entrant in group.entrants:
        cells = [group.row(entrant, size) for size in group.sizes]
        rows.append((entrant, *(NOTHING if row is None else _or_status(row, cell) for row in cells)))
    return Table(title, ("", *map(str, group.sizes)), tuple(rows))


def time_cell(row: Row) -> str:
    """The median."""
    return seconds_text(median(row)) + (" ⚑" if row["launch_bound"] else "")


def floor_cell(row: Row) -> str:
    """The share of the floor."""
    return percent(_account(row)["floor_share"])


def gflops_cell(row: Row) -> str:
    """The headline."""
    return NOTHING if row["kind"] == "copy" else f"{_account(row)['gflops']:,.1f}"


CARD_HEADER = (
    "entrant",
    "size",
    "L2",
    "median",
    "p10",
    "p90",
    "n",
    "stopped by",
    "GFLOPS",
    "useful GFLOPS",
    "GB/s",
    "moved GB/s",
    "FLOP/byte",
    "of floor",
    "of large copy",
    "of roofline",
    "bound by",
    "workspace",
    "error",
    "differs",
)


def gpus(group: Group) -> Table:
    """The metrics of each timed row, in each L2 state."""
    rows = [_gpu(row, state, series) for row in group.rows for state, series in row["timings"].items()]
    return Table(group.title, CARD_HEADER, tuple(rows))


def untimed(record: Record) -> Table:
    """Rows that got no time, and why."""
    rows = [
        (group.title, str(row["work"]["size"]), row["entrant"], row["status"], row["reason"] or "")
        for group in groups(record)
        for row in group.rows
        if not row["timings"]
    ]
    return Table("Not timed", ("work", "size", "entrant", "status", "reason"), tuple(rows))


def cudnn_traces(record: Record) -> list[Table]:
    """The ranked list of cuDNN beside what was measured, for every row whose choice has one."""
    tables = []
    for row in record["rows"]:
        work = row["work"]
        if row["choice"].get("ranked"):
            title = f"{row['entrant']}, {work['size']}, stride {work['stride']}, {work['dtype']}"
            tables.append(cudnn_trace(title, row["choice"]))
    return tables


def cudnn_trace(title: str, choice: dict[str, Any]) -> Table:
    """One such list."""
    lines = [("heuristic", str(number), *_trace(entry)) for number, entry in enumerate(choice["ranked"], 1)]
    lines += [("measured", str(number), *_trace(entry)) for number, entry in enumerate(choice.get("measured") or [], 1)]
    header = ("ranking", "place", "algorithm", "math", "workspace", "time", "reason")
    return Table(title, header, tuple(lines))


def percent(share: float | None) -> str:
    """A share as whole percent."""
    return NOTHING if share is None else f"{share:.0%}"


def _trace(entry: dict[str, Any]) -> tuple[str, ...]:
    seconds = entry.get("time_seconds")
    return (
        str(entry.get("algorithm")),
        str(entry.get("math")),
        f"{entry.get('workspace_bytes', 0):,}",
        NOTHING if seconds is None else seconds_text(seconds),
        str(entry.get("skipped", "")),
    )


def _gpu(row: Row, state: str, series: dict[str, Any]) -> tuple[str, ...]:
    account, check = row["accounts"][state], row["check"]
    moved = account["moved_gigabytes_per_second"]
    return (
        row["entrant"],
        str(row["work"]["size"]),
        state,
        seconds_text(series["median_seconds"]),
        seconds_text(series["p10_seconds"]),
        seconds_text(series["p90_seconds"]),
        str(series["n"]),
        series["stopped_because"],
        f"{account['gflops']:,.1f}",
        f"{account['useful_gflops']:,.1f}",
        f"{account['gigabytes_per_second']:,.1f}",
        NOTHING if moved is None else f"{moved:,.1f}",
        f"{account['intensity_flops_per_byte']:.2f}",
        percent(account["floor_share"]),
        percent(account["large_copy_share"]),
        percent(account["roofline_share"]),
        account["bound_by"] or NOTHING,
        NOTHING if row["workspace_bytes"] is None else f"{row['workspace_bytes']:,}",
        NOTHING if check is None or check["relative_error"] is None else f"{check['relative_error']:.1g}",
        row["differs"] or "",
    )


def _account(row: Row) -> dict[str, Any]:
    return lead_account(row) or {}


def _or_status(row: Row, cell: Callable[[Row], str]) -> str:
    return cell(row) if lead_series(row) is not None else row["status"]
