"""What a chunk of a Zarr may unpack to: bounded by the chunk's own size before a codec unpacks it.

A chunk of some megabytes may hold gigabytes of zeros, and codecs give whatever is there. So between the files and zarr
stands a store that looks at each compressed chunk first:

    blosc, zstd, lz4         what their header states; their decoders keep to it
    gzip, zlib, bz2, lzma    state nothing to be trusted: unpacked by pieces that are thrown away, up to the bound
    others                   do not unpack (checksums), or stay below `FILTER_GROWTH` (filters), or are refused

Only plain files are opened, none larger than a chunk can be. Source: Zarr 2 and 3; C-Blosc 1, LZ4 as numcodecs writes
it, RFC 8878 (Zstandard).
"""

from __future__ import annotations

import asyncio
import bz2
import lzma
import math
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.storage import LocalStore, WrapperStore

METADATA_NAMES = (".zarray", ".zattrs", ".zgroup", ".zmetadata", "zarr.json")
METADATA_BYTES = 2**26

SLACK_BYTES = 2**16
"""Beside the samples of a chunk: checksums and headers."""
STORED_GROWTH = 2
"""A compressed chunk is hardly larger than what is in it, and never twice as large."""
FILTER_GROWTH = 8
"""One bit to a byte (packbits), one byte to eight (astype)."""
PIECE_BYTES = 2**20
DICTIONARY_BYTES = 2**26
"""Of LZMA's largest preset, what its decoder may hold beside."""

PREFIX = "numcodecs."
"""Of names of Zarr 2's codecs in Zarr 3."""
NOT_UNPACKING = ("bytes", "endian", "transpose", "crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3")
FILTERS = ("shuffle", "delta", "astype", "bitround", "quantize", "packbits", "fixedscaleoffset")
SHARDS = "sharding_indexed"
ZSTD_MAGIC = 0xFD2FB528


class BadChunk(ValueError):
    """A chunk that must not be unpacked."""


def _of_blosc(data: memoryview, bound: int) -> int:
    """Version, flags, item size, then the bytes that are in it, of a block, and of the chunk as it is stored.

    Its decoder believes the last of these, and would read on behind a chunk that is cut short.
    """
    del bound
    unpacked, _, stored = struct.unpack_from("<III", data, 4)
    if stored > len(data):
        raise BadChunk(f"it is cut short: {len(data):,} of {stored:,} bytes are there")
    return int(unpacked)


def _of_lz4(data: memoryview, bound: int) -> int:
    """numcodecs puts the size in front of a block."""
    del bound
    return int(struct.unpack_from("<I", data)[0])


def _of_zstd(data: memoryview, bound: int) -> int:
    """The size in the frame's header; without it, as a stream has none, the frame is unpacked into the bound."""
    magic, descriptor = struct.unpack_from("<IB", data)
    if magic != ZSTD_MAGIC:
        return 0  # no frame: its decoder says so
    code, single = descriptor >> 6, descriptor >> 5 & 1
    place = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3]
    if code == 0 and not single:
        return _of_zstd_stream(data, bound)
    return int(struct.unpack_from(("<B", "<H", "<I", "<Q")[code], data, place)[0]) + (256 if code == 1 else 0)


def _of_zstd_stream(data: memoryview, bound: int) -> int:
    import imagecodecs

    try:
        return len(imagecodecs.zstd_decode(bytes(data), out=bytearray(bound)))
    except imagecodecs.ZstdError:
        return bound + 1


def _of_stream(begin: Callable[[int], Any]) -> Callable[[memoryview, int], int]:
    """By unpacking: `begin` makes one of the standard library's decompressors for a bound."""

    def size(data: memoryview, bound: int) -> int:
        given = position = 0
        while position < len(data) and given <= bound:
            stream = begin(bound)
            rest: bytes | memoryview = b""
            while not stream.eof and given <= bound:
                wants_input = getattr(stream, "needs_input", not rest)
                if wants_input and not rest:
                    rest = data[position : position + SLACK_BYTES]
                    position += SLACK_BYTES
                    if not rest:
                        return given  # cut short: its decoder says so
                given += len(stream.decompress(rest, PIECE_BYTES))
                rest = getattr(stream, "unconsumed_tail", b"")
            position = min(position, len(data)) - len(stream.unused_data) - len(rest)
        return given

    return size


SIZES: dict[str, Callable[[memoryview, int], int]] = {
    "blosc": _of_blosc,
    "zstd": _of_zstd,
    "lz4": _of_lz4,
    "gzip": _of_stream(lambda bound: zlib.decompressobj(zlib.MAX_WBITS | 16)),
    "zlib": _of_stream(lambda bound: zlib.decompressobj()),
    "bz2": _of_stream(lambda bound: bz2.BZ2Decompressor()),
    "lzma": _of_stream(lambda bound: lzma.LZMADecompressor(memlimit=bound + DICTIONARY_BYTES)),
}
"""By the name of a codec: how many bytes a compressed chunk unpacks to, or more than the bound."""


@dataclass(frozen=True)
class Bounds:
    """Of the chunks of one array."""

    codec: str | None
    """The one that unpacks, if any."""
    most_bytes: int
    """What a chunk may unpack to."""
    index_bytes: int = 0
    """Of the index of a shard that holds one chunk; 0 without shards."""
    index_in_front: bool = False

    @classmethod
    def of(cls, array: Any) -> Bounds:
        """Raises ValueError with words for a person where a codec cannot be bounded."""
        metadata = array.metadata
        if hasattr(metadata, "compressor"):
            names = [_name_of(codec) for codec in (metadata.compressor, *(metadata.filters or ())) if codec is not None]
        else:
            names = [_name_of(codec) for codec in metadata.codecs]
        index_bytes, in_front = 0, False
        if SHARDS in names:
            (shards,) = (codec for codec in metadata.codecs if _name_of(codec) == SHARDS)
            if len(names) > 1:
                raise ValueError("a shard that is compressed as a whole is not supported")
            names = [_name_of(codec) for codec in shards.codecs]
            index_names = [_name_of(codec) for codec in shards.index_codecs]
            if index_names not in (["bytes"], ["bytes", "crc32c"]):
                raise ValueError("a compressed index of shards is not supported")
            index_bytes, in_front = 16 + 4 * (len(index_names) - 1), shards.index_location.value == "start"
        unpacking = [name for name in names if name in SIZES]
        unknown = [name for name in names if name not in (*SIZES, *NOT_UNPACKING, *FILTERS)]
        if unknown or len(unpacking) > 1:
            what = " and ".join(unknown or unpacking)
            raise ValueError(f"what its compression ({what}) may unpack to cannot be bounded")
        growth = FILTER_GROWTH if any(name in FILTERS for name in names) else 1
        chunk_bytes = math.prod(array.chunks) * array.dtype.itemsize
        return cls(next(iter(unpacking), None), growth * chunk_bytes + SLACK_BYTES, index_bytes, in_front)

    def check(self, data: memoryview) -> None:
        """Raise BadChunk for a compressed chunk that unpacks to more than it may."""
        self.check_stored(len(data))
        if self.codec is None or not data:
            return
        try:
            size = SIZES[self.codec](data, self.most_bytes)
        except BadChunk:
            raise
        except (struct.error, zlib.error, OSError, EOFError, ValueError):
            return  # damaged: its decoder says so, and gives no more than it has read up to there
        except lzma.LZMAError as error:
            raise BadChunk(f"it cannot be unpacked within its bound: {error}") from None
        if size > self.most_bytes:
            raise BadChunk(f"it unpacks to more than the {self.most_bytes:,} bytes that it may have")

    def check_stored(self, size: int) -> None:
        """Raise BadChunk for a chunk that is too large as it is stored."""
        if size > STORED_GROWTH * self.most_bytes:
            raise BadChunk(f"its {size:,} bytes are more than a chunk can have")

    def only_chunk_of(self, shard: memoryview) -> memoryview:
        """The chunk in a shard of one."""
        place = 0 if self.index_in_front else max(0, len(shard) - self.index_bytes)
        if len(shard) < self.index_bytes:
            return shard[:0]
        offset, size = struct.unpack_from("<QQ", shard, place)
        return shard[offset : offset + size] if offset + size <= len(shard) else shard[:0]


class BoundedStore(WrapperStore[LocalStore]):
    """The files of a Zarr, each looked at before zarr gets it."""

    def __init__(self, store: LocalStore) -> None:
        super().__init__(store)
        self._bounds: Bounds | None = None

    @classmethod
    def at(cls, path: Path) -> BoundedStore:
        """Of a folder, for reading."""
        return cls(LocalStore(path, read_only=True))

    def bound(self, array: Any) -> None:
        """Bound chunks by those of `array`; until then only metadata can be read. Raises ValueError."""
        self._bounds = Bounds.of(array)

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """See WrapperStore.get. Raises BadChunk, and ValueError for what is not a plain file."""
        bounds = self._bounds
        is_metadata = key.rpartition("/")[2] in METADATA_NAMES
        size = _plain_size(Path(self._store.root) / key)
        if is_metadata or bounds is None:
            if size > METADATA_BYTES:
                raise ValueError(f"its {key} has {size:,} bytes")
            return await super().get(key, prototype, byte_range)
        if byte_range is None:
            bounds.check_stored(size - bounds.index_bytes)
        elif isinstance(byte_range, RangeByteRequest):
            bounds.check_stored(byte_range.end - byte_range.start)
        data = await super().get(key, prototype, byte_range)
        if data is not None and not _is_index(bounds, byte_range):
            stored = memoryview(data.to_bytes())
            chunk = bounds.only_chunk_of(stored) if bounds.index_bytes and byte_range is None else stored
            await asyncio.to_thread(bounds.check, chunk)
        return data

    async def get_partial_values(self, prototype: Any, key_ranges: Iterable[tuple[str, Any]]) -> list[Any]:
        return [await self.get(key, prototype, byte_range) for key, byte_range in key_ranges]


def _is_index(bounds: Bounds, byte_range: Any) -> bool:
    """Whether a range of a shard is its index: nothing else is asked for from the end, or, where it is, from byte 0."""
    if not bounds.index_bytes:
        return False
    in_front = isinstance(byte_range, RangeByteRequest) and byte_range.start == 0
    return in_front if bounds.index_in_front else isinstance(byte_range, SuffixByteRequest)


def _plain_size(path: Path) -> int:
    """The size of a plain file; 0 where there is none. Raises ValueError for a pipe, a device or a folder."""
    try:
        found = os.stat(path)
    except OSError:
        return 0
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise ValueError(f"{path.name} is not a plain file")
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _name_of(codec: Any) -> str:
    """The name of a codec of either version of Zarr."""
    name = codec.codec_id if hasattr(codec, "codec_id") else codec.to_dict()["name"]
    return str(name).removeprefix(PREFIX)
