"""Pages as one file: template, styles, modules and data, for browsers without a server."""

import base64
import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files

_IMPORT = re.compile(r'^import \{(?P<names>[^}]*)\} from "(?P<path>[./\w]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?P<rest>(?:async )?(?:function|class|const) (?P<name>\w+))", re.MULTILINE)
_SLOT = re.compile(r"\{\{(\w+)\}\}")


def page(title: str, body: str, *, styles: Sequence[str], module: str, data: Mapping[str, str]) -> str:
    """A page without a server; its policy allows its own style and script, and nothing else.

    Args:
        title: Title of the window.
        body: File with the elements, with a slot `{{name}}` for each text of `data`.
        styles: Files with styles, after that of all pages.
        module: The module that runs, as `folder/name`; all that it imports is part of the page.
        data: Texts by the names of their slots, as they are in HTML.
    """
    style = "".join(map(_text, ("page/page.css", *styles)))
    script = _bundled(module)
    parts = {
        "title": html.escape(title),
        "policy": f"script-src '{_hash(script)}'; style-src '{_hash(style)}'",
        "style": style,
        "body": _filled(_text(body), data),
        "script": script,
    }
    return _filled(_text("page/page.html"), parts)


def _text(name: str) -> str:
    folder, file = name.split("/")
    return (files("perfuse.viewer") / folder / file).read_text(encoding="utf-8")


def _filled(template: str, parts: Mapping[str, str]) -> str:
    return _SLOT.sub(lambda slot: parts[slot[1]], template)


def _hash(text: str) -> str:
    """What a Content-Security-Policy allows an element with this text by; the template adds the line breaks."""
    digest = hashlib.sha256(f"\n{text}\n".encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _bundled(module: str) -> str:
    """A module and all that it imports as one script. Each is a function of its own, so that names do not meet."""
    folder, name = module.split("/")
    order: list[tuple[str, str]] = []
    _visit((folder, name), order, [])
    numbers = {module: number for number, module in enumerate(order)}
    imported = "".join(
        f"const M{numbers[module]} = (() => {{\n{_scoped(module, numbers)}}})();\n" for module in order[:-1]
    )
    return f'"use strict";\n{imported}(async () => {{\n{_scoped(order[-1], numbers)}}})();\n'


def _source(module: tuple[str, str]) -> str:
    folder, name = module
    return _text(f"{folder}/{name}.js")


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
    """The body of a function that runs the module and returns what it exports."""

    def assigned(found: re.Match[str]) -> str:
        names = ", ".join(each.strip().replace(" as ", ": ") for each in found["names"].split(",") if each.strip())
        return f"const {{ {names} }} = M{numbers[_imported(module, found['path'])]};\n"

    source = _source(module)
    exported = ", ".join(found["name"] for found in _EXPORT.finditer(source))
    body = _EXPORT.sub(lambda found: found["rest"], _IMPORT.sub(assigned, source))
    return f"{body}return {{ {exported} }};\n"
