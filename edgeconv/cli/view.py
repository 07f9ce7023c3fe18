"""`edgeconv view`: the desktop window."""

from __future__ import annotations

from typing import Annotated

import typer

from edgeconv.cli import words

NOT_PARAMETERS = {"pictures", "max_pixels", "max_bytes", "strict"}
"""Options that say what is opened, and not what is computed of it."""


def view(
    context: typer.Context,
    pictures: Annotated[
        list[str] | None, typer.Argument(metavar="[IMAGE]...", help="Pictures to open; the first is shown.")
    ] = None,
    filter_name: words.FilterName = words.DEFAULT_FILTER,
    kernel: words.KernelText = None,
    kernel_file: words.KernelFile = None,
    method: words.MethodName = "auto",
    device: words.DeviceWord = "auto",
    stride: words.Stride = 1,
    padding: words.Padding = "same",
    border: words.BorderWord = "zero",
    channels: words.ChannelsWord = "mix",
    luma: words.LumaWord = "bt601",
    output_mode: words.OutputModeWord = None,
    threads: words.Threads = None,
    workspace_limit: words.WorkspaceLimit = words.DEFAULT_WORKSPACE_LIMIT,
    math: words.MathWord = "fma",
    gemm: words.GemmWord = "own",
    cudnn_find: words.CudnnFind = False,
    block: words.BlockSide = words.DEFAULT_BLOCK,
    max_pixels: words.MaxPixels = words.DEFAULT_MAX_PIXELS,
    max_bytes: words.MaxBytes = words.DEFAULT_MAX_BYTES,
    strict: words.Strict = False,
) -> None:
    """Open a window: turn the knobs, see edges and speed at once, compare methods side by side.

    Parameters that are not given are those of last time. Needs PySide6: pip install 'edgeconv[gui]'.
    """
    from edgeconv.cli.options import parse_read_rules
    from edgeconv.errors import UsageError
    from edgeconv.files import is_standard_stream
    from edgeconv.view.background import leave
    from edgeconv.view.signals import note
    from edgeconv.view.work import Workshop

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
