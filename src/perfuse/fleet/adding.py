"""Adding recordings to a dataset: batches, their results, and the commits that make recordings part of it."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from perfuse.fleet.engines import Completed, Engine, Inline, WorkerLost
from perfuse.fleet.inputs import FleetInput, is_url
from perfuse.fleet.store import DatasetError, Refused, Store, first_line
from perfuse.fleet.work import Known, Outcome, WorkOptions, contradicts, failed_row, process_batch, share_store

MOST_RECORDINGS = 64
"""Recordings of a batch."""
LEAST_RECORDINGS = 16
"""Recordings of a batch of a single worker: appending the rows of fewer would take as long as reading them."""
MOST_BYTES = 64 << 20
"""Size of the files of a batch; a larger recording is a batch of its own."""
COMMIT_RECORDINGS = 256
COMMIT_SECONDS = 30.0
STRAGGLES_AFTER = 3.0
"""A batch that takes so many times the median, by bytes, is started a second time where workers are idle."""
LEAST_STRAGGLER_SECONDS = 10.0
DEATHS = 2
"""A recording is given up when so many workers have died with it alone."""

Progress = Callable[[str, float], None]


@dataclass
class AddResult:
    """What `add` did.

    Attributes:
        added: Recordings that are part of the dataset now, by state `ok` or `partial`.
        failed: Inputs that are in quarantine, each with the message.
        kept: Inputs that were part of it before, or whose content another input has, or which are one of the files of
            a recording of several.
        replaced: Recordings that were part of it, and are one of the files of a recording that was added.
        relabeled: Those of them that were given other labels than the dataset has: its own stay.
        repeated_batches: Batches that were worked on again, since their worker died or was slow.
        seconds: How long it took.
    """

    added: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    kept: int = 0
    replaced: int = 0
    relabeled: int = 0
    repeated_batches: int = 0
    seconds: float = 0.0

    @property
    def num_added(self) -> int:
        """Number of recordings that were added."""
        return sum(self.added.values())


@dataclass(slots=True)
class _Batch:
    inputs: tuple[FleetInput, ...]
    num_bytes: int
    deaths: int = 0
    started: float = 0.0
    copies: int = 0


def add(
    store: Store,
    inputs: Sequence[FleetInput],
    options: WorkOptions,
    engine: Engine | None = None,
    progress: Progress = lambda _what, _share: None,
) -> AddResult:
    """Adds recordings; those that are part of the dataset already are skipped.

    Whatever ends this call, the dataset has each recording whole or not at all, and another call continues.

    Raises:
        DatasetError: The dataset cannot be written.
    """
    started = time.monotonic()
    store.forget()
    try:
        store.begin()
    except OSError as error:
        raise write_failure(store, error) from error
    run = _Run(store, replace(options, dataset_id=store.identity), engine or Inline(), len(inputs), progress)
    if isinstance(run.engine, Inline):
        share_store(run.options, store, run.known)
    run.work(batches_of(inputs, run.engine.num_workers))
    run.result.seconds = time.monotonic() - started
    return run.result


def write_failure(store: Store, error: BaseException) -> DatasetError:
    """Why a dataset cannot be written, and what to do."""
    return DatasetError(
        f"cannot write the dataset {store.uri}: {first_line(error)}",
        hint="what was committed is complete; the same command continues",
    )


def batches_of(inputs: Iterable[FleetInput], num_workers: int = 1) -> list[tuple[tuple[FleetInput, ...], int]]:
    """Inputs in batches, with their sizes: as large as pays, and several for each worker."""
    sized = [(one, _size(one)) for one in inputs]
    least = LEAST_RECORDINGS if num_workers == 1 else 1
    most = max(least, min(MOST_RECORDINGS, -(-len(sized) // (num_workers * 4))))
    batches: list[tuple[tuple[FleetInput, ...], int]] = []
    batch: list[FleetInput] = []
    total = 0
    for one, size in sized:
        if batch and (len(batch) >= most or total + size > MOST_BYTES):
            batches.append((tuple(batch), total))
            batch, total = [], 0
        batch.append(one)
        total += size
    if batch:
        batches.append((tuple(batch), total))
    return batches


def _size(one: FleetInput) -> int:
    total = 0
    for path in one.files:
        if not is_url(path):
            try:
                whole = Path(path)
                total += sum(part.stat().st_size for part in (whole.rglob("*") if whole.is_dir() else (whole,)))
            except OSError:
                continue
    return total


class _Run:
    """The driver of one `add`."""

    def __init__(self, store: Store, options: WorkOptions, engine: Engine, num_inputs: int, progress: Progress) -> None:
        self.store, self.options, self.engine = store, options, engine
        self.result = AddResult()
        self.known = Known(store)
        self._num_inputs, self._num_done = num_inputs, 0
        self._progress = progress
        self._waiting: deque[_Batch] = deque()
        self._suspects: deque[_Batch] = deque()
        """Recordings with which a worker died. On Dask, others that were sent to it may be the cause."""
        self._running: dict[str, _Batch] = {}
        self._seconds_by_byte: list[float] = []
        self._pending: list[Outcome] = []
        self._committed_at = time.monotonic()
        self._number = 0

    def work(self, batches: Sequence[tuple[tuple[FleetInput, ...], int]]) -> None:
        """Works on all batches, then commits."""
        self.known.refresh()
        self._waiting.extend(_Batch(inputs, size) for inputs, size in batches)
        while self._waiting or self._suspects or self._is_busy():
            self._submit()
            done = self.engine.next_completed(1.0)
            if done is not None:
                self._take(done)
            self._repeat_stragglers()
            overdue = time.monotonic() - self._committed_at > COMMIT_SECONDS
            if len(self._pending) >= COMMIT_RECORDINGS or (self._pending and overdue):
                self._commit()
        self._commit()

    def _submit(self) -> None:
        # No more than the workers need soon: what is not submitted can still be cut into smaller batches.
        while self._waiting and len(self._running) < 2 * self.engine.num_workers:
            self._start(self._waiting.popleft())
        if self._suspects and not self._waiting and not self._is_busy():
            self._start(self._suspects.popleft())

    def _is_busy(self) -> bool:
        return any(one.inputs for one in self._running.values())

    def _start(self, batch: _Batch) -> None:
        self._number += 1
        key = str(self._number)
        batch.started = time.monotonic()
        batch.copies += 1
        self._running[key] = batch
        self.engine.submit(key, process_batch, self.options, batch.inputs)

    def _take(self, done: Completed) -> None:
        batch = self._running.pop(done.key)
        batch.copies -= 1
        if batch.copies < 0:
            return  # its other copy was first
        if isinstance(done.result, WorkerLost):
            self._lost(batch, done.result.why)
            return
        if isinstance(done.result, BaseException):
            raise self._failure(done.result) from done.result
        if batch.copies:
            # Another copy is still running: what it writes is of an attempt that nothing names.
            for key in [key for key, one in self._running.items() if one is batch]:
                batch.copies -= 1
                self._running[key] = _Batch((), 0, copies=0)
        elapsed = time.monotonic() - batch.started
        self._seconds_by_byte.append(elapsed / max(batch.num_bytes, 1))
        self._done(done.result)

    def _done(self, outcomes: Sequence[Outcome]) -> None:
        self._pending += [one for one in outcomes if not one.kept]
        self.result.kept += sum(one.kept for one in outcomes)
        self.result.relabeled += sum(one.relabeled for one in outcomes)
        self._num_done += len(outcomes)
        self._progress("adding", self._num_done / max(self._num_inputs, 1))

    def _lost(self, batch: _Batch, why: str) -> None:
        """A worker died: its recordings are tried again in smaller batches, and last each with nothing beside it."""
        if batch.copies:
            return
        self.result.repeated_batches += 1
        if len(batch.inputs) == 1:
            batch.deaths += 1
            if batch.deaths >= DEATHS:
                self._done([failed_row(batch.inputs[0], "worker_died", f"its worker died: {why}", self.options)])
            else:
                self._suspects.append(batch)
            return
        half = len(batch.inputs) // 2
        for part in (batch.inputs[:half], batch.inputs[half:]):
            self._waiting.appendleft(_Batch(part, batch.num_bytes * len(part) // len(batch.inputs)))

    def _repeat_stragglers(self) -> None:
        if self._waiting or not self._seconds_by_byte or len(self._running) >= self.engine.num_workers:
            return
        usual = median(self._seconds_by_byte)
        now = time.monotonic()
        for batch in list(self._running.values()):
            limit = max(STRAGGLES_AFTER * usual * max(batch.num_bytes, 1), LEAST_STRAGGLER_SECONDS)
            if batch.inputs and batch.copies == 1 and now - batch.started > limit:
                self.result.repeated_batches += 1
                self._start(batch)
                return

    def _commit(self) -> None:
        """Makes what is done part of the dataset, if no other driver did so in the meantime."""
        for _ in range(20):
            rows = self._new_rows()
            if not rows:
                break
            parts = self.known.parts_of(rows)
            try:
                self.store.create()
                self.store.append_recordings([one.row for one in rows if one.row is not None], replacing=parts)
                self.known.note(rows)
            except Refused:
                self.known.refresh()
                continue
            except Exception as error:
                # The commit may have been made and its answer lost.
                self.store.forget()
                self.known.refresh()
                if not all(self._is_committed(one) for one in rows):
                    raise self._failure(error) from error
            self.result.replaced += len(parts)
            for one in rows:
                self._count(one)
            break
        else:
            raise DatasetError(f"other drivers commit to {self.store.uri} all the time", hint="run the command again")
        self._pending.clear()
        self._committed_at = time.monotonic()

    def _is_committed(self, one: Outcome) -> bool:
        return one.row is not None and self.known.recordings.get(one.recording_id, ("", "", 0))[2] == one.added_ns

    def _failure(self, error: BaseException) -> DatasetError:
        return write_failure(self.store, error)

    def _new_rows(self) -> list[Outcome]:
        """What is done and not part of the dataset, each recording once."""
        rows: dict[str, Outcome] = {}
        wholes = {part: one for one in self._pending if one.state != "failed" for part in one.parts}
        for one in self._pending:
            retry = self.options.retry_failed or one.state != "failed"
            first = wholes.get(one.recording_id) or rows.get(one.recording_id)
            if first or self.known.has(one.recording_id, retry_failed=retry):
                self.result.kept += 1
                labels = first.labels if first else self.known.labels_of(one.recording_id)
                self.result.relabeled += contradicts(json.loads(one.labels), labels)
                continue
            rows[one.recording_id] = one
        self._pending = list(rows.values())
        return self._pending

    def _count(self, one: Outcome) -> None:
        if one.state != "failed":
            self.result.added[one.state] += 1
            return
        assert one.row is not None
        from perfuse.fleet.layout import TABLES

        facts = dict(zip(TABLES["recordings"].names, one.row, strict=True))
        self.result.failed.append((one.input.text, str(facts["error_code"]), str(facts["error"])))
