"""Grey pictures and filter banks in a batch: one file for each picture, with all that a bank gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from batch_folders import RULES, contents
from command import edgeconv
from picture_files import saved
from problems import random_image, save_image

import edgeconv as package
from edgeconv.batch import ledger
from edgeconv.io.reading import read_image

BANK = ["sobel-x", "sobel-y", "laplacian8"]
NAME = "sobel-x,sobel-y,laplacian8_reference_s1"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    save_image(random_image(20, 30, "uint8"), folder / "rgb.png")
    save_image(random_image(20, 30, "uint16")[:, :, :1], folder / "grey.tiff")
    (folder / "pale.jpg").write_bytes(saved(random_image(20, 30, "uint8"), "JPEG", mode="L"))
    return folder


@pytest.mark.parametrize(
    ("words", "suffix"), [([], "tiff"), (["--format", "npy"], "npy"), (["--name", "{stem}_{filter}.npy"], "npy")]
)
def test_a_bank_gives_one_file_with_all(photos: Path, words: list[str], suffix: str) -> None:
    out = photos.parent / "edges"
    for seen in ("done", "unchanged since an earlier run"):
        done = edgeconv("batch", photos, "-o", out, *RULES, "--filters", ",".join(BANK), "--resume", *words)
        assert (done.code, done.err) == (0, "")
        assert f"3 {seen}" in done.text
    name = NAME if "--name" not in words else ",".join(BANK)
    assert set(contents(out)) == {f"{stem}_{name}.{suffix}" for stem in ("rgb", "grey", "pale")}
    for source in ("rgb.png", "grey.tiff"):
        expected = package.convolve(read_image(photos / source).pixels, BANK, "reference", channels="each")
        path = out / f"{Path(source).stem}_{name}.{suffix}"
        if suffix == "npy":
            assert np.array_equal(np.load(path), expected)
        else:
            tifffile = pytest.importorskip("tifffile")
            with tifffile.TiffFile(path) as file:
                pages = [page.asarray().reshape(20, 30, -1) for page in file.pages]
            assert len(pages) == len(BANK)
            for number, page in enumerate(pages):
                assert np.array_equal(page, expected[:, :, number :: len(BANK)])
    assert {row.status for row in ledger.read(out).rows} == {"done"}
