"""What a person may choose for a problem, as types: the command line, the window and Python accept the same words.

The standard library only, so that a list of options can be shown without NumPy.
"""

from __future__ import annotations

from typing import Literal, get_args

DEFAULT_FILTER = "sobel"

Channels = Literal["mix", "each", "luma"]
CHANNELS: tuple[Channels, ...] = get_args(Channels)
DEFAULT_CHANNELS: Channels = "each"

Luma = Literal["bt601", "bt709"]

NAMED_PADDINGS: dict[str, int] = {"same": 1, "valid": 0}
"""Pixels on every side; a padding may also be given as their number."""

Border = Literal["zero", "replicate", "reflect", "reflect101"]
BORDERS: tuple[Border, ...] = get_args(Border)
DEFAULT_BORDER: Border = "reflect101"

BORDERS_HERE: dict[str, Border] = {
    **dict.fromkeys(("constant", "BORDER_CONSTANT", "0"), "zero"),
    **dict.fromkeys(("edge", "nearest", "BORDER_REPLICATE", "1"), "replicate"),
    **dict.fromkeys(("symmetric", "BORDER_REFLECT", "2"), "reflect"),
    **dict.fromkeys(("mirror", "BORDER_REFLECT_101", "BORDER_DEFAULT", "4"), "reflect101"),
}
"""Ours of the names and numbers that NumPy, SciPy and OpenCV give a border (docs/operation.md); `reflect` is both's."""

OutputMode = Literal["abs", "clip", "normalize", "raw"]
"""`normalize` is `raw` and a second pass (see output.py)."""
OUTPUT_MODES: tuple[OutputMode, ...] = get_args(OutputMode)

CHAINS: dict[str, tuple[str, ...]] = {"canny": ("sobel", "thin", "hysteresis")}
"""Chains of stages (chains.py) with a name of their own, which stands where that of a filter may."""

Gradient = Literal["l1", "l2"]
"""|gx| + |gy|, or sqrt(gx² + gy²)."""

ThresholdRule = Literal["median", "otsu"]
"""How thresholds of hysteresis are found in a picture (chains.py)."""

Blur = Literal[0, 3, 5]
"""Size of the binomial smoothing before a chain's gradient; 0 is none."""

Check = Literal["sample", "full", "none"]
"""How much of an output is compared with the reference."""
CHECKS: tuple[Check, ...] = get_args(Check)

DeviceName = Literal["cpu", "cuda"]
DEVICES: tuple[DeviceName, ...] = get_args(DeviceName)
