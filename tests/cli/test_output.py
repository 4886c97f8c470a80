"""Output of verbs for real recordings, in terminals of 80 and 140 columns."""

from collections.abc import Callable

import pytest
from command_line import Perfuse, plain

LOG = "xray-log.server.uocuES"
LATER_LOG = "xray-log.server.Qd81xw"

Golden = Callable[[str, str], None]

COMMANDS = {
    "info": ("info", "jit-2345.dump"),
    "info-perf": ("info", "perf.data"),
    "records": ("records", "jit-2345.dump", "--limit", "3"),
    "records-hex": ("records", "jit-2345.dump", "--kind", "JIT_CODE_DEBUG_INFO", "--limit", "1", "--hex"),
    "check": ("check", "jit-2345.dump", "damaged.dump"),
    "tables": ("tables", "jit-2345.dump"),
    "tables-one": ("tables", "jit-2345.dump", "line_rows", "--limit", "4"),
    "tables-columns": ("tables", "code_moves"),
    "query": ("query", "jit-2345.dump", "SELECT start_address, size_bytes, code_index FROM code_objects ORDER BY ALL"),
    "report-code": ("report", "jit-2345.dump"),
    "info-xray": ("info", LOG),
    "report-calls": ("report", LOG),
    "report-stacks": ("report", LOG, "--stacks", "--limit", "2"),
    "report-graph": ("report", LOG, "--graph", "--sort", "count", "--limit", "5"),
    "report-tree": ("report", LOG, "--tree"),
    "report-by-thread": ("report", LOG, "--per-thread", "--sort", "p99", "--limit", "4"),
    "report-unwind": ("report", "orders", "libsmall.so", "a.out"),
    "sframe-unsupported": ("sframe", "from-eh-frame", "orders", "--version", "1", "-o", "orders.sframe"),
    "sframe-find": ("sframe", "find", "orders", "0x1090", "0x10c4", "0x1"),
    "report-map": ("report", "--map", "server", "--limit", "4"),
    "report-runtime": ("report", "output.mlpd"),
    "report-runtime-allocations": ("report", "output.mlpd", "--section", "allocations", "--stacks", "--frames", "3"),
    "report-runtime-program": ("report", "output.mlpd", "--section", "program", "--section", "threads"),
    "diff": ("diff", LOG, LATER_LOG),
    "explain": ("explain", "JD010"),
}


@pytest.mark.parametrize("columns", [80, 140])
@pytest.mark.parametrize("name", COMMANDS)
def test_text(perfuse: Perfuse, golden: Golden, name: str, columns: int) -> None:
    done = perfuse(*COMMANDS[name], columns=columns)
    assert done.code in {0, 1}, done.err
    assert "\x1b" not in done.out
    golden(f"{name}-{columns}.txt", done.out)


@pytest.mark.parametrize(
    "name",
    [
        "info",
        "check",
        "tables",
        "report-code",
        "report-calls",
        "report-runtime",
        "report-stacks",
        "report-tree",
        "records",
    ],
)
def test_colour_changes_nothing_but_colour(perfuse: Perfuse, name: str) -> None:
    verb, *rest = COMMANDS[name]
    coloured = perfuse(verb, "--color", "always", *rest)
    assert "\x1b[" in coloured.out
    assert plain(coloured.out) == perfuse(*COMMANDS[name]).out
    # The option has the same effect before the verb.
    assert perfuse("--color", "always", *COMMANDS[name]).out == coloured.out


def test_lines_fit_the_terminal(perfuse: Perfuse) -> None:
    for name in (
        "info",
        "check",
        "report-code",
        "report-calls",
        "report-stacks",
        "report-graph",
        "report-tree",
        "tables",
    ):
        done = perfuse(*COMMANDS[name], columns=72)
        assert max(map(len, done.out.splitlines())) <= 72, name
