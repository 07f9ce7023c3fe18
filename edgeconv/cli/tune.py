"""`edgeconv tune`: a quick measured profile of this machine for `--method auto`."""

from __future__ import annotations

from edgeconv.cli.printing import say


def tune() -> None:
    """Measure this machine for --method auto.

    Takes seconds, once: from then on --method auto chooses by size, stride, type and memory. The profile is saved in
    your cache folder, or as the file that EDGECONV_PROFILE names.
    """
    from edgeconv.bench.tune import tune as measure
    from edgeconv.core.units import seconds_text
    from edgeconv.run.progress import Progress

    shown: list[Progress] = []

    def progress(done: int, total: int, note: str) -> None:
        if not shown:
            shown.append(Progress(total, "Mpixel"))
        shown[0].update(done, note)

    try:
        profile, path = measure(progress)
    finally:
        for line in shown:
            line.close()
    say(path)
    for curve in profile.curves:
        if curve.stride == 1:
            times = ", ".join(f"{point.pixels:,} pixels {seconds_text(point.seconds)}" for point in curve.points)
            start = seconds_text(curve.start_seconds)
            say(f"{curve.device:<5} {curve.method:<9} {curve.dtype:<8} starts in {start}; {times}")
