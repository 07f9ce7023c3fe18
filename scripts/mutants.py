"""What scripts/mutate.py changes in a module, one place at a time, and what each change is called.

    a < b → a <= b, == → !=, is → is not, in → not in        + → -, * → /, // → *, & → |, << → >>, and so on
    and → or, not x → x, if x → if not x, min → max      1 → 2, 5 → 4, 0.1 → 0.2, True → False, default "a" → "a?"
    return x → return None                                   statement, keyword, end of a slice: dropped

Left alone: annotations, decorators, texts, `if TYPE_CHECKING`, `strict=`, which asserts, and sizes in drawings.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

SWAPS: dict[type[Any], type[Any]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult},
    **{ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
    **{ast.LShift: ast.RShift, ast.RShift: ast.LShift},
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
DROPPED = (ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)
LOOKS = ("fontsize", "frameon", "labelsize", "markersize", "linewidth", "padding", "pad", "alpha", "layout")
"""Arguments of drawings by which no figure changes, but sizes and distances that a person judges."""
UNCHANGED = ("annotation", "returns", "decorator_list", "type_params", "format_spec")
"""Fields that are no behaviour, or as good as none."""


@dataclass(frozen=True)
class Mutant:
    """One change; `apply` makes it in the tree that it was found in."""

    function: str
    line: str
    change: str
    first: int
    last: int
    apply: Callable[[], None]

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is recognised by when lines have moved."""
        return self.function, self.line, self.change


def mutants_of(source: str, tree: ast.Module) -> list[Mutant]:
    """Every change of a module, in the order of the source."""
    lines, found, seen = source.splitlines(), [], Counter[tuple[str, str, str]]()
    for parent, field, place, node, function in _places(tree, ""):
        for new in _changes(parent, field, node):
            after = "dropped" if new is None or isinstance(new, ast.Pass) else ast.unparse(new)
            line, change = lines[node.lineno - 1].strip(), f"{ast.unparse(node)} → {after}"
            seen[function, line, change] += 1
            number = seen[function, line, change]
            change += f" #{number}" if number > 1 else ""
            found.append(
                Mutant(function, line, change, node.lineno, node.end_lineno or 0, _apply(parent, field, place, new))
            )
    return found


def _apply(parent: ast.AST, field: str, place: int | None, new: ast.AST | None) -> Callable[[], None]:
    def apply() -> None:
        if place is None:
            setattr(parent, field, new)
        elif new is None:
            del getattr(parent, field)[place]
        else:
            getattr(parent, field)[place] = new

    return apply


def _places(node: ast.AST, function: str) -> Iterator[tuple[ast.AST, str, int | None, Any, str]]:
    """Every node below `node` that has a line, with its parent, the field and place there, and the name around it."""
    named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    inside = f"{function}.{node.name}".lstrip(".") if named else function  # type: ignore[attr-defined]
    for field, value in ast.iter_fields(node):
        several = value if isinstance(value, list) else [value]
        for place, child in enumerate(several):
            if field in UNCHANGED or not isinstance(child, ast.AST) or _is_left_alone(child):
                continue
            if hasattr(child, "lineno"):
                yield node, field, place if isinstance(value, list) else None, child, inside
            yield from _places(child, inside)


def _is_left_alone(node: ast.AST) -> bool:
    """What is for type checkers or looks alone, and `strict=` of zip, which is an assertion."""
    if isinstance(node, ast.keyword):
        return node.arg in ("strict", *LOOKS)
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _changes(parent: ast.AST, field: str, node: Any) -> Iterator[ast.AST | None]:
    """What may stand in place of a node; None where it is left out."""
    if isinstance(node, ast.Compare):
        for place, swapped in enumerate(node.ops):
            ops = [*node.ops[:place], SWAPS[type(swapped)](), *node.ops[place + 1 :]]
            yield ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(SWAPS[type(node.op)](), node.values)
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        yield ast.BinOp(node.left, SWAPS[type(node.op)](), node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield ast.Constant(node.value * 2 or 1.0)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
        if node.value not in (0, 1) or field == "slice":
            yield ast.Constant(node.value - 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and field in ("defaults", "kw_defaults"):
        yield ast.Constant(node.value + "?")
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield ast.Return(ast.Constant(None))
    elif (
        isinstance(node, DROPPED)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript))
    ):
        yield ast.Pass()
    elif isinstance(node, ast.keyword) and node.arg is not None:
        yield None
    elif isinstance(node, ast.Slice):
        if node.lower is not None:
            yield ast.Slice(None, node.upper, node.step)
        if node.upper is not None:
            yield ast.Slice(node.lower, None, node.step)
    elif isinstance(node, ast.Name) and field == "func" and node.id in NAMES:
        yield ast.Name(NAMES[node.id], ast.Load())
    is_test = field in ("test", "ifs") and isinstance(parent, ast.If | ast.IfExp | ast.While | ast.comprehension)
    if is_test and not isinstance(node, ast.Compare | ast.UnaryOp):
        yield ast.UnaryOp(ast.Not(), node)
