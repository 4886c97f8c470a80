"""Recordings with a known cause, and the questions that an agent asks to find it.

The programs of `examples/` contain their causes on purpose; the other recordings are written here. The calls of a case
are those that `docs/agents.md` leads to from its question, in that order.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from perfuse import jitdump, xray

EXAMPLES = Path(__file__).parents[2] / "examples"

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A recording with a cause.

    Attributes:
        name: The kind of cause.
        question: What the user asks.
        build: Writes the recording into a directory.
        calls: Tools with their arguments.
        answers: Patterns, all of which the answers must contain: the cause.
    """

    name: str
    question: str
    build: Callable[[Path], None]
    calls: tuple[Call, ...]
    answers: tuple[str, ...]


def example(name: str) -> Callable[[Path], None]:
    """The recordings of an example."""
    return lambda directory: shutil.copytree(EXAMPLES / name, directory / name, dirs_exist_ok=True) and None


def stacks(lines: dict[str, int]) -> Callable[[Path], None]:
    """A file of collapsed stacks."""
    text = "".join(f"{stack} {count}\n" for stack, count in lines.items())
    return lambda directory: (directory / "stacks.folded").write_text(text) and None


def compilations(rows: list[tuple[str, str, int]]) -> Callable[[Path], None]:
    """A dump: name, tier and number of compilations of functions."""

    def build(directory: Path) -> None:
        with jitdump.Writer(directory / "jit-77.dump", pid=77) as writer:
            for index, (name, tier) in enumerate((name, tier) for name, tier, count in rows for _ in range(count)):
                writer.code_load(name, 0x10000 + 64 * index, b"\x90" * 16, tier=tier, timestamp=1000 * (index + 1))

    return build


def calls_of(events: Callable[[Tracer], None]) -> Callable[[Path], None]:
    """A call trace with the function numbers of the page server, and its program for their names."""

    def build(directory: Path) -> None:
        shutil.copy(EXAMPLES / "xray_server" / "server.o", directory)
        with xray.Writer(directory / "xray-log.traced.1") as writer:
            events(Tracer(writer))

    return build


class Tracer:
    """Writes calls of a thread after each other.

    Attributes:
        now: The time, in nanoseconds.
    """

    def __init__(self, writer: xray.Writer) -> None:
        self._writer = writer
        self.now = 1_000_000

    def call(self, name: str, own_ns: int, *inside: Callable[[], None], tid: int = 70) -> None:
        """A call with calls inside it, after which it takes `own_ns`."""
        self._writer.enter(SERVER_FUNCTIONS[name], self.now, tid=tid, pid=70)
        self.now += 100
        for one in inside:
            one()
        self.now += own_ns
        self._writer.exit(SERVER_FUNCTIONS[name], self.now, tid=tid, pid=70)
        self.now += 100


def one_slow_read(trace: Tracer) -> None:
    """10,000 requests, of which one reads from the disk for 40 ms."""
    for number in range(10_000):
        read = [partial(trace.call, "read_from_disk", 40_000_000)] if number == 6543 else []
        trace.call("handle", 2_000, partial(trace.call, "look_up", 8_000, *read))


def a_look_up_for_each_row(trace: Tracer) -> None:
    """40 pages, each of which is rendered with 125 look-ups."""
    for _ in range(40):
        rows = [partial(trace.call, "look_up", 4_000)] * 125
        trace.call("handle", 5_000, partial(trace.call, "render", 20_000, *rows))


def a_slow_thread(trace: Tracer) -> None:
    """Four threads with equal work, which takes one of them ten times as long."""
    for _ in range(100):
        for tid in (71, 72, 73, 74):
            own_ns = 90_000 if tid == 73 else 9_000
            trace.call("serve", 500, partial(trace.call, "checksum", own_ns, tid=tid), tid=tid)


def code(rows: list[tuple[str, int, int, str | None]]) -> Callable[[Path], None]:
    """A dump: name, address, size and source file of functions, by compilation; the first has line 10."""

    def build(directory: Path) -> None:
        with jitdump.Writer(directory / "jit-77.dump", pid=77) as writer:
            for number, (name, address, size, path) in enumerate(rows, 1):
                lines = [(0, path, 10 * number, 0)] if path else []
                writer.code_load(name, address, b"\x90" * size, lines=lines, timestamp=1000 * number)

    return build


def cut_dump(directory: Path) -> None:
    """A dump whose last record is cut: its process was killed."""
    code([(f"f{at}", 0x10000 + 256 * at, 64, None) for at in range(20)])(directory)
    dump = directory / "jit-77.dump"
    dump.write_bytes(dump.read_bytes()[:-40])


def sides(base: dict[str, int], new: dict[str, int]) -> Callable[[Path], None]:
    """Five runs a side of collapsed stacks, which differ by a few samples from run to run."""

    def build(directory: Path) -> None:
        for side, lines in (("base", base), ("new", new)):
            (directory / side).mkdir()
            for run in range(5):
                text = "".join(
                    f"{stack} {count + (7 * run + at) % 5}\n" for at, (stack, count) in enumerate(lines.items())
                )
                (directory / side / f"run{run}.folded").write_text(text)

    return build


SERVER_FUNCTIONS = {
    name: number
    for number, name in enumerate(
        (
            "main",
            "serve",
            "handle",
            "refuse",
            "look_up",
            "parse",
            "render",
            "read_from_disk",
            "render_node",
            "checksum",
        ),
        1,
    )
}
TRACED = {"files": ["xray-log.traced.1"], "map": ["server.o"]}
SIDES = {"base": ["base"], "new": ["new"]}
FOLDED = {"files": ["stacks.folded"]}
DUMP = {"files": ["jit-77.dump"]}
SHOP = {"files": ["mono_shop"]}
SESSIONS = {"files": ["mono_sessions"]}
SERVER = {"files": ["xray_server"], "map": ["xray_server/server.o"]}
CARDS = {"files": ["postcards"]}
COMPILED = (
    "SELECT f.name, c.tier, count(*) AS compilations FROM code_objects c JOIN functions f USING (function_id)"
    " GROUP BY ALL ORDER BY compilations DESC"
)

CASES = (
    Case(
        "hot loop in JIT code",
        "Why does the picture take so long?",
        example("postcards"),
        (("open", {}), ("report", {**CARDS, "jit_only": True})),
        (r"Top functions by self\n.*\n.*% +█+ +render +turbofan.* +postcards\.js:226",),
    ),
    Case(
        "hot line",
        "What is slow in shade?",
        example("postcards"),
        (("open", CARDS), ("annotate", {**CARDS, "function": "shade", "source_dir": "postcards", "max_bytes": 3000})),
        (r"turbofan +4\.1 KiB", r"postcards\.js:131 +return this\.times\(1 / Math\.sqrt\(this\.dot\(this\)\)\);"),
    ),
    Case(
        "tail latency",
        "Are all requests slow, or a few?",
        example("xray_server"),
        (("open", {}), ("report", {**SERVER, "sort": "p99"})),
        (r"75\.2 µs +4\.29 ms +13\.8 ms +17\.0 ms .* handle\b",),
    ),
    Case(
        "lock held during a slow read",
        "Why was the slowest request slow?",
        example("xray_server"),
        (("open", {}), ("report", {**SERVER, "slowest": "handle"})),
        (r"\+15\.4 ms +91\.2% .* look_up itself", r"\+1\.56 ms +9\.2% .* read_from_disk itself"),
    ),
    Case(
        "leak through an event",
        "Which objects stay, and what holds them?",
        example("mono_sessions"),
        (("open", {}), ("report", {**SESSIONS, "section": ["heap"]}), ("report", {**SESSIONS, "type": "Session"})),
        (r"120 .* 20 +\+37\.9 KiB +Session", r"120 .*static field of Clock → .*Session"),
    ),
    Case(
        "handles that are never freed",
        "Do pinned buffers stay?",
        example("mono_sessions"),
        (("open", {}), ("report", SESSIONS)),
        (r"10 +pinned .*GCHandle:Alloc ← Server:Upload",),
    ),
    Case(
        "pressure on the collector",
        "What allocates most?",
        example("mono_shop"),
        (("open", {}), ("report", {**SHOP, "section": ["allocations", "gc"]})),
        (r"331 KiB +14\.5% .*Counter:Work → Counter:Render → string:Concat",),
    ),
    Case(
        "lock convoy",
        "Who waits for whom?",
        example("mono_shop"),
        (("open", {}), ("report", {**SHOP, "section": ["locks"]})),
        (r"53 waits, 105 ms in all", r"Counter:Work → Ledger:Enter"),
    ),
    Case(
        "exceptions for expected conditions",
        "Which exceptions are thrown where?",
        example("mono_shop"),
        (("open", {}), ("report", {**SHOP, "section": ["exceptions"]})),
        (r"44 +BadOrder +Counter:Parse",),
    ),
    Case(
        "slow finalizers",
        "What does the finalizer thread do?",
        example("mono_shop"),
        (("open", {}), ("report", {**SHOP, "section": ["gc"]})),
        (r"706 +2\.06 ms .* 1\.47 s +Printer",),
    ),
    Case(
        "a list that only grows",
        "What holds the receipts?",
        example("mono_shop"),
        (("open", {}), ("report", {**SHOP, "type": "Receipt"})),
        (r"706 .*static field of Ledger → .*List<Receipt> → Receipt\[\] → Receipt",),
    ),
    Case(
        "regression",
        "What became slower?",
        example("slower"),
        (("open", {}), ("diff", {"base": ["slower/before"], "new": ["slower/after"]})),
        (r"1 changed", r"\+37\.3% .* shade +changed"),
    ),
    Case(
        "recursion",
        "Why are these stacks so deep?",
        stacks({"main;" + "walk;" * depth + "visit": 10 for depth in range(20, 60)} | {"main;print": 40}),
        (
            ("open", {}),
            ("report", FOLDED),
            ("tree", {**FOLDED, "collapse_recursion": True}),
            ("report", {**FOLDED, "function": "walk"}),
        ),
        (r"90\.9% .* walk\b", r"90\.9% +- +400 +├ walk .*\n *90\.9% +90\.9% +400 +│ └ visit"),
    ),
    Case(
        "a callee of many callers",
        "Who copies so much?",
        stacks({f"main;task{at};copy": 10 for at in range(40)} | {"main;decode_frame;copy": 600, "main;other": 100}),
        (("open", {}), ("report", FOLDED), ("tree", {**FOLDED, "callers": "copy"})),
        (r"90\.9% +90\.9% .* copy\b", r"54\.5% +600 +├ decode_frame"),
    ),
    Case(
        "collections caused by one caller",
        "Who causes the time in the collector?",
        stacks({"main;parse_row;allocate;gc_mark": 450, "main;render;allocate;gc_mark": 50, "main;render": 500}),
        (("open", {}), ("report", FOLDED), ("tree", {**FOLDED, "callers": "gc_mark"})),
        (r"50\.0% +50\.0% .* gc_mark\b", r"45\.0% +450 +├ parse_row"),
    ),
    Case(
        "one thread does all the work",
        "Does it use the processors?",
        example("postcards"),
        (("open", {}), ("report", {**CARDS, "by": "thread"})),
        (r"1,496 +node 32015\b",),
    ),
    Case(
        "requests that are refused",
        "Are there errors, and what do they cost?",
        example("xray_server"),
        (("open", {}), ("report", SERVER), ("tree", {**SERVER, "callers": "refuse"})),
        (r"20 left by an exception or longjmp", r"20 +73\.8 µs .* refuse\b", r"20 +└ parse\b"),
    ),
    Case(
        "deoptimisation loop",
        "Is something compiled again and again?",
        compilations(
            [("hash", "turbofan", 40), ("hash", "ignition", 1), ("main", "ignition", 1), ("run", "turbofan", 1)]
        ),
        (("open", DUMP), ("query", {**DUMP, "sql": COMPILED})),
        (r"hash +turbofan +40\b",),
    ),
    Case(
        "interpreter only",
        "Does the compiler run at all?",
        compilations([(f"f{at}", "ignition", 1) for at in range(30)]),
        (("open", DUMP), ("query", {**DUMP, "sql": "SELECT tier, count(*) AS n FROM code_objects GROUP BY ALL"})),
        (r"tier +n\nignition +30$",),
    ),
    Case(
        "megamorphic property access",
        "Why is reading properties slow?",
        stacks(
            {f"main;visit{at};LoadIC_Megamorphic": 12 for at in range(6)}
            | {"main;area;LoadIC_Megamorphic": 420, "main;area": 60, "main;sum;LoadIC": 30, "main;print": 90}
        ),
        (("open", {}), ("report", FOLDED), ("tree", {**FOLDED, "callers": "LoadIC_Megamorphic"})),
        (r"73\.2% +73\.2% .* LoadIC_Megamorphic\b", r"62\.5% +420 +├ area\b"),
    ),
    Case(
        "recorded with the wrong flags",
        "Which locks are threads waiting for?",
        example("mono_sessions"),
        (("open", {}), ("report", {**SESSIONS, "section": ["locks"]})),
        (r"[Nn]ot recorded", r"log:.*monitor"),
    ),
    Case(
        "one slow call in 10,000",
        "A user waited for 40 ms, and the mean is 10 µs. What happened?",
        calls_of(one_slow_read),
        (("open", {}), ("report", TRACED), ("report", {**TRACED, "slowest": "handle"})),
        (r"10,000 +.* 40\.0 ms .* handle\b", r"\+40\.0 ms +100\.0% .* read_from_disk itself"),
    ),
    Case(
        "a look-up for each row",
        "Each look-up is fast. Why is the page slow?",
        calls_of(a_look_up_for_each_row),
        (("open", {}), ("report", {**TRACED, "sort": "count"}), ("tree", {**TRACED, "callees": "render"})),
        (r"5,000 +4\.10 µs .* look_up\b", r"5,000 +└ look_up\b"),
    ),
    Case(
        "a slow thread",
        "Do the threads do the same work?",
        calls_of(a_slow_thread),
        (("open", {}), ("report", {**TRACED, "by": "thread", "function": "checksum", "sort": "max"})),
        (r"100 +90\.1 µs .* 73\b", r"100 +9\.10 µs .* 74\b"),
    ),
    Case(
        "false sharing of names",
        "Which handle is compiled twice?",
        code([("handle", 0x1000, 8, "/app/get.js"), ("handle", 0x2000, 8, "/app/put.js"), ("main", 0x3000, 16, None)]),
        (("open", DUMP), ("annotate", {**DUMP, "function": "handle", "compilation": "all"})),
        (r"get\.js:10\b", r"put\.js:20\b"),
    ),
    Case(
        "address reuse",
        "What was at 0x4010 when it crashed?",
        code([("first", 0x4000, 64, None), ("second", 0x8000, 64, None), ("third", 0x4000, 64, None)]),
        (("open", DUMP), ("annotate", {**DUMP, "function": "0x4010"})),
        (r"2 pieces of code were at 0x4010, one after the other", r"c\d+ first; c\d+ third"),
    ),
    Case(
        "a dump that is cut",
        "Can this recording be trusted?",
        cut_dump,
        (
            ("open", DUMP),
            ("query", {**DUMP, "sql": "SELECT code, message FROM diagnostics WHERE severity = 'data_loss'"}),
            ("explain", {"codes": ["JD010"]}),
        ),
        (r"damaged: 1 data loss", r"JD010 +JIT_CODE_LOAD claims 124 bytes, 100 are left", r"The process was killed"),
    ),
    Case(
        "code bloat",
        "Why does the code cache fill up?",
        code([("big", 0x100000, 65_536, None), *((f"f{at}", 0x10000 + 256 * at, 128, None) for at in range(64))]),
        (("open", DUMP), ("report", DUMP)),
        (r"64(\.0)? KiB .*\bbig\b",),
    ),
    Case(
        "a function that is new",
        "What did the release add?",
        sides({"main;work": 800, "main;read": 400}, {"main;work": 800, "main;read": 400, "main;work;trace_span": 150}),
        (("open", {}), ("diff", SIDES)),
        (r"1 new", r"trace_span +new"),
    ),
    Case(
        "a cost that was renamed",
        "parse is gone. Is the program faster?",
        sides({"main;load;parse": 500, "main;work": 900}, {"main;load;parse_fast": 500, "main;work": 900}),
        (("open", {}), ("diff", SIDES)),
        (r"parse +gone", r"parse_fast +new", r"^ +.*\bparse\b.*\bparse_fast\b"),
    ),
)
MAX_CALLS = 6
MAX_BYTES = 12_000
