"""The manifest of a saved profile: what was saved, of which files, and what was found out about them."""

import json
from collections.abc import Mapping
from typing import Any

from perfuse.clock import Clock
from perfuse.diagnostics import Diagnostic, _declarations, diagnostic
from perfuse.errors import UnreadableInput
from perfuse.joins import Join, Unwinding
from perfuse.summary import Summary
from perfuse.value_class import as_dict, field_names, replace, value_class

MANIFEST = "manifest.json"
"""The member with the manifest."""
FORMAT = "perfuse-pack"
MAJOR, MINOR = 1, 7
"""Version of the layout. A reader opens every major version up to its own, and every minor version of these."""
TABLES_VERSION = 1
"""Version of the declarations of the common tables."""

Rows = tuple[int, int]
"""First row and the row after the last one."""


@value_class
class Input:
    """A recording in a saved profile.

    Attributes:
        path: The file as it was given.
        format: Name of its format.
        sha256: SHA-256 of the file, compressed where it was; of its content where it was no file.
        size_bytes: Size of its content.
        member: The member with its copy.
        whole: Whether the copy is the recording itself, with all code and copies of stacks.
        code: Numbers of the code objects whose machine code the copy has; None for all.
        clock: Its clock, as in table `clocks`.
        pid: Its process on the recorded machine, where the file has another one.
        definitions: Number of the lines of its functions, where they were not in it; None for none.
        nth_of_pid: Pids of which its process is not the first, but that with this number from 0: `(pid, number)`.
    """

    path: str
    format: str
    sha256: str
    size_bytes: int
    member: str
    whole: bool
    code: list[int] | None
    clock: Clock
    pid: int | None
    definitions: int | None = None
    nth_of_pid: tuple[tuple[int, int], ...] = ()


@value_class
class Manifest:
    """What the manifest states that a profile is opened with.

    Attributes:
        title: What was recorded.
        tool: Version of perfuse that saved it.
        created: When, in ISO 8601.
        profile_id: 32 hexadecimal digits: the same for the same inputs, options and tables.
        inputs: Its recordings, in the order of `source_id`.
        span_ns: Time of the first and the last sample, event or call; None where nothing has a time, and before version
            1.1.
        joins: How dumps were joined with samples.
        diagnostics: What was found while the recordings were read and joined.
        unwinding: Counts of unwound stacks; None where there were none.
        joined_rows: Rows of `frames`, `stacks`, `samples`, `functions`, `modules` that the join made; None without one.
        named_rows: Rows of `functions` and `modules` that instrumentation maps named, of each recording.
        traced_samples: Number of rows of `samples` that are of calls; None before version 1.4.
        machine: ELF machine of the machine that saved it, for code that does not state one.
        options: What was saved: `code`, `sources`, `lines`, `inputs`.
        tables: Each table with `name`, `member`, `rows`, `bytes`, `sha256`, `complete`.
        left_out: Tables with rows that are not in the file, with the reason.
    """

    title: str
    tool: str
    created: str
    profile_id: str
    inputs: tuple[Input, ...]
    span_ns: tuple[int, int] | None
    joins: tuple[Join, ...]
    diagnostics: tuple[Diagnostic, ...]
    unwinding: Unwinding | None
    joined_rows: tuple[Rows, ...] | None
    named_rows: tuple[tuple[Rows, Rows], ...]
    traced_samples: int | None
    machine: int
    options: Mapping[str, Any]
    tables: tuple[Mapping[str, Any], ...]
    left_out: tuple[Mapping[str, Any], ...]

    @property
    def made_rows(self) -> tuple[list[Rows] | None, list[tuple[Rows, Rows]], int]:
        """Rows that the join and maps made, and the number of those of calls, as the core receives them."""
        joined = None if self.joined_rows is None else list(self.joined_rows)
        return joined, list(self.named_rows), self.traced_samples or 0

    @property
    def partial(self) -> list[str]:
        """Tables of which the file has only the rows of sampled code."""
        return [str(row["name"]) for row in self.tables if not row.get("complete", True)]

    def to_json(self) -> bytes:
        """The manifest as it is written."""
        document = {
            "format": FORMAT,
            "version": {"major": MAJOR, "minor": MINOR},
            "tool": {"name": "perfuse", "version": self.tool},
            "created": self.created,
            "profile_id": self.profile_id,
            "tables_version": TABLES_VERSION,
            "title": self.title,
            "inputs": [{**as_dict(one), "clock": one.clock._asdict()} for one in self.inputs],
            "span_ns": self.span_ns,
            "joins": [as_dict(one) for one in self.joins],
            "diagnostics": [_diagnostic_row(one) for one in self.diagnostics],
            "unwinding": None if self.unwinding is None else as_dict(self.unwinding),
            "resolved": {
                "joined_rows": self.joined_rows,
                "named_rows": self.named_rows,
                "traced_samples": self.traced_samples,
                "machine": self.machine,
            },
            "options": self.options,
            "tables": self.tables,
            "left_out": self.left_out,
        }
        return (json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n").encode()


def read_manifest(path: str, data: bytes) -> Manifest:
    """Reads a manifest.

    Args:
        path: The saved profile, for messages.
        data: The bytes of the manifest.

    Raises:
        UnreadableInput: It is not one, or of a later major version.
    """
    try:
        document = json.loads(data)
        found, major, tool = document["format"], document["version"]["major"], str(document["tool"]["version"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise unreadable_manifest(path, error) from error
    if found != FORMAT or not isinstance(major, int):
        raise unreadable_manifest(path, ValueError(f"its format is {found!r}, version {major!r}"))
    if major > MAJOR:
        raise UnreadableInput(
            f"{path}: saved by perfuse {tool} in version {major} of the layout; this perfuse reads version {MAJOR}",
            path=path,
            hint="open it with a later perfuse, or save the profile again with this one",
        )
    try:
        return _manifest(document, tool)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable_manifest(path, error) from error


def unreadable_manifest(path: str, error: Exception) -> UnreadableInput:
    """The error for a manifest with values that cannot be."""
    what = f"{type(error).__name__} {error}" if isinstance(error, KeyError) else str(error)
    return UnreadableInput(
        f"{path}: the manifest of the saved profile cannot be read: {what}",
        path=path,
        hint="copy the file again, or save the profile again with `perfuse pack`",
    )


def _manifest(document: Mapping[str, Any], tool: str) -> Manifest:
    resolved, unwinding, span = document["resolved"], document["unwinding"], document.get("span_ns")
    joined, traced = resolved["joined_rows"], resolved.get("traced_samples")
    if joined is not None and len(joined) != 5:
        raise ValueError("joined_rows has not 5 ranges")
    return Manifest(
        title=_text(document["title"]),
        tool=tool,
        created=_text(document["created"]),
        profile_id=_text(document["profile_id"]),
        inputs=tuple(_input(row) for row in document["inputs"]),
        span_ns=None if span is None else _span(span),
        joins=tuple(Join(**_known(Join, row)) for row in document["joins"]),
        diagnostics=tuple(_diagnostic(row) for row in document["diagnostics"] if row["code"] in _declarations()),
        unwinding=None if unwinding is None else Unwinding(**_known(Unwinding, unwinding)),
        joined_rows=None if joined is None else tuple(_rows(one) for one in joined),
        named_rows=tuple((_rows(functions), _rows(modules)) for functions, modules in resolved["named_rows"]),
        traced_samples=None if traced is None else _number(traced),
        machine=_number(resolved["machine"]),
        options=dict(document["options"]),
        tables=tuple(_table(row) for row in document["tables"]),
        left_out=tuple(dict(row) for row in document["left_out"]),
    )


def _table(row: Mapping[str, Any]) -> dict[str, Any]:
    for name in ("name", "member"):
        _text(row[name])
    _number(row["rows"])
    return dict(row)


def _input(row: Mapping[str, Any]) -> Input:
    known = _known(Input, {"definitions": None, "nth_of_pid": (), **row})
    if known["definitions"] is not None:
        _number(known["definitions"])
    code = known["code"]
    known["code"] = None if code is None else [_number(one) for one in code]
    known["clock"] = Clock(**{name: row["clock"][name] for name in Clock._fields})
    for name in ("path", "format", "sha256", "member"):
        _text(known[name])
    _number(known["size_bytes"])
    known["nth_of_pid"] = tuple((_pid(pid), _number(nth)) for pid, nth in known["nth_of_pid"])
    return Input(**known)


def _known(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the fields of a class; keys that it does not have are of later versions."""
    return {name: row[name] for name in field_names(kind)}


def _rows(row: Any) -> Rows:
    first, end = row
    if not 0 <= _number(first) <= _number(end) < 2**63:
        raise ValueError(f"not a range of rows: {row}")
    return first, end


def _span(row: Any) -> tuple[int, int]:
    first, last = row
    if type(first) is not int or type(last) is not int or not -(2**63) <= first <= last < 2**63:
        raise ValueError(f"not a range of times: {row}")
    return first, last


def _pid(value: Any) -> int:
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise ValueError(f"not a pid: {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not a text: {value!r}")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"not a number: {value!r}")
    return value


def _diagnostic_row(one: Diagnostic) -> dict[str, Any]:
    return {name: getattr(one, name) for name in _DIAGNOSTIC}


_DIAGNOSTIC = ("code", "path", "message", "offset", "record_index", "field", "code_section", "count")


def _diagnostic(row: Mapping[str, Any]) -> Diagnostic:
    plain = diagnostic(_text(row["code"]), _text(row["path"]), _text(row["message"]), row["offset"])
    return replace(
        plain,
        record_index=row["record_index"],
        field=_text(row["field"]),
        code_section=_text(row["code_section"]),
        count=_number(row["count"]),
    )


def summary_of(path: str, data: bytes, plain: Summary) -> Summary:
    """The summary of a saved profile: what its manifest states.

    Args:
        path: The file, for messages.
        data: The bytes of the manifest.
        plain: The summary of the zip file.
    """
    found = read_manifest(path, data)
    header = {
        "title": found.title,
        "created": found.created,
        "profile_id": found.profile_id,
        "recordings": ", ".join(f"{one.path} ({one.format}, {one.size_bytes:,} bytes)" for one in found.inputs),
        "code": str(found.options.get("code")),
        "sources": str(found.options.get("sources")),
        "tables": ", ".join(f"{row['name']} {row['rows']:,}" for row in found.tables),
        "left_out": ", ".join(str(row["table"]) for row in found.left_out),
    }
    records = {"member": plain.records.get("member", 0)}
    return replace(plain, producer=f"perfuse {found.tool}", records=records, header=header)
