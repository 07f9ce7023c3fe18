"""`edgeconv view`: the desktop window."""

from __future__ import annotations

from typing import Annotated

import typer

from edgeconv.cli import shared_options

NOT_PARAMETERS = {"pictures", "max_pixels", "max_bytes", "strict"}
"""Options that say what is opened, and not what is computed of it."""


def view(
    context: typer.Context,
    pictures: Annotated[
        list[str] | None, typer.Argument(metavar="[IMAGE]...", help="Pictures to open; the first is shown.")
    ] = None,
    filter_name: shared_options.FilterName = shared_options.DEFAULT_FILTER,
    kernel: shared_options.KernelText = None,
    kernel_file: shared_options.KernelFile = None,
    method: shared_options.MethodName = "auto",
    device: shared_options.DeviceWord = "auto",
    stride: shared_options.Stride = 1,
    padding: shared_options.Padding = "same",
    border: shared_options.BorderWord = "zero",
    channels: shared_options.ChannelsWord = "mix",
    luma: shared_options.LumaWord = "bt601",
    output_mode: shared_options.OutputModeWord = None,
    threads: shared_options.Threads = None,
    workspace_limit: shared_options.WorkspaceLimit = shared_options.DEFAULT_WORKSPACE_LIMIT,
    math: shared_options.MathWord = "fma",
    gemm: shared_options.GemmWord = "own",
    cudnn_find: shared_options.CudnnFind = False,
    block: shared_options.BlockSide = shared_options.DEFAULT_BLOCK,
    max_pixels: shared_options.MaxPixels = shared_options.DEFAULT_MAX_PIXELS,
    max_bytes: shared_options.MaxBytes = shared_options.DEFAULT_MAX_BYTES,
    strict: shared_options.Strict = False,
) -> None:
    """Open a window: turn the knobs, see edges and speed at once, compare methods side by side.

    Parameters that are not given are those of last time. Needs PySide6: pip install 'edgeconv[gui]'.
    """
    from edgeconv.cli.options import parse_read_rules
    from edgeconv.errors import UsageError
    from edgeconv.io.files import is_standard_stream
    from edgeconv.view.background import leave
    from edgeconv.view.compute import Workshop
    from edgeconv.view.signals import note

    if any(map(is_standard_stream, pictures or [])):
        raise UsageError(
            "The window reads a picture again when it saves, and standard input is gone by then: name a file."
        )
    workshop = Workshop(parse_read_rules(max_pixels, max_bytes, strict))
    if pictures:
        workshop.begin(pictures[0])  # while Qt is loaded and the window built
    signals = note()
    from edgeconv.view.qt.start import require_qt

    require_qt()
    from edgeconv.view.qt.app import run

    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    changes = {"filter" if name == "filter_name" else name: context.params[name] for name in given - NOT_PARAMETERS}
    leave(run(pictures or [], changes, workshop, signals))
