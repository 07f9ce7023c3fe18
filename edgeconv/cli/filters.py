"""`edgeconv filters`: the table of filters."""

from __future__ import annotations

from edgeconv.cli.printing import say
from edgeconv.core.choices import CHAINS, DEFAULT_FILTER


def filters() -> None:
    """List the filters, with their kernels.

    Name, how directions are joined, kernel rows, summary and source.
    """
    from edgeconv.core.chains import STAGES
    from edgeconv.core.filters import FILTERS

    for entry in FILTERS:
        default = " (default)" if entry.name == DEFAULT_FILTER else ""
        say(f"{entry.name}{default}: {entry.summary} [{entry.source}]")
        for direction, kernel in enumerate(entry.kernels):
            if direction == 2:
                say(f"    … and {len(entry.kernels) - 2} more, each turned another 45 degrees")
                break
            say("    " + " ; ".join(" ".join(f"{value:g}" for value in row) for row in kernel))
    for name, stages in CHAINS.items():
        say(f"{name}: {', '.join(stages)}, one after another: a chain of stages, and --blur 3 or 5 smooths before them")
    say("Stages of a chain, for --chain (gaussian,sobel,thin):")
    for stage in STAGES:
        say(f"    {stage.name}: {stage.takes} to {stage.gives}: {stage.summary}")
    say("A kernel of your own: --kernel '0,1,0;1,-4,1;0,1,0', or --kernel-file with JSON or CSV.")
