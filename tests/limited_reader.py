"""Reads files under a limit of memory, each in a fork of this process, which has loaded the libraries: for
test_reader_bombs.py.

A line of standard input is [name, path, by tiles, need in bytes, spare bytes], a line of standard output [name, how it
ended, message].
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

import cv2  # noqa: F401  # before the limit: what it takes is not the picture's
import numpy as np
from PIL import Image

from edgeconv.errors import ImageReadError, MemoryLimitError
from edgeconv.io import reading

Image.init()
ENDLESS_SECONDS = 20
"""Of a processor, after which a reader is ended: no picture here takes two."""


def address_space() -> int:
    """Bytes that this process has mapped."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def read(path: Path, by_tiles: bool) -> int:
    """Read all of a picture, or the first of its pieces; how many samples."""
    if not by_tiles:
        return int(reading.read_image(path).pixels.size)
    from edgeconv.run.sources import open_source

    source = open_source(path)
    rows, columns = (min(pair) for pair in zip(source.chunk, (source.height, source.width), strict=True))
    return int(source.load(range(rows), range(columns)).size)


def attempt(path: str, by_tiles: bool, most_bytes: int) -> tuple[str, str]:
    """How reading ends under a limit."""
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (ENDLESS_SECONDS, ENDLESS_SECONDS))
    try:
        return "read", f"{read(Path(path), by_tiles):,} samples"
    except ImageReadError as error:
        return "refused", str(error)
    except MemoryLimitError as error:
        return "no memory", str(error)
    except BaseException as error:  # what a test must see
        return "failed", repr(error)


def main() -> None:
    """Serve standard input."""
    jobs = [json.loads(line) for line in sys.stdin]
    if any(by_tiles for _, _, by_tiles, _, _ in jobs):
        import imagecodecs  # noqa: F401
        import pyvips  # noqa: F401
        import tifffile  # noqa: F401
        import zarr
        from zarr.core.sync import sync  # noqa: F401

        zarr.create_array({}, shape=(1,), dtype=np.uint8)
    for name, path, by_tiles, need, spare in jobs:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            with os.fdopen(writer, "w") as answer:
                json.dump(attempt(path, by_tiles, address_space() + need + spare), answer)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answer:
            text = answer.read()
        _, status = os.waitpid(child, 0)
        word, said = json.loads(text) if text else ("died", f"status {status}")
        print(json.dumps([name, word, said]), flush=True)


if __name__ == "__main__":
    main()
