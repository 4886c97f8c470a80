"""`.cpuprofile`: CPU profiles of V8's inspector, for Chrome DevTools and VS Code.

A profile is of one thread: a call tree, and the node of each sample with the microseconds since the one before. The
layout is `Profiler.Profile` of the protocol: https://chromedevtools.github.io/devtools-protocol/tot/Profiler/
"""

import json
import re
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import IO, Any

from perfuse.analysis.sampled import Event, select_event
from perfuse.errors import ExportError, ExportWarning
from perfuse.exporters.contents import contents, note_other_events
from perfuse.exporters.cpu_profiles import CpuProfile, Nodes, cpu_profiles, sums_in_sequence
from perfuse.exporters.source import TraceSource, no_samples_error

CONTENTS = contents(
    samples="each, at its time, with its line",
    calls="sums by stack, one after the other",
    call_sums="sums by stack, one after the other",
    allocations="sums by stack, a byte as a microsecond",
)


def write(profile: TraceSource, out: IO[bytes], *, event: str | None = None, tid: int | None = None) -> None:
    """Writes the profile of one thread.

    A sample lasts until the next one; where its event is a clock and the next one is late, the rest is `(idle)`. Stacks
    that have sums instead of samples (of calls, of collapsed stacks) follow each other, each as long as its sum.

    Args:
        profile: The profile.
        out: A binary file object.
        event: The event; by default the one that reports show.
        tid: Thread id; by default the thread with the most samples, and a warning names the number of the others.

    Raises:
        UsageError: There is no such event.
        ExportError: There are no samples, or the thread has none.
    """
    threads = _threads(profile, event)
    chosen = threads[0]
    if tid is not None:
        match = [thread for thread in threads if thread.tid == tid]
        if not match:
            known = ", ".join(str(thread.tid) for thread in threads[:10])
            raise ExportError(f"thread {tid} has no samples", field="tid", hint=f"threads with the most: {known}")
        chosen = match[0]
    elif len(threads) > 1:
        others = f"{len(threads) - 1:,} other thread{'s' if len(threads) > 2 else ''}"
        shown = _title(chosen).removeprefix("thread ")
        warnings.warn(
            f"only thread {shown} is written, not {others}: a directory gets a file each, tid= another thread",
            ExportWarning,
            stacklevel=4,
        )
    out.write(_file(Nodes(profile), chosen))


def write_directory(profile: TraceSource, path: Path, *, event: str | None = None) -> None:
    """Writes `NAME-PID-TID.cpuprofile` for every thread that has samples; options as in `write`."""
    nodes = Nodes(profile)
    for number, thread in enumerate(_threads(profile, event)):
        name = re.sub(r"[^\w.-]+", "_", thread.name, flags=re.ASCII)[:60].lstrip(".") or "thread"
        file = path / f"{name}-{thread.pid}-{thread.tid}.cpuprofile"
        if file.exists():  # ids of threads are used again
            file = file.with_stem(f"{file.stem}-{number}")
        file.write_bytes(_file(nodes, thread))


def _threads(profile: TraceSource, name: str | None) -> list[CpuProfile]:
    """The threads that have samples of an event, the one with the most first."""
    event: Event = select_event(profile, name)
    threads = cpu_profiles(profile, 0, event.name) or sums_in_sequence(profile, event)
    if not threads:
        raise no_samples_error(profile)
    note_other_events(profile, event.name)
    return sorted(threads, key=lambda thread: -thread.num_samples)


def _title(thread: CpuProfile) -> str:
    return f"{thread.name} {thread.pid}/{thread.tid}"


def _file(nodes: Nodes, thread: CpuProfile) -> bytes:
    """The file of a thread."""
    samples = nodes.of(thread.stacks)
    hits = Counter(samples)
    ticks: dict[int, Counter[int]] = defaultdict(Counter)
    for node, line in nodes.lines(thread.stacks):
        ticks[node][line] += 1
    listed: dict[int, dict[str, Any]] = {}
    scripts: dict[str, int] = {}
    for node, parent, frame in nodes.needed(set(samples)):
        url = frame["url"]
        frame["scriptId"] = str(scripts.setdefault(url, len(scripts) + 1)) if url else "0"
        listed[node] = {"id": node, "callFrame": frame, "hitCount": hits[node]}
        if node in ticks:
            listed[node]["positionTicks"] = [{"line": at, "ticks": num} for at, num in sorted(ticks[node].items())]
        if parent:
            listed[parent].setdefault("children", []).append(node)
    head = {
        "title": _title(thread),
        "startTime": thread.start_us,
        "endTime": thread.end_us,
        "nodes": list(listed.values()),
        "samples": samples,
    }
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":"))
    return f'{text[:-1]},"timeDeltas":{thread.deltas}}}\n'.encode()
