"""Where batches are worked on: in this process, in processes of this machine, or on a Dask cluster.

An engine promises little: a batch may be worked on more than once, or not at all. The caller repeats what is lost.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any, Protocol

from perfuse.errors import UsageError

Task = Callable[..., Any]
"""A function of a module, which a worker imports by name."""


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """The worker of a batch died: killed, out of memory, or disconnected."""

    why: str


@dataclass(frozen=True, slots=True)
class Completed:
    """A batch that is done: its key, and what its function returned, raised, or that its worker died."""

    key: str
    result: Any


class Engine(Protocol):
    """Runs functions on workers."""

    @property
    def num_workers(self) -> int:
        """Batches that run at the same time."""
        ...

    def submit(self, key: str, task: Task, *arguments: Any) -> None:
        """Starts a batch, or puts it in a queue."""
        ...

    def next_completed(self, timeout_s: float | None = None) -> Completed | None:
        """Waits for a batch that is done; None after the time."""
        ...

    def close(self) -> None:
        """Ends the workers."""
        ...


@contextmanager
def without_main_program() -> Iterator[None]:
    """Processes that are started meanwhile do not run the file of the main program again, which may be a script that
    adds recordings without a guard: they import only the modules of their functions."""
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


class Inline:
    """The calling process works on a batch when its result is asked for."""

    num_workers = 1

    def __init__(self) -> None:
        self._queue: deque[tuple[str, Task, tuple[Any, ...]]] = deque()

    def submit(self, key: str, task: Task, *arguments: Any) -> None:
        """Puts a batch in the queue."""
        self._queue.append((key, task, arguments))

    def next_completed(self, timeout_s: float | None = None) -> Completed | None:
        """Works on the next batch."""
        del timeout_s
        if not self._queue:
            return None
        key, task, arguments = self._queue.popleft()
        try:
            return Completed(key, task(*arguments))
        except Exception as error:
            return Completed(key, error)

    def close(self) -> None:
        """Forgets what is in the queue."""
        self._queue.clear()


MOST_FAILED_STARTS = 5
"""Processes in succession that may end before they can work: what they would have worked on is not the cause."""


class Pool:
    """Processes of this machine, started anew (not forked); one that dies is replaced.

    Args:
        num_workers: How many; by default one for each processor that this process may use.
    """

    def __init__(self, num_workers: int | None = None) -> None:
        self.num_workers = num_workers or len(os.sched_getaffinity(0))
        self._context = multiprocessing.get_context("spawn")
        self._queue: deque[_Batch] = deque()
        self._workers: list[_Worker] = []
        self._failed_starts = 0

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [one.process.pid for one in self._workers if one.process.pid is not None]

    def submit(self, key: str, task: Task, *arguments: Any) -> None:
        """Gives a batch to a worker without one, or puts it in the queue."""
        self._queue.append(_Batch(key, task, arguments))
        self._give()

    def next_completed(self, timeout_s: float | None = None) -> Completed | None:
        """Waits for a worker that is done or dead.

        Raises:
            UsageError: No worker can start.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            self._give()
            busy = [one for one in self._workers if one.batch is not None]
            if not busy:
                return None
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            ready = wait([one.pipe for one in busy], left)
            if not ready:
                return None
            worker, batch = next((one, one.batch) for one in busy if one.batch is not None and one.pipe in ready)
            try:
                received = worker.pipe.recv()
            except (EOFError, OSError):
                self._workers.remove(worker)
                reason = worker.end()
                if worker.has_started:
                    return Completed(batch.key, WorkerLost(reason))
                self._start_failed(batch, reason)
                continue
            if worker.has_started:
                worker.batch = None
                return Completed(batch.key, received)
            worker.has_started, self._failed_starts = True, 0

    def close(self) -> None:
        """Ends the workers, also those that are busy."""
        self._queue.clear()
        for one in self._workers:
            one.process.kill()
        for one in self._workers:
            one.end()
        self._workers.clear()

    def _give(self) -> None:
        while self._queue:
            idle = next((one for one in self._workers if one.batch is None), None)
            if idle is None:
                if len(self._workers) >= self.num_workers:
                    return
                idle = self._start()
            idle.batch = self._queue.popleft()
            try:
                idle.pipe.send((idle.batch.task, idle.batch.arguments))
            except (BrokenPipeError, ConnectionError):
                # It died while it was idle: reported when its result is asked for.
                continue

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, os.getpid()), daemon=True)
        with without_main_program():
            process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _start_failed(self, batch: _Batch, reason: str) -> None:
        """Another worker gets the batch of one that ended before it could work."""
        self._failed_starts += 1
        if self._failed_starts >= MOST_FAILED_STARTS:
            raise UsageError(
                f"processes of workers end before they can work: {reason}",
                hint="their messages are above; --engine inline (Inline()) works in this process",
            )
        self._queue.appendleft(batch)


@dataclass(frozen=True, slots=True)
class _Batch:
    key: str
    task: Task
    arguments: tuple[Any, ...]


@dataclass(slots=True)
class _Worker:
    process: Any
    pipe: Connection
    batch: _Batch | None = None
    has_started: bool = False

    def end(self) -> str:
        """Waits for the end of the process, and returns the reason."""
        self.process.join(10)
        self.pipe.close()
        code = self.process.exitcode
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _work(pipe: Connection, parent: int) -> None:
    """The life of a worker: it states that it has started, and ends with the process that started it."""
    use_one_thread()
    _end_with(parent)
    pipe.send(None)
    while True:
        try:
            task, arguments = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            result = task(*arguments)
        except Exception as error:
            result = error
        try:
            pipe.send(result)
        except (BrokenPipeError, ConnectionError):
            return
        except Exception:  # what cannot be pickled, such as errors of Delta
            pipe.send(RuntimeError(f"{type(result).__name__}: {result}"))


def _end_with(parent: int) -> None:
    """Asks the kernel to end this process with its parent, whose death a busy worker would not notice."""
    import ctypes
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pr_set_pdeathsig = 1
    try:
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)


def use_one_thread() -> None:
    """Limits this process to one thread of the core and of DuckDB: workers are the parallelism."""
    os.environ["RAYON_NUM_THREADS"] = "1"


class Dask:
    """Workers of a Dask cluster.

    Args:
        scheduler: Address of its scheduler, `tcp://…`; None starts workers on this machine.
        num_workers: Workers to start, where there is no scheduler.
        memory: Limit of the memory of a started worker in bytes, which Dask enforces; None for none.
        client: A connected `distributed.Client` to use instead.
    """

    def __init__(
        self,
        scheduler: str | None = None,
        num_workers: int | None = None,
        memory: int | None = None,
        client: Any = None,
    ) -> None:
        from perfuse.fleet.extra import required

        distributed = required("distributed")
        self._cluster = None
        self._owns_client = client is None
        if client is None and scheduler is None:
            import dask

            environment = {**dask.config.get("distributed.nanny.pre-spawn-environ", {}), "RAYON_NUM_THREADS": "1"}
            configured = dask.config.set({"distributed.nanny.pre-spawn-environ": environment})
            with configured, without_main_program():
                self._cluster = distributed.LocalCluster(
                    n_workers=num_workers or len(os.sched_getaffinity(0)),
                    threads_per_worker=1,
                    dashboard_address=None,
                    memory_limit=memory or 0,
                    host="127.0.0.1",
                    silence_logs=50,
                )
            scheduler = self._cluster.scheduler_address
        try:
            self.client = client or distributed.Client(scheduler, timeout="10s")
        except (OSError, TimeoutError) as error:
            self.close()
            raise UsageError(
                f"no Dask scheduler answers at {scheduler}", hint="start one: dask scheduler --host 127.0.0.1"
            ) from error
        self._running: dict[str, Any] = {}
        self._completed = distributed.as_completed([])

    @property
    def num_workers(self) -> int:
        """Threads of the workers that are connected now."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return max(sum(int(one["nthreads"]) for one in workers), 1)

    def submit(self, key: str, task: Task, *arguments: Any) -> None:
        """Gives a batch to the scheduler."""
        future = self.client.submit(task, *arguments, key=f"perfuse-{key}-{os.urandom(4).hex()}", pure=False, retries=0)
        self._running[future.key] = (key, future)
        self._completed.add(future)

    def next_completed(self, timeout_s: float | None = None) -> Completed | None:
        """Waits for a batch that is done."""
        from distributed import KilledWorker

        if not self._running:
            return None
        if timeout_s is not None:
            deadline = time.monotonic() + timeout_s
            while not self._completed.has_ready():
                if time.monotonic() >= deadline:
                    return None
                time.sleep(0.005)
        future = next(self._completed)
        key, _ = self._running.pop(future.key)
        try:
            if future.status == "cancelled":
                return Completed(key, WorkerLost("its scheduler dropped it"))
            result = future.result()
        except KilledWorker as error:
            return Completed(key, WorkerLost(f"{error.allowed_failures + 1} workers died with it"))
        except Exception as error:
            return Completed(key, error)
        finally:
            future.release()
        return Completed(key, result)

    def close(self) -> None:
        """Ends the connection, and workers that were started."""
        if getattr(self, "client", None) is not None and self._owns_client:
            self.client.close()
        if self._cluster is not None:
            self._cluster.close()


ENGINES = ("inline", "pool", "dask")
INLINE_BELOW = 8
"""Number of inputs below which starting processes takes longer than it gains."""


def engine_named(
    name: str | None,
    num_inputs: int,
    *,
    num_workers: int | None = None,
    scheduler: str | None = None,
    memory: int | None = None,
) -> Engine:
    """The engine of a name; by default Dask where a scheduler is named, else what suits the number of inputs.

    Raises:
        UsageError: Options do not fit the engine.
    """
    name = name or ("dask" if scheduler else "inline" if num_inputs < INLINE_BELOW and not num_workers else "pool")
    if name not in ENGINES:
        raise UsageError(f"no engine {name!r}", hint=f"there are {', '.join(ENGINES)}")
    if scheduler and name != "dask":
        raise UsageError(f"--scheduler is for --engine dask, not {name}")
    if name == "inline":
        if num_workers not in (None, 1):
            raise UsageError("--engine inline works in one process: --engine pool has --workers")
        return Inline()
    if name == "pool":
        return Pool(num_workers)
    if scheduler and num_workers:
        raise UsageError("--workers starts workers; a scheduler has its own")
    return Dask(scheduler, num_workers, memory)
