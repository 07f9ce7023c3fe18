"""ImageMagick as a command: raw pixels through pipes, channels apart, one kernel.

A run is a process: its start and both pipes are part of the time, as they are of any use of it. Builds without HDRI
clip what is negative, so |value| is the sum of the answers to the kernel and to its negative.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.candidates import Ready
from edgeconv.bench.peers.base import HALO, Peer
from edgeconv.core.choices import Border
from edgeconv.core.output import TOLERANCE_FLOAT32
from edgeconv.core.problem import Problem
from edgeconv.errors import UnavailableError

COMMANDS = ("magick", "/usr/bin/convert", "convert")
"""Version 7's name, then version 6's."""
SIGN = "Version: ImageMagick"
OUTSIDE: dict[Border, str] = {"zero": "black", "replicate": "edge"}
DEPTHS = {"uint8": "8"}


class ImageMagick(Peer):
    """-morphology Correlate."""

    distributions = ("ImageMagick",)
    module = "subprocess"

    def unavailable_reason(self) -> str | None:
        return None if self._command() else "ImageMagick is not installed (no command 'magick' or 'convert')"

    def version(self) -> str:
        words = _first_line([self._command() or "", "-version"]).split()
        return words[2] if len(words) > 2 else "unknown"

    def prepare(self, problem: Problem, image_host: NDArray[Any]) -> Ready:
        kernels = problem.weights[0, :, 0]
        alone = problem.combine == "single" and problem.groups > 1 and bool((kernels == kernels[0]).all())
        whole = bool((kernels == np.rint(kernels)).all())
        plain = problem.stride == 1 and problem.padding == HALO and problem.border in OUTSIDE
        if not (alone and whole and plain and problem.dtype.name in DEPTHS and problem.output_mode in ("abs", "clip")):
            raise UnavailableError(
                f"it does channels apart with one whole-number kernel, stride 1, borders {', '.join(OUTSIDE)}, "
                f"{', '.join(DEPTHS)}, output abs or clip"
            )
        raw = ["rgb:-", "-virtual-pixel", OUTSIDE[problem.border]]
        depth = ["-depth", DEPTHS[problem.dtype.name]]
        command = [self._command() or "", *depth, "-size", f"{problem.width}x{problem.height}", *raw]
        if problem.output_mode == "abs":
            command += ["(", "-clone", "0", *_correlate(kernels[0]), ")", "(", "-clone", "0", *_correlate(-kernels[0])]
            command += [")", "-delete", "0", "-compose", "plus", "-composite"]
        else:
            command += _correlate(kernels[0])
        command += [*depth, "rgb:-"]
        pixels = image_host.tobytes()
        held: list[bytes] = []

        def run() -> None:
            held[:] = [subprocess.run(command, input=pixels, capture_output=True, check=True).stdout]

        return Ready(
            run=run,
            result=lambda: np.frombuffer(held[0], problem.output_dtype).reshape(problem.output_shape),
            problem=problem,
            tolerance=TOLERANCE_FLOAT32,
            differs="a process of its own, with its start and raw pixels through pipes",
        )

    @staticmethod
    def _command() -> str | None:
        """The command that says that it is ImageMagick: other programs are called convert too."""
        for name in COMMANDS:
            if shutil.which(name) and _first_line([name, "-version"]).startswith(SIGN):
                return name
        return None


def _correlate(kernel: NDArray[np.float32]) -> list[str]:
    rows = " ".join(",".join(f"{value:g}" for value in row) for row in kernel)
    return ["-morphology", "Correlate", f"3x3: {rows}"]


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.partition("\n")[0]
