"""No import circles: neither among the modules of the Python package, nor among those of a crate."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = sorted(path.parent for path in (ROOT / "crates").rglob("Cargo.toml") if (path.parent / "src").is_dir())

Graph = Mapping[str, set[str]]


def circles(graph: Graph) -> list[list[str]]:
    """The strongly connected components of more than one module, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for imported in sorted(graph.get(module, ())):
            if imported not in index:
                visit(imported)
                low[module] = min(low[module], low[imported])
            elif imported in stack:
                low[module] = min(low[module], index[imported])
        if low[module] == index[module]:
            start = stack.index(module)
            if len(stack) - start > 1:
                found.append(sorted(stack[start:]))
            del stack[start:]

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return found


def described(graph: Graph) -> str:
    """The circles with the imports that make them, one import per line."""
    ties = [
        f"{module} -> {imported}"
        for circle in circles(graph)
        for module in circle
        for imported in sorted(graph[module] & set(circle))
    ]
    return "\n".join(ties)


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [["b", "c"]]
    assert described({"a": {"b"}, "b": {"a"}}) == "a -> b\nb -> a"
    assert not circles({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def python_modules(folder: Path) -> dict[str, Path]:
    """The modules below a folder, by dotted name."""
    modules = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


BY_NAME = {("perfuse", "perfuse.fleet"), ("perfuse.pictures.page", "perfuse.viewer.one_file")}
"""The imports that make circles: public names are imported on first use, and `Profile.view` makes a page of itself."""


def python_imports(source: str, package: str, modules: Mapping[str, Path], compiled: set[str]) -> Iterator[str]:
    """The modules of the package that a source imports: for type checkers, in functions, and by their names too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            named = [str(one.value) for one in node.args if isinstance(one, ast.Constant)]
            if function == "import_module":
                yield from (name for name in named if name in modules)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{base}.{alias.name}"
                if name in modules:
                    yield name
                elif base in modules and name not in compiled:
                    yield base


def test_python_has_no_import_circle(root: Path) -> None:
    modules = python_modules(root / "src")
    graph = {}
    for name, path in modules.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        imported = python_imports(path.read_text(encoding="utf-8"), package, modules, {"perfuse._core"})
        graph[name] = set(imported) - {name}
    assert {"perfuse.table", "perfuse.errors"} <= graph["perfuse.recording"], "imports are read"
    for module, imported_by_name in BY_NAME:
        graph[module].remove(imported_by_name)
    assert not described(graph)


USE = re.compile(r"\b(?P<public>pub(?:\([^)]*\))?\s+)?use\s+(?P<tree>[^;]+);")
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|r#".*?"#|"(?:\\.|[^"\\])*"', re.DOTALL)
TEST_MODULE = re.compile(r"#\[cfg\((?:all\()?test\b.*?\bmod\s+\w+\s*\{.*", re.DOTALL)
INLINE_PATH = re.compile(r"\b(?:crate|super)(?:::\w+)+")
ModulePath = tuple[str, ...]


def rust_modules(folder: Path) -> dict[ModulePath, str]:
    """The code of a crate's modules by path, without tests, comments and texts."""
    modules = {}
    for path in folder.rglob("*.rs"):
        parts = path.relative_to(folder).with_suffix("").parts
        if "tests" not in parts and parts[0] not in ("bin", "main"):
            code = COMMENT_OR_TEXT.sub('""', path.read_text(encoding="utf-8"))
            modules[parts[:-1] if parts[-1] in ("mod", "lib") else parts] = TEST_MODULE.sub("", code)
    return modules


def use_paths(tree: str) -> Iterator[tuple[str, str]]:
    """The `(path, bound name)` pairs of a `use` tree: `a::{b, c as d}` has `a::b` as `b`, and `a::c` as `d`."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition(" as ")
        path = path.removesuffix("::self")
        yield path.strip(), alias.strip() or path.strip().rpartition("::")[2]
        return
    depth, part = 0, ""
    for char in rest[: rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            if part.strip():
                yield from use_paths(head.strip() + part.strip())
            part = ""
        else:
            part += char


class RustCrate:
    """The modules of a crate, and which of them uses which."""

    def __init__(self, modules: Mapping[ModulePath, str]) -> None:
        self.modules = modules
        self.uses: dict[ModulePath, list[tuple[ModulePath, str, bool]]] = {}
        for module, code in modules.items():
            found = self.uses[module] = []
            for match in USE.finditer(code):
                for path, name in use_paths(match["tree"]):
                    absolute = self.absolute(module, path)
                    if absolute is not None:
                        found.append((absolute, name, bool(match["public"])))

    def absolute(self, module: ModulePath, path: str) -> ModulePath | None:
        """A path from the crate's root; None for paths into other crates."""
        parts = path.split("::")
        if parts[0] == "crate":
            return tuple(parts[1:])
        if (*module, parts[0]) in self.modules:
            return (*module, *parts)
        if parts[0] not in ("self", "super"):
            return None
        while parts and parts[0] in ("self", "super"):
            module = module[:-1] if parts.pop(0) == "super" else module
        return (*module, *parts)

    def defining(self, path: ModulePath, depth: int = 0) -> ModulePath:
        """The module that defines what a path names, through re-exports."""
        length = next(n for n in range(len(path), -1, -1) if path[:n] in self.modules)
        module, rest = path[:length], path[length:]
        if rest and depth < 8:
            for absolute, name, _ in self.uses[module]:
                if name == rest[0]:
                    return self.defining((*absolute, *rest[1:]), depth + 1)
        return module

    def graph(self) -> dict[str, set[str]]:
        """Which modules each module uses. Neither a re-export nor a use of a type of an enclosing module counts.

        An enclosing module (`mod.rs`, `lib.rs`) defines the types that its modules share, and calls these modules.
        """
        graph: dict[str, set[str]] = {}
        for module, code in self.modules.items():
            body = USE.sub("", code)
            paths = [
                absolute
                for absolute, name, is_public in self.uses[module]
                if not is_public or re.search(rf"\b{re.escape(name)}\b", body)
            ]
            inline = (self.absolute(module, match[0]) for match in INLINE_PATH.finditer(body))
            paths += [path for path in inline if path is not None]
            children = {path[-1] for path in self.modules if path and path[:-1] == module}
            paths += [(*module, *match[0].split("::")) for match in re.finditer(r"(?<!::)\b\w+(?:::\w+)+", body)
                      if match[0].partition("::")[0] in children]  # fmt: skip
            graph["::".join(("crate", *module))] = {
                "::".join(("crate", *used)) for path in paths if (used := self.defining(path)) != module[: len(used)]
            }
        return graph


def test_rust_uses_are_read() -> None:
    assert list(use_paths("crate::a::{self, b::C, d::{E, F as G}}")) == [
        ("crate::a", "a"),
        ("crate::a::b::C", "C"),
        ("crate::a::d::E", "E"),
        ("crate::a::d::F", "G"),
    ]
    sibling = "use super::Named;\nuse crate::b::Shared;"
    modules: dict[ModulePath, str] = {
        (): "mod a;\nmod b;\npub use a::Reexported;",
        ("a",): "mod inner;\npub struct Named;\npub use inner::Item;",
        ("a", "inner"): sibling,
        ("b",): "use crate::Reexported;\nfn f() { crate::a::Item::new(); }",
    }
    assert RustCrate(modules).graph() == {
        "crate": set(),
        "crate::a": set(),
        "crate::a::inner": {"crate::b"},
        "crate::b": {"crate::a", "crate::a::inner"},
    }


@pytest.mark.parametrize("crate", CRATES, ids=lambda path: path.name)
def test_a_crate_has_no_import_circle(crate: Path) -> None:
    assert not described(RustCrate(rust_modules(crate / "src")).graph())
