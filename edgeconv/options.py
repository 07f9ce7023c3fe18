"""Every option of the product, once: name, type, choices, default and help, in groups that belong together.

A group is a dataclass that holds the options as a person writes them; its methods check them and give what the code
works with. The first line of its docstring is its heading in `--help`. Commands name the groups that they take (cli/),
and the window's controls are the first three (view/). What a user may tell a method stands in methods/options.py, from
which `MethodOptions` is made.

Importing this module costs next to nothing, so that `--help` answers at once: what needs NumPy is imported in methods,
and annotations are not strings, each of which would be compiled when it is asked for.
"""

from collections.abc import Iterable
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from edgeconv.core.choices import (
    CHAINS,
    CHANNELS,
    DEFAULT_BORDER,
    DEFAULT_FILTER,
    DEVICES,
    NAMED_PADDINGS,
    Blur,
    Border,
    Channels,
    Check,
    Gradient,
    Luma,
    OutputMode,
)
from edgeconv.core.option import AUTO, KEY, Option, group, listed, option, options_of  # type: ignore[attr-defined]
from edgeconv.core.text import parse_bytes
from edgeconv.errors import UsageError
from edgeconv.io.read_limits import DEFAULT_MAX_BYTES, DEFAULT_MAX_PIXELS, ReadRules
from edgeconv.methods import METHODS, method_names
from edgeconv.methods.options import Options

if TYPE_CHECKING:
    from edgeconv.core.chains import Chain
    from edgeconv.core.filters import Filter
    from edgeconv.core.request import Request

JpegCodec = Literal["host", "gpu"]
L2Choice = Literal["both", "cold", "warm"]
BlockShapes = Literal["usual", "all"]

DEFAULT_NAME = "{stem}_{filter}{rules}_{method}_s{stride}{ext}"
"""Of an output of `run` and `batch`; {rules} is empty, or names channels, output mode and threshold."""

PICTURE_HELP = "PNG, JPEG, TIFF, WebP, BMP, NPY, GIF, PNM, JPEG 2000 or AVIF; - for standard input"
FORMAT_HELP = "png, jpg, tiff, webp, bmp or npy. Default: the one that keeps every bit."
QUALITY_HELP = "1 to 100, for outputs in JPEG or WebP."


def _filters() -> Iterable[str]:
    from edgeconv.core.filters import filter_names

    return (*filter_names(), *CHAINS)


def _stages() -> Iterable[str]:
    from edgeconv.core.chains import STAGES

    return (stage.name for stage in STAGES)


def _formats() -> Iterable[str]:
    from edgeconv.io.formats import WRITTEN

    return (suffix.removeprefix(".") for suffix in WRITTEN)


# --- what is computed ---------------------------------------------------------------------------------------------


@group
class Filtering:
    """The filter and the rules by which it is applied."""

    filter: str = option(DEFAULT_FILTER, "See 'edgeconv filters'.", "-f", suggest=_filters)
    kernel: str | None = option(None, "A 3×3 kernel instead: '0,1,0;1,-4,1;0,1,0'; fractions as 1/9.")
    kernel_file: str | None = option(
        None,
        "A kernel from .json, .csv or .npy: 3×3, or K×C×3×3 (filter, input channel, row, column), C 1 or 3.",
        "--kernel-file",
    )
    channels: Channels | None = option(
        None, "each (by itself), mix (3→3, each output sums all three) or luma (one). Default: each."
    )
    luma: Luma = option("bt601", "{choices}, for --channels luma.")
    stride: int = option(1, "Pixels between neighbouring outputs.", "-s")
    padding: str = option("same", "same (1 pixel), valid (0), or pixels on every side.", suggest=lambda: NAMED_PADDINGS)
    border: Border = option(DEFAULT_BORDER, "What lies around the picture: {choices}.")
    output_mode: OutputMode | None = option(
        None, "How values are stored: {choices}. Default: abs; raw for float pictures."
    )

    def chosen_filter(self) -> "Filter":
        """The filter or kernel; raises UsageError."""
        from edgeconv.core.filters import named_filter, parse_kernel
        from edgeconv.io.kernel_file import read_kernel

        if self.kernel is not None:
            return parse_kernel(self.kernel)
        return named_filter(self.filter) if self.kernel_file is None else read_kernel(Path(self.kernel_file))

    def chosen(self) -> "Filter | Chain":
        """What is applied; raises UsageError."""
        return self.chosen_filter()

    def rules(self) -> dict[str, Any]:
        """How it is applied, in the words of `make_request`."""
        names = ("channels", "luma", "stride", "padding", "border", "output_mode")
        return {name: getattr(self, name) for name in names}

    def request(self) -> "Request":
        """All of it, checked; raises UsageError."""
        from edgeconv.core.request import make_request

        return make_request(self.chosen(), **self.rules())


@group
class Chaining(Filtering):
    """Also several stages one after another in the place of a filter: those of canny, or any that fit together."""

    chain: str | None = option(
        None, "Stages one after another in the place of a filter: gaussian,sobel,thin,hysteresis.", suggest=_stages
    )
    thresholds: str | None = option(
        None, "canny: LOW,HIGH of its gradient (50,150), or median or otsu of the picture. Default: median."
    )
    gradient: Gradient | None = option(
        None, "canny: magnitudes |gx| + |gy| (l1) or the root of their squares (l2). Default: l1."
    )
    blur: Blur = option(0, "canny: binomial smoothing before it, of a size of {choices}; 0 is none.")

    def chosen(self) -> "Filter | Chain":
        from edgeconv.core.chains import make_chain, parse_thresholds

        if self.chain is None and self.filter not in CHAINS:
            return super().chosen()
        chain, thresholds = self.chain or self.filter, parse_thresholds(self.thresholds)
        return make_chain(chain, **thresholds, gradient=self.gradient, blur=self.blur)


@group
class Masking(Chaining):
    """Filter, chain or mask."""

    threshold: float | None = option(
        None,
        "Save a mask: white where |output| is at least this, else black; in the output's units (8-bit: up to 255).",
        "-t",
    )

    def rules(self) -> dict[str, Any]:
        return {**super().rules(), "threshold": self.threshold}


@group
class Bank(Chaining):
    """Filters and chains."""

    filters: str | None = option(None, "Several filters at once, a picture each: sobel-x,sobel-y,laplacian8.")

    def chosen(self) -> "Filter | Chain":
        from edgeconv.core.filters import filter_bank

        if self.filters is None:
            return super().chosen()
        names = [name.strip() for name in self.filters.split(",")]
        for name in names:
            if not name:
                raise UsageError(f"--filters '{self.filters}' has a comma with no name: write sobel-x,sobel-y.")
            if names.count(name) > 1:
                raise UsageError(f"--filters '{self.filters}' has {name} twice: name each filter once.")
        return filter_bank(names)


@group
class Applying(Bank, Masking):
    """Filters, chains and masks."""


@group
class MethodChoice:
    """Which method, and where."""

    method: str = option(
        AUTO,
        f"{', '.join((AUTO, *method_names(None, METHODS)))} or another package's; see 'edgeconv doctor'.",
        "-m",
        suggest=lambda: (AUTO, *method_names()),
    )
    device: str = option(AUTO, f"{listed((AUTO, *DEVICES))}.", suggest=lambda: (AUTO, *DEVICES))


def _as_written(entry: Option) -> tuple[str, Any, Any]:
    hint, default = (entry.hint, entry.default) if entry.text is None else (str, entry.text)
    return entry.parameter, hint, field(default=default, metadata={KEY: entry})


_Written: Any = make_dataclass("_Written", map(_as_written, options_of(Options)), eq=False, repr=False)


class MethodOptions(_Written):  # type: ignore[misc]  # whose fields are those of methods/options.py
    """Options of methods.

    They are as a person writes them: `512M` of a number.
    """

    def options(self) -> Options:
        """The same as methods read it; raises UsageError."""
        values: dict[str, Any] = {}
        for entry in options_of(Options):
            written = getattr(self, entry.parameter)
            values[entry.name] = written if entry.text is None else parse_bytes(written, entry.flag)
        return Options(**values)


# --- what is read and written -------------------------------------------------------------------------------------


@group
class Reading:
    """Reading pictures."""

    max_pixels: int = option(DEFAULT_MAX_PIXELS, "Refuse a larger picture before it is decoded.")
    max_bytes: str = option(
        f"{DEFAULT_MAX_BYTES // 2**30}G", "Refuse a larger file, or more of a pipe or device: bytes, or with K, M or G."
    )
    strict: bool = option(False, "Refuse a picture that its decoder complains of; else that is a note.")
    rgb: bool = option(False, "Read a grey picture as three equal channels; else it stays grey.")

    def rules(self) -> ReadRules:
        """The same as readers take it; raises UsageError."""
        return ReadRules(self.max_pixels, parse_bytes(self.max_bytes, "--max-bytes"), self.strict, self.rgb)


@group
class Overwriting:
    """For outputs that edgeconv recognises as its earlier results."""

    overwrite: bool = option(
        False, "Replace an output that exists. Not needed for an unmodified output of the same picture and settings."
    )


@group
class Replacing:
    """For every other file."""

    overwrite: bool = option(False, "Replace files of these names.")


@group
class Printing:
    """What is printed."""

    json_only: bool = option(False, "Print JSON in place of text.", "--json")


# --- run ----------------------------------------------------------------------------------------------------------


@group
class RunOutput(Overwriting, Printing):
    """Output and report."""

    output: str | None = option(None, "A file, a folder (made if missing), or - for standard output.", "-o")
    format: str | None = option(None, FORMAT_HELP, suggest=_formats)
    quality: int | None = option(None, QUALITY_HELP)
    verbose: bool = option(False, "Print the whole report: phases, spread, roofline, workspace, exactness.", "-v")
    quiet: bool = option(False, "Print nothing but errors.", "-q")

    def encoding(self) -> tuple[str | None, int | None]:
        """Format and quality, checked; raises UsageError."""
        from edgeconv.io.encoding import format_of_name, parse_format, parse_quality
        from edgeconv.io.files import names_a_folder

        format = parse_format(self.format)
        named = None if self.output is None or names_a_folder(self.output) else format_of_name(self.output)
        return format, parse_quality(self.quality, format or named)


@group
class Sampling:
    """Timing and check."""

    samples: int = option(200, "Most timed runs after the first; 0 for none.", least=0)
    time_limit: float | None = option(
        None,
        "Seconds that the timed runs may take. Default: 0.15, but no more than half of what the picture took.",
        above=0,
    )
    check: Check = option("sample", "Compare with the float64 oracle: {choices}.")


@group
class Tiling:
    """Pictures larger than memory."""

    tile: int | None = option(None, "TIFF, Zarr: filter by tiles of this side in pixels, a multiple of 16.")
    memory_limit: str | None = option(
        None, "TIFF, Zarr: most memory of the whole process (1GiB, 512M); tiles are chosen to fit."
    )

    @property
    def limit_bytes(self) -> int | None:
        """`memory_limit` as a number."""
        return None if self.memory_limit is None else parse_bytes(self.memory_limit, "--memory-limit")


# --- batch --------------------------------------------------------------------------------------------------------


@group
class BatchInput:
    """Which pictures."""

    files_from: Path | None = option(None, "Take paths from a text file, one per line; - for standard input.")
    recursive: bool = option(False, "Search folders and theirs, and keep their structure.", "-r")
    shard: str | None = option(None, "Only a share of the pictures: 2/8 is the second of eight shares.")


@group
class BatchOutput(Overwriting, Printing):
    """Output and ledger."""

    output: str = option("edges", "Folder or URL for outputs (made if missing).", "-o")
    name: str = option(
        DEFAULT_NAME,
        "Output names: {{stem}} {{source_ext}} {{filter}} {{rules}} {{method}} {{stride}} {{width}} {{height}} "
        "{{ext}}.",
    )
    format: str | None = option(None, FORMAT_HELP, suggest=_formats)
    quality: int | None = option(None, QUALITY_HELP)
    png_level: int | None = option(None, "PNG: 0 (stored), 1 (fastest, the default) to 9 (smallest).")
    jpeg_codec: JpegCodec = option(
        "host", "What decodes and encodes JPEG: {choices} (nvImageCodec; see docs/batch.md)."
    )
    ledger: str | None = option(
        None, "Folder of the ledger. Default: the output folder; for a URL one of this machine, which 'batch' prints."
    )


@group
class Workers:
    """How many pictures at once, and where."""

    jobs: str = option(AUTO, "Pictures processed at once; auto is one per usable core.", "-j")
    scheduler: str | None = option(
        None, "Let a Dask cluster do it: its address, or local for one started on this machine."
    )
    worker_timeout: float = option(
        60, "Seconds to wait when a cluster has no worker left; then the batch ends.", least=0
    )
    devices: str | None = option(None, "Several GPUs of this machine, one worker each: all, or numbers such as 0,1.")

    def parsed_jobs(self) -> int | None:
        """`auto` as None, or a whole number from 1."""
        if self.jobs == AUTO:
            return None
        if not self.jobs.isdecimal() or int(self.jobs) < 1:
            raise UsageError(f"--jobs '{self.jobs}' is not auto or a whole number from 1.")
        return int(self.jobs)


@group
class Failing:
    """Failed pictures, now and in an earlier batch."""

    resume: bool = option(False, "Skip pictures that the ledger calls done and that are unchanged.")
    retry_failed: bool = option(False, "Resume, and try failed pictures again.")
    fail_fast: bool = option(False, "Stop at the first failure. Default: filter the others.")
    max_failures: int | None = option(None, "Stop at this many failures.", least=1)


# --- diff and compare ---------------------------------------------------------------------------------------------


@group
class Accepting:
    """What counts as the same."""

    atol: float | None = option(
        None, "Accept |difference| up to this, in sample units. Default: 0; 'compare': what rounding explains."
    )
    rtol: float = option(0.0, "Accept this times |reference| in addition.")
    ulp: int = option(0, "Floats: also accept values at most this many representable numbers apart.")
    max_count: int = option(0, "Accept up to this many differing samples.")
    ignore_border: int = option(0, "Do not judge this many pixels along each side.")
    ignore: str | None = option(None, "Do not judge 'x,y,w,h;…', or the regions in a file that the page saved.")


@group
class Showing(Replacing, Printing):
    """Output of the comparison."""

    ssim: bool = option(False, "Add SSIM (scikit-image, extra 'diff').")
    html: str | None = option(None, "Write one self-contained page to look at.")
    pictures: str | None = option(None, "Write the map as PNG to this folder (made if missing).")
    junit: str | None = option(None, "Write JUnit XML for CI.")
    page_limit: str = option("256M", "Largest page to write: bytes, or with K, M or G.")
    """The default opens in a browser in about a second."""


@group
class DiffInput(Accepting):
    """What is compared, and what counts as the same."""

    convert: Literal["float32", "unit"] | None = option(
        None, "Make types agree: float32 (same values) or unit (floats from 0 to 1)."
    )
    update: bool = option(False, "Two folders: make the first like the second; the old files are kept.")
    quiet: bool = option(False, "Print nothing but errors: the exit code says whether they are the same.", "-q")


# --- bench --------------------------------------------------------------------------------------------------------


@group
class GridAxes:
    """Which cases are measured, by axes that take the place of the grid's."""

    grid: str = option(
        "quick",
        "lab, gpu, processor, bank, each, surface, quick, guard, or a TOML file; the options below change it.",
    )
    sizes: str | None = option(None, "Longest sides: '128,512', or '128:4096' for doublings.")
    strides: str | None = option(None, "'1,2,3'.")
    methods: str | None = option(None, "all, or names with options: 'sliding,im2col:gemm=cublas,cudnn:find:math=tf32'.")
    peers: str | None = option(None, "all, none, or names: what else one could use.")
    dtypes: str | None = option(None, "uint8, uint16, float16, float32, float64, or all.")
    filters: str | None = option(
        None, "Names of 'edgeconv filters', random, random-whole, bank-c3-k16, grey-sobel, or all."
    )
    channels: str | None = option(None, f"{listed((*CHANNELS, 'all'))}.")
    devices: str | None = option(None, f"{listed((*DEVICES, 'all'))}.")
    seed: int | None = option(None, "Of the grid surface, which is drawn at random: the same seed, the same cases.")
    cases: int | None = option(None, "Of the grid surface: how many cases are drawn.")


@group
class BenchFiltering(Filtering):
    """The rules of a bench: every peer can do zeros around, and not every one another border."""

    border: Border = option("zero", "What lies around the picture: {choices}.")


@group
class Timing:
    """How each case is timed and checked."""

    l2: L2Choice = option("both", "State of the last-level cache: {choices}.")
    noise: str = option("2%", "Stop sampling at (p90 − p10) / median of this.")
    time_limit: float = option(0.12, "Seconds of sampling per candidate, case and L2 state.", above=0)
    samples: int = option(100, "Most samples per candidate, case and L2 state.", least=1)
    check: Literal["sample", "full"] = option("sample", "Compare with the float64 oracle before timing: {choices}.")


@group
class BenchOutput(Replacing):
    """The record of a grid and what is made of it."""

    output: Path = option(Path("results"), "Folder for the files (made if missing).", "-o")
    name: str = option("bench", "Stem of the files' names.")
    formats: str = option("json,csv,markdown", "json, csv, markdown, html, plot, or all.")
    stop_after: float | None = option(None, "Seconds after which no further case is begun; --resume goes on.", least=0)
    resume: bool = option(False, "Go on with a record that was stopped.")


@group
class Ladder(Replacing):
    """A ladder of kernels on a GPU, at several sizes."""

    blocks: BlockShapes = option("usual", "Thread-block shapes of each step: {choices}.")
    time_limit: float = option(0.2, "Seconds of sampling per row.", above=0)


@group
class GemmLadder(Ladder):
    """`bench gemm`."""

    sizes: str = option("512:8192", "Sides: '512,1024', or '512:8192' for every doubling.")
    dtypes: str = option("float32,float64", "float32, float64, or both with a comma.")
    output: Path = option(Path("gemm.json"), "The record, as JSON.", "-o")


@group
class ConvLadder(Ladder):
    """`bench conv`."""

    sizes: str = option("128:4096", "Sides: '512,1024', or '128:4096' for every doubling.")
    strides: str = option("1,2,3", "'1,2,3'.")
    output: Path = option(Path("conv.json"), "The record, as JSON.", "-o")


@group
class Pairing(Replacing):
    """What `bench ab` runs, for how long, and when it fails."""

    grid: str = option("guard", "Whose cases are compared: as of 'edgeconv bench'.")
    time_limit: float = option(600.0, "Seconds after which no row gets a further pair of processes.", above=0)
    fail_on: str = option("5%", "How much slower is too slow.")
    output: Path | None = option(None, "Write the record to this file, as JSON.", "-o")


# --- report and resize --------------------------------------------------------------------------------------------


@group
class Reporting(Replacing):
    """What is made of records."""

    html: Path | None = option(None, "Write one self-contained page to this file.")
    markdown: Path | None = option(None, "Write the tables to this file.")
    csv: Path | None = option(None, "Write one line per row to this file.")
    plots: Path | None = option(None, "Write each plot as SVG into this folder.")
    schema: str | None = option(
        None, "Print the JSON Schema of run, bench, ladder, ab, diff, ignored or batch, and read no record."
    )


@group
class Resizing(Replacing):
    """The same picture in other sizes."""

    sizes: str = option("128:4096", "Longest sides in pixels: '128,256,512', or '128:4096' for every doubling.")
    square: bool = option(False, "Cut the largest square out of the middle first.")
    output: str | None = option(None, "A folder (made if missing). Default: the picture's folder.", "-o")
