"""How an option is declared: a field of a group, with what a person needs beside its type and default.

    @group
    class Reading:
        max_pixels: int = option(2**28, "Refuse a larger picture before it is decoded.")

The type says what the option takes: a `Literal` lists its choices, `bool` makes a flag. Whoever shows options (the
command line, the window, `bench`, docs) asks `options_of` for them, and writes none of this down again.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from edgeconv.core.choices import BORDERS_HERE
from edgeconv.core.text import parse_bytes
from edgeconv.errors import UsageError

KEY = "option"
AUTO = "auto"
"""The word for "choose for me" wherever a choice may be left open."""


@dataclass(frozen=True)
class Positional:
    """What a command says of a parameter without a flag: `Annotated[str, Positional("A picture.")]`."""

    help: str


class Only(tuple[str, ...]):
    """Which options of a group a command takes: `Annotated[Filtering, Only(("padding", "border"))]`."""


class Given(frozenset[str]):
    """The names of the options that stand on the command line, for a command that asks for them."""


@dataclass(frozen=True)
class Option:
    """An option as its users see it."""

    help_text: str
    """The sentence of `--help`, in which `{choices}` stands for their list."""
    named: tuple[str, ...] = ()
    """Flags that the declaration names."""
    text: Any = None
    """The default as a person writes it, where the value is a number of bytes: `512M`."""
    methods: tuple[str, ...] = ()
    """Those that it concerns; none: it is not an option of single methods."""
    device: str | None = None
    """The device on which it concerns them; None: all."""
    spelled: str | None = None
    """Its name in a method of `edgeconv bench` (`cudnn:find`), where that is not the flag's."""
    keeps_output: bool = False
    """Whether an output stays the same to the last bit, so that an earlier result still counts."""
    suggest: Callable[[], Iterable[str]] | None = None
    """Gives the values that a shell offers where the type itself has no choices; called when a shell asks."""
    least: float | None = None
    above: float | None = None
    """Numbers are from the one, or above the other."""
    name: str = ""
    """Of the field, and of the command's parameter; this and what follows is what the field says by itself."""
    type: Any = None
    """str, int, float, bool, Path or list[str], without None."""
    hint: Any = None
    """The same as the field is annotated."""
    may_be_none: bool = False
    default: Any = None
    choices: tuple[Any, ...] = ()
    """Empty where it takes any value of its type."""

    @property
    def flags(self) -> tuple[str, ...]:
        """As the command line takes it, the long form first: `--stride`, `-s`."""
        long = "--" + self.name.replace("_", "-")
        return self.named if any(flag.startswith("--") for flag in self.named) else (long, *self.named)

    @property
    def flag(self) -> str:
        """The long form."""
        return self.flags[0]

    @property
    def parameter(self) -> str:
        """The flag as a name of Python: where the value is written as a person does, not as code reads it."""
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def spelling(self) -> str:
        """In a method of `edgeconv bench`, behind a colon."""
        return self.spelled or self.flag.removeprefix("--")

    @property
    def help(self) -> str:
        """The sentence of `--help`, with the choices and the methods that it concerns filled in."""
        text = self.help_text.format(choices=listed(self.choices))
        methods = ", ".join(self.methods)
        return f"{(self.device or '').upper()} {methods}: {text}".lstrip() if methods else text

    def concerns(self, method: str, device: str) -> bool:
        """Whether a method takes it on a device."""
        return method in self.methods and self.device in (None, device)

    def read(self, text: str) -> Any:
        """The value that a word stands for; raises UsageError naming the option."""
        if self.choices:
            for choice in self.choices:
                if str(choice) == text:
                    return choice
            raise refuse_choice(self.flag, text, tuple(map(str, self.choices)))
        if self.text is not None:
            return parse_bytes(text, self.flag)
        if self.type is int:
            if not text.removeprefix("-").isdecimal():
                raise UsageError(f"{self.flag} '{text}' is not a whole number.")
            return int(text)
        return text

    def suggestions(self, begun: str) -> list[str]:
        """The values that begin like this, for completion in a shell."""
        known = self.choices or (self.suggest() if self.suggest is not None else ())
        return [str(value) for value in known if str(value).startswith(begun)]

    def check(self, value: Any, called: str = "") -> None:
        """Raise UsageError, which begins with `called` or the flag, for what is out of bounds or no choice."""
        least, above = self.least, self.above
        kind = "whole number" if self.type is int else "number"
        if value is not None and least is not None and not value >= least:
            raise UsageError(f"{called or self.flag} {value:g} is not a {kind} from {least:g}.")
        if value is not None and above is not None and not value > above:
            raise UsageError(f"{called or self.flag} {value:g} is not a {kind} above {above:g}.")
        if self.choices and value not in self.choices and not (value is None and self.may_be_none):
            raise refuse_choice(called or self.flag, value, tuple(map(str, self.choices)))


def option(default: Any, help: str, *flags: str, **declared: Any) -> Any:
    """A field that is an option, `declared` as fields of `Option`.

    `flags` are named where they are not the field's name with hyphens; a short one (`-s`) goes beside that.
    """
    return field(default=default, metadata={KEY: Option(help, flags, **declared)})


if TYPE_CHECKING:
    from dataclasses import dataclass as group  # which is what type checkers know
else:

    def group(kind: type) -> type:
        """A dataclass of options, without comparisons and a text: each costs every start its time, and nobody asks."""
        return dataclass(eq=False, repr=False, match_args=False)(kind)


@cache
def options_of(group: type) -> tuple[Option, ...]:
    """The options of a dataclass, in the order of its fields."""
    hints = get_type_hints(group)
    return tuple(
        _option(entry.name, hints[entry.name], entry.default, entry.metadata[KEY])
        for entry in fields(group)
        if KEY in entry.metadata
    )


def _option(name: str, hint: Any, default: Any, declared: Option) -> Option:
    alternatives = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    (kind,) = (each for each in alternatives if each is not NoneType)
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    plain, may_be_none = type(choices[0]) if choices else kind, NoneType in alternatives
    return replace(
        declared, name=name, type=plain, hint=hint, may_be_none=may_be_none, default=default, choices=choices
    )


def listed(choices: tuple[Any, ...], joined: str = "or") -> str:
    """`zero, replicate or reflect`."""
    texts = [str(choice) for choice in choices]
    return f" {joined} ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def refuse_choice(what: str, value: object, known: Collection[str]) -> UsageError:
    """The error for a value that is none of those known; a border's name in another library is answered with ours."""
    text, ours = str(value), BORDERS_HERE.get(str(value))
    hint = f" Other libraries' '{text}' is '{ours}' here." if ours in known else did_you_mean(text, known)
    return UsageError(f"{what} '{text}' is not one of {', '.join(known)}.{hint}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'sobel-x'?` for a word that is nearly one of those known, else nothing; goes behind a sentence."""
    from difflib import get_close_matches  # only for mistakes, and not for every start

    near = get_close_matches(word.lower(), list(known), 1)
    return f" Did you mean '{near[0]}'?" if near else ""
