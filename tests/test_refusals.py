"""What cannot be used is refused in one line with its exit code, and nothing is written: one table for all commands."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from command import edgeconv
from problems import random_image

from edgeconv.cli.needless import EXCLUSIVE, RULES
from edgeconv.cli.parser import load
from edgeconv.io.encoding import write_image

LONG = "x" * 300
"""Longer than a name of a file may be."""

REFUSED_WITH_2 = (
    ("rum photo.png", "Did you mean 'run'? See 'edgeconv --help'."),
    ("--nope", "See 'edgeconv --help'."),
    ("nothing", "--help"),
    ("run photo.png --samples -1", "--samples -1"),
    ("run photo.png --time-limit 0", "--time-limit 0"),
    ("run photo.png --time-limit nan", "--time-limit nan"),
    ("run photo.png --workspace-limit lots", "--workspace-limit 'lots'"),
    ("run photo.png --memory-limit much", "--memory-limit 'much'"),
    ("run photo.png --stride abc", "See 'edgeconv run --help'."),
    ("run photo.png --sigma 3", "No such option: --sigma. See 'edgeconv run --help'."),
    ("diff photo.png photo.png -q --json", "--quiet does not go with --json: use one or the other."),
    ("run photo.png --strde 2", "No such option: --strde. Did you mean '--stride'? See 'edgeconv run --help'."),
    ("run photo.png --border replicat", "Did you mean 'replicate'?"),
    ("run photo.png b.jpg", "Got unexpected extra argument(s) (b.jpg). See 'edgeconv run --help'."),
    ("run photo.png -o a.tiff --format png", "--format png and the name 'a.tiff' disagree"),
    ("run photo.png --format gif", "--format 'gif' is not one of"),
    ("run photo.png --quality 50", "--quality applies to lossy formats"),
    ("run photo.png -o a.jpg --quality 101", "--quality 101 is not a whole number from 1 to 100."),
    ("run photo.png -v -q", "--quiet does not go with --verbose: use one or the other."),
    ("run photo.png -v -q --json", "--verbose does not go with --json: use one or the other."),
    ("run -photo.png", "put -- before it: -- -photo.png."),
    ("run photo.png --photo.png", "No such option: --photo.png. See 'edgeconv run --help'."),
    ("run photo.png -f Sobel", "Did you mean 'sobel'?"),
    ("run photo.png -f sobelx", "Did you mean 'sobel-x'?"),
    ("run photo.png -m Slding", "Did you mean 'sliding'?"),
    ("run .", "name a picture in it, or use 'edgeconv batch' for all of its pictures"),
    ("run photo.png --border wrap", "--border 'wrap' is not one of zero, replicate, reflect, reflect101."),
    ("run photo.png --kernel 1 --kernel-file k.json", "--kernel does not go with --kernel-file: use one or the other."),
    ("run missing.png", "missing.png"),
    ("run photo.png --stride 0", "Stride 0"),
    ("run photo.png --padding wide", "Padding 'wide' … same"),
    ("run photo.png --kernel '1,2;3,4'", "2×2 … 3×3"),
    ("run photo.png --kernel 'nan,0,0;0,0,0;0,0,0'", "finite"),
    ("run photo.png --kernel 1 --filter sobel", "--filter does not go with --kernel: use one or the other."),
    ("run photo.png --kernel-file none.json", "none.json: there is no such file: check the name."),
    ("run photo.png --channels both", "both … mix"),
    ("run photo.png --channels luma --luma bt2020", "bt2020 … bt709"),
    ("run photo.png --output-mode loud", "loud … normalize"),
    ("run field.npy --output-mode clip", "clip … float"),
    ("run photo.png --method fft", "fft … sliding"),
    ("run photo.png --device tpu", "tpu … cuda"),
    ("run photo.png --method cudnn --device cpu", "cudnn … --device cuda"),
    ("run photo.png --check twice", "twice … full"),
    ("run photo.png --threads 0", "--threads 0"),
    ("run photo.png --math double", "double … tf32"),
    ("run photo.png -o out.gif", "out.gif"),
    ("run photo.png -o out.json", "out.json"),
    ("run photo.png -o nowhere/out.png", "nowhere"),
    ("run deep.png -o out.jpg", "out.jpg"),
    ("run photo.png -o LONG.png", "xxx"),
    ("run LONG.png", "xxx"),
    ("run", "--help"),
    ("run photo.png --filters sobel-x --filter laplacian8", "--filter does not go with --filters"),
    ("run photo.png --filters sobel-x --kernel '0,0,0;0,1,0;0,0,0'", "--kernel does not go with --filters"),
    ("run photo.png --filters sobel-x --kernel-file k.npy", "--kernel-file does not go with --filters"),
    ("run photo.png --filters sobel-x,", "a comma with no name"),
    ("run photo.png --filters sobel-x,sobel-x", "has sobel-x twice"),
    ("run photo.png --filters sobel-x,sobel", "cannot be in one bank"),
    ("run photo.png --filters sobel-x,soble", "not known"),
    ("run photo.png --filters sobel-x,sobel-y -o a.gif", "not a format"),
    ("run photo.png --threshold 300", "300 is above 255"),
    ("run photo.png --threshold -3", "-3.0 is not a number above 0"),
    ("run photo.png --luma bt709", "--luma"),
    ("run photo.png --border reflect --padding valid", "--border"),
    ("run photo.png --time-limit 1 --samples 0", "--time-limit … --samples"),
    ("run photo.png --time-limit 1 --tile 16", "--time-limit … --tile"),
    ("run photo.png --samples 3 --memory-limit 1GiB", "--samples"),
    ("run photo.png --max-bytes 1M --tile 32", "--max-bytes … --tile"),
    ("run photo.png --thresholds 50,150 --filter sobel", "--thresholds … --filter"),
    ("run photo.png --gradient l2", "--gradient"),
    ("run photo.png --channels mix --filter canny", "--channels"),
    ("run photo.png --filter laplacian8 --chain sobel,thin", "--filter … --chain"),
    ("run photo.png --filter canny --threshold 4", "--threshold 4 does not apply to 'canny'"),
    ("run photo.png --chain sobel,direction --threshold 9", "--threshold 9 does not apply to 'sobel-direction'"),
    ("run photo.png --chain sobel,direction --output-mode clip", "--output-mode clip does not apply"),
    ("run photo.png --chain sobel --kernel '1,0,0;0,0,0;0,0,0'", "--kernel does not go with --chain"),
    ("run photo.png --filter canny --thresholds 3", "--thresholds '3' is not LOW,HIGH"),
    ("run photo.png --filter canny --tile 64", "'canny' is not filtered by tiles"),
    ("run photo.png --filter canyn", "Did you mean 'canny'?"),
    ("batch photo.png --recursiv", "Did you mean '--recursive'?"),
    ("batch photo.png --jpeg-codec nvjpeg", "--jpeg-codec 'nvjpeg' is not one of host, gpu."),
    ("batch -o made", "--files-from"),
    ("batch missing -o made", "missing"),
    ("batch --files-from missing.txt -o made", "missing.txt"),
    ("batch . --name 'x{ext}' -o made", "{stem}"),
    ("batch . --name '{stem}{colour}' -o made", "{colour}"),
    ("batch . --name '{stem' -o made", "template"),
    ("batch . --name '../{stem}' -o made", "-o"),
    ("batch . --jobs 0 -o made", "--jobs"),
    ("batch . --shard 3/2 -o made", "--shard"),
    ("batch . --name '{stem}_x' -o made", "{stem}_x … {ext}"),
    ("batch . --name '{stem}.jpg' --format png -o made", ".jpg … --format is png"),
    ("batch . --format gif -o made", "gif … png"),
    ("batch . --max-failures 0 -o made", "--max-failures"),
    ("batch . --quality 50 -o made", "--format … jpg"),
    ("batch . --png-level 10 -o made", "10 … 0 to 9"),
    ("batch . --png-level 3 --format jpg -o made", "--png-level … jpg"),
    ("batch --files-from - -o made", "standard input"),
    ("batch . -o made --filters sobel-x,sobel-y,laplacian8 --format png", "png holds one of the 3"),
    ("batch . -o made --filters sobel-x,sobel-y,laplacian8 --name '{stem}.webp'", "webp holds one of the 3"),
    (
        "batch . -o made --filters sobel-x,sobel-y,laplacian8 --name '{stem}.tiff' --format npy",
        "ends in .tiff, and --format is npy",
    ),
    ("batch . -o made --filters sobel-x,sobel-y,laplacian8 --png-level 3", "--png-level is for PNG"),
    ("batch photo.png --max-failures 3 --fail-fast", "--max-failures … --fail-fast"),
    ("batch photo.png --worker-timeout 60", "--worker-timeout"),
    ("batch photo.png -o made --scheduler tcp://127.0.0.1:1 --jobs 2", "--jobs"),
    ("batch photo.png -o made --scheduler tcp://127.0.0.1:1 --devices all", "--devices"),
    ("batch photo.png -o made --scheduler tcp://127.0.0.1:1 --worker-timeout nan", "--worker-timeout nan"),
    ("batch photo.png -o made --devices 0 --device cpu", "--device … cpu"),
    ("batch photo.png -o made --jpeg-codec gpu --device cpu", "--jpeg-codec gpu … cpu"),
    ("batch photo.png -o made --name {stem}{width}{ext} --shard 1/2 --overwrite", "--overwrite and --name"),
    ("batch photo.png -o made --shard a/b", "--shard"),
    ("batch photo.png -o made --shard 0/4", "--shard"),
    ("batch photo.png -o made --name {stem:d}{ext}", "is not a template"),
    ("batch photo.png -o made --name {stem}{}{ext}", "{}, which is not one of"),
    ("batch photo.png -o made --name 'a\\\\{stem}{ext}'", "has a folder in it"),
    ("batch photo.png --png-level 3 --name {stem}_{method}.tiff", "--png-level"),
    ("batch photo.png --png-level 3 --output-mode raw", "--png-level"),
    ("compare photo.png --page-limit big", "--page-limit 'big'"),
    ("compare photo.png --html photo.png", "photo.png: is the input itself: choose anothe"),
    ("compare photo.png --html nowhere/c.html", "nowhere/c.html: the folder nowhere does not e"),
    ("diff photo.png photo.png --html h --junit ./h", "'h' is named twice"),
    ("bench gemm --nope", "See 'edgeconv bench gemm --help'."),
    ("bench --nope", "See 'edgeconv bench --help'."),
    ("bench --filters canny", "canny"),
    ("resize photo.png --sizes none", "Sizes 'none' are not like 128,256 or 128:4096"),
)
REFUSED_WITH_4 = (
    ("run photo.png --method sliding --device cpu --math tf32", "--math tf32"),
    ("run photo.png --method sliding --device cpu --block 8", "--block 8"),
    ("run photo.png --filter canny --method im2col", "'im2col' cannot compute the chain 'canny'"),
    ("run photo.png --chain sobel --method opencv", "'opencv' cannot compute the chain 'sobel'"),
    ("batch photo.png --chain sobel --method sliding --device cpu -o made", "'sliding' cannot compute"),
    ("batch photo.png -o made --method sliding --device cpu --math tf32", "--math"),
    ("batch photo.png -o made --scheduler nowhere", "nowhere … does not answer"),
)
"""A command line, and what its line says; parts that stand apart in it are separated by an ellipsis."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Pictures of 8 and 16 bits and of floats, and a kernel."""
    for name, dtype in (("photo.png", "uint8"), ("deep.png", "uint16"), ("field.npy", "float32")):
        write_image(random_image(20, 30, dtype), tmp_path / name)
    (tmp_path / "k.json").write_text("[[0, 1, 0], [1, -4, 1], [0, 1, 0]]", encoding="ascii")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "says", "code"),
    [(*row, code) for code, rows in ((2, REFUSED_WITH_2), (4, REFUSED_WITH_4)) for row in rows],
)
def test_it_is_one_line_and_nothing_is_written(folder: Path, words: str, says: str, code: int) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    done = edgeconv(*shlex.split(words.replace("LONG", LONG)), cwd=folder)
    assert (done.code, len(done.error_lines), done.out) == (code, 1, b""), done.err
    assert done.err.startswith("edgeconv: error: ")
    assert all(part in done.err for part in says.split(" … ")), done.err
    assert "?." not in done.err
    assert ".." not in done.err.replace("../", "")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_every_rule_is_about_parameters_of_its_commands() -> None:
    """Each is asked with the defaults, which none refuses."""
    for names, commands, is_needless, reason in RULES:
        for command in commands.split():
            defaults = {each.name: each.default for each in load(command).params} | {"picture": "photo.png"}
            assert set(names.split()) <= defaults.keys(), (names, command)
            is_needless(defaults)
            assert not reason.endswith("."), "the sentence is ended by its maker"
    for names, other, commands in EXCLUSIVE:
        for command in commands.split():
            assert {*names.split(), other} <= {each.name for each in load(command).params}, (names, command)


@pytest.mark.parametrize(
    "words",
    [
        "run photo.png --luma bt709 --channels luma --samples 0",
        "run photo.png --border reflect --padding 1 --samples 0",
        "run photo.png --max-pixels 900 --time-limit 0.01 --samples 1",
        "batch photo.png --png-level 3 --name {stem}_{method}.png",
        "batch photo.png --png-level 3 --output-mode raw --format png --resume",
    ],
)
def test_what_does_count_is_not_refused(folder: Path, words: str) -> None:
    done = edgeconv(*words.split(), "-m", "opencv")
    assert "leave" not in done.err, done.err
