"""NPY: NumPy's own array file, for pictures of floats. Read and written by NumPy, never with pickled objects."""

from __future__ import annotations

import io
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.io.formats.base import BadPicture, Header, Sides, any_sides, require

SIGNATURE = b"\x93NUMPY"
DTYPES = ("uint8", "uint16", "float16", "float32", "float64")
RESAVE = "save a height × width × 3 or 1 array of uint8, uint16 or float32 with numpy.save"


def _read_shape(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type of the array that starts here; leaves `stream` at its first byte. Raises BadPicture.

    NumPy reads the header, a Python literal, with Python's own parser, so that damage may raise nearly anything:
    ValueError, SyntaxError, TokenError, TypeError, RecursionError, even MemoryError.
    """
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    except Exception:
        raise BadPicture("its NPY header is damaged") from None
    return shape, dtype


def read_header(data: bytes, sides: Sides = any_sides) -> Header:
    """Read the shape and type of a whole NPY file. Raises BadPicture."""
    stream = io.BytesIO(data)
    shape, dtype = _read_shape(stream)
    if dtype.name not in DTYPES:
        raise BadPicture(f"an array of {dtype} is not a picture", RESAVE)
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3, 4)):
        raise BadPicture(f"an array of shape {shape} is not a picture", RESAVE)
    sides(shape[1], shape[0])
    needed = stream.tell() + int(np.prod(shape, dtype=object)) * dtype.itemsize
    require(data, needed)
    channels = shape[2] if len(shape) == 3 else 1
    return Header(
        width=shape[1],
        height=shape[0],
        bits=8 * dtype.itemsize,
        floats=dtype.kind == "f",
        grey=channels == 1,
        alpha=channels == 4,
        channel_axis=len(shape) == 3,
    )


def read_numbers(data: bytes) -> NDArray[Any]:
    """An array of numbers of any shape. Raises BadPicture for a file that is damaged or holds anything else."""
    stream = io.BytesIO(data)
    shape, dtype = _read_shape(stream)
    if dtype.kind not in "biuf" or dtype.hasobject:
        raise BadPicture(f"an array of {dtype} is not one of numbers")
    needed = stream.tell() + int(np.prod(shape, dtype=object)) * dtype.itemsize
    require(data, needed)  # before NumPy takes the memory for what the header says
    return decode(data)


def decode(data: bytes, header: Header | None = None) -> NDArray[Any]:
    """The array as saved, in this machine's byte order, HWC or HW."""
    del header  # it is in the file once more
    array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def encode(pixels: NDArray[Any]) -> bytes:
    """The bytes of an NPY file that holds `pixels`."""
    stream = io.BytesIO()
    np.save(stream, pixels, allow_pickle=False)
    return stream.getvalue()
