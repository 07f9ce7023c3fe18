"""What a batch does to every picture, and what it does when one fails."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from edgeconv.api.figures import describe_filter
from edgeconv.core.option import AUTO, options_of
from edgeconv.core.records import plain
from edgeconv.core.request import Request
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.methods.options import Options
from edgeconv.options import DEFAULT_NAME, JpegCodec, Workers

ALL = (1, 1)
"""The share that is everything."""


@dataclass(frozen=True)
class Settings:
    """The options of the command line, checked. `method` and `device` may be `auto` until run.py has settled them."""

    request: Request
    output: str
    """A folder or a URL."""
    method: str = AUTO
    device: str = AUTO
    options: Options = field(default_factory=Options)
    name: str = DEFAULT_NAME
    """The template of the outputs' names: see names.py."""
    ledger: str | None = None
    """The folder of the ledger; None for the usual one: see `ledger.ledger_folder`."""
    format: str | None = None
    """A suffix without its dot; None keeps every bit in the commonest format."""
    quality: int | None = None
    """1 to 100 for JPEG and WebP; None is the format's own default."""
    png_level: int | None = None
    """0 to 9 for PNG; None is the encoder's own default."""
    jpeg_codec: JpegCodec = "host"
    """Who decodes and encodes JPEG: OpenCV and png.py, or for JPEG nvImageCodec, whose output bytes differ."""
    share: tuple[int, int] = ALL
    """(i, N): only the i-th of N shares of the pictures, counted from 1."""
    overwrite: bool = False
    resume: bool = False
    retry_failed: bool = False
    """With `resume`; `overwrite` implies it, as what it allows may be what was in the way."""
    max_failures: int | None = None
    rules: ReadRules = DEFAULT_RULES
    """What is refused, which decides nothing about an output that there is, and whether grey is read as RGB."""
    workers: Workers = field(default_factory=Workers)

    def parameters_sha256(self) -> str:
        """Hash of everything beside method and device that decides what an output holds."""
        request = ("channels", "luma", "stride", "padding", "border", "output_mode", "threshold")
        own = ("name", "format", "quality", "png_level", "jpeg_codec")
        deciding = [entry.name for entry in options_of(Options) if not entry.keeps_output]
        parameters = {
            "filter": plain(describe_filter(self.request.filter)),
            "rgb": self.rules.rgb,
            **{name: getattr(self.request, name) for name in request},
            **{name: getattr(self, name) for name in own},
            **{f"option {name}": getattr(self.options, name) for name in deciding},
        }
        return hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()
