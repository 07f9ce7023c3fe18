"""Each drawing as SVG (text stays text) and as PNG on white; the same record gives the same bytes."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Sequence

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG

from edgeconv.export.colours import INK
from edgeconv.export.figures import Drawing, draw, literal
from edgeconv.export.kinds import AnyRecord, split
from edgeconv.export.ladder_figures import draw_ladder
from edgeconv.export.run_figures import draw_runs

PNG_DPI = 150
FONTS = ["system-ui", "Segoe UI", "Helvetica", "Arial", "DejaVu Sans", "sans-serif"]

_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_REFERENCE = re.compile(r'(?<=\bid=")(?=[^"])|(?<=url\(#)|(?<=href="#)')


def export(records: Sequence[AnyRecord]) -> dict[str, bytes]:
    """See Exporter.load: of several records the files are numbered; reports of runs stand in one drawing together."""
    files: dict[str, bytes] = {}
    given = split(records)
    for drawn in ([draw(record) for record in given.benches], [draw_ladder(record) for record in given.ladders]):
        for number, drawings in enumerate(drawn, 1):
            files |= _files(drawings, f"_{number}" if len(drawn) > 1 else "")
    return files | (_files(draw_runs(given.runs), "") if given.runs else {})


def _files(drawings: Sequence[Drawing], place: str) -> dict[str, bytes]:
    files = {}
    for drawing in drawings:
        drawing.figure.suptitle(literal(drawing.title), color=INK, fontsize=10)  # in a page it is the heading
        files[f"{place}_{drawing.name}.svg"] = svg(drawing).encode()
        files[f"{place}_{drawing.name}.png"] = png(drawing)
    return files


SVG_DECIMALS = 1
"""Of coordinates: a tenth of a point is an eighth of a pixel of a page."""
_LONG_NUMBER = re.compile(rf"(?<![\w.#])-?\d+\.\d{{{SVG_DECIMALS + 1},}}(?![\w.])")


_SHORTHAND = re.compile(r"font: ([\d.]+px) [^;\"]+")
_FAMILIES = re.compile(r"font-family: [^;\"]+; ?")
_ID = re.compile(r' id="([^"]+)"')
_WANTED = re.compile(r'(?:url\(|href=")#([^")]+)')
"""Of the ids, those that something refers to; matplotlib names every line and tick."""
_USE = re.compile(r'(<use [^>]*style="fill: (#[0-9a-f]{6})); stroke: \2[^"]*"')
"""A marker's stroke stands where it is defined already."""
_INDENT = re.compile(r"\n +")
_NO_TURN = re.compile(r' transform="rotate\(-?0 [^"]*\)"')


def svg(drawing: Drawing) -> str:
    """The drawing as SVG text; ids carry a hash of its name, so that several may stand in one page."""
    text = io.StringIO()
    settings = {"svg.fonttype": "none", "svg.hashsalt": drawing.name, "font.family": ["DejaVu Sans"]}
    with matplotlib.rc_context(settings):
        drawing.figure.patch.set_alpha(0)
        FigureCanvasSVG(drawing.figure).print_svg(text, metadata={"Date": None, "Creator": None})
    bare = _METADATA.sub("", text.getvalue())
    named = _REFERENCE.sub(f"d{zlib.crc32(drawing.name.encode()):08x}-", bare)
    short = _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.{SVG_DECIMALS}f}".rstrip("0").rstrip("."), named)
    sized = _SHORTHAND.sub(r"font-size: \1", short)
    once = _FAMILIES.sub("", sized)  # for all texts together, and not three hundred letters for each
    whole = once.replace("*{stroke-linejoin", f"text{{font-family: {', '.join(FONTS)}}}*{{stroke-linejoin", 1)
    wanted = set(_WANTED.findall(whole))
    needed = _ID.sub(lambda found: found[0] if found[1] in wanted else "", whole)
    plain = _USE.sub(r'\1"', needed)
    return _INDENT.sub("\n", _NO_TURN.sub("", plain))


def png(drawing: Drawing) -> bytes:
    """The drawing as PNG."""
    data = io.BytesIO()
    drawing.figure.patch.set_alpha(1)
    drawing.figure.patch.set_facecolor("white")
    drawing.figure.set_dpi(PNG_DPI)
    FigureCanvasAgg(drawing.figure).print_png(data, metadata={"Software": None})
    return data.getvalue()
