from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import IO, Any, Literal, Self, TypeAlias, TypedDict, final

from perfuse.errors import UnreadableInput

__all__ = [
    "ArrowStream",
    "CallStatistics",
    "CallTrace",
    "CallTree",
    "DefinedLines",
    "HeapSnapshot",
    "Images",
    "InstrumentationMap",
    "JitdumpEncoder",
    "MonoLogWriter",
    "NativeModule",
    "Placed",
    "Profile",
    "RecordIterator",
    "Recording",
    "SFrameSection",
    "SFrameText",
    "ScannedTable",
    "StackTransform",
    "Timeline",
    "XRayLogWriter",
    "__version__",
    "allocation_sums",
    "backtraces",
    "call_statistics",
    "call_tree",
    "code_pids",
    "code_rows",
    "code_samples",
    "code_targets",
    "code_targets_at",
    "compress_zstd",
    "convert_mono",
    "convert_xray",
    "count_rows",
    "diagnostics_table",
    "directory_format",
    "disassemble",
    "elf_dependencies",
    "empty_table",
    "event_objects",
    "exit_when_out_of_memory",
    "file_head",
    "formats",
    "frame_names",
    "handle_sums",
    "heap_sums",
    "inject_images",
    "instruction_set",
    "largest_statistics",
    "memory_limit",
    "mono_kinds",
    "mono_unsupported_items",
    "object_origins",
    "placements",
    "process_numbers",
    "read_early",
    "resolved_sums",
    "row_counts",
    "rules",
    "sampled_events",
    "saved_facts",
    "saved_member",
    "saved_members",
    "saved_profile",
    "saved_range",
    "saved_recording",
    "saved_table",
    "saved_tables_profile",
    "selected_rows",
    "selected_samples",
    "set_memory_limit",
    "sframe_at",
    "sframe_coverage",
    "sframe_find",
    "sframe_from_eh_frame",
    "sframe_into",
    "sframe_pieces",
    "sframe_put_back",
    "sframe_unwind",
    "shown_processes",
    "slices_of_range",
    "sniff",
    "tables",
    "take_panic",
    "take_stop",
    "take_unreadable",
    "tiers_of_origins",
    "write_arrow",
    "write_call_events",
    "write_copy_of",
    "write_images",
    "write_perfetto_stacks",
    "write_pprof",
    "write_table",
    "write_xray",
]

__version__: str

_ClockRow: TypeAlias = tuple[str, int | None, str, int | None, int, int, int, int | None, str]
_DiagnosticRow: TypeAlias = tuple[str, str, int, int | None, str, str, int]

class _Rule(TypedDict):
    code: str
    severity: str
    section: str
    marks_end: bool
    format: str

class _Layout(TypedDict):
    name: str
    section: str
    doc: str
    fixed_bytes: int
    fields: list[tuple[str, str, str]]

class _ClockPolicy(TypedDict):
    kinds: list[str]
    alignments: list[str]
    start_field: str | None

class _Format(TypedDict):
    name: str
    title: str
    about: str
    role: Literal["samples", "code_dump", "call_trace", "runtime_log", "unwind_tables", "saved_profile"]
    report: str
    clock: _ClockPolicy
    process_field: str | None
    patterns: list[str]
    capabilities: list[str]
    tables: list[str]
    layouts: list[_Layout]

class _Table(TypedDict):
    name: str
    doc: str
    columns: list[tuple[str, str, bool, str]]

class _Summary(TypedDict):
    version: str | None
    endian: str
    pointer_bytes: int | None
    arch: str | None
    producer: str | None
    clock: str
    span: tuple[int, int] | None
    records: dict[str, int]
    header: dict[str, Any]

class _SamplingFacts(TypedDict):
    command_line: list[str] | None
    hostname: str | None
    os_release: str | None
    cpu: str | None
    markers: list[tuple[int, int, int, str, int]]
    pids: list[int]
    time_conversion: tuple[int, int, int] | None

_SFrameRule: TypeAlias = tuple[str, int, bool]
_SFrameRow: TypeAlias = tuple[int, _SFrameRule | None, _SFrameRule | None, _SFrameRule | None, bool]

def rules() -> list[_Rule]: ...
def formats() -> list[_Format]: ...
def tables() -> list[_Table]: ...
def directory_format(path: str | PathLike[str]) -> str | None: ...
def elf_dependencies(path: str | PathLike[str]) -> tuple[str | None, list[str], list[str]] | None: ...
def file_head(path: str | PathLike[str], num_bytes: int) -> bytes: ...
def sniff(head: bytes) -> list[tuple[str, Literal["likely", "certain"]]]: ...
def read_early(path: str, joins: bool) -> None: ...
def take_unreadable() -> UnreadableInput | None: ...
def take_panic() -> tuple[str, str | None] | None: ...
def take_stop() -> BaseException | None: ...
def exit_when_out_of_memory() -> None: ...
def set_memory_limit(limit: int | None = None) -> None: ...
def memory_limit() -> int: ...
def diagnostics_table(
    rows: Sequence[tuple[str, str, str, int | None, int | None, str, int]], paths: Sequence[str]
) -> ArrowStream: ...
def call_tree(
    tables: Mapping[str, Any],
    *,
    inverted: bool = False,
    split_threads: bool = False,
    merge_recursion: bool = False,
    threads: Sequence[int] | None = None,
    processes: Sequence[int] | None = None,
    event: str | None = None,
    time_ns: tuple[int, int] | None = None,
    min_share: float = 0.0,
    by_line: bool = False,
    counted_event: str | None = None,
) -> CallTree: ...
def shown_processes(processes: Any) -> ArrowStream: ...
def tiers_of_origins() -> list[tuple[str, list[str]]]: ...
def frame_names(tables: Mapping[str, Any]) -> ArrowStream: ...
def code_rows(profile: Profile, table: str, code_objects: Sequence[int]) -> ArrowStream: ...
def code_samples(
    tables: Mapping[str, Any],
    code_objects: Sequence[int],
    ranges: Sequence[tuple[int, int, int]],
    *,
    starts: Sequence[int] | None = None,
    threads: Sequence[int] | None = None,
    processes: Sequence[int] | None = None,
    event: str | None = None,
    time_ns: tuple[int, int] | None = None,
) -> tuple[
    list[tuple[int | None, int, int, int, int, int, int]],
    list[tuple[int | None, int, int, int | None, int | None, int]],
    list[tuple[int | None, int, int]],
]: ...
def code_targets(
    profile: Profile, process_id: int, at_ns: int, addresses: Sequence[int]
) -> list[tuple[int | None, str | None, int, str | None] | None]: ...
def code_targets_at(
    profile: Profile, queries: Sequence[tuple[int, int, int]]
) -> list[tuple[int | None, str | None, int, str | None] | None]: ...
def disassemble(
    code: bytes, address: int, machine: int, intel: bool
) -> list[tuple[int, int, str, str, int | None, int | None]]: ...
def instruction_set(machine: int) -> str: ...
def sampled_events(samples: Any) -> list[tuple[str, str, int, int, int, int]]: ...
def allocation_sums(
    profile: Profile,
    *,
    by: str | None = None,
    stacks: bool = True,
    threads: Sequence[int] | None = None,
    time_ns: tuple[int, int] | None = None,
) -> ArrowStream: ...
def object_origins(profile: Profile, addresses: Sequence[int], times_ns: Sequence[int]) -> ArrowStream | None: ...
def event_objects(profile: Profile) -> ArrowStream: ...
def selected_rows(
    profile: Profile, table: str, columns: Sequence[str], selection: Mapping[str, Any]
) -> ArrowStream: ...
def count_rows(profile: Profile, table: str, selection: Mapping[str, Any]) -> int: ...
def row_counts(
    profile: Profile, table: str, columns: tuple[str, str], selection: Mapping[str, Any]
) -> list[tuple[str, int | None, int]]: ...
def handle_sums(
    profile: Profile, *, stacks: bool, threads: Sequence[int] | None = None, time_ns: tuple[int, int] | None = None
) -> tuple[list[tuple[str, int, int, int, int]], list[tuple[str, int | None, int, int]]]: ...
def largest_statistics(
    rows: Sequence[tuple[Sequence[float], float, float]],
    chunks: Sequence[Sequence[int]],
    chunk_runs: int,
    runs_factor: float,
) -> tuple[list[float], list[float]]: ...
def backtraces(stacks: Any, frames: Any, stack_ids: Sequence[int]) -> list[list[int | None]]: ...
def call_statistics(
    profile: Profile,
    *,
    by: str = "function",
    rank: str = "nearest",
    threads: Sequence[int] | None = None,
    time_ns: tuple[int, int] | None = None,
    functions: Sequence[int] | None = None,
    recursive_only: bool = False,
    edges: bool = False,
    paths: bool = False,
) -> CallStatistics: ...
def heap_sums(
    profile: Profile,
) -> tuple[list[tuple[int, int | None, int, int]], list[tuple[int, int]]]: ...
def selected_samples(
    profile: Profile, *, threads: Sequence[int] | None = None, time_ns: tuple[int, int] | None = None
) -> ArrowStream: ...
def write_perfetto_stacks(
    out: int | IO[bytes],
    *,
    samples: Any,
    allocations: Any,
    counts: Sequence[tuple[int, int, str, bool, int]],
    end_ns: int,
    stacks: Any,
    frames: Any,
    threads: Any,
    perf_samples: bool = False,
    clock: tuple[int, int | None] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> None: ...
def write_arrow(out: int | IO[bytes], stream: Any, as_stream: bool) -> None: ...
def compress_zstd(input: int, out: int | IO[bytes]) -> None: ...
def write_pprof(
    out: int | IO[bytes],
    *,
    samples: Any,
    stacks: Any,
    frames: Any,
    mappings: Any,
    main_mapping: int | None,
    events: Sequence[tuple[str, str, bool, int | None]],
    title: str,
    time_ns: int | None,
    duration_ns: int,
    progress: Callable[[str, float], None] | None = None,
) -> None: ...

@final
class ArrowStream:
    def collected(self) -> ArrowStream: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class ScannedTable:
    def __new__(cls, name: str, build: Callable[[], object]) -> Self: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class StackTransform:
    def __new__(cls, tables: Mapping[str, Any]) -> Self: ...
    def copy(self) -> StackTransform: ...
    def symbols(self) -> ArrowStream: ...
    def apply(self, step: str, symbols: Sequence[bool]) -> int: ...
    def apply_to_stack(self, keep: bool, stack_id: int) -> int: ...
    def collapse_recursion(self) -> int: ...
    def collapse(self, groups: Sequence[int | None], names: Sequence[str]) -> int: ...
    def table(self, name: str, appended: bool = False) -> ArrowStream: ...
    def samples(self, samples: Any, appended: bool = False) -> ArrowStream: ...

@final
class Recording:
    @staticmethod
    def open(path: str, max_unpacked: int | None = None) -> Recording: ...
    @staticmethod
    def from_bytes(path: str, data: bytes, max_unpacked: int | None = None) -> Recording: ...
    @staticmethod
    def from_stream(path: str, stream: Any, max_unpacked: int | None = None) -> Recording: ...
    @property
    def format(self) -> str: ...
    @property
    def fills(self) -> list[str]: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def unpack_error(self) -> str | None: ...
    def without_copies_of(self, earlier: Sequence[Recording]) -> tuple[Recording, int] | None: ...
    def keys_and_span(self) -> tuple[dict[str, int], tuple[int, int] | None]: ...
    def read_ahead(self) -> None: ...
    def has(self, table: str) -> bool: ...
    def clock(self, hz: int | None = None, header: bool = False) -> _ClockRow: ...
    def sampling_facts(self) -> _SamplingFacts | None: ...
    def summary(self) -> _Summary: ...
    def records(self, kinds: set[str] | None, range: tuple[bool, int, int | None]) -> RecordIterator: ...
    def write_records(
        self,
        out: int | IO[bytes],
        kinds: set[str] | None,
        range: tuple[bool, int, int | None],
        limit: int,
        text: tuple[bool, int | None, bool] | None,
    ) -> tuple[int, int]: ...
    def check(self, limit: int, whole: bool = True) -> list[_DiagnosticRow]: ...
    def repair(self, path: str) -> tuple[list[tuple[str, str, int]], list[_DiagnosticRow], list[tuple[str, str]]]: ...
    def table(self, name: str, with_bytes: bool = False) -> ArrowStream | None: ...
    def read_bytes(self, offset: int, size: int) -> bytes: ...

@final
class RecordIterator:
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[str, int, int, int, int | None, dict[str, Any]]: ...

@final
class Placed:
    def __new__(
        cls,
        recording: Recording,
        clock: _ClockRow,
        pid: int | None,
        definitions: DefinedLines | None = None,
        nth_of_pid: Mapping[int, int] | None = None,
    ) -> Self: ...

@final
class DefinedLines:
    def __new__(cls, lines: Mapping[str, Mapping[str, int]]) -> Self: ...
    def lines(self) -> dict[str, dict[str, int]]: ...

@final
class Profile:
    def __new__(
        cls,
        placed: Sequence[Placed],
        symbol_dirs: Sequence[str | PathLike[str]],
        debug_info: bool,
        recorded_on: tuple[str, str] | None = None,
        maps: Sequence[tuple[int, str | PathLike[str]]] | None = None,
        follow: str = "all",
        max_unpacked: int | None = None,
    ) -> Self: ...
    def table(
        self,
        name: str,
        with_bytes: bool = False,
        stacks_of: str | None = None,
    ) -> ArrowStream | None: ...
    def rows_of_stacks(self, name: str) -> ArrowStream: ...
    def join_ahead(self, is_needed: bool = False) -> None: ...
    def unwinding(self) -> dict[str, Any] | None: ...
    def naming_findings(self) -> list[tuple[str, str, str, int | None, int]]: ...
    def trace_span(self) -> tuple[int, int] | None: ...
    def pids_of_recordings(self, threads: Sequence[int] | None) -> dict[int, int]: ...
    def same_functions(self) -> list[int] | None: ...
    def first_uses(self, samples: int, code: int) -> list[tuple[int, int]]: ...

_RowRange: TypeAlias = tuple[int, int]
_SavedFacts: TypeAlias = tuple[list[_RowRange] | None, list[tuple[_RowRange, _RowRange]], int]
_RecordingRow: TypeAlias = tuple[str, Sequence[str], Mapping[str, int], tuple[int, int] | None, _ClockRow, int | None]

def saved_members(saved: Recording) -> list[tuple[str, int]]: ...
def saved_member(saved: Recording, name: str) -> bytes: ...
def empty_table(name: str) -> ArrowStream | None: ...
def saved_table(saved: Recording, name: str, near: tuple[str, int, int] | None = None) -> ArrowStream | None: ...
def saved_recording(
    saved: Recording, member: str, path: str, size: int, code: Sequence[int] | None = None
) -> Recording: ...
def saved_tables_profile(saved: Recording, sampled_ns: tuple[int, int] | None = None) -> Profile: ...
def saved_profile(
    saved: Recording, recordings: Sequence[Placed | _RecordingRow], facts: _SavedFacts, partial: Sequence[str]
) -> Profile: ...
def resolved_sums(profile: Profile, calls: bool, allocations: bool) -> list[tuple[str, ArrowStream]]: ...
def saved_facts(profile: Profile) -> _SavedFacts: ...
def placements(profile: Profile) -> list[tuple[_ClockRow, int | None, DefinedLines | None, dict[int, int]]]: ...
def process_numbers(recordings: Sequence[Recording]) -> list[dict[int, int]]: ...
def saved_range(
    saved: Recording,
    time_ns: tuple[int, int],
    recordings: Sequence[_RecordingRow],
    facts: _SavedFacts,
    partial: Sequence[str],
) -> Profile | None: ...
def slices_of_range(profile: Profile) -> ArrowStream | None: ...
def write_table(out: int | IO[bytes], table: str, stream: Any, group_rows: int | None = None) -> int: ...
def write_call_events(
    out: int | IO[bytes], stream: Any, group_rows: int | None = None
) -> tuple[int, ArrowStream | None]: ...
def write_copy_of(
    recording: Recording, out: int | IO[bytes], code: tuple[bool, Sequence[int]] | None = None
) -> None: ...

@final
class InstrumentationMap:
    @staticmethod
    def open(
        path: str | PathLike[str],
        symbol_dirs: Sequence[str | PathLike[str]],
        debug_info: bool,
        architecture: str | None = None,
    ) -> InstrumentationMap: ...
    @property
    def architecture(self) -> str: ...
    @property
    def pointer_bytes(self) -> int: ...
    @property
    def version(self) -> int | None: ...
    @property
    def versions(self) -> list[int]: ...
    @property
    def kinds(self) -> list[tuple[str, int]]: ...
    @property
    def findings(self) -> list[tuple[str, str, int | None, int]]: ...
    def __len__(self) -> int: ...
    def functions(self) -> ArrowStream: ...
    def sleds(self) -> ArrowStream: ...

@final
class HeapSnapshot:
    def __new__(cls, profile: Profile, snapshot: int) -> HeapSnapshot: ...
    @property
    def snapshot_id(self) -> int: ...
    @property
    def num_objects(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def num_references(self) -> int: ...
    @property
    def num_dangling(self) -> int: ...
    @property
    def num_repeated(self) -> int: ...
    @property
    def num_roots(self) -> int: ...
    @property
    def num_missed_roots(self) -> int: ...
    @property
    def has_roots(self) -> bool: ...
    @property
    def unreachable(self) -> tuple[int, int]: ...
    def classes(self) -> ArrowStream: ...
    def object(self, address: int) -> ArrowStream: ...
    def below(self, address: int | None = None, limit: int | None = None) -> ArrowStream: ...
    def rest(self, limit: int | None = None) -> ArrowStream: ...
    def of_type(self, type_id: int | None, limit: int | None = None) -> ArrowStream: ...
    def references(
        self, address: int, to: bool, limit: int
    ) -> tuple[int, list[tuple[int, int | None, int, int | None]]]: ...
    def path(self, address: int) -> ArrowStream: ...
    def held_objects(
        self, types: Sequence[int | None]
    ) -> list[tuple[list[int | None], int | None, int, int, int, int]]: ...
    def root(self, address: int) -> tuple[str, str | None, int | None, int | None, int | None] | None: ...
    def distinct_roots(self) -> list[tuple[str, str | None, int | None, int | None, int | None]]: ...
    def write_v8(
        self,
        out: int | IO[bytes],
        *,
        types: Mapping[int, str],
        roots: Sequence[str],
        progress: Callable[[str, float], None] | None = None,
    ) -> None: ...
    def write_hprof(
        self,
        out: int | IO[bytes],
        *,
        types: Mapping[int, str],
        pointer_bytes: int,
        time_ms: int,
        progress: Callable[[str, float], None] | None = None,
    ) -> None: ...
    def write_perfetto(
        self,
        out: int | IO[bytes],
        *,
        types: Mapping[int, str],
        number: int,
        pid: int,
        ts_ns: int,
        clock: tuple[int, int | None] | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> None: ...
    def duplicates(self, least_references: int) -> ArrowStream: ...
    def sites(self) -> ArrowStream: ...
    def folded(self, types: Mapping[int, str]) -> dict[str, ArrowStream]: ...
    def whereabouts(self, known: Sequence[tuple[int, int]]) -> list[int | None]: ...
    def changes(self, earlier: int) -> list[tuple[int | None, int, int, int, int]]: ...
    def new_objects(self, earlier: int, limit: int | None = None) -> ArrowStream: ...

@final
class CallStatistics:
    def functions(self) -> ArrowStream: ...
    def edges(self) -> ArrowStream: ...
    def paths(self) -> ArrowStream: ...
    def threads(self) -> ArrowStream: ...
    def migrations(self) -> ArrowStream: ...
    def totals(self) -> ArrowStream: ...

@final
class CallTrace:
    def __new__(
        cls,
        profile: Profile,
        *,
        threads: Sequence[int] | None = None,
        time_ns: tuple[int, int] | None = None,
        functions: Sequence[int] | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> Self: ...
    @property
    def num_events(self) -> int: ...
    @property
    def num_instants(self) -> int: ...
    @property
    def num_slices(self) -> int: ...
    @property
    def num_counts(self) -> int: ...
    @property
    def first_ns(self) -> int | None: ...
    @property
    def thread_ids(self) -> list[int]: ...
    @property
    def clock(self) -> str | None: ...
    def write_chrome(
        self, out: int | IO[bytes], *, zero_ns: int, progress: Callable[[str, float], None] | None = None
    ) -> None: ...
    def write_speedscope(
        self, out: int | IO[bytes], *, progress: Callable[[str, float], None] | None = None
    ) -> None: ...
    def write_perfetto(
        self,
        out: int | IO[bytes],
        *,
        clock: tuple[int, int | None] | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> None: ...

_Place: TypeAlias = tuple[int, int, int]
_SliceRow: TypeAlias = tuple[int, int, int, int, int, int]
_TotalRow: TypeAlias = tuple[int, int, int, _Place]

@final
class Timeline:
    def __new__(
        cls,
        profile: Profile,
        *,
        event: str | None,
        zero_ns: int,
        max_slices: int,
        threads: Sequence[int] | None = None,
        time_ns: tuple[int, int] | None = None,
        num_events: int | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> Self: ...
    @property
    def num_bytes(self) -> int: ...
    def tracks(self) -> list[tuple[str, str, int, list[int], tuple[int, int] | None, int]]: ...
    def symbols(self) -> ArrowStream: ...
    def labels(self) -> list[tuple[str, int | None, int | None, str | None, str]]: ...
    def tiles(self, rows: Sequence[tuple[int, int]], k: int, first: int, last: int) -> dict[str, bytes] | None: ...
    def slice(self, place: _Place) -> _SliceRow | None: ...
    def self_ns(self, place: _Place) -> int | None: ...
    def parents(self, place: _Place) -> list[_SliceRow]: ...
    def children(self, place: _Place) -> tuple[list[_TotalRow], int]: ...
    def neighbour(self, place: _Place, is_next: bool, same_symbol: bool) -> _SliceRow | None: ...
    def longest(
        self,
        *,
        time_ns: tuple[int, int],
        threads: Sequence[int] | None = None,
        symbol: int | None = None,
        limit: int = 20,
    ) -> list[_SliceRow]: ...
    def totals(self, *, time_ns: tuple[int, int], threads: Sequence[int] | None = None) -> list[_TotalRow]: ...
    def heat(
        self,
        *,
        rows: str,
        of_calls: bool,
        time_ns: tuple[int, int],
        column_ns: int,
        num_columns: int,
        num_rows: int,
        threads: Sequence[int],
        tiers: Sequence[str] | None = None,
    ) -> tuple[list[str], bytes] | None: ...
    def heat_of_durations(
        self,
        *,
        symbols: Sequence[int] | None,
        time_ns: tuple[int, int],
        column_ns: int,
        num_columns: int,
        threads: Sequence[int] | None = None,
    ) -> tuple[int, bytes] | None: ...

@final
class NativeModule:
    def __new__(cls, profile: Profile, path: str, build_id: str | None) -> Self: ...
    @property
    def file(self) -> str | None: ...
    @property
    def debug_file(self) -> str | None: ...
    def function_code(self, address: int) -> tuple[int, bytes, int]: ...
    def frames(
        self, addresses: Sequence[int]
    ) -> list[tuple[list[tuple[str, str | None, int | None, int | None]], int | None]]: ...

@final
class CallTree:
    @property
    def total_weight(self) -> int: ...
    @property
    def total_samples(self) -> int: ...
    def __len__(self) -> int: ...
    def nodes(self) -> ArrowStream: ...
    def symbols(self) -> ArrowStream: ...
    def to_bytes(self) -> bytes: ...
    def weights(self, by: str) -> ArrowStream: ...
    def num_functions(self) -> int: ...
    def heaviest_functions(self, order: str, limit: int | None = None) -> ArrowStream: ...
    def group_weights(self, by_module: bool) -> ArrowStream: ...
    def write_collapsed(
        self,
        out: int | IO[bytes],
        names: Sequence[str],
        roots: Mapping[int, str | None],
        counted: Literal["samples", "events"],
    ) -> None: ...
    def unnamed(self) -> list[tuple[str, str, int, int]]: ...

@final
class JitdumpEncoder:
    def __new__(cls, endian: str) -> Self: ...
    def header(self, elf_mach: int, pid: int, timestamp: int, flags: int) -> None: ...
    def take(self) -> bytes: ...
    def discard(self) -> None: ...
    def code_load(
        self,
        timestamp: int,
        ids: tuple[int, int],
        vma: int,
        code_addr: int,
        code_index: int,
        name: str,
        code: bytes,
    ) -> None: ...
    def code_move(
        self,
        timestamp: int,
        ids: tuple[int, int],
        vma: int,
        addresses: tuple[int, int],
        code_size: int,
        code_index: int,
    ) -> None: ...
    def debug_info(
        self, timestamp: int, code_addr: int, entries: Sequence[tuple[int, str, int, int]], repeat: bool
    ) -> None: ...
    def unwinding_info(
        self, timestamp: int, eh_frame_hdr: bytes, eh_frame: bytes, mapped_size: int, header_first: bool
    ) -> None: ...
    def inline_info(
        self,
        timestamp: int,
        code_addr: int,
        dialect: Literal["debug_info2", "frames"],
        outer: tuple[str, str, int, int],
        lines: Sequence[tuple[int, str, int, int]],
        calls: Sequence[tuple[int, int, int, str, str, int, int, str, int, int]],
    ) -> tuple[int, int, int, int]: ...
    def tier(self, timestamp: int, code_addr: int, color: int, name: str) -> None: ...
    def embedded_source(self, timestamp: int, path: str, text: bytes) -> None: ...
    def raw(self, timestamp: int, tag: int, body: bytes) -> None: ...
    def debug_info2_body(
        self,
        files: Sequence[str],
        function_names: Sequence[str],
        functions: Sequence[tuple[int, int, int, int, int]],
        inline_calls: Sequence[tuple[int, int, int, int, int]],
        ranges: Sequence[tuple[int, int]],
        lines: Sequence[tuple[int, int, int, int]],
    ) -> bytes: ...
    def frames_body(
        self,
        code_addr: int,
        code_offsets: Sequence[tuple[int, int]],
        source_positions: Sequence[tuple[int, int, int, int, int, int, int]],
        strings: Sequence[str],
    ) -> bytes: ...
    def inline_calls_body(
        self, code_addr: int, entries: Sequence[tuple[int, int, int, int, int, int, str, str]]
    ) -> bytes: ...
    def inline_stack_body(self, code_addr: int, entries: Sequence[tuple[int, int, str, str]]) -> bytes: ...

@final
class Images:
    def facts(self) -> list[tuple[int, str, int, int, int, int]]: ...

def code_pids(profile: Profile) -> list[int]: ...
def write_images(profile: Profile, files: dict[int, int], machine: int) -> Images: ...
def inject_images(profile: Profile, images: Images, paths: dict[int, str], out: int) -> tuple[int, int, int] | None: ...

@final
class SFrameText:
    def __new__(cls, recording: Recording, style: str, section: int) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    def write(self, out: int | IO[bytes]) -> None: ...

@final
class SFrameSection:
    def __new__(cls, version: int, arch: str) -> Self: ...
    @staticmethod
    def all_of(recording: Recording) -> list[SFrameSection]: ...
    @staticmethod
    def merged(sections: Sequence[SFrameSection]) -> tuple[SFrameSection, int]: ...
    @property
    def version(self) -> int: ...
    @property
    def arch(self) -> str | None: ...
    def __len__(self) -> int: ...
    def add(
        self,
        start: int,
        size: int,
        rows: Sequence[_SFrameRow],
        repeat_bytes: int = 0,
        signal: bool = False,
        key_b: bool = False,
    ) -> None: ...
    def convert(
        self, version: int, pcrel: bool | None = None
    ) -> tuple[SFrameSection, list[tuple[int | None, int | None, str, bool]]]: ...
    def for_arch(self, arch: str) -> SFrameSection: ...
    def optimised(self) -> tuple[SFrameSection, int]: ...
    def encode(self, address: int, sort: bool = True) -> bytes: ...

def sframe_at(path: str, data: bytes | None, address: int) -> Recording: ...
def sframe_unwind(
    recording: Recording, registers: Mapping[str, int], stack: bytes, bias: int
) -> tuple[list[tuple[int, int]], str]: ...
def sframe_find(recording: Recording, addresses: bytes) -> ArrowStream: ...
def sframe_pieces(recording: Recording) -> list[dict[str, Any]]: ...
def sframe_put_back(recording: Recording, section: int, data: bytes) -> bytes: ...
def sframe_into(path: str, section: SFrameSection, sort: bool) -> bytes: ...
def sframe_from_eh_frame(
    path: str, version: int
) -> tuple[SFrameSection, list[tuple[int | None, int | None, str, bool, str]]]: ...
def sframe_coverage(recording: Recording) -> list[dict[str, Any]]: ...

_Mode: TypeAlias = Literal["fdr", "basic"]
_Endian: TypeAlias = Literal["little", "big"]
_WrittenFacts: TypeAlias = tuple[int, int, int, list[tuple[str, int]]]

class _XRayOptions(TypedDict):
    mode: _Mode | None
    version: int | None
    endian: _Endian | None
    hz: int | None
    between_ns: tuple[int, int] | None
    is_relative: bool
    tids: list[int] | None
    functions: set[int] | None

def convert_xray(
    recordings: Sequence[Recording], out: int, options: _XRayOptions, yaml_names: Mapping[int, str] | None = None
) -> _WrittenFacts: ...
def write_xray(
    profile: Profile, out: int, options: _XRayOptions, is_monotonic: bool
) -> tuple[_WrittenFacts, int, int]: ...

@final
class XRayLogWriter:
    def __new__(cls, mode_name: _Mode, version: int, endian_name: _Endian, hz: int, is_monotonic: bool) -> Self: ...
    def call(
        self,
        action: int,
        function_id: int,
        tsc: int,
        cpu: int,
        owner: tuple[int, int],
        argument: int | None = None,
    ) -> None: ...
    def event(self, event_type: int | None, payload: bytes, tsc: int, cpu: int, owner: tuple[int, int]) -> None: ...
    def take(self) -> bytes: ...
    def finish(self) -> _WrittenFacts: ...

_MonoFacts: TypeAlias = tuple[int, int, list[tuple[str, int]], list[tuple[str, int]]]

class _MonoOptions(TypedDict):
    version: int | None
    between_ns: tuple[int, int] | None
    is_relative: bool
    threads: list[int | str] | None
    kinds: list[str] | None
    any_run: bool

class _MonoHeader(TypedDict):
    version: int
    pointer_bytes: int
    profiler: tuple[int, int] | None
    startup_ms: int
    startup_ns: int
    timer_overhead_ns: int
    pid: int
    port: int
    texts: tuple[str, str, str]

def convert_mono(recordings: Sequence[Recording], out: IO[bytes], options: _MonoOptions) -> _MonoFacts: ...
def mono_kinds() -> list[str]: ...
def mono_unsupported_items() -> list[str]: ...

@final
class MonoLogWriter:
    def __new__(cls, header: _MonoHeader) -> Self: ...
    def event(self, thread_id: int, name: str, timestamp: int | None, fields: Mapping[str, Any]) -> None: ...
    def stacks(self, stacks: Any) -> None: ...
    def rows(self, events: Any, out: IO[bytes]) -> int: ...
    def take(self) -> bytes: ...
    def flush(self) -> None: ...
