"""The work of a worker: it reads a batch of recordings, appends their rows, and returns the rows of `recordings`.

A worker writes nothing that counts: the driver does, by naming the attempt.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfuse.errors import UsageError, check_text
from perfuse.fleet.identities import attempt_id, file_sha256, recording_id
from perfuse.fleet.inputs import FleetInput, is_url
from perfuse.fleet.layout import DICTIONARIES, OF_RECORDINGS, TABLES
from perfuse.fleet.packs import NotKept, keep_pack, saved_files
from perfuse.fleet.store import Store

if TYPE_CHECKING:
    from perfuse.fusing.following import Maps
    from perfuse.profile import Profile

_RECORDING_COLUMNS = TABLES["recordings"].names
_CLOCKS_DIFFER_NS = 3_600_000_000_000
"""Most that the clocks of two drivers are assumed to differ."""


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """How recordings are read.

    Attributes:
        uri: The dataset.
        store_options: Options of its object store.
        labels: Labels of all recordings; those of a path are in its `FleetInput` and lose against these.
        symbol_dirs: Directories with binaries and debug files.
        maps: Programs and libraries that name the functions of XRay logs.
        debug_info: Whether lines and inlined calls of native code are read.
        memory: Limit of a worker's memory in bytes; None for none.
        retry_failed: Whether recordings that failed are read again.
        keep_packs: Whether a saved profile of each recording is kept in the dataset.
        dataset_id: Identity of the dataset: another one may have been at the place when a worker opened it.
    """

    uri: str
    store_options: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    symbol_dirs: tuple[str, ...] = ()
    maps: Maps = ()
    debug_info: bool = True
    memory: int | None = None
    retry_failed: bool = False
    keep_packs: bool = False
    dataset_id: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an input.

    Attributes:
        input: The input.
        recording_id: Its recording; empty where its files cannot be read.
        kept: Whether it is in the dataset already.
        relabeled: Whether it is there with other labels, which stay.
        parts: The identities that each of its files alone would have, where it has several.
        row: The row of `recordings`, in the order of its columns; None where it is kept.
    """

    input: FleetInput
    recording_id: str
    kept: bool
    row: tuple[Any, ...] | None
    relabeled: bool = False
    parts: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """`kept`, or the state of the recording."""
        return "kept" if self.row is None else str(self.row[_RECORDING_COLUMNS.index("state")])

    @property
    def labels(self) -> str:
        """The labels of its row, as a JSON object; none where it is kept."""
        return "{}" if self.row is None else str(self.row[_RECORDING_COLUMNS.index("labels")])

    @property
    def added_ns(self) -> int:
        """Time of its row; 0 where it is kept."""
        return 0 if self.row is None else int(self.row[_RECORDING_COLUMNS.index("added_ns")])


@dataclass
class Known:
    """The recordings of a dataset, by identity, as the table was read last."""

    store: Store
    recordings: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    """Tool version, state and time of the row that counts."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of that row, as a JSON object."""
    wholes: dict[str, str] = field(default_factory=dict)
    """Recordings of several files, by the identities that each of their files alone would have."""
    _files: set[str] = field(default_factory=set)
    _last_ns: int = 0

    def refresh(self) -> None:
        """Reads the files that were added since the last time."""
        from arro3.core import Table as ArrowTable
        from deltalake import QueryBuilder

        table = self.store.table("recordings", refresh=True)
        files = set(table.file_uris())
        if files == self._files:
            return
        if self._files - files:
            # Rows were deleted, or files merged.
            self.recordings.clear()
            self.labels.clear()
            self.wholes.clear()
            self._last_ns = 0
        self._files = files
        query = QueryBuilder().register("recordings", table)
        columns = ("recording_id", "tool_version", "state", "added_ns", "labels", "several")
        several = "CASE WHEN inputs LIKE '%}, {%' THEN inputs END AS several"
        # Older files are skipped by their statistics.
        since = max(self._last_ns - _CLOCKS_DIFFER_NS, 0)
        sql = f"SELECT {', '.join(columns[:-1])}, {several} FROM recordings WHERE added_ns >= {since}"
        found = ArrowTable.from_arrow(query.execute(sql))
        lists = [found[name].to_pylist() for name in columns]
        for key, version, state, added, labels, inputs in sorted(zip(*lists, strict=True), key=lambda row: row[3]):
            if state == "failed" and self.recordings.get(key, ("", "failed", 0))[1] != "failed":
                continue
            self._set(key, (version, state, added), labels, _parts(json.loads(inputs)) if inputs else ())
            self._last_ns = max(self._last_ns, added)

    def _set(self, key: str, facts: tuple[str, str, int], labels: str, parts: Sequence[str]) -> None:
        self.recordings[key] = facts
        # Recordings share few combinations of labels.
        self.labels[key] = sys.intern(labels)
        if facts[1] != "failed":
            self.wholes.update(dict.fromkeys(parts, key))

    def parts_of(self, outcomes: Iterable[Outcome]) -> set[str]:
        """Recordings that are part of others, which are new: of some of their files."""
        return {part for one in outcomes if one.state != "failed" for part in one.parts if part in self.recordings}

    def note(self, outcomes: Sequence[Outcome]) -> None:
        """Adds recordings that this process has committed, without reading the table again."""
        for part in self.parts_of(outcomes):
            del self.recordings[part], self.labels[part]
        facts = ("recording_id", "tool_version", "state", "added_ns", "labels")
        places = [_RECORDING_COLUMNS.index(name) for name in facts]
        for one in outcomes:
            if one.row is not None:
                key, version, state, added, labels = (one.row[place] for place in places)
                self._set(key, (version, state, added), labels, one.parts)

    def has(self, key: str, *, retry_failed: bool) -> bool:
        """Whether a recording was read by this version of perfuse, or is one of the files of one that was read."""
        from perfuse import __version__

        if key in self.wholes:
            return True
        version, state, _ = self.recordings.get(key, ("", "", 0))
        return version == __version__ and not (retry_failed and state == "failed")

    def labels_of(self, key: str) -> str:
        """The labels of a recording, or of that of several files which it is one of, as a JSON object."""
        return self.labels[self.wholes.get(key, key)]

    def kept(
        self, one: FleetInput, keys: Sequence[str], labels: Mapping[str, str], *, retry_failed: bool
    ) -> Outcome | None:
        """The outcome of an input that is in the dataset already, under one of the identities."""
        for key in keys:
            if self.has(key, retry_failed=retry_failed):
                return Outcome(one, key, True, None, contradicts(labels, self.labels_of(key)))
        return None


def contradicts(labels: Mapping[str, str], known: str) -> bool:
    """Whether labels are not among those of a recording, which are a JSON object."""
    return not labels.items() <= json.loads(known).items()


_STORES: dict[tuple[str, str, tuple[tuple[str, str], ...]], tuple[Store, Known]] = {}
"""The open dataset of this process: opening reads the logs, so it is kept from batch to batch."""


def _store_key(options: WorkOptions) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    return options.uri, options.dataset_id, tuple(sorted(options.store_options.items()))


def _open_store(options: WorkOptions) -> tuple[Store, Known]:
    key = _store_key(options)
    if key not in _STORES:
        store = Store(options.uri, options.store_options)
        _STORES[key] = (store, Known(store))
    return _STORES[key]


def share_store(options: WorkOptions, store: Store, known: Known) -> None:
    """Lets batches of this process use an open dataset."""
    _STORES[_store_key(options)] = (store, known)


def process_batch(options: WorkOptions, inputs: Sequence[FleetInput]) -> list[Outcome]:
    """Reads recordings and appends their rows; a recording that cannot be read is an outcome like others.

    Raises:
        Exception: The dataset cannot be written.
    """
    with contextlib.ExitStack() as stack:
        if options.memory is not None:
            from perfuse.memory import limited_memory

            stack.enter_context(limited_memory(options.memory))
        store, known = _open_store(options)
        known.refresh()
        batch = _Batch()
        outcomes = [_process(options, store, known, one, batch) for one in inputs]
        batch.write(store)
        return outcomes


class _Batch:
    """The rows of a batch, by table."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._dictionaries: dict[str, dict[bytes, tuple[Any, ...]]] = {name: {} for name in DICTIONARIES}

    def add(self, head: tuple[str, str, str, str | None], found: Any) -> None:
        """Adds the rows of a recording: identity, attempt, day and service precede its own columns."""
        for name in OF_RECORDINGS:
            self._rows[name] += [(*head, *row) for row in found.rows[name]]
        self._dictionaries["functions"].update(found.functions)
        self._dictionaries["stacks"].update(found.stacks)

    def write(self, store: Store) -> None:
        for name in DICTIONARIES:
            store.append(name, list(self._dictionaries[name].values()))
        for name in OF_RECORDINGS:
            store.append(name, self._rows[name])


def _process(options: WorkOptions, store: Store, known: Known, one: FleetInput, batch: _Batch) -> Outcome:
    import perfuse

    started = time.monotonic()
    labels = {**dict(one.labels), **options.labels}
    facts: dict[str, Any] = {
        "attempt_id": attempt_id(),
        "service": labels.get("service") or None,
        "build": labels.get("build"),
        "host": labels.get("host"),
        "tool_version": perfuse.__version__,
        "title": one.text,
        "formats": "",
        "diagnostics": "{}",
    }
    with contextlib.ExitStack() as stack:
        key = ""
        parts: tuple[str, ...] = ()
        try:
            for name in one.files:
                check_text(name)
            files = stack.enter_context(local_files(one.files, options.store_options))
            stated = [_stated(shown, path) for shown, path in zip(one.files, files, strict=True)]
            keys, parts = _identities(stated, files), _parts(stated)
            key = keys[0]
            if kept := known.kept(one, keys, labels, retry_failed=options.retry_failed):
                return kept
            facts |= _facts_of_files(stated, files)
            profile = stack.enter_context(
                perfuse.fuse(*files, symbol_dirs=options.symbol_dirs, maps=options.maps, debug_info=options.debug_info)
            )
            if kept := known.kept(one, _with_followed(stated, files, profile), labels, retry_failed=False):
                return kept
            from perfuse.fleet.extracting import extract

            found = extract(profile)
            facts |= _facts_of_profile(profile, labels)
            _require_content(found)
            if options.keep_packs:
                facts["pack"] = keep_pack(store, profile, key, facts["attempt_id"])
            batch.add((key, facts["attempt_id"], facts["day"], facts["service"]), found)
        except NotKept:
            raise
        except Exception as error:
            key = key or recording_id([f"unreadable:{one.text}"])
            facts |= _failure(error, facts)
    facts |= {
        "recording_id": key,
        "labels": json.dumps({**labels, **({"host": facts["host"]} if facts["host"] else {})}, sort_keys=True),
        "decode_ms": round((time.monotonic() - started) * 1e3),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "added_ns": time.time_ns(),
    }
    return Outcome(one, key, False, tuple(facts.get(name) for name in _RECORDING_COLUMNS), parts=parts)


def _require_content(found: Any) -> None:
    if not any(found.rows.values()):
        raise UsageError("it has no samples, calls or heap snapshots")


def _failure(error: Exception, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a recording that cannot be read."""
    from perfuse.errors import core_error

    cause = core_error(error) or error
    now = time.time_ns()
    start = facts.get("start_ns") or now
    return {
        "state": "failed",
        "error_code": type(cause).__name__,
        "error": ((isinstance(cause, OSError) and cause.strerror) or str(cause))[:2000],
        "inputs": facts.get("inputs", "[]"),
        "input_bytes": facts.get("input_bytes", 0),
        "start_ns": start,
        "start_source": facts.get("start_source", "file"),
        "day": facts.get("day") or _day(start),
    }


def failed_row(one: FleetInput, code: str, message: str, options: WorkOptions) -> Outcome:
    """The outcome of an input that ended its worker, or for which no worker could be had."""
    import perfuse

    labels = {**dict(one.labels), **options.labels}
    try:
        with local_files(one.files, options.store_options) as files:
            stated = [_stated(shown, path) for shown, path in zip(one.files, files, strict=True)]
            facts = _facts_of_files(stated, files)
            key = _identities(stated, files)[0]
    except Exception:
        facts, key = {}, recording_id([f"unreadable:{one.text}"])
    facts |= _failure(RuntimeError(message), facts) | {
        "error_code": code,
        "recording_id": key,
        "attempt_id": attempt_id(),
        "service": labels.get("service") or None,
        "build": labels.get("build"),
        "host": labels.get("host"),
        "labels": json.dumps(labels, sort_keys=True),
        "title": one.text,
        "formats": "",
        "diagnostics": "{}",
        "tool_version": perfuse.__version__,
        "decode_ms": 0,
        "peak_rss_bytes": 0,
        "added_ns": time.time_ns(),
    }
    return Outcome(one, key, False, tuple(facts.get(name) for name in _RECORDING_COLUMNS))


@contextlib.contextmanager
def local_files(files: Sequence[str], store_options: Mapping[str, str]) -> Iterator[list[str]]:
    """The files, of which those at URLs are copied into a temporary directory."""
    if not any(map(is_url, files)):
        yield list(files)
        return
    from perfuse.fleet.remote import download

    with tempfile.TemporaryDirectory(prefix="perfuse-fleet-") as directory:
        local = []
        for number, one in enumerate(files):
            if is_url(one):
                target = Path(directory, f"{number}-{one.rsplit('/', 1)[-1]}")
                download(one, target, store_options)
                local.append(str(target))
            else:
                local.append(one)
        yield local


def _stated(shown: str, path: str) -> dict[str, Any]:
    """Path, hash and size of an input; those of a directory are of all files in it."""
    shown = shown if is_url(shown) else str(Path(shown).absolute())
    if not Path(path).is_dir():
        if Path(path).exists() and not Path(path).is_file():
            raise UsageError("it is not a regular file: save what it contains, and add that")
        return {"path": shown, "sha256": file_sha256(path), "size_bytes": Path(path).stat().st_size}
    inside = sorted(one for one in Path(path).rglob("*") if one.is_file())
    digest = recording_id(f"{one.relative_to(path)}:{file_sha256(one)}" for one in inside)
    return {"path": shown, "sha256": digest, "size_bytes": sum(one.stat().st_size for one in inside)}


def _identities(stated: list[dict[str, Any]], files: Sequence[str]) -> list[str]:
    """The identities that a recording may have in a dataset, its own first.

    A saved profile is the recording that was saved: that of all its files, or of those without dumps, which
    are found beside them. Its own file was its identity in earlier datasets.
    """
    from perfuse.declared_formats import formats

    found = [recording_id(fact["sha256"] for fact in stated)]
    inputs = saved_files(files[0]) if len(files) == 1 and Path(files[0]).is_file() else ()
    if inputs:
        dumps = {one.name for one in formats() if one.role == "code_dump"}
        without = [one.sha256 for one in inputs if one.format not in dumps]
        found[:0] = [recording_id(one.sha256 for one in inputs), *([recording_id(without)] if without else [])]
    return found


def _parts(stated: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The identities that each of several files alone would have; none of a single one."""
    contents = dict.fromkeys(fact["sha256"] for fact in stated)
    return tuple(recording_id([one]) for one in contents) if len(contents) > 1 else ()


def identities_of(one: FleetInput, store_options: Mapping[str, str]) -> list[str]:
    """The identities that a dataset may know an input by; none of a pipe, or of what cannot be read."""
    with contextlib.suppress(UsageError, OSError), local_files(one.files, store_options) as files:
        return _identities([_stated(shown, path) for shown, path in zip(one.files, files, strict=True)], files)
    return []


def _with_followed(stated: list[dict[str, Any]], files: Sequence[str], profile: Profile) -> list[str]:
    """The identity of a recording with the dumps that were found beside it; none without any."""
    given = {Path(path).resolve() for path in files}
    followed = {Path(one.path).resolve() for one in profile.recordings} - given
    if profile.saved_path is not None or not followed or any(path.is_dir() for path in given):
        return []
    return [recording_id([*(fact["sha256"] for fact in stated), *map(file_sha256, followed)])]


def _facts_of_files(stated: list[dict[str, Any]], files: Sequence[str]) -> dict[str, Any]:
    changed = max(Path(path).stat().st_mtime_ns for path in files)
    return {
        "inputs": json.dumps(stated),
        "input_bytes": sum(fact["size_bytes"] for fact in stated),
        "start_ns": changed,
        "start_source": "file",
        "day": _day(changed),
    }


def _facts_of_profile(profile: Any, labels: Mapping[str, str]) -> dict[str, Any]:
    from perfuse.fusing.facts import SamplingFacts

    span = profile.span_ns
    found: dict[str, Any] = {
        "state": "partial" if any(one.is_loss for one in profile.diagnostics) else "ok",
        "title": profile.title,
        "formats": ",".join(dict.fromkeys(one.format for one in profile.recordings)),
        "diagnostics": json.dumps(dict(sorted(Counter(one.code for one in profile.diagnostics).items()))),
        "duration_ns": span[1] - span[0] if span else None,
    }
    from perfuse.table import Columns

    clocks, sources = Columns(profile.tables["clocks"]), Columns(profile.tables["sources"])
    found["arch"] = next((arch for arch in sources["arch"] if arch), None)
    offset = next((offset for offset in clocks["realtime_offset_ns"] if offset is not None), None)
    if span and offset is not None:
        start = span[0] + offset
        found |= {"start_ns": start, "start_source": "recording", "day": _day(start)}
    if not labels.get("host"):
        machines = [SamplingFacts.of(one).machine for one in profile.recordings if one.role == "samples"]
        found["host"] = next((machine[0] for machine in machines if machine), None)
    return found


def _day(ns: int) -> str:
    return f"{datetime.fromtimestamp(ns / 1e9, UTC):%Y-%m-%d}"
