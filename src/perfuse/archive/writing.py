"""Saving a profile: its tables as Parquet, its recordings as compressed copies, and a manifest, in a zip file."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, cast
from zipfile import ZIP_STORED, LargeZipFile, ZipFile, ZipInfo

from perfuse import __version__, _core
from perfuse.archive.border_events import BORDER_EVENTS, EVENT_OBJECTS, SLICES
from perfuse.archive.contents import CodeChoice, LineChoice, SourceChoice
from perfuse.archive.definitions import MEMBER, DefinitionWriter
from perfuse.archive.facts import MEMBER as FACTS
from perfuse.archive.facts import SMALL_COPIES, facts_member
from perfuse.archive.manifest import MANIFEST, TABLES_VERSION, Input, Manifest
from perfuse.archive.resolved_code import record
from perfuse.archive.source import WholeProfile
from perfuse.clock import Clock
from perfuse.errors import ExportError, UsageError, require_known
from perfuse.filters.selection import Selection
from perfuse.output.file import output_file, seekable_copy
from perfuse.output.terminal import standard_output
from perfuse.programs.machine import e_machine
from perfuse.recording import Recording
from perfuse.table import OF_DUMPS, Columns, names
from perfuse.value_class import as_dict

MIMETYPE = b"application/vnd.perfuse.profile+zip"

DERIVED = {
    "records": "made again from the copies of the recordings",
    "callchains": "made again from the copies of the recordings",
    "instructions": "made again from machine code",
    "heap_dominators": "made again from heap objects and references",
    "heap_classes": "made again from heap objects and references",
    "heap_sites": "made again from heap objects and allocations",
}
"""Tables that are not saved as Parquet, because others contain what they are made of."""
GROUP_ROWS: int | None = None
"""Rows of a row group of `OF_EVENTS`; None for the usual number. Tests want several of few rows."""
ROWS_OF_A_GROUP = 122_880
"""The usual number."""
MOST_ADDED = 8
"""Row groups of calls, or of allocations, that are added up sooner than saved sums are worth their bytes."""
OF_EVENTS = ("allocations", "object_moves", "lock_events", "exceptions", "instants", "counter_samples", "slices")
"""Tables that ranges of time are read of, beside `call_events`."""
OF_CODE = ("line_rows", "inline_calls")
"""Tables of which only the rows of sampled code are saved, unless all are requested. With dumps, so are `OF_DUMPS`:
the copies of dumps have all rows."""
MOST_FURTHER = 1 / 8
"""Share of the bytes of the copies of dumps that all rows of `OF_DUMPS` may need besides those of sampled code: then
all are saved, and what is about all code needs no copies."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is saved: see `Profile.save`."""

    code: CodeChoice = "none"
    sources: SourceChoice = "none"
    lines: LineChoice = "sampled"
    inputs: bool = False

    @property
    def code_bytes(self) -> CodeChoice:
        """Of which code the bytes are saved: whole recordings contain those of all."""
        return "all" if self.inputs else self.code

    def check(self) -> None:
        """Raises `UsageError` for invalid values."""
        require_known(self.code, ["none", "sampled", "all"], "choice of code")
        require_known(self.sources, ["none", "used", "all"], "choice of sources")
        require_known(self.lines, ["sampled", "all"], "choice of lines")


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file that was written.

    Attributes:
        path: Its path.
        size_bytes: Its size.
        input_bytes: Size of the recordings, unpacked.
        manifest: What it states.
    """

    path: str
    size_bytes: int
    input_bytes: int
    manifest: Manifest


class _Hashing:
    """A writer that hashes what is written."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self.sha256 = hashlib.sha256()
        self.num_bytes = 0

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        self.num_bytes += len(data)
        return self._out.write(data)


def save(
    profile: WholeProfile, path: str | PathLike[str], options: Options, progress: Callable[[str, float], None] | None
) -> SavedFile:
    """Saves a profile: see `Profile.save`."""
    options.check()
    if profile.saved_path is not None:
        raise UsageError(f"{profile.saved_path} is a saved profile already", hint="copy the file")
    if profile.selection != Selection() or profile.stack_filter:
        raise UsageError("only a whole profile can be saved", hint="select a part of it when the file is opened")
    report_progress = progress or (lambda _step, _share: None)
    text = fspath(path)
    try:
        if text == "-":
            out = standard_output()
            with seekable_copy(out) as file:
                return _save(profile, text, file, options, report_progress)
        with output_file(Path(text)) as file:
            return _save(profile, text, file, options, report_progress)
    except LargeZipFile as error:
        message = f"a saved profile has at most 4 GiB: {error}"
        raise ExportError(message, hint="save fewer recordings at once") from error


def _save(
    profile: WholeProfile, path: str, file: IO[bytes], options: Options, progress: Callable[[str, float], None]
) -> SavedFile:
    with ZipFile(file, "w", ZIP_STORED, allowZip64=False) as archive:
        with _member(archive, "mimetype") as out:
            out.write(MIMETYPE)
        # The join comes first: it gives keys to processes and threads, as every report does.
        progress("resolving", 0.0)
        joined_rows, named_rows, traced_samples = _core.saved_facts(profile._fusion)
        sampled = sorted({one for one in Columns(profile.tables["frames"])["code_object_id"] if one is not None})
        progress("recordings", 0.4)
        definitions = DefinitionWriter()
        inputs = [
            _save_input(archive, profile, number, sampled, options, definitions)
            for number in range(len(profile.recordings))
        ]
        defined = definitions.member()
        if defined is not None:
            with _member(archive, MEMBER) as out:
                out.write(defined)
        for name, data in record(profile, sampled, options.code_bytes, options.sources).items():
            with _member(archive, name) as out:
                out.write(data)
        rows = SampledRows(profile, sampled, options, joined_rows, has_named_rows=bool(named_rows))
        copies = [
            (one.role == "code_dump", archive.getinfo(to.member).file_size)
            for one, to in zip(profile.recordings, inputs, strict=True)
        ]
        copies_bytes = sum(size for _, size in copies)
        rows.add_small(sum(size for is_dump, size in copies if is_dump) * MOST_FURTHER)
        tables, left_out = _save_tables(archive, profile, rows, progress)
        if copies_bytes > SMALL_COPIES:
            _save_range_tables(archive, profile)
            _save_sums(archive, profile, {str(row["name"]): int(row["rows"]) for row in tables})
            known = {str(row["name"]) for row in tables} | {str(row["table"]) for row in left_out}
            empty_tables = [name for name in names() if name not in known and not rows.is_partial(name)]
            _save_facts(archive, profile, empty_tables)
        manifest = Manifest(
            title=profile.title,
            tool=__version__,
            created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            profile_id=_profile_id(inputs, options),
            inputs=tuple(inputs),
            span_ns=profile.span_ns,
            joins=profile.joins,
            diagnostics=profile.diagnostics,
            unwinding=profile.unwinding,
            joined_rows=None if joined_rows is None else tuple(rows.joined_rows),
            named_rows=tuple(named_rows),
            traced_samples=traced_samples,
            machine=e_machine(None),
            options={**as_dict(options), "code": options.code_bytes},
            tables=tuple(tables),
            left_out=tuple(left_out),
        )
        with _member(archive, MANIFEST) as out:
            out.write(manifest.to_json())
    progress("done", 1.0)
    return SavedFile(path, file.seek(0, 2), sum(one.size_bytes for one in inputs), manifest)


@contextmanager
def _member(archive: ZipFile, name: str) -> Iterator[_Hashing]:
    """A new member; the same content gives the same bytes."""
    info = ZipInfo(name)
    info.external_attr = 0o644 << 16
    with archive.open(info, "w") as out:
        yield _Hashing(out)


def _save_input(
    archive: ZipFile,
    profile: WholeProfile,
    number: int,
    sampled: list[int],
    options: Options,
    definitions: DefinitionWriter,
) -> Input:
    """Saves the copy of the recording with that number, without what is not requested."""
    recording = profile.recordings[number]
    kept: list[int] | None = None
    if recording.role == "code_dump" and options.code_bytes != "all":
        codes = Columns(profile.tables["code_objects"])
        own = sorted(key for key, source in codes.tuples("code_object_id", "source_id") if source == number)
        wanted = set(sampled) if options.code_bytes == "sampled" else set()
        kept = [key - own[0] for key in own if key in wanted]
    name = f"inputs/{number}/{recording.format}.zst"
    with _member(archive, name) as out:
        selection = None if options.inputs else (kept is None, kept or [])
        _core.write_copy_of(recording._core, cast(IO[bytes], out), selection)
    clock, pid, lines, nth_of_pid = _core.placements(profile._fusion)[number]
    return Input(
        path=recording.path,
        format=recording.format,
        sha256=_sha256(recording),
        size_bytes=recording.size_bytes,
        member=name,
        whole=options.inputs,
        code=kept,
        clock=Clock(*clock),
        pid=pid,
        # What a perf map names is in the saved tables.
        definitions=definitions.add(lines) if recording.role == "code_dump" else None,
        nth_of_pid=tuple(nth_of_pid.items()),
    )


class SampledRows:
    """Rows of tables about code that stacks refer to, where only these are saved.

    Args:
        profile: The profile.
        sampled: Code objects on stacks.
        options: What is saved.
        joined_rows: Rows of `frames`, `stacks`, `samples`, `functions`, `modules` that the join made.
        has_named_rows: Whether rows of functions were named by instrumentation maps, and are found by their place.

    Attributes:
        joined_rows: The same rows in the file.
    """

    def __init__(
        self,
        profile: WholeProfile,
        sampled: list[int],
        options: Options,
        joined_rows: Any,
        *,
        has_named_rows: bool,
    ) -> None:
        self.joined_rows = list(joined_rows or ())
        self._first_joined = tuple(self.joined_rows)
        self._profile, self._sampled = profile, sampled
        some = options.lines == "sampled" and profile.has("callchains")
        of_dumps = some and not has_named_rows and not profile.has("call_events")
        of_dumps = of_dumps and any(one.role == "code_dump" for one in profile.recordings)
        self._partial = {*(OF_CODE if some else ()), *(OF_DUMPS if of_dumps else ())}

    def add_small(self, most_bytes: float) -> None:
        """Saves all rows of `OF_DUMPS` where these need so few bytes more."""
        if not self._partial.issuperset(OF_DUMPS):
            return
        further = sum(
            _size(name, self._profile.tables[name].stream()) - _size(name, self.stream(name)) for name in OF_DUMPS
        )
        if further <= most_bytes:
            self._partial.difference_update(OF_DUMPS)
            self.joined_rows = list(self._first_joined)

    def is_partial(self, name: str) -> bool:
        """Whether only some rows of a table are saved."""
        return name in self._partial

    def stream(self, name: str) -> Any:
        """The rows of a table that are saved."""
        if name not in self._partial:
            return self._profile.tables[name].stream()
        if name in OF_CODE:
            return _core.code_rows(self._profile._fusion, name, self._sampled)
        if name == "code_objects":
            return _rows_with(self._profile.tables[name].stream(), "code_object_id", set(self._sampled))
        tables, fusion = self._profile.tables, self._profile._fusion
        used = set(Columns(tables["frames"])["function_id"])
        for other in ("code_objects", "inline_calls"):
            used |= set(Columns(_core.code_rows(fusion, other, self._sampled))["function_id"])
        # What the join made is found by its place, so it stays together: after rows of dumps, of which some are left.
        first, end = self._first_joined[3]
        keys = Columns(tables[name])["function_id"]
        # The last one has the greatest key.
        used.update(keys[-1:])
        moved = first - sum(key in used for key in keys[:first])
        self.joined_rows[3] = (first - moved, end - moved)
        return _rows_with(tables[name].stream(), "function_id", used.union(keys[first:]))


def _size(name: str, stream: Any) -> int:
    """Bytes of a table as it is saved."""
    out = _Hashing(BytesIO())
    _core.write_table(cast(IO[bytes], out), name, stream)
    return out.num_bytes


def _rows_with(stream: Any, column: str, keys: set[Any]) -> Any:
    """The rows of a stream with some keys."""
    from arro3.core import Array, DataType, RecordBatchReader

    reader = RecordBatchReader.from_arrow(stream)

    def batches() -> Iterator[Any]:
        for batch in reader:
            rows = [row for row, key in enumerate(batch.column(column).to_pylist()) if key in keys]
            yield batch.take(Array(rows, type=DataType.uint32()))

    return RecordBatchReader.from_batches(reader.schema, batches())


def _save_tables(
    archive: ZipFile,
    profile: WholeProfile,
    some: SampledRows,
    progress: Callable[[str, float], None],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Saves every table that has rows and is not derived from others; of some tables, only rows that stacks need."""
    derived = dict(DERIVED)
    if profile.has("call_events"):
        derived["slices"] = "made again from call_events"
    tables, left_out = [], []
    for number, name in enumerate(names()):
        progress("tables", 0.5 + 0.5 * number / len(names()))
        if name in derived:
            left_out.append({"table": name, "because": derived[name]})
            continue
        # Row counts are known only afterwards: an empty table leaves no member.
        reader = _first_rows(some.stream(name))
        if reader is None:
            continue
        borders = None
        with _member(archive, f"tables/{name}.parquet") as out:
            if name == "call_events":
                rows, borders = _core.write_call_events(cast(IO[bytes], out), reader, GROUP_ROWS)
            else:
                rows = _core.write_table(cast(IO[bytes], out), name, reader, GROUP_ROWS if name in OF_EVENTS else None)
        if borders is not None:
            with _member(archive, BORDER_EVENTS) as border_file:
                _core.write_table(cast(IO[bytes], border_file), "border_events", borders)
        tables.append(
            {
                "name": name,
                "member": f"tables/{name}.parquet",
                "rows": rows,
                "bytes": out.num_bytes,
                "sha256": out.sha256.hexdigest(),
                "complete": not some.is_partial(name),
            }
        )
    return tables, left_out


def _save_range_tables(archive: ZipFile, profile: WholeProfile) -> None:
    """Saves what ranges of time of runtime logs need beside their tables."""
    if all(one.role != "runtime_log" for one in profile.recordings):
        return
    with _member(archive, EVENT_OBJECTS) as out:
        objects = _core.event_objects(profile._fusion)
        _core.write_table(cast(IO[bytes], out), "event_objects", objects, GROUP_ROWS)
    if profile.has("call_events") and profile.has("slices"):
        columns = [name for table in _core.tables() if table["name"] == "slices" for name, *_ in table["columns"]]
        everything = {"threads": None, "time_ns": None, "time": "", "thread": "", "kinds": None}
        slices = _core.selected_rows(profile._fusion, "slices", columns, everything)
        with _member(archive, SLICES) as out:
            _core.write_table(cast(IO[bytes], out), "slices", slices, GROUP_ROWS)


def _save_sums(archive: ZipFile, profile: WholeProfile, num_rows: Mapping[str, int]) -> None:
    """Saves sums over calls and over allocations, where these have more than `MOST_ADDED` row groups."""
    few = (GROUP_ROWS or ROWS_OF_A_GROUP) * MOST_ADDED
    large = [num_rows.get(name, 0) > few for name in ("call_events", "allocations")]
    for name, stream in _core.resolved_sums(profile._fusion, *large):
        with _member(archive, f"resolved/{name}.parquet") as out:
            _core.write_table(cast(IO[bytes], out), name, stream)


def _save_facts(archive: ZipFile, profile: WholeProfile, empty_tables: Sequence[str]) -> None:
    """Saves what reports state without opening the copies of large recordings."""
    events = _core.sampled_events(profile.tables["samples"])
    with _member(archive, FACTS) as out:
        out.write(facts_member(profile.recordings, empty_tables, events))


def _first_rows(stream: Any) -> Any:
    """The stream, from its first batch with rows on; None where there is none."""
    from arro3.core import RecordBatchReader

    reader = RecordBatchReader.from_arrow(stream)
    schema = reader.schema
    first = next((batch for batch in reader if batch.num_rows), None)
    if first is None:
        return None

    def batches() -> Iterator[Any]:
        yield first
        yield from reader

    return RecordBatchReader.from_batches(schema, batches())


def _sha256(recording: Recording) -> str:
    """SHA-256 of a recording's file; of its content where it is not one file."""
    digest = hashlib.sha256()
    path = Path(recording.path)
    if recording.path != "-" and path.is_file():
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    else:
        for offset in range(0, recording.size_bytes, 1 << 20):
            digest.update(recording.read_bytes(offset, 1 << 20))
    return digest.hexdigest()


def _profile_id(inputs: list[Input], options: Options) -> str:
    """The same for the same inputs, options and declarations of tables."""
    facts = [*(one.sha256 for one in inputs), repr(sorted(as_dict(options).items())), str(TABLES_VERSION)]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]
