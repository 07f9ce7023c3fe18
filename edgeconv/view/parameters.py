"""What the window's controls say, as `edgeconv run` takes it: one frozen record, and the command line it stands for.

Options, their defaults and their checks are those of the command line (edgeconv/options.py), so the window accepts what
the command accepts, refuses what it refuses, and says the same.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from edgeconv.core.choices import CHAINS, DEFAULT_FILTER
from edgeconv.core.filters import CUSTOM, Filter, parse_weight
from edgeconv.core.geometry import parse_padding
from edgeconv.core.option import AUTO, Option, options_of
from edgeconv.core.output import threshold_text
from edgeconv.core.request import Request
from edgeconv.errors import EdgeconvError, UsageError
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.options import Masking, MethodChoice, MethodOptions

OF_CHAINS = ("thresholds", "gradient", "blur")
"""Rules that a single filter does not have."""
OF_FILTERS = ("channels", "luma", "stride", "padding", "border", "output_mode", "threshold")
"""Rules that a chain such as `canny` does not have."""


def _changed(options: Parameters | ReadRules, needless: Collection[str] = ()) -> dict[str, str]:
    """The options that are not the command's defaults, but for needless ones, as a person writes them."""
    written = {}
    for name, value in asdict(options).items():
        if value != getattr(type(options), name) and name not in needless:
            written[name] = threshold_text(value) if isinstance(value, float) else str(value)
    return written


def _arguments(written: dict[str, str]) -> list[str]:
    """Options as arguments of a command line, with "=", as a kernel may begin with a minus."""
    flags = {f"--{name.replace('_', '-')}": value for name, value in written.items()}
    return [flag if value == "True" else f"{flag}={value}" for flag, value in flags.items()]


@dataclass(unsafe_hash=True)
class Parameters(MethodOptions, MethodChoice, Masking):
    """The options of `edgeconv run` that decide what is computed and how.

    The fields are those of the groups, from the last to the first: dataclasses collect them in that order.
    """

    def request(self) -> Request:
        """As the command's; raises UsageError for a bank too, which gives more than the one picture that is shown."""
        request = super().request()
        if request.filter.labels:
            raise UsageError(
                f"Kernel '{request.filter.name}' is a bank of {request.filter.filters} filters, and the window shows "
                "one: use edgeconv run."
            )
        return request

    def arguments(self) -> list[str]:
        """The options that are not the command's defaults, as arguments of a command line."""
        needless = {"luma"} if self.channels != "luma" else set()  # the command refuses what would mean nothing
        if parse_padding(self.padding) == 0:
            needless.add("border")
        return _arguments(_changed(self, needless))

    def command(self, source: str, rules: ReadRules = DEFAULT_RULES) -> str:
        """`edgeconv run SOURCE ...`, quoted for a shell: it gives the very picture that the window shows."""
        named = os.path.join(os.curdir, source) if source.startswith("-") else source
        return shlex.join(["edgeconv", "run", named, *self.arguments(), *_arguments(_changed(rules))])

    @property
    def has_chain(self) -> bool:
        """Whether it is a chain of stages that is computed."""
        return self.chain is not None or (self.filter in CHAINS and self.filter_label != CUSTOM)

    def with_filter(self, name: str = DEFAULT_FILTER, **instead: str) -> Parameters:
        """The same with a named filter, or `instead` a kernel, kernel_file or chain, in place of whatever there was.

        Rules that do not apply to it are as if they had never been turned.
        """
        none: dict[str, Any] = dict.fromkeys(("kernel", "kernel_file", "chain"))
        chosen = replace(self, filter=name, **(none | instead))
        return replace(chosen, **{rule: getattr(Parameters, rule) for rule in chosen.needless_rules})

    @property
    def needless_rules(self) -> tuple[str, ...]:
        """Rules that do not apply to what is computed."""
        return OF_FILTERS if self.has_chain else OF_CHAINS

    def changed(self, given: dict[str, Any]) -> Parameters:
        """The same with what was given on the command line; a filter of one kind replaces one of another kind.

        Raises UsageError for parameters without meaning.
        """
        base = self
        if "chain" in given:
            base = self.with_filter(chain=given["chain"])
        elif {"filter", "kernel", "kernel_file"} & given.keys():
            base = self.with_filter(given.get("filter", DEFAULT_FILTER))
        if "kernel_file" in given:  # remembered for a time when the folder of now is another
            given = given | {"kernel_file": os.path.abspath(given["kernel_file"])}
        chosen = replace(base, **given)
        chosen.request()
        chosen.options()
        return chosen

    @property
    def filter_label(self) -> str:
        """The filter's name, the stages of a chain, or `custom`."""
        if self.chain is not None:
            return self.chain
        return self.filter if self.kernel is None and self.kernel_file is None else CUSTOM

    def summary(self) -> str:
        """In a few words: the filter or the kernel's numbers or file, and every rule that is not the usual one."""
        named = self.kernel or (os.path.basename(self.kernel_file) if self.kernel_file else self.filter_label)
        rules = {name: word for name, word in _changed(self).items() if name in (*OF_FILTERS, *OF_CHAINS)}
        return ", ".join([named, *(f"{name.replace('_', ' ')} {word}" for name, word in rules.items())])


KNOWN: dict[str, Option] = {entry.name: entry for entry in options_of(Parameters)}
"""The options by their names."""

CHOICES: dict[str, tuple[str, ...]] = {
    name: (AUTO,) * (entry.may_be_none and bool(entry.choices)) + tuple(entry.suggestions(""))
    for name, entry in KNOWN.items()
    if name != "chain"
}
"""The choices of each parameter that has a list of them; `auto` is None where a parameter may be left open."""


def value_of(name: str, word: str) -> Any:
    """What a choice of a list stands for."""
    entry = KNOWN[name]
    return None if entry.may_be_none and word == AUTO else entry.read(word)


MAX_CELL = 16
"""Letters of a cell of the editor: more than any float32 needs."""


def kernel_text(cells: list[str]) -> str:
    """Nine cells, row by row, as `--kernel` takes them."""
    return ";".join(",".join(cell.strip() for cell in cells[start : start + 3]) for start in (0, 3, 6))


def kernel_cells(chosen: Filter) -> list[str]:
    """The nine cells of a filter's first kernel: as few digits as tell a number from every other float32."""
    kernel = chosen.kernels[0] if not chosen.is_full_set else chosen.kernels[0, 0, 0]
    plain = [np.format_float_positional(value, unique=True, trim="-") for value in kernel.reshape(-1)]
    exponents = [np.format_float_scientific(value, unique=True, trim="-") for value in kernel.reshape(-1)]
    return [text if len(text) <= MAX_CELL else other for text, other in zip(plain, exponents, strict=True)]


def same_number(text: str, other: str) -> bool:
    """Whether both are numbers, and the same one as weights are kept."""
    try:
        numbers = np.array([parse_weight(text), parse_weight(other)], dtype=np.float64)
    except ValueError:
        return False
    with np.errstate(over="ignore"):
        left, right = numbers.astype(np.float32)
    return bool(left == right)


def from_record(record: Any) -> Parameters:
    """Parameters as settings keep them; whatever has no meaning any more is left at its default.

    A kernel's file that has gone takes nothing along with it but the kernel.
    """
    if not isinstance(record, dict):
        return Parameters()
    known = {field.name: record[field.name] for field in fields(Parameters) if field.name in record}
    for fitting in (known, known | {"kernel_file": None}):
        try:
            return Parameters(**fitting).changed({})
        except (EdgeconvError, TypeError, AttributeError):
            continue
    return Parameters()
