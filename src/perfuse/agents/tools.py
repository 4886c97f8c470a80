"""The tools: what each takes, and the command lines that it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfuse.agents.arguments import FILES, MAP, MAX_BYTES, SELECTION, Argument, answer_bytes, option_words
from perfuse.agents.confinement import Confinement
from perfuse.analysis.normalization import METHODS
from perfuse.errors import UsageError
from perfuse.table import RETAINED, WEIGHTS

Values = Mapping[str, Any]
MOST_ROWS = 1000
"""Rows of a query in one answer."""


@dataclass(frozen=True, slots=True)
class Tool:
    """What a client can call: a name, and the command line that a call becomes.

    Attributes:
        name: Its name.
        about: What it is for, as the client reads it.
        arguments: What it takes.
        words: The command line of a call; None for `open`, which is several.
        see_more: How more than the answer is seen.
    """

    name: str
    about: str
    arguments: tuple[Argument, ...]
    words: Callable[[Values, Confinement, str], list[str]] | None
    see_more: str

    def declaration(self) -> dict[str, Any]:
        """The tool as `tools/list` has it."""
        return {
            "name": self.name,
            "description": self.about,
            "inputSchema": {
                "type": "object",
                "properties": {argument.name: argument.schema() for argument in self.arguments},
                "required": [argument.name for argument in self.arguments if argument.required],
                "additionalProperties": False,
            },
            "annotations": {
                "readOnlyHint": True,
                "openWorldHint": False,
            },
        }


SORT = Argument("sort", "self, total, count, name; for calls also p99, max.")
BY = Argument("by", choices=("function", "command", "thread", "process", "module", "tier", "line", "cpu"))
EVENT = Argument("event", "Of several events: its name; retained for a heap.")
REPORT = (
    FILES,
    Argument("section", "Mono: allocations, gc, heap, locks, exceptions, threads, calls, samples.", repeats=True),
    Argument("function", "A pattern or handle (f12): its numbers, callers, callees."),
    Argument("depth", "Levels of these.", "number"),
    Argument("slowest", "Calls (XRay, Mono): timelines of the slowest calls of this function."),
    Argument("type", "Heap: what holds the objects of this class."),
    BY,
    SORT,
    Argument("stacks", "Whole stacks.", "flag"),
    EVENT,
    MAP,
    *SELECTION,
    MAX_BYTES,
)
TREE = (
    FILES,
    Argument("inverted", "From the innermost functions up.", "flag"),
    Argument("callers", "Who calls functions of this pattern."),
    Argument("callees", "What functions of this pattern call."),
    Argument("root", "Start stacks at this function."),
    Argument("collapse_recursion", kind="flag"),
    Argument("depth", kind="number"),
    Argument("percent_limit", kind="number"),
    EVENT,
    MAP,
    *SELECTION,
    MAX_BYTES,
)
ANNOTATE = (
    FILES,
    Argument("function", "Name, pattern, handle (f12, c34) or address.", required=True, is_option=False),
    Argument("tier"),
    Argument("compilation", "Its number or handle, or all. [most samples]"),
    Argument("source_dir", "Directory of sources.", "path"),
    Argument("syntax", choices=("att", "intel")),
    EVENT,
    Argument("between"),
    MAX_BYTES,
)
DIFF = (
    Argument("base", "Runs before: files, or a directory of runs.", "path", True, required=True, is_option=False),
    Argument("new", "Runs after.", "path", True, required=True, is_option=False),
    Argument("by", choices=("function", "stack", "module", "tier", "type")),
    Argument("weight", choices=(*WEIGHTS, RETAINED)),
    Argument("sort", "self, total, count; for calls also p99."),
    Argument("per", "Unit of work: seconds, calls, 'function F', a counter."),
    Argument("normalize", choices=METHODS),
    EVENT,
    MAP,
    Argument("between"),
    Argument("thread"),
    Argument("process"),
    MAX_BYTES,
)
QUERY = (
    FILES,
    Argument("sql", "One SELECT (DuckDB). `open` lists the tables.", required=True, is_option=False),
    Argument("limit", f"Rows, at most {MOST_ROWS}. [50]", "number", is_option=False),
    Argument("format", choices=("table", "csv", "ndjson"), is_option=False),
    MAP,
    Argument("between"),
    Argument("thread"),
    Argument("process"),
    MAX_BYTES,
)


def _files(values: Values, confinement: Confinement) -> list[str]:
    return [confinement.path(text) for text in values["files"]]


def _report(values: Values, confinement: Confinement, follow: str) -> list[str]:
    words = option_words(REPORT, values, confinement)
    # Messages, which are not part of the report, need room too.
    budget = answer_bytes(values) * 9 // 10
    return ["report", f"--follow={follow}", f"--budget={budget}", *words, *_files(values, confinement)]


def _tree(values: Values, confinement: Confinement, follow: str) -> list[str]:
    words = option_words(TREE, values, confinement)
    view = [] if "callers" in values or "callees" in values else ["--tree"]
    budget = answer_bytes(values) * 9 // 10
    return ["report", f"--follow={follow}", f"--budget={budget}", *view, *words, *_files(values, confinement)]


def _annotate(values: Values, confinement: Confinement, follow: str) -> list[str]:
    words = option_words(ANNOTATE, values, confinement)
    # After `--` nothing is an option.
    return [
        "annotate",
        f"--follow={follow}",
        "--limit=3",
        *words,
        "--",
        *_files(values, confinement),
        values["function"],
    ]


def _diff(values: Values, confinement: Confinement, follow: str) -> list[str]:
    words = option_words(DIFF, values, confinement)
    base, new = ([_run(one, confinement) for one in values[side]] for side in ("base", "new"))
    return ["diff", f"--follow={follow}", *words, *base, "--", *new]


def _run(text: str, confinement: Confinement) -> str:
    """A run: a path, or several joined with `+`."""
    try:
        return confinement.path(text)
    except UsageError:
        parts = text.split("+")
        if len(parts) == 1 or not all(parts):
            raise
    return "+".join(confinement.path(part) for part in parts)


def _query(values: Values, confinement: Confinement, follow: str) -> list[str]:
    words = option_words(QUERY, values, confinement)
    limit = int(min(max(values.get("limit", 50), 1), MOST_ROWS))
    form = values.get("format", "table")
    given = [f"--follow={follow}", f"--limit={limit}", f"--format={form}", *words]
    return ["query", *given, "--", *_files(values, confinement), values["sql"]]


def _explain(values: Values, _confinement: Confinement, _follow: str) -> list[str]:
    return ["explain", "--", *values.get("codes", ())]


OPEN = (
    Argument("files", "Recordings, or a directory; without any: all files here.", "path", True, is_option=False),
    MAX_BYTES,
)
NARROW = "narrow it with only, function, between, or ask for more max_bytes"

TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "open",
            "Start here: lists the recordings of this server's directory, or says what the given ones contain: format,"
            " program, time span, health, tables, and which tools fit.",
            OPEN,
            None,
            "name fewer files, or ask for more max_bytes",
        ),
        Tool(
            "report",
            "Where time and memory went: hottest functions, threads, tiers; for Mono allocations, GC, locks,"
            " exceptions, heap; for calls their number, median, p99, max. With slowest: what happened in slow calls.",
            REPORT,
            _report,
            NARROW,
        ),
        Tool(
            "tree", "The call tree, callers or callees: who spends the time, and on whose behalf.", TREE, _tree, NARROW
        ),
        Tool(
            "annotate",
            "Machine code of a function with samples per instruction, source lines, compilations and tiers.",
            ANNOTATE,
            _annotate,
            "name one compilation, or ask for more max_bytes",
        ),
        Tool(
            "diff",
            "What became slower or larger. 4 or more runs a side separate changes from noise; one run proves nothing.",
            DIFF,
            _diff,
            "ask for more max_bytes",
        ),
        Tool(
            "query",
            "SQL over the tables of recordings. Aggregate: answers are small.",
            QUERY,
            _query,
            "aggregate, select fewer columns, or ask for more max_bytes",
        ),
        Tool(
            "explain",
            "What a diagnostic code (JD052, FU003) means, and what to do.",
            (Argument("codes", "Without any, all are listed.", repeats=True, is_option=False), MAX_BYTES),
            _explain,
            "name codes",
        ),
    )
}
"""The tools by name, in the order of `tools/list`."""


def declarations() -> Sequence[dict[str, Any]]:
    """All tools as `tools/list` has them."""
    return [tool.declaration() for tool in TOOLS.values()]
