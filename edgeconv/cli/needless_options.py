"""Options that have no effect beside others are refused by name, never ignored: one rule for each of them.

Only what stands on the command line counts, not a default. Limits and permissions
(`--max-pixels`, `--workspace-limit`, `--overwrite`, `--recursive`, what a comparison accepts) hold wherever they are
given, also where nothing reaches them. Options of methods are refused by the methods (methods/__init__.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import typer
from typer.core import TyperCommand

from edgeconv.cli.parameters import is_given

Values = Mapping[str, Any]
"""The values of a command's parameters by their names."""


@dataclass(frozen=True)
class Rule:
    """When an option has no effect."""

    option: str
    """The name of the parameter."""
    is_needless: Callable[[Values], bool]
    reason: str
    """Why, and what to do, as the end of a sentence that begins with the option."""
    commands: tuple[str, ...] = ()
    """None means every command that has the option."""


def _by_tiles(values: Values) -> bool:
    from edgeconv.run.tiled.sources.zarr import is_zarr

    asked = values["tile"] is not None or values["memory_limit"] is not None or values["verify_tiles"]
    return bool(asked) or any(is_zarr(Path(picture)) for picture in values["pictures"])


def _never_looks_outside(values: Values) -> bool:
    from edgeconv.core.geometry import never_looks_outside

    return never_looks_outside(values["padding"])


def _has_no_cluster(values: Values) -> bool:
    return values["scheduler"] is None and values["devices"] is None


def _writes_no_png(values: Values) -> bool:
    suffix = "" if values["name"].endswith("{ext}") else PurePath(values["name"]).suffix.lower()
    return values["format"] is None and (suffix not in ("", ".png") or (not suffix and values["output_mode"] == "raw"))


def _has_chain(values: Values) -> bool:
    from edgeconv.core.choices import CHAINS

    return values.get("chain") is not None or values["filter"] in CHAINS


BY_TILES = "does not apply to filtering by tiles (--tile, --memory-limit, --verify-tiles, a Zarr): leave it out"

CHAINING = ("run", "batch", "compare")
"""The commands that compute chains of stages."""

RULES = (
    *(
        Rule(
            option,
            _has_chain,
            "does not apply to canny and other chains, whose stages have rules of their own",
            CHAINING,
        )
        for option in ("channels", "luma", "stride", "padding", "border")
    ),
    Rule(
        "luma",
        lambda values: values["channels"] != "luma",
        "is for --channels luma: add that, or leave it out",
        ("run", "batch", "compare"),
    ),
    Rule(
        "border",
        _never_looks_outside,
        "has no effect with a padding of 0: leave one of the two out",
        ("run", "batch", "compare", "grid"),
    ),
    Rule(
        "filter",
        lambda values: values["kernel"] is not None or values["kernel_file"] is not None,
        "does not go with --kernel and --kernel-file: use one or the other",
    ),
    Rule(
        "filter",
        lambda values: values.get("filters") is not None,
        "does not go with --filters: name it there too, or leave one of the two out",
    ),
    *(
        Rule(option, lambda values: not _has_chain(values), "is for --filter canny and --chain: leave it out", CHAINING)
        for option in ("thresholds", "gradient", "blur")
    ),
    Rule(
        "filter",
        lambda values: values.get("chain") is not None,
        "does not go with --chain, which names its stages: use one or the other",
    ),
    Rule("time_limit", _by_tiles, BY_TILES, ("run",)),
    Rule(
        "samples",
        lambda values: values["samples"] > 0 and _by_tiles(values),
        "above 0 does not apply to filtering by tiles, as they are timed as they go: give 0 or leave it out",
        ("run",),
    ),
    Rule("max_pixels", _by_tiles, BY_TILES, ("run",)),
    Rule("max_bytes", _by_tiles, BY_TILES, ("run",)),
    Rule("strict", _by_tiles, BY_TILES, ("run",)),
    Rule("format", _by_tiles, f"{BY_TILES}, or name the output with -o", ("run",)),
    Rule("quality", _by_tiles, BY_TILES, ("run",)),
    Rule(
        "time_limit",
        lambda values: values["samples"] == 0,
        "is for timed runs, and --samples 0 asks for none: leave it out",
        ("run",),
    ),
    Rule(
        "max_failures",
        lambda values: values["fail_fast"],
        "does not go with --fail-fast, which stops at the first: leave one of the two out",
    ),
    Rule("worker_timeout", _has_no_cluster, "is for --scheduler and --devices: leave it out"),
    Rule("png_level", _writes_no_png, "is for PNG, and no output is a PNG: leave it out, or add --format png"),
)


class RefusingCommand(TyperCommand):
    """A command that refuses by RULES before it does anything."""

    def invoke(self, ctx: Any) -> Any:
        """See click.Command.invoke."""
        refuse_needless(ctx)
        return super().invoke(ctx)


def refuse_needless(context: typer.Context) -> None:
    """Raise UsageError for an option on the command line that would be ignored."""
    from edgeconv.errors import UsageError

    for rule in RULES:
        if rule.option not in context.params or (rule.commands and context.command.name not in rule.commands):
            continue
        if is_given(context, rule.option) and rule.is_needless(context.params):
            raise UsageError(f"{option_name(context.command, rule.option)} {rule.reason}.")


def option_name(command: Any, parameter: str) -> str:
    """The option of a parameter as it is written: `--luma`."""
    (found,) = (each for each in command.params if each.name == parameter)
    return str(max(found.opts, key=len))
