"""Generates the page of the Python API from the public names and their docstrings."""

import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import perfuse
from perfuse import jitdump, mono, sframe, xray
from perfuse.analysis import handles, heap, heap_rows
from perfuse.profile import ASKED_WITHIN, Profile

SECTION = re.compile(r"^(Args|Attributes|Raises|Returns):\s*$")
ENTRY = re.compile(r"^(\*{0,2}[\w`. ]+): (.*)$")
LONGEST = 90
TITLES = {"Args": "Parameters", "Attributes": "Attributes", "Raises": "Raises", "Returns": "Returns"}

CHAPTERS = {
    "Opening": ("open", "fuse", "check", "repair"),
    "Recordings": ("Recording", "Summary", "Clock", "Record", "Hex"),
    "Profiles": ("Profile", "Table", "Join", "RepairResult"),
    "Recording a program": ("record", "RecordedRun"),
    "Diagnostics": ("Diagnostic", "Rule", "rules", "explain"),
    "Errors": (
        "PerfuseError",
        "InternalError",
        "OutOfMemory",
        "UsageError",
        "UnreadableInput",
        "QueryError",
        "ExportError",
        "RecordingError",
    ),
}
WRITING = ("Writer", "Declaration", "InlineCall", "Line", "Unwinding", "UnsupportedCounts", "from_record")
MODULES = (
    ("Heap snapshots", heap, ("Heap",)),
    (
        "Heap snapshots: rows",
        heap_rows,
        (
            "Snapshot",
            "HeapObject",
            "HeapClass",
            "DuplicateObjects",
            "LiveObjectSite",
            "RootPath",
            "HeapRoot",
            "PathStep",
            "ClassGrowth",
        ),
    ),
    ("Handles that were never freed", handles, ("LeakedHandles", "leaked_handles")),
    ("XRay", xray, ("InstrumentationMap", "convert", "Writer", "WriteSummary")),
    ("Mono", mono, ("convert", "Writer", "WriteSummary", "heapshot", "match_kinds")),
    (
        "SFrame",
        sframe,
        (
            "open",
            "SFrame",
            "Section",
            "SectionHeader",
            "UnwindRow",
            "UnwindRule",
            "LookupTable",
            "UnwoundStack",
            "ConvertedSection",
            "UnsupportedItem",
        ),
    ),
)


def page() -> str:
    """The page, in Markdown."""
    documented = {name for names in CHAPTERS.values() for name in names} | {
        "__version__",
        "fleet",
        "jitdump",
        "mono",
        "sframe",
        "xray",
    }
    assert documented == set(perfuse.__all__), documented ^ set(perfuse.__all__)
    out = ["# Python API\n", "```python\nimport perfuse as pf\n```\n", _in_a_larger_program()]
    for chapter, names in CHAPTERS.items():
        out.append(f"## {chapter}\n")
        for name in names:
            out += _entry(f"pf.{name}", getattr(perfuse, name), 3)
    out += [
        "## Writing JITDUMP\n",
        "`pf.jitdump` also has a typed class for every record: see `from_record`.\n",
    ]
    for name in WRITING:
        out += _entry(f"pf.jitdump.{name}", getattr(jitdump, name), 3)
    for title, module, names in MODULES:
        out.append(f"## {title}\n")
        for name in names:
            out += _entry(f"{_public(module.__name__)}.{name}", getattr(module, name), 3)
    return "\n".join(out)


def _in_a_larger_program() -> str:
    """The list in the package's docstring."""
    paragraphs = (inspect.getdoc(perfuse) or "").split("\n\n")
    return paragraphs[paragraphs.index("In a larger program:") + 1] + "\n"


def _public(module: str) -> str:
    """A module's name in examples."""
    return module.replace(".public", "").replace("perfuse.formats", "pf").replace("perfuse.fleet", "pf.fleet")


def _entry(name: str, item: Any, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}\n"
    if inspect.isfunction(item) or (inspect.isclass(item) and not issubclass(item, Exception)):
        yield f"```python\n{name}{_signature(item)}\n```\n"
    yield _prose(item)
    if inspect.isclass(item):
        yield from _members(name.rsplit(".", 1)[-1].lower(), item)


def _members(owner: str, cls: type) -> Iterator[str]:
    for name, member in vars(cls).items():
        if name.startswith("_") or (cls is Profile and name in ASKED_WITHIN):
            continue
        if isinstance(member, property | cached_property):
            yield f"**`{owner}.{name}`**: {inspect.getdoc(member)}\n"
        elif isinstance(member, classmethod | staticmethod) or inspect.isfunction(member):
            bound = getattr(cls, name)
            yield f"#### {owner}.{name}\n"
            yield f"```python\n{owner}.{name}{_signature(bound)}\n```\n"
            yield _prose(bound)


def _signature(item: Any) -> str:
    try:
        signature = inspect.signature(item)
    except ValueError:
        return "(...)"
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    text = _readable(str(signature.replace(parameters=parameters)))
    if len(text) < LONGEST:
        return text
    # One parameter per line, with the bare star before keyword-only parameters.
    rows = [_readable(str(parameter)) for parameter in parameters]
    keywords = [i for i, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY]
    if keywords and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        rows.insert(keywords[0], "*")
    _, arrow, result = text.rpartition(" -> ")
    return "(\n    " + ",\n    ".join(rows) + ",\n)" + arrow + result * bool(arrow)


def _readable(text: str) -> str:
    # Annotations are quoted, and so are values that are text.
    text = re.sub(r"(Literal\[[^]]*\]| = '[^']*')|'([^']*)'", lambda quoted: quoted[1] or quoted[2], text)
    text = re.sub(r"perfuse(?:\.\w+)+\.(\w+)", r"\1", text.replace("<factory>", "..."))
    text = re.sub(r"(?:collections\.abc|typing|os|pathlib)\.", "", text)
    return re.sub(
        r"Union\[((?:[^\[\]]|\[[^\[\]]*\])*)\]", lambda union: re.sub(r", (?![^\[]*\])", " | ", union[1]), text
    )


def _prose(item: Any) -> str:
    """A docstring in Markdown; its sections become lists."""
    lines = (inspect.getdoc(item) or "").splitlines()
    out: list[str] = []
    in_section = False
    for line in lines:
        title = SECTION.match(line)
        if title:
            in_section = True
            out += [f"*{TITLES[title[1]]}*", ""]
        elif in_section and line.startswith("        "):
            out[-1] += " " + line.strip()
        elif in_section and line.startswith("    "):
            entry = ENTRY.match(line.strip())
            out.append(f"- `{entry[1]}`: {entry[2]}" if entry else f"- {line.strip()}")
        else:
            in_section = in_section and not line.strip()
            out.append(line)
    text = "\n".join(out).strip()
    return re.sub(r"((?:^>>> .*\n?(?:^(?!>>>).+\n?)*)+)", r"```pycon\n\1\n```", text, flags=re.MULTILINE) + "\n"
