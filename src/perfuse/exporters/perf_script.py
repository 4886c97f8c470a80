"""The text of `perf script`: a paragraph a sample, which FlameGraph, inferno, speedscope and Firefox Profiler read.

A paragraph is a line `NAME PID/TID [CPU] SECONDS: PERIOD EVENT:` and a line `ADDRESS SYMBOL (MODULE)` a frame, the
innermost first, as `perf script --ns -F comm,pid,tid,cpu,time,period,event,ip,sym,dso` prints them.
"""

from typing import IO, Literal

from perfuse.analysis.sampled import NAMED_SAMPLES
from perfuse.errors import ExportError, UsageError
from perfuse.exporters.contents import contents
from perfuse.exporters.queries import FRAMES, IS_SUM, note_sums
from perfuse.exporters.source import Progress, TraceSource, no_samples_error
from perfuse.filters.names import last_part, module_name
from perfuse.reports.text import printable

CONTENTS = contents(samples="each, with its time and its frames", code="names of the frames")

_FRAME_TEXTS = f"""
    SELECT frame_id,
        if(kind = 'native' AND address >= start_address, address - start_address + file_offset, coalesce(address, 0)),
        coalesce(linkage_name, label), label, kind, coalesce(mapping, module), inline_depth, function_id IS NULL, pid
    FROM ({FRAMES}) LEFT JOIN mappings USING (mapping_id)
    LEFT JOIN processes p ON p.process_id = coalesce(code_process_id, mappings.process_id)
"""
"""What a frame's line contains; as perf does, the address of native code is its offset in the file."""
_SAMPLES_AT_ONCE = 100_000


def write(
    profile: TraceSource,
    out: IO[bytes],
    *,
    names: Literal["demangled", "linkage"] = "demangled",
    progress: Progress | None = None,
) -> None:
    """Writes every sample in the order of time.

    JIT code is in module `/tmp/perf-PID.map`, by which readers recognise it. A thread has the name
    that it had at the time of the sample.
    Sums, as of calls and of allocations, have no samples, and are not written.

    Args:
        profile: The profile.
        out: A binary file object.
        names: `demangled`, or `linkage` for symbols as the files have them.
        progress: Called with the name of the current step and the completed share (0 to 1).

    Raises:
        UsageError: `names` is neither.
        ExportError: There are no samples.
    """
    if names not in ("demangled", "linkage"):
        raise UsageError(f"names is 'demangled' or 'linkage', not {names!r}", field="names")
    ((num_samples, last),) = profile.sql(f"SELECT count(*), max(sample_id) FROM samples WHERE NOT {IS_SUM}").fetchall()
    if not num_samples:
        if profile.sql("SELECT 1 FROM samples LIMIT 1").fetchall():
            raise ExportError(
                "there are only sums by stack, and text of perf script has single samples",
                hint="chrome, perfetto and firefox have calls in time; speedscope, pprof and collapsed have their sums",
            )
        raise no_samples_error(profile)
    note_sums(profile, "text of perf script")
    stacks = _stacks(profile, names)
    for first in range(0, last + 1, _SAMPLES_AT_ONCE):
        if progress:
            progress("Samples", first / (last + 1))
        rows = profile.sql(f"""
            SELECT if(command = '?', ':' || coalesce(tid, thread_id), command), coalesce(pid, -1),
                coalesce(tid, thread_id), cpu, ts_ns, weight, event::VARCHAR, stack_id
            FROM ({NAMED_SAMPLES}) JOIN threads USING (thread_id) JOIN processes USING (process_id)
            WHERE NOT {IS_SUM} AND sample_id >= {first} AND sample_id < {first + _SAMPLES_AT_ONCE}
            ORDER BY sample_id
        """).fetchall()
        out.write("".join(_head(*row) + stacks[stack] + "\n" for *row, stack in rows).encode())


def _head(name: str, pid: int, tid: int, cpu: int | None, ts_ns: int, weight: int, event: str) -> str:
    """The first line of a sample."""
    on_cpu = "" if cpu is None else f"[{cpu:03}] "
    seconds, rest = divmod(ts_ns, 10**9)
    return f"{printable(name)} {pid}/{tid} {on_cpu}{seconds:5}.{rest:09}: {weight:10} {printable(event)}: \n"


def _binary(kind: str, module: str | None) -> str:
    """What contains the code of a frame; a module of the kernel by its name, as perf prints it."""
    if kind != "kernel":
        return module or "[unknown]"
    if module is None or module_name(module) == "[kernel]":
        return "[kernel.kallsyms]"
    # Code without a file is called by its own name: `[ext4]`, a BPF program.
    return f"[{last_part(module).partition('.ko')[0].replace('-', '_')}]" if "/" in module else module


def _stacks(profile: TraceSource, names: str) -> dict[int | None, str]:
    """The lines of each stack, innermost frame first."""
    lines = {}
    for frame, address, symbol, label, kind, module, depth, is_unknown, pid in profile.sql(_FRAME_TEXTS).fetchall():
        name = "[unknown]" if is_unknown else printable(label if names == "demangled" else symbol)
        binary = f"/tmp/perf-{pid}.map" if kind == "jit" else _binary(kind, module)
        where = "inlined" if depth else printable(binary)
        lines[frame] = f"\t{address:16x} {name} ({where})\n"
    stacks: dict[int | None, str] = {None: ""}
    parents_first = "SELECT stack_id, parent_stack_id, frame_id FROM stacks ORDER BY stack_id"
    for stack, parent, frame in profile.sql(parents_first).fetchall():
        stacks[stack] = lines[frame] + stacks[parent]
    return stacks
