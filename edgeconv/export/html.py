"""One page that opens from disk with no network: drawings inlined as SVG, tables, and samples of what filters give.

The page is `page.html`, filled here: a summary, then sections. Without its script (`page.js`), which sorts and filters
tables, all of it can be read. Every text that comes from a record is escaped.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from edgeconv.bench.goals import outcomes
from edgeconv.bench.record import BenchRecord
from edgeconv.bench.summary import Group, groups
from edgeconv.core.safe_text import markup
from edgeconv.core.units import counted, seconds_text, share_text
from edgeconv.export import ladders, runs, surface, tables
from edgeconv.export.colours import with_variables
from edgeconv.export.figures import Drawing, draw
from edgeconv.export.kinds import AnyRecord, LadderRecord, split
from edgeconv.export.ladder_figures import draw_ladder
from edgeconv.export.plot import svg
from edgeconv.export.run_figures import draw_runs
from edgeconv.export.run_pictures import ShownPicture, run_pictures
from edgeconv.export.samples import FilterSample, samples
from edgeconv.export.spoken import lead_lines
from edgeconv.export.tables import Table
from edgeconv.io.files import utf8
from edgeconv.run.report import RunReport

PARTS = ("page.html", "page.js")
RUNS_PREFIX = "run-"
WORDS = ("reason", "case", "differs", "what binds it")
"""Columns that hold sentences."""
BROAD_POINTS = 500
"""Wider drawings scroll sideways on a phone in place of shrinking until nobody can read them."""

MOST_NAMES = 4
"""Pictures that are not shown and are named."""

_NAMED = re.compile(r'(<(?:section|nav|div)\b[^>]* aria-label=")([^"]*)"')
_SVG = re.compile(r"<svg .*</svg>", re.DOTALL)
_WIDTH = re.compile(r'\bwidth="([\d.]+)pt"')
_SIZES = re.compile(r'\b(?:width|height)="([\d.]+)pt"')
PIXELS_PER_POINT = 1.4
"""A drawing's text is then as large as the page's."""


def export(records: Sequence[AnyRecord], folders: Sequence[Path] = ()) -> dict[str, bytes]:
    """See Exporter.load; `folders` are those of the records, in which pictures of runs may lie."""
    given = split(records)
    titles = []
    if given.benches:
        names = dict.fromkeys(record.grid.name for record in given.benches)
        titles.append("edgeconv bench: " + ", ".join(names))
    titles += dict.fromkeys(ladders.title(record) for record in given.ladders)
    titles += [runs.title(given.runs)] if given.runs else []
    title = "; ".join(titles)
    body = [f"<h1>{markup(title)}</h1>"]
    body += [_record(record, f"r{number}-") for number, record in enumerate(given.benches, 1)]
    body += [_ladder(record, f"l{number}-") for number, record in enumerate(given.ladders, 1)]
    body += [_runs(given.runs, folders)] if given.runs else []
    frame, script = (files("edgeconv.export").joinpath(name).read_text(encoding="utf-8") for name in PARTS)
    return {
        ".html": utf8(Template(frame).substitute(title=markup(title), body=_with_names("\n".join(body)), script=script))
    }


def _record(record: BenchRecord, prefix: str) -> str:
    drawings = draw(record)
    machine = ", ".join(facts.name for facts in record.machine.values())
    parts = [
        f'<p class="soft">{markup(record.grid.summary)}<br>{markup(machine)} · {markup(record.created_utc)} · '
        f"{len(record.rows)} rows in {seconds_text(record.wall_seconds)}</p>"
    ]
    if not record.complete:
        parts.append('<p class="warn">Stopped before it was complete.</p>')
    parts += [f'<p class="warn">{markup(warning)}.</p>' for warning in record.warnings]
    sections = [
        ("surface", "Over all cases", "".join(map(_unless_empty, surface.tables_of(record)))),
        ("fastest", "What is fastest", _unless_empty(tables.fastest(record))),
        ("goals", "The project's own goals", _unless_empty(tables.goals(record))),
        ("plots", "Plots", "".join(_figure(drawing, prefix) for drawing in drawings)),
        ("tables", "Times, shares and GFLOPS", "".join(map(_group_tables, groups(record)))),
        ("cudnn", "What cuDNN ranked and what was measured", "".join(map(_folded, tables.cudnn_traces(record)))),
        ("metrics", "Metrics", _formulas(record) + "".join(_folded(tables.metrics(g)) for g in groups(record))),
        ("left", "Not timed, left out", _unless_empty(tables.untimed(record)) + _unless_empty(tables.left_out(record))),
        ("samples", "What the filters give", _samples(samples(record))),
        ("machine", "Machine and versions", _list(tables.machine_lines(record))),
    ]
    return "\n".join([*parts, _summary(_bench_lines(record)), *_sections(sections, prefix)])


def _ladder(record: LadderRecord, prefix: str) -> str:
    shown = ladders.shown(record)
    words = f"{ladders.title(record)} · {record.created_utc} · {len(record.rows)} rows"
    sections = [
        ("steps", "Step by step", "".join(_figure(drawing, prefix) for drawing in draw_ladder(record))),
        ("tables", "Times and GFLOPS", "".join(map(_unless_empty, shown[:-1]))),
        ("rows", "Every thread block", _folded(shown[-1])),
    ]
    summary = _summary(ladders.lead(record))
    return "\n".join([f'<p class="soft">{markup(words)}</p>', summary, *_sections(sections, prefix)])


def _runs(reports: Sequence[RunReport], folders: Sequence[Path]) -> str:
    began = min(report.created_utc for report in reports)
    words = f"{counted(len(reports), 'report')} of edgeconv run, {began}{' and later' if len(reports) > 1 else ''}"
    parts = [f'<p class="soft">{markup(words)}</p>']
    parts += [f'<p class="warn">{markup(warning)}.</p>' for warning in runs.wrong(reports)]
    pictures, missing = run_pictures(reports, folders)
    sections = [
        ("pictures", "What was filtered, and its edges", _run_pictures(pictures, missing)),
        ("overview", "How fast, and how near the roof", _unless_empty(runs.overview(reports))),
        ("plots", "Plots", "".join(_figure(drawing, RUNS_PREFIX) for drawing in draw_runs(reports))),
        ("phases", "Where the time went", _unless_empty(runs.phases(reports))),
        ("rules", "Sizes, filters and rules", _unless_empty(runs.pictures(reports))),
        ("cudnn", "What cuDNN ranked and what was measured", "".join(map(_folded, runs.cudnn_traces(reports)))),
        ("machine", "Machine and versions", _list(runs.machine_lines(reports))),
    ]
    return "\n".join([*parts, _summary(runs.lead(reports)), *_sections(sections, RUNS_PREFIX)])


def _sections(sections: Sequence[tuple[str, str, str]], prefix: str) -> list[str]:
    """Those that have something in them, after links to them."""
    shown = [(prefix + name, heading, content) for name, heading, content in sections if content]
    links = " ".join(f'<a href="#{name}">{markup(heading)}</a>' for name, heading, _ in shown)
    parts = [
        f'<section id="{name}" aria-label="{markup(heading)}"><h2>{markup(heading)}</h2>{content}</section>'
        for name, heading, content in shown
    ]
    return [f'<nav aria-label="Sections">{links}</nav>', *parts]


def _with_names(body: str) -> str:
    """Every landmark by a name of its own: the second of a name says that it is one."""
    met: Counter[str] = Counter()

    def numbered(found: re.Match[str]) -> str:
        met[found[2]] += 1
        return found[0] if met[found[2]] == 1 else f'{found[1]}{found[2]}, {met[found[2]]}"'

    return _NAMED.sub(numbered, body)


def _summary(lines: Sequence[str]) -> str:
    """What a reader takes along from one screen."""
    return f'<section class="summary" aria-label="Summary"><h2>Summary</h2>{_list(lines)}</section>'


def _bench_lines(record: BenchRecord) -> list[str]:
    """Who is ahead, and which goals are missed and why."""
    missed = [
        f"Missed by {share_text(outcome.short_by)}: {outcome.goal.case}{tables.place_text(outcome)}, {outcome.words}, "
        f"by {outcome.candidate}. {outcome.goal.binds}"
        for outcome in outcomes(record)
        if not outcome.met
    ]
    judged = len(outcomes(record))
    goals = [f"{judged - len(missed)} of {counted(judged, 'goal')} met"] if judged else []
    return [*lead_lines(record), *goals, *missed]


def _figure(drawing: Drawing, prefix: str) -> str:
    found = _SVG.search(svg(drawing))
    text = "" if found is None else with_variables(found[0])
    text = text.replace(f'id="{drawing.name}-', f'id="{prefix}{drawing.name}-')
    text = text.replace(f"#{drawing.name}-", f"#{prefix}{drawing.name}-")
    head, _, rest = text.partition(">")
    width = float(_WIDTH.findall(head)[0])
    style = f'style="max-width:{width * PIXELS_PER_POINT:.0f}px"' + (' class="broad"' if width > BROAD_POINTS else "")
    text = f'{_SIZES.sub("", head)} role="img" aria-label="{markup(drawing.title)}" {style}>{rest}'
    return (
        f'<figure><h3>{markup(drawing.title)}</h3><div class="wide">{text}</div>'
        f"<figcaption>{markup(drawing.caption)}</figcaption></figure>"
    )


def _group_tables(group: Group) -> str:
    shown = (
        tables.over_size(group, "Median time (⚑ bound by the launch)", tables.time_cell),
        tables.over_size(group, "Share of the floor", tables.floor_cell),
        tables.over_size(group, "GFLOPS (nominal)", tables.gflops_cell),
    )
    content = "".join(f"<h3>{markup(table.title)}</h3>{_table(table)}" for table in shown)
    return f"<details><summary>{markup(group.title)}</summary><div>{content}</div></details>"


def _formulas(record: BenchRecord) -> str:
    pairs = "".join(
        f"<dt>{markup(name.replace('_', ' '))}</dt><dd>{markup(text)}</dd>" for name, text in record.formulas.items()
    )
    return f"<dl>{pairs}</dl>"


def _folded(table: Table) -> str:
    return f"<details><summary>{markup(table.title)}</summary>{_table(table)}</details>" if table.rows else ""


def _unless_empty(table: Table) -> str:
    return f"<h3>{markup(table.title)}</h3>{_table(table)}" if table.rows else ""


def _table(table: Table) -> str:
    classes = [' class="words"' if name in WORDS else "" for name in table.header]
    kinds = ['th scope="row"', *["td"] * (len(classes) - 1)]
    head = "".join(
        f'<th scope="col"{kind}>{markup(cell)}</th>' for kind, cell in zip(classes, table.header, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f"<{tag}{kind}>{markup(cell)}</{tag[:2]}>" for tag, kind, cell in zip(kinds, classes, line, strict=True)
        )
        + "</tr>"
        for line in table.rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{markup(table.title)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{markup(line)}</li>" for line in lines) + "</ul>" if lines else ""


def _samples(shown: Sequence[FilterSample]) -> str:
    pictures = "".join(
        f'<figure><img alt="{markup(sample.title)}" src="data:image/png;base64,'
        f'{base64.b64encode(sample.png).decode()}"><figcaption>{markup(sample.title)}</figcaption></figure>'
        for sample in shown
    )
    return f'<div class="samples">{pictures}</div>' if shown else ""


def _run_pictures(shown: Sequence[ShownPicture], missing: Sequence[str]) -> str:
    """Pictures beside each other, and how many are not shown."""
    pictures = "".join(
        f'<figure><img alt="{markup(picture.title)}" src="data:image/webp;base64,'
        f'{base64.b64encode(picture.webp).decode()}"><figcaption>{markup(picture.title)}</figcaption></figure>'
        for picture in shown
    )
    parts = [f'<div class="pictures">{pictures}</div>'] if shown else []
    if missing:
        names = ", ".join(missing[:MOST_NAMES]) + (", …" if len(missing) > MOST_NAMES else "")
        words = f"Not shown, because the file is not found here or has changed since the run: {names}."
        parts.append(f'<p class="soft">{markup(words)}</p>')
    return "".join(parts)
