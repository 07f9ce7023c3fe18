"""Options that several commands share: name, help and default word stand here alone. Imports nothing but Typer."""

from __future__ import annotations

from typing import Annotated

import typer

FilterName = Annotated[str, typer.Option("--filter", "-f", help="See 'edgeconv filters'.")]
KernelText = Annotated[str | None, typer.Option("--kernel", help="A 3×3 kernel instead: '0,1,0;1,-4,1;0,1,0'.")]
KernelFile = Annotated[
    str | None,
    typer.Option("--kernel-file", help="A kernel from .json or .csv: 3×3, or 3×3×3×3 (out, in, row, column)."),
]
MethodName = Annotated[str, typer.Option("--method", "-m", help="auto, or one of 'edgeconv doctor'.")]
DeviceWord = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
Stride = Annotated[int, typer.Option("--stride", "-s", help="Pixels between neighbouring outputs.")]
Padding = Annotated[str, typer.Option("--padding", help="same (1 pixel), valid (0), or pixels on every side.")]
BorderWord = Annotated[str, typer.Option("--border", help="zero, replicate, reflect or reflect101.")]
ChannelsWord = Annotated[
    str, typer.Option("--channels", help="mix (3→3, each output sums all three), each (by itself) or luma (one).")
]
LumaWord = Annotated[str, typer.Option("--luma", help="bt601 or bt709, for --channels luma.")]
OutputModeWord = Annotated[
    str | None, typer.Option("--output-mode", help="abs, clip, normalize or raw. Default: abs; raw for float pictures.")
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace an output that exists. Not needed for one of the same picture and settings, untouched since.",
    ),
]
Threads = Annotated[int | None, typer.Option("--threads", help="CPU threads. Default: what this process may use.")]
WorkspaceLimit = Annotated[
    str,
    typer.Option("--workspace-limit", help="Most memory for a method beside the pictures: bytes, or with K, M or G."),
]
MathWord = Annotated[str, typer.Option("--math", help="CUDA arithmetic: fma (true float32), tf32 or half.")]
GemmWord = Annotated[str, typer.Option("--gemm", help="CUDA im2col: own or cublas.")]
CudnnFind = Annotated[bool, typer.Option("--cudnn-find", help="cudnn: also measure every algorithm.")]
BlockSide = Annotated[int, typer.Option("--block", help="CUDA textbook: side of a thread block, 8, 16 or 32.")]
MaxPixels = Annotated[int, typer.Option("--max-pixels", help="Refuse a larger picture before it is decoded.")]
MaxBytes = Annotated[
    str,
    typer.Option("--max-bytes", help="Refuse a larger file, or more of a pipe or device: bytes, or with K, M or G."),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse a picture that its decoder complains of; else that is a note.")
]
TileSide = Annotated[
    int | None,
    typer.Option("--tile", help="TIFF, Zarr: filter by tiles of so many pixels a side, a multiple of 16."),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(help="TIFF, Zarr: most memory of the whole process (1GiB, 512M); tiles are chosen to fit."),
]
VerifyTiles = Annotated[
    bool,
    typer.Option("--verify-tiles", help="With tiles: read the output back and prove it against the whole picture."),
]

DEFAULT_FILTER = "laplacian8"
DEFAULT_WORKSPACE_LIMIT = "512M"
DEFAULT_BLOCK = 16
DEFAULT_MAX_PIXELS = 2**28
DEFAULT_MAX_BYTES = "4G"
DEFAULT_NAME = "{stem}_{filter}_{method}_s{stride}{ext}"
