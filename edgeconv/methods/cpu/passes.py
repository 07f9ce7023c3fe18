"""How many outputs are computed together: as many as have their sums in registers. The rest is a further pass.

results   pixels side by side in registers: so many results, each of all directions, with 1, 2 or 4 registers each
banks     outputs side by side: so many registers of outputs, for so many pixels
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeconv.hardware.cpu.emit import SCALAR_BYTES
from edgeconv.methods.cpu.lowering import BankStructure, Lowering

SUM_REGISTERS = 4
"""Registers of sums in flight for each response: hides the latency of a multiply-add, and every weight and
every address is fetched once for all of them."""

FEW_RESULTS = 3
"""Results that are always computed in one pass."""
RESPONSES_PER_PASS = 6
"""Responses of a pass where there are more results: two registers each leave room for samples and a weight."""

RING_RESPONSES = 3
"""As many responses as a ring takes registers: sums of pairs, the largest so far, and samples."""

VECTOR_BYTES_OF_MANY, SUM_REGISTERS_OF_MANY, SUM_REGISTERS_OF_FEW = 64, 24, 12
"""Registers that sums may take: AVX-512 has 32, others at least 16."""
RESPONSE_REGISTERS_OF_FEW = 6
"""Those that sums of few results take of 16: LLVM fetches samples early, and what it then spills costs more than
fetching weights twice (docs/cpu-engine.md)."""

DIRECTIONS_HELD = 2
"""Values of one output that are in registers at once: both of a magnitude, or a response and the largest before it."""

VECTORS_PREFERRED = (2, 3, 1)
"""Registers of outputs in a pass of a bank, the first of those that compute fewest outputs twice: twelve multiply-adds
take eight loads with two (and six pixels), seven with three (and four), thirteen with one (and twelve)."""


@dataclass(frozen=True)
class BankPasses:
    """How the outputs of a group are cut into passes, and a pass into registers."""

    lanes: int
    """Outputs in a register."""
    vectors: int
    """Registers of outputs of one pixel in a pass."""
    block_pixels: int
    """Pixels whose sums of a pass are in registers together."""
    starts: tuple[int, ...]
    """First output of each pass; the last is moved back to end where the group ends."""

    @property
    def outputs(self) -> int:
        """Of a pass."""
        return self.lanes * self.vectors


def cut_results(lowering: Lowering, vector_bytes: int) -> tuple[int, int]:
    """Results of a pass, and registers of sums for each of their responses: 1, 2 or 4."""
    results = lowering.different_outputs
    directions = RING_RESPONSES if lowering.rings else len(lowering.results[0])
    per_pass = max(1, results)
    registers = most = _sum_registers(vector_bytes)
    if results > FEW_RESULTS:
        most = RESPONSES_PER_PASS
    elif vector_bytes < VECTOR_BYTES_OF_MANY:
        registers = most = RESPONSE_REGISTERS_OF_FEW
    if results * directions > most:
        passes = -(-results // max(1, most // directions))
        per_pass = -(-results // passes)
    fitting = registers // (per_pass * directions)
    return per_pass, SUM_REGISTERS if fitting >= SUM_REGISTERS else 2 if fitting >= 2 else 1


def cut_bank(lowering: Lowering, bank: BankStructure, vector_bytes: int) -> BankPasses:
    """Registers no longer than a group, and as many as compute fewest outputs twice."""
    lanes = vector_bytes // SCALAR_BYTES[lowering.sum]
    while lanes > bank.outputs:
        lanes //= 2
    vectors = min(
        (vectors for vectors in VECTORS_PREFERRED if vectors * lanes <= bank.outputs),
        key=lambda vectors: -(-bank.outputs // (vectors * lanes)) * vectors,
    )
    outputs = vectors * lanes
    starts = tuple(min(start, bank.outputs - outputs) for start in range(0, bank.outputs, outputs))
    held = min(bank.directions, DIRECTIONS_HELD)
    return BankPasses(lanes, vectors, _sum_registers(vector_bytes) // (vectors * held), starts)


def _sum_registers(vector_bytes: int) -> int:
    return SUM_REGISTERS_OF_MANY if vector_bytes >= VECTOR_BYTES_OF_MANY else SUM_REGISTERS_OF_FEW
