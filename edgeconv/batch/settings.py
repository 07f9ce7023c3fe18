"""What a batch does to every picture, and what it does when one fails."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from edgeconv.api.auto import Choice
from edgeconv.api.figures import describe_filter
from edgeconv.batch.ledger import ALL
from edgeconv.batch.names import Names
from edgeconv.core.option import options_of
from edgeconv.core.records import plain
from edgeconv.core.request import Request
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.methods.options import Options
from edgeconv.options import JpegCodec


@dataclass(frozen=True)
class Settings:
    """The options of the command line, checked."""

    request: Request
    choice: Choice
    output: str
    """A folder or a URL."""
    names: Names
    options: Options = field(default_factory=Options)
    format: str | None = None
    """A suffix without its dot; None keeps every bit in the commonest format."""
    quality: int | None = None
    """1 to 100 for JPEG and WebP; None is the format's own default."""
    png_level: int | None = None
    """0 to 9 for PNG; None is the encoder's own default."""
    jpeg_codec: JpegCodec = "host"
    """Who decodes and encodes JPEG: see codecs.py."""
    share: tuple[int, int] = ALL
    """(i, N): only the i-th of N shares of the pictures, counted from 1."""
    overwrite: bool = False
    resume: bool = False
    retry_failed: bool = False
    """With `resume`; `overwrite` implies it, as what it allows may be what was in the way."""
    jobs: int | None = None
    max_failures: int | None = None
    rules: ReadRules = DEFAULT_RULES
    """What is refused, which decides nothing about an output that there is, and whether grey is read as RGB."""

    def __post_init__(self) -> None:
        self.names.refuse_other_suffix(self.format)

    def parameters_sha256(self) -> str:
        """Hash of everything that decides what an output holds."""
        request = self.request
        words: dict[str, Any] = {
            "filter": plain(describe_filter(request.filter)),
            "channels": request.channels,
            "luma": request.luma,
            "stride": request.stride,
            "padding": request.padding,
            "border": request.border,
            "output_mode": request.output_mode,
            "method": self.choice.method,
            "device": self.choice.device,
            "math": self.options.math,
            "name": self.names.template,
            "format": self.format,
        }
        # Left out where they were not asked for, so that ledgers of before there was one still count.
        for name in ("quality", "png_level"):
            if getattr(self, name) is not None:
                words[name] = getattr(self, name)
        if request.threshold is not None:
            words["threshold"] = request.threshold
        for entry in options_of(Options):  # another library's sums, another algorithm: other roundings
            value = getattr(self.options, entry.name)
            if not entry.declared.keeps_output and value != entry.default:
                words[entry.name] = value
        if self.rules.rgb:
            words["rgb"] = True
        if self.jpeg_codec != "host":
            words["jpeg_codec"] = self.jpeg_codec
        return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()
