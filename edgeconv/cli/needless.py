"""Options that have no effect beside others, or contradict them, are refused by name: a table of when.

Only what stands on the command line counts, not a default. Limits and permissions (`--max-pixels`, `--workspace-limit`,
`--overwrite`, `--recursive`, what a comparison accepts) hold wherever they are given, also where nothing reaches them.
Options of methods are refused by the methods (methods/__init__.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path, PurePath
from typing import Any

from edgeconv.core.choices import CHAINS
from edgeconv.errors import UsageError

Values = Mapping[str, Any]
"""The values of a command's parameters by their names."""


def by_tiles(values: Values) -> bool:
    """Whether a picture is filtered by tiles: where an option of tiles is given, and a Zarr always."""
    from edgeconv.io.files import is_zarr

    asked = values["tile"] is not None or values["memory_limit"] is not None
    return asked or is_zarr(Path(values["picture"]))


def _has_no_cluster(values: Values) -> bool:
    return values["scheduler"] is None and values["devices"] is None


def _has_chain(values: Values) -> bool:
    return values.get("chain") is not None or values["filter"] in CHAINS


def _never_looks_outside(values: Values) -> bool:
    from edgeconv.core.geometry import parse_padding

    return parse_padding(values["padding"]) == 0


def _writes_no_png(values: Values) -> bool:
    suffix = "" if values["name"].endswith("{ext}") else PurePath(values["name"]).suffix.lower()
    return values["format"] is None and (suffix not in ("", ".png") or (not suffix and values["output_mode"] == "raw"))


RUNS, CHAINING = "run batch compare", "run batch compare view"
BY_TILES = "does not apply to filtering by tiles (--tile, --memory-limit, a Zarr): leave it out"
RULES: tuple[tuple[str, str, Callable[[Values], Any], str], ...] = (
    ("channels luma stride padding border", RUNS, _has_chain, "does not apply to canny and other chains: leave it out"),
    ("thresholds gradient blur", RUNS, lambda v: not _has_chain(v), "is for --filter canny and --chain: leave it out"),
    ("luma", RUNS, lambda v: v["channels"] != "luma", "is for --channels luma: add that, or leave it out"),
    ("border", f"{RUNS} bench", _never_looks_outside, "has no effect with a padding of 0: leave one of the two out"),
    (
        "time_limit",
        "run",
        lambda v: v["samples"] == 0,
        "is for timed runs, and --samples 0 asks for none: leave it out",
    ),
    ("samples", "run", lambda v: v["samples"] and by_tiles(v), f"above 0 {BY_TILES}"),
    ("time_limit max_bytes strict format quality", "run", by_tiles, BY_TILES),
    ("worker_timeout", "batch", _has_no_cluster, "is for --scheduler and --devices: leave it out"),
    ("png_level", "batch", _writes_no_png, "is for PNG, and no output is a PNG: leave it out, or add --format png"),
)
"""(parameters, commands, whether they are needless, why and what to do: the end of a sentence that begins with one)."""

EXCLUSIVE: tuple[tuple[str, str, str], ...] = (
    ("filter kernel", "kernel_file", CHAINING),
    ("filter", "kernel", CHAINING),
    ("filter kernel kernel_file", "chain", CHAINING),
    ("filters", "chain", RUNS),
    ("filter kernel kernel_file", "filters", RUNS),
    ("verbose", "json_only", "run"),
    ("quiet", "json_only", "run diff"),
    ("quiet", "verbose", "run"),
    ("max_failures", "fail_fast", "batch"),
)
"""(parameters, the one that none of them goes with, commands)."""


def refuse_needless(command: str, values: Values, given: Collection[str], flags: Mapping[str, str]) -> None:
    """Raise UsageError for one of the `given` parameters that would be ignored; `flags` are as they are written."""
    for names, commands, is_needless, reason in RULES:
        for name in names.split():
            if name in given and command in commands.split() and is_needless(values):
                raise UsageError(f"{flags[name]} {reason}.")
    for names, other, commands in EXCLUSIVE:
        for name in names.split():
            if {name, other} <= set(given) and command in commands.split():
                raise UsageError(f"{flags[name]} does not go with {flags[other]}: use one or the other.")
