"""What the window's controls say, as `edgeconv run` takes it: one frozen record, and the command line it stands for.

Options, their defaults and their checks are those of the command line (edgeconv/options.py), so the window accepts what
the command accepts, refuses what it refuses, and says the same.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from edgeconv.core.choices import CHAINS, DEFAULT_FILTER, DEVICES, NAMED_PADDINGS
from edgeconv.core.filters import CUSTOM, Filter, filter_names, parse_weight
from edgeconv.core.geometry import never_looks_outside
from edgeconv.core.option import AUTO, Option, options_of
from edgeconv.core.output import threshold_text
from edgeconv.core.request import Request
from edgeconv.errors import EdgeconvError, UsageError
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.methods import method_names
from edgeconv.options import Chaining, Filtering, Masking, MethodChoice, MethodOptions


def _changed(
    options: Parameters | ReadRules, default: Parameters | ReadRules, needless: Collection[str] = ()
) -> list[str]:
    """The options that are not the command's defaults, but for needless ones, as arguments of a command line."""
    arguments = []
    for name, value in asdict(options).items():
        if value == getattr(default, name) or name in needless:
            continue
        flag = "--" + name.replace("_", "-")
        arguments.append(flag if value is True else f"{flag}={_written(value)}")  # "=": a kernel's minus is no flag
    return arguments


def _written(value: Any) -> str:
    """A value of an option as a person writes it."""
    return threshold_text(value) if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Parameters(MethodOptions, MethodChoice, Chaining, Masking, Filtering):
    """The options of `edgeconv run` that decide what is computed and how.

    The fields are those of the groups, from the last to the first: dataclasses collect them in that order.
    """

    def request(
        self, filters: str | None = None, threshold: float | None = None, chaining: Chaining | None = None
    ) -> Request:
        """As the command's; raises UsageError for a bank too, which gives more than the one picture that is shown."""
        request = super().request(filters, self.threshold if threshold is None else threshold, chaining or self)
        if request.filter.labels:
            raise UsageError(
                f"Kernel '{request.filter.name}' is a bank of {request.filter.filters} filters, and the window shows "
                "one: use edgeconv run."
            )
        return request

    def arguments(self) -> list[str]:
        """The options that are not the command's defaults, as arguments of a command line."""
        needless = {"luma"} if self.channels != "luma" else set()  # the command refuses what would mean nothing
        if never_looks_outside(self.padding):
            needless.add("border")
        return _changed(self, Parameters(), needless)

    def command(self, source: str, rules: ReadRules = DEFAULT_RULES) -> str:
        """`edgeconv run SOURCE ...`, quoted for a shell: it gives the very picture that the window shows."""
        named = os.path.join(os.curdir, source) if source.startswith("-") else source
        words = ["edgeconv", "run", named, *self.arguments(), *_changed(rules, DEFAULT_RULES)]
        return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)

    @property
    def has_chain(self) -> bool:
        """Whether it is a chain of stages that is computed."""
        return self.chain is not None or (self.filter in CHAINS and self.filter_label != CUSTOM)

    def with_filter(self, name: str) -> Parameters:
        """The same with a named filter, or a chain, in the place of whatever there was.

        Rules that do not apply to it are as if they had never been turned.
        """
        needless = RULES_OF_CHAINS if name not in CHAINS else RULES_OF_FILTERS
        return self._without(needless, filter=name)

    def _without(self, needless: Collection[str], **chosen: Any) -> Parameters:
        """The same with another filter, and with rules as they are by default."""
        default = Parameters()
        kept = {rule: getattr(default, rule) for rule in needless}
        return replace(self, **{"kernel": None, "kernel_file": None, **kept, **chosen})

    def with_kernel(self, text: str) -> Parameters:
        """The same with a 3×3 kernel written as rows, in the place of a named filter."""
        return self._without(RULES_OF_CHAINS, filter=DEFAULT_FILTER, kernel=text)

    def with_kernel_file(self, path: str) -> Parameters:
        """The same with a kernel from a file."""
        return self._without(RULES_OF_CHAINS, filter=DEFAULT_FILTER, kernel_file=path)

    def changed(self, given: dict[str, Any]) -> Parameters:
        """The same with what was given on the command line; a filter of one kind replaces one of another kind.

        Raises UsageError for parameters without meaning.
        """
        base = self
        if "chain" in given:
            base = self.with_chain(given["chain"])
        elif {"filter", "kernel", "kernel_file"} & given.keys():
            base = self.with_filter(given.get("filter", Parameters.filter))
        if "kernel_file" in given:  # remembered for a time when the folder of now is another
            given = given | {"kernel_file": os.path.abspath(given["kernel_file"])}
        chosen = replace(base, **given)
        chosen.request()
        chosen.options()
        return chosen

    def with_chain(self, stages: str) -> Parameters:
        """The same with a chain of stages in the place of a filter."""
        return self._without(RULES_OF_FILTERS, filter=DEFAULT_FILTER, chain=stages)

    @property
    def filter_label(self) -> str:
        """The filter's name, the stages of a chain, or `custom`."""
        if self.chain is not None:
            return self.chain
        return self.filter if self.kernel is None and self.kernel_file is None else CUSTOM

    def summary(self) -> str:
        """In a few words: the filter, and every rule that is not the usual one."""
        default = Parameters()
        rules = {
            name: value for name, value in asdict(self).items() if name in RULES and value != getattr(default, name)
        }
        return ", ".join([self._kernel_words(), *(f"{RULES[name]}{_written(value)}" for name, value in rules.items())])

    def _kernel_words(self) -> str:
        """The filter's name, the numbers of a kernel of one's own, or its file's name."""
        if self.chain is not None:
            return self.chain
        if self.kernel_file is not None:
            return os.path.basename(self.kernel_file)
        return (
            self.filter
            if self.kernel is None
            else " / ".join(
                " ".join(row.replace(",", " ").split()) for row in self.kernel.strip().strip(";").split(";")
            )
        )


RULES = {
    "channels": "",
    "luma": "",
    "stride": "stride ",
    "padding": "padding ",
    "border": "",
    "output_mode": "",
    "threshold": "threshold ",
    "thresholds": "thresholds ",
    "gradient": "",
    "blur": "blur ",
}
"""What stands before the word of a rule in a summary: most words say themselves what they are about."""

RULES_OF_CHAINS = ("chain", "thresholds", "gradient", "blur")
"""What a single filter has not."""
RULES_OF_FILTERS = (
    "chain",
    "channels",
    "luma",
    "stride",
    "padding",
    "border",
    "output_mode",
    "threshold",
)
"""What `canny` has not; `chain` stands in its place."""

KNOWN: dict[str, Option] = {entry.name: entry for entry in options_of(Parameters)}
"""The options by their names."""


def _choices(entry: Option) -> tuple[str, ...]:
    named = tuple(map(str, entry.choices))
    return (AUTO, *named) if entry.may_be_none else named


CHOICES: dict[str, tuple[str, ...]] = {
    **{name: _choices(entry) for name, entry in KNOWN.items() if entry.choices},
    "filter": (*filter_names(), *CHAINS),
    "padding": tuple(NAMED_PADDINGS),
    "method": (AUTO, *method_names()),
    "device": (AUTO, *DEVICES),
}
"""The choices of each parameter that has a list of them; `auto` is None where a parameter may be left open."""


def value_of(name: str, word: str) -> Any:
    """What a choice of a list stands for."""
    entry = KNOWN[name]
    return None if entry.may_be_none and word == AUTO else entry.read(word)


LONGEST_CELL = 16
"""Letters of a cell of the editor: more than any float32 needs."""


def kernel_text(cells: list[str]) -> str:
    """Nine cells, row by row, as `--kernel` takes them."""
    rows = [",".join(cell.strip() for cell in cells[start : start + 3]) for start in (0, 3, 6)]
    return ";".join(rows)


def kernel_cells(chosen: Filter) -> list[str]:
    """The nine cells of a filter's first kernel, in the shortest form that gives the number again."""
    kernel = chosen.kernels[0] if not chosen.is_full_set else chosen.kernels[0, 0, 0]
    return [_shortest(value) for value in kernel.reshape(-1)]


def _shortest(value: np.float32) -> str:
    """As few digits as tell this number from every other float32; with an exponent where it is long without."""
    plain = np.format_float_positional(value, unique=True, trim="-")
    return plain if len(plain) <= LONGEST_CELL else np.format_float_scientific(value, unique=True, trim="-")


def same_number(text: str, other: str) -> bool:
    """Whether both are numbers, and the same one as weights are kept."""
    try:
        numbers = np.array([parse_weight(text), parse_weight(other)], dtype=np.float64)
    except ValueError:
        return False
    with np.errstate(over="ignore"):
        left, right = numbers.astype(np.float32)
    return bool(left == right)


def is_text(text: str) -> bool:
    """Whether it is text throughout: the name of a file may hold bytes that are not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def from_record(record: Any) -> Parameters:
    """Parameters as settings keep them; whatever has no meaning any more is left at its default.

    A kernel's file that has gone takes nothing along with it but the kernel.
    """
    if not isinstance(record, dict):
        return Parameters()
    known = {field.name: record[field.name] for field in fields(Parameters) if field.name in record}
    for fitting in (known, known | {"kernel_file": None}):
        try:
            found = Parameters(**fitting)
            found.request()
            found.options()
        except (EdgeconvError, TypeError, AttributeError):
            continue
        return found
    return Parameters()
