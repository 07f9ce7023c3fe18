"""Times, numbers and counts as text for a person: a suitable unit, significant digits, separators, plurals."""

from __future__ import annotations


def seconds_text(seconds: float) -> str:
    """Three significant digits in seconds, milliseconds or microseconds, whichever suits."""
    rounded = float(f"{seconds:.3g}")  # 0.9996 ms is shown as 1 ms, never as 1,000 µs
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if rounded >= scale:
            return f"{digits_text(seconds / scale, 3)} {unit}"
    return f"{seconds * 1e6:.2f} µs"


def digits_text(value: float, digits: int) -> str:
    """`digits` significant digits; from 1,000 on a whole number with separators, never an exponent."""
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if float(text) >= 1000 else text


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 region`, `2,000 regions`; `plural` where an s at the end is not enough."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
