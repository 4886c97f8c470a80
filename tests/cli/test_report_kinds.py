"""`perfuse report` chooses the kind of report by the recordings and the options that were given."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Perfuse

import perfuse as pf
from perfuse import _core
from perfuse.reports.registry import REPORTS, choose_kind

DUMP, SAMPLES, LOG, MONO, UNWIND = "jit-2345.dump", "perf.data", "xray-log.server.uocuES", "output.mlpd", "a.out"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ((DUMP,), "code"),
        ((SAMPLES,), "samples"),
        ((SAMPLES, DUMP), "samples"),
        ((LOG,), "calls"),
        ((MONO,), "runtime"),
        ((UNWIND,), "unwind_tables"),
        ((LOG, "--event", "wall-time"), "samples"),
        ((LOG, "--depth", "2"), "selected_calls"),
        ((LOG, "--longer-than", "1ns", "--depth", "2"), "selected_calls"),
        ((LOG, "--tree", "--depth", "2"), "stacks"),
        ((MONO, "--percent-limit", "5"), "stacks"),
        (("--map", "server"), "instrumentation_map"),
    ],
)
def test_kind(perfuse: Perfuse, words: tuple[str, ...], kind: str) -> None:
    done = perfuse("report", "--json", *words)
    assert json.loads(done.out)["kind"] == kind, done.err


@pytest.mark.parametrize(
    ("words", "flag", "belongs_to"),
    [
        ((DUMP, "--section", "gc"), "--section", "runtime logs (Mono)"),
        ((DUMP, "--graph"), "--graph", "call traces (XRay)"),
        ((DUMP, "--event", "cycles"), "--event", "samples (perf.data)"),
        ((DUMP, "--stacks"), "--stacks", "runtime logs (Mono)"),
        ((SAMPLES, "--format", "csv"), "--format", "call traces (XRay)"),
        ((LOG, "--track", "0x10"), "--track", "runtime logs (Mono)"),
        ((MONO, "--graph"), "--graph", "call traces (XRay)"),
        ((UNWIND, "--per-thread"), "--per-thread", "call traces (XRay)"),
    ],
)
def test_an_option_of_another_kind(perfuse: Perfuse, words: tuple[str, ...], flag: str, belongs_to: str) -> None:
    done = perfuse("report", *words)
    assert (done.code, done.out) == (2, "")
    assert f"{flag} is an option for {belongs_to}, and this is a report of " in done.err


@pytest.mark.parametrize("file", [DUMP, UNWIND])
def test_reports_without_selection_refuse_one(perfuse: Perfuse, file: str) -> None:
    assert perfuse("report", file, "--between", "0..1").code == 2


@pytest.mark.parametrize("limit", [("--depth", "1"), ("--percent-limit", "60")])
def test_limits_of_a_tree_show_a_tree(perfuse: Perfuse, limit: tuple[str, ...]) -> None:
    tree = json.loads(perfuse("report", "--json", SAMPLES, "--tree", *limit).out)["tree"]
    alone = json.loads(perfuse("report", "--json", SAMPLES, *limit).out)
    assert alone["tree"] == tree
    assert "functions" not in alone or alone["functions"] is None
    text = perfuse("report", SAMPLES, *limit, "--limit", "0").out
    assert "--limit 0 shows all" not in text


def test_option_values_depend_on_the_kind(perfuse: Perfuse) -> None:
    done = perfuse("report", LOG, "--sort", "bytes")
    assert done.code == 2
    assert "no order 'bytes'" in done.err
    assert perfuse("report", MONO, "--sort", "bytes").code == 0


def test_modules_define_what_the_registry_needs() -> None:
    for kind in REPORTS:
        module: Any = importlib.import_module(kind.module)
        assert callable(module.build), kind.module
        for name in kind.prefetch:
            importlib.import_module(name)


def test_the_report_of_every_format_is_in_the_registry() -> None:
    assert {row["report"] for row in _core.formats()} <= {kind.name for kind in REPORTS}


def test_help_lists_every_option(perfuse: Perfuse) -> None:
    shown = perfuse("report", "--help").out
    for kind in REPORTS:
        assert kind.title in shown or not kind.description
        for option in kind.options:
            assert f"\n  {option.flag} " in shown


def test_only_the_report_that_is_built_is_imported(recordings: Path) -> None:
    code = (
        f"import sys; from perfuse.cli import run; run(['report', {LOG!r}]);"
        f"print([m for m in {[kind.module for kind in REPORTS]!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=recordings, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "['perfuse.reports.calls']"


def test_an_option_of_no_report_is_refused() -> None:
    path = Path(__file__).parent / "testdata" / SAMPLES
    with pf.fuse(path) as profile, pytest.raises(pf.UsageError, match="no report has an option --none"):
        choose_kind(profile, ["--none"])
