"""The tables of docs/cpu-engine.md about threads, from records of scripts/benchmark_crew.py and of `edgeconv bench`."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import committed

from edgeconv.bench.record import BenchRow, read_record
from edgeconv.export.tables import lines_of


@cache
def record(name: str) -> dict[str, Any]:
    """A record of scripts/benchmark_crew.py."""
    return committed.record(name)


def _times(found: dict[str, float]) -> str:
    return f"{found['median']:.1f} / {found['p90']:.1f}"


def wake(name: str) -> str:
    """Median and p90 of a job, by threads, kind of threads and state."""
    rows = record(name)["wake"]
    states = ("awake", "asleep", "asleep, bound to no core")
    kinds = [(what, state) for what in ("empty units", "all meet") for state in states]
    table = []
    for threads in sorted({row["threads"] for row in rows}):
        for kind in ("crew", "python threads"):
            cells = {
                (row["what"], row["state"]): row for row in rows if (row["threads"], row["kind"]) == (threads, kind)
            }
            found = [_times(cells[each]["microseconds"]) if each in cells else "" for each in kinds]
            table.append([str(threads), kind, *found])
    return lines_of(("threads", "kind", *(f"{what}, {state}" for what, state in kinds)), table)


def _case(row: dict[str, Any]) -> str:
    return f"{row['dtype']}, {row['filter']}, {row['channels']}, stride {row['stride']}"


def settings(name: str) -> str:
    """Times over those of the engine as it is, of every setting: geometric mean of the cases, best and worst."""
    rows = record(name)["settings"]
    table = []
    for setting in dict.fromkeys(name for row in rows for name in row["settings"]):
        ratios = []
        for row in rows:
            changed, base = row["settings"].get(setting), row["settings"]["as it is"]
            if changed is not None and changed != base:
                share = changed["microseconds"]["median"] / base["microseconds"]["median"]
                ratios.append((share, f"{row['size']}: {_case(row)}"))
        if ratios:
            mean = prod(share for share, _ in ratios) ** (1 / len(ratios))
            (best, at_best), (worst, at_worst) = min(ratios), max(ratios)
            table.append(
                [setting, str(len(ratios)), f"{mean:.2f}", f"{best:.2f} ({at_best})", f"{worst:.2f} ({at_worst})"]
            )
    return lines_of(("setting", "cases that it changes", "geometric mean", "best", "worst"), table)


def fresh(name: str) -> str:
    """Median and p90 with an output that is there, and with new ones."""
    rows = record(name)["fresh"]
    names = [what for what in rows[0] if what != "size"]
    return lines_of(("side", *names), [[str(row["size"]), *(_times(row[what]) for what in names)] for row in rows])


def spin(name: str) -> str:
    """Medians by what the caller does between two pictures and by how long helpers stay awake."""
    rows = record(name)["spin"]
    times = list(rows[0]["spin_microseconds"])
    return lines_of(
        ("side", "µs between two pictures", *(f"awake {each} µs" for each in times)),
        [
            [
                str(row["size"]),
                f"{row['pause_microseconds']:.0f}",
                *(_times(row["spin_microseconds"][each]) for each in times),
            ]
            for row in rows
        ],
    )


def processes(name: str) -> str:
    """Pictures per second in all."""
    rows = record(name)["processes"]
    sizes = sorted({row["size"] for row in rows})
    names = list(dict.fromkeys(row["what"] for row in rows))

    def rates(what: str, size: int) -> str:
        return " and ".join(
            f"{row['pictures_per_second']:,.0f}" for row in rows if (row["what"], row["size"]) == (what, size)
        )

    return lines_of(("who", *map(str, sizes)), [[what, *(rates(what, size) for size in sizes)] for what in names])


def against_peers(folder: str, name: str) -> str:
    """`sliding` beside the fastest peer of each case."""
    bench = read_record(committed.RESULTS / "bench" / folder / f"{name}.json.xz")
    cases: dict[tuple[Any, ...], list[BenchRow]] = {}
    for row in bench.rows:
        if row.status == "measured":
            case = row.case
            cases.setdefault((case.dtype, case.filter, case.channels, case.stride, case.size), []).append(row)
    table = []
    for (dtype, filter_name, channels, stride, size), rows in sorted(cases.items(), key=lambda item: item[0]):
        own = next((row for row in rows if row.name == "sliding"), None)
        peers = [row for row in rows if row.kind == "peer"]
        if own is None or not peers:
            continue
        fastest = min(peers, key=lambda row: row.timings["warm"].median_seconds)
        mine, theirs = own.timings["warm"], fastest.timings["warm"]
        assert mine.p90_seconds is not None  # of many samples
        table.append(
            [
                f"{dtype}, {filter_name}, {channels}",
                str(stride),
                str(size),
                f"{mine.median_seconds * 1e6:,.0f} / {mine.p90_seconds * 1e6:,.0f}",
                f"{theirs.median_seconds * 1e6:,.0f} ({fastest.name})",
                f"{mine.median_seconds / theirs.median_seconds:.2f}",
                f"{mine.p90_seconds / mine.median_seconds:.2f}",
            ]
        )
    header = ("case", "stride", "side", "sliding, µs, median / p90", "fastest peer", "ratio", "p90 / median")
    return lines_of(header, table)
