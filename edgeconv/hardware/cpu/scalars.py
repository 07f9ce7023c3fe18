"""The sample types that generated code works in, and their sizes."""

from __future__ import annotations

from typing import Literal

Scalar = Literal["u8", "u16", "i16", "i32", "i64", "f16", "f32", "f64"]
SCALAR_BYTES: dict[Scalar, int] = {"u8": 1, "u16": 2, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "f32": 4, "f64": 8}
