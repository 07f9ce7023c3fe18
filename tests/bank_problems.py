"""Problems of grey pictures, filter banks and float64, for the CUDA methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgeconv.core.filters import Filter, custom_filter, filter_bank, named_filter
from edgeconv.core.problem import Problem
from edgeconv.core.request import make_request


@dataclass(frozen=True)
class BankCase:
    """One problem: `filters` random kernels, whole or not, or a named filter, or several, comma-separated."""

    filters: int | str
    in_channels: int
    channels: str = "mix"
    dtype: str = "float32"
    output_mode: str = "raw"
    stride: int = 1
    padding: int = 1
    border: str = "zero"
    shape: tuple[int, int] = (13, 45)

    def problem(self) -> Problem:
        request = make_request(
            self.bank(),
            channels=self.channels,
            stride=self.stride,
            padding=self.padding,
            border=self.border,
            output_mode=self.output_mode,
        )
        return request.problem((*self.shape, self.in_channels), self.dtype)

    def bank(self) -> Filter:
        if isinstance(self.filters, str):
            names = self.filters.split(",")
            return named_filter(names[0]) if len(names) == 1 else filter_bank(names)
        random = np.random.default_rng(self.filters)
        own_channels = self.in_channels if self.channels == "mix" else 1
        kernels = random.uniform(-1, 1, (self.filters, own_channels, 3, 3))
        return custom_filter(np.rint(kernels * 9) if np.dtype(self.dtype).kind == "u" else kernels)

    def __str__(self) -> str:
        height, width = self.shape
        return (
            f"{self.filters}-c{self.in_channels}-{self.channels}-{self.dtype}-{self.output_mode}-s{self.stride}"
            f"-p{self.padding}-{self.border}-{height}x{width}"
        )


GREY = (
    BankCase("laplacian8", 1, dtype="uint8", output_mode="abs"),
    BankCase("laplacian8", 1, dtype="uint8", output_mode="raw", stride=2, border="reflect"),
    BankCase("sobel", 1, dtype="uint8", output_mode="abs", border="replicate"),
    BankCase("sobel", 1, dtype="uint8", output_mode="clip", stride=3),
    BankCase("kirsch", 1, dtype="uint8", output_mode="abs"),
    BankCase("sobel", 1, dtype="uint16", output_mode="abs", border="reflect101"),
    BankCase("laplacian8", 1, dtype="uint16", output_mode="abs", stride=2, padding=3),
    BankCase(1, 1, dtype="float16", border="reflect"),
    BankCase("sobel", 1, dtype="float16", stride=2),
    BankCase(1, 1),
    BankCase("sobel", 1, stride=3, padding=0),
    BankCase(1, 1, stride=5, border="replicate"),
)
BANKS = (
    BankCase(2, 3),
    BankCase(4, 3, border="reflect"),
    BankCase(6, 3, stride=2),
    BankCase(8, 3, stride=3, padding=2),
    BankCase(5, 1, border="replicate"),
    BankCase(8, 1, stride=2),
    BankCase(9, 3, padding=0),
    BankCase(16, 3, border="reflect101"),
    BankCase(17, 1, stride=2),
    BankCase(24, 3, stride=3),
    BankCase(70, 3, border="replicate", shape=(7, 61)),
    BankCase(130, 1, shape=(5, 33)),
    BankCase(5, 3, channels="each", border="reflect"),
    BankCase(12, 3, channels="each", dtype="uint8", output_mode="abs", stride=2),
    BankCase(3, 3, channels="luma", dtype="uint16", output_mode="abs"),
    BankCase("sobel,scharr,prewitt", 3, dtype="uint8", output_mode="abs"),
    BankCase("sobel,scharr", 1, dtype="uint16", output_mode="abs", border="reflect"),
    BankCase("sobel,scharr,prewitt", 3, channels="each", dtype="float16"),
    BankCase("kirsch,robinson", 3, dtype="uint8", output_mode="clip"),
    BankCase("sobel-x,sobel-y,laplacian8", 3, dtype="uint8", output_mode="abs", stride=4),
    BankCase(11, 3, dtype="uint16", output_mode="clip"),
    # Several blocks side by side and one below the other, so that some are away from every edge.
    BankCase(64, 3, shape=(9, 80)),
    BankCase(64, 1, border="reflect", shape=(9, 60)),
    BankCase(12, 3, stride=2, shape=(19, 240)),
    BankCase(5, 3, channels="each", border="replicate", shape=(9, 500)),
    BankCase(",".join(["sobel"] * 32), 3, dtype="uint8", output_mode="abs", shape=(9, 80)),
)
DOUBLES = (
    BankCase("laplacian8", 3, dtype="float64"),
    BankCase(1, 3, channels="each", dtype="float64", stride=2, border="reflect"),
    BankCase("sobel", 1, dtype="float64", output_mode="abs", padding=2),
    BankCase("sobel", 3, channels="luma", dtype="float64", stride=3, border="replicate"),
    BankCase(10, 3, dtype="float64"),
    BankCase(16, 3, dtype="float64", border="reflect101", shape=(9, 80)),
    BankCase(9, 1, dtype="float64", padding=2, stride=2, shape=(19, 120)),
    BankCase(24, 3, dtype="float64", stride=3, border="replicate", shape=(12, 130)),
    BankCase(5, 3, channels="each", dtype="float64"),
    BankCase(70, 1, dtype="float64", shape=(5, 33)),
    BankCase("sobel,scharr", 3, dtype="float64", output_mode="abs", border="reflect"),
    BankCase(16, 3, dtype="float64", stride=5),
    BankCase("kirsch", 3, dtype="float64", border="reflect101"),
)
EVERY = (*GREY, *BANKS, *DOUBLES)
