"""Each layer of the package imports only layers below it, no modules import each other in a circle.

The layers are those of docs/architecture.md: a name further down may use those above it, never the other way. Imports
inside functions count as well: they load later, but they depend all the same. `TYPE_CHECKING` blocks count too.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "edgeconv"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "signals"),
    ("core",),
    ("hardware",),
    ("io", "methods"),
    ("options",),
    ("api", "page"),
    ("run",),
    ("batch", "difference", "bench"),
    ("export",),
    ("view", "cli"),
)
"""From the bottom to the top; those of one line do not import each other."""

ROOT = "edgeconv"
"""The package itself and its `__main__` may load anything, and anything may ask the package for its version."""


def test_every_part_has_its_layer() -> None:
    parts = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert parts - {"__init__", "__main__"} == {name for layer in LAYERS for name in layer}


def test_nothing_imports_a_layer_above_its_own() -> None:
    height = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    upward = [
        f"{module} imports {target}"
        for module, targets in imports().items()
        for target in sorted(targets)
        if part(module) and part(target) and part(module) != part(target)
        if height[part(module)] <= height[part(target)] and not (part(module) == "signals" and part(target) == "errors")
    ]
    assert upward == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    TopologicalSorter(imports()).prepare()  # raises CycleError, which names the circle


def part(module: str) -> str:
    """The part of the package that a module belongs to: `core` of `edgeconv.core.cost`; empty for the root."""
    names = module.split(".")
    return names[1] if len(names) > 1 and names[1] != "__main__" else ""


@cache
def imports() -> dict[str, frozenset[str]]:
    """Each module of the package and those of the package that it imports, `edgeconv` itself left out."""
    known = trees().keys()
    return {name: frozenset(set(imported(tree, known)) - {name, ROOT}) for name, tree in trees().items()}


@cache
def trees() -> dict[str, ast.Module]:
    """Each module of the package as it is parsed."""
    return {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def name_of(path: Path) -> str:
    """The dotted name of a module's file."""
    names = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def imported(tree: ast.Module, known: Collection[str]) -> Iterator[str]:
    """The modules of the package that a source names in its imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == ROOT)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == ROOT:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module


def test_no_class_name_is_defined_twice() -> None:
    """In the package and its scripts."""
    found: dict[str, list[str]] = {}
    for path in sorted((*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "scripts").glob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(path.relative_to(PACKAGE.parent).as_posix())
    assert {name: homes for name, homes in found.items() if len(homes) > 1} == {}


def test_every_public_method_is_explained_where_it_is_first_declared() -> None:
    """One that overrides another of the package has that one's words, unless it has something to add."""
    classes = {(module, each.name): each for module in imports() for each in classes_of(module)}
    unexplained = [
        f"{module}: {each.name}.{method.name}"
        for (module, _), each in classes.items()
        for method in each.body
        if not each.name.startswith("_")
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_")
        if ast.get_docstring(method) is None and method.name not in explained_above(each, classes)
    ]
    assert unexplained == []


def classes_of(module: str) -> list[ast.ClassDef]:
    """All classes of a module, but those inside functions."""
    return [each for each in trees()[module].body if isinstance(each, ast.ClassDef)]


def explained_above(one: ast.ClassDef, classes: dict[tuple[str, str], ast.ClassDef]) -> set[str]:
    """Methods that have a docstring in a class of the package that `one` inherits from, at any distance."""
    bases = {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in one.bases}
    found: set[str] = set()
    for (_, name), each in classes.items():
        if name in bases and each is not one:
            methods = [method for method in each.body if isinstance(method, ast.FunctionDef)]
            found |= {method.name for method in methods if ast.get_docstring(method)} | explained_above(each, classes)
    return found
