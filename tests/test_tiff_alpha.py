"""TIFFs with extra samples: colours as they are stored, whatever the samples are called, with any Pillow."""

from __future__ import annotations

import io
from itertools import product

import numpy as np
import pytest
import tifffile

from edgeconv.errors import ImageReadError
from edgeconv.io.reading import decode_image

SHAPE = (37, 53)
KINDS = ("assocalpha", "unassalpha", "unspecified")
COMPRESSIONS = (None, "lzw", "zlib", "packbits")


def tiff(pixels: np.ndarray, planes: str, **options: object) -> bytes:
    """A file of HWC pixels, its planes together or apart."""
    stored = pixels if planes == "contig" else np.ascontiguousarray(np.moveaxis(pixels, 2, 0))
    stream = io.BytesIO()
    tifffile.imwrite(stream, stored, planarconfig=planes, **options)
    return stream.getvalue()


def layouts() -> list[tuple]:
    """Compression, planes, tile, byte order and BigTIFF; Pillow opens no big-endian BigTIFF."""
    orders = [("<", False), (">", False), ("<", True)]
    return [(*one, *order) for *one, order in product(COMPRESSIONS, ("contig", "separate"), (None, (16, 16)), orders)]


@pytest.mark.parametrize("extra", [1, 2])
@pytest.mark.parametrize("photometric", ["rgb", "minisblack", "miniswhite"])
@pytest.mark.parametrize("kind", KINDS)
def test_extra_samples_change_no_colour(photometric: str, kind: str, extra: int) -> None:
    """Every layout gives the stored colours, or is refused by name: of RGB with one extra sample none is refused."""
    colours = 3 if photometric == "rgb" else 1
    pixels = np.random.default_rng(5).integers(0, 256, (*SHAPE, colours + extra), np.uint8)
    expected = pixels[:, :, :colours]
    expected = 255 - expected if photometric == "miniswhite" else expected
    refused = []
    for compression, planes, tile, byteorder, big in layouts():
        options = {"tile": tile} if tile else {"rowsperstrip": 10}
        layout = {"compression": compression, "byteorder": byteorder, "bigtiff": big, **options}
        kinds = [kind, *["unspecified"] * (extra - 1)]
        data = tiff(pixels, planes, photometric=photometric, extrasamples=kinds, **layout)
        try:
            found = decode_image(data, "a.tif").pixels
        except ImageReadError as error:
            refused.append((compression, planes, str(error)))
            continue
        np.testing.assert_array_equal(found, expected, f"{planes} {layout}")
    assert not any("\n" in error for _, _, error in refused)
    if extra == 1 and photometric != "miniswhite":
        assert {layout[:2] for layout in refused} <= ({(None, "separate")} if colours == 1 else set())
