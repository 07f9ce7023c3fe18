"""A plan of generated code: a check of its arrays, and two addresses written among its arguments."""

from __future__ import annotations

from typing import Any

from edgeconv.core.exactness import Arithmetic
from edgeconv.hardware.cpu import crew, jit
from edgeconv.hardware.cpu.crew import NativeWork
from edgeconv.methods.base import AddressPlan
from edgeconv.methods.cpu.arrays import address_of, check_arrays
from edgeconv.methods.cpu.division import Division
from edgeconv.methods.options import Options

STREAMING_BYTES = 8 * 2**20
"""Bytes of picture and output above which stores go past the caches and loads are asked for early: they are too large
to be found there again."""


class NativePlan(AddressPlan):
    """One problem compiled; the first two arguments of its work are the addresses of picture and output."""

    def __init__(
        self,
        problem: Any,
        code: jit.Compiled,
        arguments: dict[Any, Any],
        units: int,
        divided: Division,
        options: Options,
        *,
        workspace_bytes: int,
        arithmetic: Arithmetic,
        choice: dict[str, Any],
    ) -> None:
        """`arguments` are those of `NativeWork`; `choice` is what the method decided."""
        processor = jit.processor()
        about = {
            "threads": divided.threads,
            "strip_rows": divided.strip_rows,
            "native_threads": crew.unavailable_reason() or "yes",
            "vector_bytes": processor.vector_bytes,
            "processor": processor.name,
        }
        super().__init__(problem, workspace_bytes, arithmetic=arithmetic, choice={**choice, **about, **jit.versions()})
        threads, sleepers = divided.threads, divided.sleepers
        self.work = NativeWork(code, arguments, units, asked=options.threads, max_threads=threads, sleepers=sleepers)
        self._words, self._run = self.work.words, self.work.run

    def run(self, image: Any, out: Any) -> None:
        check_arrays(image, out, self.problem)
        self.run_at(address_of(image), address_of(out))

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        words = self._words
        words[0] = image_address
        words[1] = out_address
        self._run()
