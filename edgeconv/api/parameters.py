"""Options as Python spells them: the layers below name them as the command line does, `--padding same`."""

from __future__ import annotations

import re

from edgeconv.errors import EdgeconvError

_OTHERWISE = {"kernel": "a 3×3 table of numbers", "thresholds": "low= and high="}
"""What has no parameter of the same name."""


def as_parameters(text: str) -> str:
    """`text` with `padding='same'` in the place of `--padding same`, and `Options(threads=1)` of `--threads 1`."""
    from edgeconv.core.choices import DEVICES, NAMED_PADDINGS
    from edgeconv.core.option import AUTO, options_of
    from edgeconv.methods import method_names
    from edgeconv.methods.options import Options
    from edgeconv.options import Chaining

    known = [AUTO, *DEVICES, *NAMED_PADDINGS, *method_names()]
    for entry in (*options_of(Chaining), *options_of(Options)):
        known += map(str, entry.choices)
    fields = {entry.parameter: entry.name for entry in options_of(Options)}

    def spelled(found: re.Match[str]) -> str:
        flag, value = found[1].replace("-", "_"), found[2] or ""
        given = f"{fields.get(flag, flag)}={value if value.isdecimal() else value and repr(value)}"
        return _OTHERWISE.get(flag) or (f"options=Options({given})" if flag in fields else given)

    return re.sub(rf"--([a-z][a-z-]*)(?: ({'|'.join(map(re.escape, known))}|[0-9]+)\b)?", spelled, text)


def with_parameters(error: Exception) -> Exception:
    """The same error, saying `padding=` and not `--padding`; those of other libraries as they are."""
    if isinstance(error, EdgeconvError):
        error.args = (as_parameters(str(error)), *error.args[1:])
    return error
