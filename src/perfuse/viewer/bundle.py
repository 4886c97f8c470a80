"""Modules of the page as one script, for pages without a server."""

import re
from importlib.resources import files

_IMPORT = re.compile(r'^import \{(?P<names>[^}]*)\} from "(?P<path>[./\w]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?P<rest>(?:async )?(?:function|class|const) (?P<name>\w+))", re.MULTILINE)


def bundled(folder: str, name: str) -> str:
    """A module and all that it imports as one script. Each is a function of its own, so that names do not meet."""
    order: list[tuple[str, str]] = []
    _visit((folder, name), order, [])
    numbers = {module: number for number, module in enumerate(order)}
    return '"use strict";\n' + "".join(_scoped(module, numbers) for module in order)


def _source(module: tuple[str, str]) -> str:
    folder, name = module
    return (files("perfuse.viewer") / folder / f"{name}.js").read_text(encoding="utf-8")


def _imported(module: tuple[str, str], path: str) -> tuple[str, str]:
    *parts, name = path.removesuffix(".js").split("/")
    return (parts[-1] if parts[-1] != "." else module[0]), name


def _visit(module: tuple[str, str], order: list[tuple[str, str]], above: list[tuple[str, str]]) -> None:
    if module in order:
        return
    assert module not in above, f"modules import each other: {above}"
    for found in _IMPORT.finditer(_source(module)):
        _visit(_imported(module, found["path"]), order, [*above, module])
    order.append(module)


def _scoped(module: tuple[str, str], numbers: dict[tuple[str, str], int]) -> str:
    """The module as a constant that has what it exports."""

    def assigned(found: re.Match[str]) -> str:
        names = ", ".join(each.strip().replace(" as ", ": ") for each in found["names"].split(",") if each.strip())
        return f"const {{ {names} }} = M{numbers[_imported(module, found['path'])]};\n"

    source = _source(module)
    exported = ", ".join(found["name"] for found in _EXPORT.finditer(source))
    body = _EXPORT.sub(lambda found: found["rest"], _IMPORT.sub(assigned, source))
    return f"const M{numbers[module]} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"
