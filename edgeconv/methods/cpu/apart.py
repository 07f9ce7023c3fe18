"""Taking samples apart that lie interleaved: the channels of pixels, or the residues of columns modulo a stride."""

from __future__ import annotations

from edgeconv.hardware.cpu.emit import SCALAR_BYTES, Emitter, Scalar, Value

PART_BYTES, VECTOR_BYTES_OF_WIDE_SHUFFLES, BYTES_OF_WIDE_SHUFFLES = 16, 64, 8
"""AVX2 and smaller shuffle bytes within parts of a register, and only doubles across them; AVX-512 shuffles any."""
MOST_LANES_TO_MERGE = 16
"""AVX-512 merges two registers in any order by one instruction for elements of 32 bits and more, and by three for
shorter ones: those are joined where they are, and put in order by one. That pays where there are more vectors than
results to take apart, at strides above 1; three channels at stride 1 took as long either way."""


def part_lanes(vector_bytes: int, source: Scalar) -> int:
    """Elements of a part of a register, within which shuffles are cheap: all of AVX-512's, and of doubles."""
    bytes_of_sample = SCALAR_BYTES[source]
    if vector_bytes < VECTOR_BYTES_OF_WIDE_SHUFFLES and bytes_of_sample < BYTES_OF_WIDE_SHUFFLES:
        vector_bytes = PART_BYTES
    return vector_bytes // bytes_of_sample


def loaded_in_parts(e: Emitter, first: Value, source: Scalar, vectors: int, lanes: int, part: int) -> list[Value]:
    """All samples from `first` on that these registers hold, so that each part of all of them holds neighbours.

    Register k has at part j what lies at j · vectors + k: what is then shuffled within parts is in order.
    """
    loaded = []
    for vector in range(vectors):
        parts = [
            e.load(e.address(first, source, e.int64((number * vectors + vector) * part)), source, part)
            for number in range(lanes // part)
        ]
        loaded += e.pieces(parts, lanes)
    return loaded


def every(e: Emitter, vectors: list[Value], first: int, step: int, part: int) -> list[Value]:
    """Elements first, first + step, ... of the sequence that each part of `vectors` holds, as such vectors."""
    if step == 1:
        return vectors
    lanes, total = vectors[0].type.count, len(vectors)
    merges = part == lanes and (part <= MOST_LANES_TO_MERGE or total == step)
    wanted = []
    for start in range(0, len(vectors) // step * part, part):
        places = [(start + lane) * step + first for lane in range(part)]
        picks = [(place // part, number * part + place % part) for number in range(lanes // part) for place in places]
        wanted.append(e.shuffle(vectors, picks) if merges else e.blend_and_shuffle(vectors, picks))
    return wanted
