"""Times and numbers as a person reads them: the unit that suits, significant digits, separators."""

from __future__ import annotations


def seconds_text(seconds: float) -> str:
    """Three significant digits in the unit that suits."""
    rounded = float(f"{seconds:.3g}")  # 0.9996 ms is shown as 1 ms, never as 1,000 µs
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if rounded >= scale:
            return f"{digits_text(seconds / scale, 3)} {unit}"
    return f"{seconds * 1e6:.2f} µs"


def digits_text(value: float, digits: int) -> str:
    """So many significant digits, never an exponent for what is large: whole from 1,000 on, with separators."""
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if float(text) >= 1000 else text
