"""Properties that scripts rely on: exit codes, JSON structure, complete rows, no output on interrupts."""

import csv
import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import IO

import duckdb
import pytest
from command_line import Perfuse

DUMP = "jit-2345.dump"
XRAY = "xray-log.server.uocuES"
LOG = "xray-log.server.uocuES"


def test_info_json(perfuse: Perfuse) -> None:
    done = perfuse("info", "--json", DUMP)
    document = json.loads(done.out)
    assert list(document) == ["recordings"]
    (recording,) = document["recordings"]
    assert recording["path"] == DUMP
    assert recording["format"] == "jitdump"
    assert (recording["version"], recording["endian"], recording["arch"]) == ("1", "little", "x86_64")
    assert recording["records"] == {"JIT_CODE_LOAD": 3, "JIT_CODE_DEBUG_INFO": 3}
    first, last = recording["span_ns"]
    assert first < last
    assert set(recording["diagnostics"]) <= {"info", "warning", "data_loss", "error"}
    assert recording["header"]["magic"] == "0x4a695444"


def test_info_continues_after_an_unreadable_file(perfuse: Perfuse, recordings: Path) -> None:
    (recordings / "noise").write_bytes(b"no recording at all")
    done = perfuse("info", "--json", "noise", DUMP)
    document = json.loads(done.out)
    assert done.code == 3
    assert [one["path"] for one in document["recordings"]] == [DUMP]
    assert [one["path"] for one in document["unreadable"]] == ["noise"]
    assert "noise" in done.err


def test_report_of_samples(perfuse: Perfuse) -> None:
    report = json.loads(perfuse("report", "--json", "perf.data", DUMP).out)
    assert report["kind"] == "samples"
    assert report["title"] == "llvmjit 4000 ../prog.ll"
    assert report["events"] == [{"name": "cpu-clock", "samples": 553, "weight": 138250000, "unit": "ns"}]
    (join,) = report["joins"]
    assert (join["path"], join["pid"], join["found_by"], join["alignment"]) == (DUMP, 14513, "marker", "same_clock")
    hottest = report["top_self"][0]
    # perf script has `crc` innermost in 447 of the 553 samples.
    assert (hottest["name"], hottest["samples"], hottest["line"]) == ("crc", 447, 5)
    for groups in ("threads", "processes", "modules", "tiers"):
        assert sum(share["samples"] for share in report[groups]) == 553
    text = perfuse("report", "perf.data", DUMP).out
    for part in ("553 of cpu-clock", "same clock, exact", "Top functions by self", "prog.c:5", "80.8%", "Not named"):
        assert part in text


def test_report_of_a_selection(perfuse: Perfuse) -> None:
    whole = json.loads(perfuse("report", "--json", "perf.data", DUMP).out)
    parts = [
        json.loads(perfuse("report", "--json", "perf.data", DUMP, "--between", r).out) for r in ("..0.05", "0.05..")
    ]
    assert sum(part["events"][0]["samples"] for part in parts) == whole["events"][0]["samples"]
    assert perfuse("report", "perf.data", DUMP, "--thread", "nobody").code == 2
    assert perfuse("report", "perf.data", DUMP, "--thread", "14513").code == 0


def test_report_of_code(perfuse: Perfuse) -> None:
    report = json.loads(perfuse("report", "--json", DUMP).out)
    assert report["kind"] == "code"
    assert (report["functions"], report["code_objects"], report["bytes"]) == (3, 3, 227)
    assert [code["name"] for code in report["biggest"]] == ["entry", "hot", "crc"]
    assert sum(report["timeline"]) == 227


def test_records_json_is_an_object_a_line(perfuse: Perfuse) -> None:
    records = [json.loads(line) for line in perfuse("records", "--json", DUMP).out.splitlines()]
    assert [record["index"] for record in records] == list(range(6))
    load = next(record for record in records if record["name"] == "JIT_CODE_LOAD")
    assert load["fields"]["code_addr"].startswith("0x")
    assert len(load["fields"]["code"]) == 2 * load["fields"]["code_size"]
    data = Path(DUMP).read_bytes()
    assert data[load["offset"] :][: load["size"]].endswith(bytes.fromhex(load["fields"]["code"]))


def test_records_are_selected_by_kind_index_and_offset(perfuse: Perfuse) -> None:
    everything = [json.loads(line) for line in perfuse("records", "--json", DUMP).out.splitlines()]

    def selected(*words: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in perfuse("records", "--json", DUMP, *words).out.splitlines()]

    assert selected("--range", "2..4") == everything[2:4]
    assert selected("--range", f"{everything[3]['offset']:#x}..") == everything[3:]
    assert selected("--kind", "JIT_CODE_LOAD") == [r for r in everything if r["name"] == "JIT_CODE_LOAD"]
    assert selected("--limit", "2") == everything[:2]
    assert perfuse("records", "--json", DUMP, "--limit", "2").err.startswith("perfuse: 4 more records\n")


def test_check_json_has_every_offset(perfuse: Perfuse) -> None:
    done = perfuse("check", "--json", "damaged.dump")
    assert done.code == 1
    ((recording),) = json.loads(done.out)["recordings"]
    codes = {found["code"] for found in recording["diagnostics"]}
    assert "JD010" in codes
    size = Path("damaged.dump").stat().st_size
    for found in recording["diagnostics"]:
        assert {"code", "severity", "message", "offset", "record_index", "field", "section", "count"} <= set(found)
        assert found["offset"] is None or 0 <= found["offset"] <= size


def test_query_csv_has_a_header_and_every_row(perfuse: Perfuse) -> None:
    done = perfuse("query", DUMP, "FROM line_rows", "--format", "csv", "--limit", "0")
    header, *rows = csv.reader(done.out.splitlines())
    assert header[:3] == ["code_object_id", "code_offset", "path"]
    [row] = json.loads(perfuse("query", DUMP, "SELECT count(*) AS n FROM line_rows", "--json").out)
    assert len(rows) == row["n"] > 10


def test_query_formats_agree(perfuse: Perfuse, recordings: Path) -> None:
    sql = "SELECT code_index, start_address, size_bytes FROM code_objects ORDER BY 1"
    shown = json.loads(perfuse("query", DUMP, sql, "--json").out)
    assert all(row["start_address"].startswith("0x") for row in shown)
    expected = [(r["code_index"], int(r["start_address"], 16), r["size_bytes"]) for r in shown]
    for name in ("out.parquet", "out.csv"):
        done = perfuse("query", DUMP, sql, "-o", name)
        assert (done.out, done.code) == ("", 0), done.err
        assert duckdb.connect().execute(f"FROM '{recordings / name}'").fetchall() == expected
    assert json.loads(perfuse("query", DUMP, f"FROM ({sql}) WHERE false", "--json").out) == []


def test_csv_on_stdout_appends(recordings: Path) -> None:
    out = recordings / "rows.csv"
    out.write_text("already here\n")
    with out.open("ab") as stream:
        _spawn("query", DUMP, "SELECT 1 AS one FROM code_objects LIMIT 1", "--format", "csv", stdout=stream).wait()
    assert out.read_text() == "already here\none\n1\n"


def test_cut_output_has_a_note(perfuse: Perfuse) -> None:
    assert "more rows (--limit 0 shows all)" in perfuse("query", DUMP, "FROM line_rows", "--limit", "2").out
    whole = perfuse("query", DUMP, "FROM line_rows", "--limit", "0")
    assert "--limit" not in whole.out + whole.err
    assert "rows were left out" in perfuse("query", DUMP, "FROM line_rows", "--limit", "2", "--format", "csv").err


@pytest.mark.parametrize(
    ("words", "code", "message", "hint"),
    [
        (("inof", DUMP), 2, "no verb 'inof'", "did you mean info"),
        ((DUMP,), 2, f"no verb '{DUMP}'", "a command starts with a verb"),
        (("info",), 2, "missing argument 'FILE...'", "`perfuse info --help`"),
        (("info", "--jsn", DUMP), 2, "no option '--jsn'", "did you mean --json?"),
        (("info", "--zzzzzz", DUMP), 2, "no option '--zzzzzz'", "`perfuse info --help`"),
        (("report", DUMP, "--by", "thraed"), 2, "'thraed' is not one of", "did you mean thread?"),
        (("fleet",), 2, "missing argument 'ACTION'", "it is one of add, "),
        (("sframe",), 2, "missing argument 'ACTION'", "it is one of from-eh-frame, optimise, merge"),
        (("mono",), 2, "missing argument 'heapshot'", "it is one of heapshot"),
        (("explain", "JD01O"), 2, "no rule has the code JD01O", "did you mean"),
        (("info", "jit-2346.dump"), 3, "jit-2346.dump", "did you mean jit-2345.dump?"),
        (("info", "nothing-like-it"), 3, "nothing-like-it", "has a similar name"),
        (("records", "."), 3, ".", "it is a directory: name a file in it"),
        (("query", DUMP, "SELEC 1"), 2, "Parser Error", "LINE 1"),
        (("query", DUMP, "FROM nowhere"), 2, "nowhere", ""),
        (("query", DUMP, "SELECT name::INTEGER FROM functions"), 2, "Conversion Error", "LINE "),
        (("query", DUMP), 2, "no SQL", ""),
        (("query", DUMP, "perf.data"), 2, "no SQL: it follows the files", ""),
        (("query", "SELECT 1", DUMP), 2, "no SQL: it follows the files", ""),
        (("query", "SELECT 1" + " " * 300), 2, "no file: files precede SQL", ""),
        (("records", DUMP, "--kind", "JIT_CODE_LOD"), 2, "no record kind 'JIT_CODE_LOD'", "did you mean JIT_CODE_LOAD"),
        (("records", DUMP, "--range", "5"), 2, "is not a range", ""),
        (("records", DUMP, "--range", "5..5"), 2, "is empty", ""),
        (("records", DUMP, "--limit", "-1"), 2, "less than 0", ""),
        (("tables", DUMP, "code_object"), 2, "no file or table", "did you mean code_objects"),
        (("convert", DUMP, "-o", "x.json", "--to", "firefax"), 2, "no export target 'firefax'", "did you mean firefox"),
        (("convert", DUMP, "-o", "x.map", "-O", "pdi=1"), 2, "perf-map has no option 'pdi'", "did you mean pid?"),
        (("convert", DUMP, "-o", "x.map", "-O", "pid=one"), 2, "pid is not 'one'", "pid is a whole number"),
        (("convert", DUMP, "-o", "x.map", "-O", "pid"), 2, "-O pid has no value", ""),
        (("convert", DUMP, "-o", "x.elf", "-O", "pid=9"), 2, "process 9 has no JIT code", "processes with JIT code: "),
        (("convert", DUMP, "-o", "x.perf.data"), 2, "no perf.data to put the code into", "open the perf.data"),
        (("convert", DUMP, "-o", "-", "--to", "perf-data"), 2, "cannot be written to standard output", "a file name"),
        (("convert", DUMP, "-o", "-"), 2, "give --to", ""),
        (("convert", DUMP, "-o", "nowhere/x.json"), 2, "there is no directory nowhere", "mkdir -p nowhere"),
        (("annotate", "perf.data", DUMP), 2, "no FUNCTION: it follows the files", "`perfuse annotate --help`"),
        (("annotate", "hot", DUMP), 2, "no FUNCTION: it follows the files", "`perfuse annotate --help`"),
        (("mono", "heapshot", DUMP), 2, "is not a Mono log: its format is JITDUMP", ""),
        (("convert", DUMP, "-o", "x.map", "-O", "at=nan"), 2, "at is a number of seconds, not nan", ""),
        (("convert", XRAY, "-o", "x.xray", "-O", "hz=-1"), 2, "hz is from 1 to 18,446,744,073,709,551,615, not -1", ""),
        (("convert", XRAY, "-o", "x.xray", "-O", "version=-1"), 2, "version -1 does not exist", ""),
        (("convert", XRAY, "-o", "x.csv", "-O", "limit=-1"), 2, "limit is from 0 to", ""),
        (("convert", "output.mlpd", "-o", "x.mlpd", "-O", "version=300"), 2, "version 300 does not exist", ""),
        (("convert", "perf.data", "-o", "x.svg", "-O", "width=-5"), 2, "width is from 300 to 100,000, not -5", ""),
        (
            ("convert", "perf.data", "-o", "x.svg", "-O", "threads=-1"),
            2,
            "has thread_id -1",
            "keys of threads are from 0",
        ),
        (("convert", "perf.data", "-o", "x.html", "-O", "processes=99"), 2, "has process_id 99", "keys of processes"),
        (("convert", "perf.data", "-o", "x.html", "-O", "time_ns=5,1"), 2, "no time between 5 and 1 ns", ""),
        (("convert", DUMP, "-o", "x.map", "-O", "at=-99"), 2, "no JIT code existed -99 s after the first sample", ""),
        (("convert", "a.out", "-o", "x.map"), 2, "no process has JIT code", "open the dump as well"),
        (("explain", "JD05"), 2, "no rule has the code JD05", "did you mean JD05"),
        (("view", "nothing-like-it"), 3, "cannot read nothing-like-it: No such file", "has a similar name"),
        (("report", DUMP, "--between", "3..1"), 2, "ends before it starts", ""),
    ],
)
def test_errors_have_a_message_and_a_hint(
    perfuse: Perfuse, words: tuple[str, ...], code: int, message: str, hint: str
) -> None:
    done = perfuse(*words)
    assert done.code == code
    assert done.out == ""
    first, *rest = done.err.splitlines()
    assert first.startswith("perfuse: ")
    assert message in first
    assert hint in "\n".join(rest)
    assert len(rest) <= 1


def test_formats_that_can_be_repaired_are_named(perfuse: Perfuse, recordings: Path) -> None:
    (recordings / "out.folded").write_text("main;parse 7\n", encoding="utf-8")
    done = perfuse("repair", "out.folded", "-o", "x")
    assert (done.code, done.out) == (2, "")
    message, hint = done.err.splitlines()
    assert message.endswith("collapsed stacks files cannot be repaired")
    assert hint.split("files of ")[1] == "JITDUMP, perf.data, Mono log, SFrame, XRay can be"


@pytest.mark.parametrize("name", ["repotr", "xyzzy"])
def test_an_unknown_verb_has_the_same_hint_with_and_without_help(perfuse: Perfuse, name: str) -> None:
    assert perfuse(name).err == perfuse("help", name).err


def test_a_pointer_of_git_lfs_is_named(perfuse: Perfuse, recordings: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab\nsize 12345\n"
    (recordings / "output.mlpd").write_text(pointer, encoding="ascii")
    done = perfuse("report", "output.mlpd")
    assert (done.code, done.out) == (3, "")
    assert "the file is in Git LFS" in done.err
    assert "git lfs pull" in done.err


def test_exit_code_states_whether_all_was_read(perfuse: Perfuse) -> None:
    for words in (("info",), ("report",), ("check",)):
        assert perfuse(*words, "damaged.dump").code == 1
    done = perfuse("query", "damaged.dump", "SELECT count(*) FROM code_objects")
    assert done.code == 1
    assert "perfuse check damaged.dump" in done.err
    # Known deviations of its producer are read correctly: `check` warns of them, a query succeeds.
    assert perfuse("check", DUMP).code == 1
    assert perfuse("query", DUMP, "SELECT 1").code == 0


def test_hostile_names_stay_text(perfuse: Perfuse, recordings: Path) -> None:
    data = (recordings / DUMP).read_bytes()
    name = data[data.index(b"hot\0") :][:4]
    (recordings / DUMP).write_bytes(data.replace(name, b"\x1b[m\0"))
    for words in (("records", DUMP, "--limit", "0"), ("report", DUMP), ("query", DUMP, "FROM functions")):
        done = perfuse(*words)
        assert "\x1b" not in done.out
        assert r"\x1b[m" in done.out


def test_standard_input(recordings: Path) -> None:
    with (recordings / DUMP).open("rb") as source:
        done = subprocess.run([*_COMMAND, "info", "--json", "-"], stdin=source, capture_output=True, check=True)
    assert json.loads(done.stdout)["recordings"][0]["path"] == "-"


@pytest.mark.parametrize(
    "words", [("records", DUMP, "--limit", "0"), ("query", DUMP, "FROM range(3000000)", "--format", "csv")]
)
def test_a_closed_pipe_ends_quietly(recordings: Path, words: tuple[str, ...]) -> None:
    assert recordings.is_dir()
    process = _spawn(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait() in {0, 141}


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words",
    [
        ("report", "--json", DUMP),
        ("convert", "perf.data", "-o", "-", "--to", "collapsed"),
        ("convert", "perf.data", "-o", "-", "--to", "firefox"),
        ("flame", "perf.data", "-o", "-"),
        ("query", DUMP, "FROM range(300000)", "--format", "csv"),
        ("records", DUMP, "--json"),
        ("repair", "damaged.dump", "-o", "-"),
        ("pack", DUMP, "-o", "-"),
    ],
)
def test_a_closed_pipe_has_its_exit_code(recordings: Path, words: tuple[str, ...], unbuffered: str) -> None:
    assert recordings.is_dir()
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    process = subprocess.Popen(
        [*_COMMAND, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait() == 141


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_pipe_closed_in_the_middle_of_the_output_has_its_exit_code(recordings: Path, unbuffered: str) -> None:
    """Without a buffer, a write that ends there returns a number of bytes, and no error."""
    (recordings / "wide.folded").write_text("".join(f"main;f{number} 1\n" for number in range(20_000)))
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    words = ("convert", "wide.folded", "-o", "-", "--to", "collapsed")
    process = subprocess.Popen([*_COMMAND, *words], env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait() == 141


def test_an_interrupt_ends_quietly(recordings: Path) -> None:
    assert recordings.is_dir()
    # A shell that starts the tests in the background makes them ignore interrupts.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = _spawn("info", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    signal.signal(signal.SIGINT, handler)
    assert process.stdin is not None
    process.stdin.write(b"x")
    process.stdin.flush()
    while unread(process.stdin):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out, err) == (130, b"", b"perfuse: interrupted\n")


def unread(pipe: IO[bytes]) -> int:
    """The number of bytes in a pipe that its reader has not taken."""
    (count,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    return int(count)


def test_no_color_and_color(perfuse: Perfuse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in perfuse("info", DUMP).out
    assert "\x1b" in perfuse("info", DUMP, "--color", "always").out


_COMMAND = [sys.executable, "-m", "perfuse"]


def _spawn(*words: str, **streams: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([*_COMMAND, *words], env={**os.environ, "COLUMNS": "80"}, **streams)  # type: ignore[call-overload,no-any-return]


def _names(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_names, value.values()))
    return set().union(*map(_names, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize(
    ("words", "format_own"),
    [
        (("info", "--json", DUMP, "README.md"), {"records", "header"}),
        (("check", "--json", DUMP), set()),
        (("explain", "--json"), set()),
        (("tables", "--json", DUMP), set()),
        (("report", "--json", DUMP), set()),
        (("report", "--json", "perf.data", DUMP), set()),
        (("report", "--json", "--graph", "--per-thread", LOG), set()),
        (("report", "--json", "--tree", "--stacks", LOG), set()),
        (("doctor", "--json"), set()),
    ],
)
def test_every_name_is_in_the_written_contract(perfuse: Perfuse, words: tuple[str, ...], format_own: set[str]) -> None:
    document = json.loads(perfuse(*words).out)
    for recording in document.get("recordings", []):
        for name in format_own:
            recording[name] = {}
    contract = (Path(__file__).parents[2] / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    missing = [name for name in _names(document) if f'"{name}"' not in contract and f"`{name}`" not in contract]
    assert missing == []


def test_report_of_unwind_tables(perfuse: Perfuse) -> None:
    report = json.loads(perfuse("report", "--json", "orders").out)
    assert report["kind"] == "unwind_tables"
    (section,) = report["sections"]
    assert [piece["version"] for piece in section["pieces"]] == [1]
    assert (section["num_functions"], section["num_without"]) == (7, 3)
    assert [one["address"] for one in section["without"]] == ["0x1080", "0x1140", "0x12a0"]
    assert section["agreement"]["num_disagreements"] == 0
    assert [one["takes_it"] for one in report["readers"]] == [False, False, False]
    assert [(one["name"], one["version"]) for one in report["readers"]] == [
        ("Linux", "patch series 13 of 2026-01-27, not in 7.2"),
        ("glibc", "2.43"),
        ("libsframe", "3, of binutils 2.46 and 2.47"),
    ]
    assert {one["as_of"] for one in report["readers"]} == {"2026-11-21"}
    several = json.loads(perfuse("report", "--json", "orders", "libsmall.so").out)
    assert [one["path"] for one in several["files"]] == ["orders", "libsmall.so"]


def test_each_claim_about_an_unwinder_has_a_version_and_a_date(perfuse: Perfuse) -> None:
    text = perfuse("report", "orders").out
    assert "Accepted by  as of 2026-11-21" in text
    assert "patch series 13 of 2026-01-27, not in 7.2" in text
    for code, version in (("SF080", "series 13"), ("SF081", "2.43"), ("SF082", "binutils 2.46")):
        explained = " ".join(perfuse("explain", code).out.split())
        assert version in explained
        assert "as of 2026-11-21" in explained


def test_sframe_reports_unsupported_items(perfuse: Perfuse) -> None:
    done = perfuse("sframe", "from-eh-frame", "orders", "--version", "2", "-o", "orders.sframe", "--json")
    document = json.loads(done.out)
    assert done.code == 1
    assert (document["version"], document["functions"], document["before_bytes"]) == (2, 7, None)
    assert [(one["function"], one["left_out"]) for one in document["unsupported"]] == [("0x12a0", True)]
    found = json.loads(perfuse("sframe", "find", "orders", "0x10c4", "--json").out)["lookups"]
    assert [(one["function_address"], one["cfa_base"], one["cfa_offset"]) for one in found] == [("0x1090", "sp", 48)]


@pytest.mark.parametrize(
    "words",
    [
        ("optimise", "orders", "0x1", "-o", "x"),
        ("optimise", "orders"),
        ("optimise", "libsmall.so", "--pcrel", "--version", "3", "-o", "x"),
        ("convert", "orders", "-o", "x"),
        ("find", "orders"),
        ("find", "orders", "here"),
        ("from-eh-frame", "orders", "--into", "orders", "-o", "-"),
    ],
)
def test_sframe_usage_errors(perfuse: Perfuse, words: tuple[str, ...]) -> None:
    done = perfuse("sframe", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("perfuse: ")


def test_a_program_without_a_section_gets_a_hint(perfuse: Perfuse) -> None:
    done = perfuse("report", sys.executable)
    assert done.code == 3
    assert ".sframe" in done.err
    assert "`perfuse sframe from-eh-frame`" in done.err


@pytest.mark.parametrize("words", [("records", DUMP), ("tables", DUMP, "functions"), ("check", DUMP), ("report", DUMP)])
def test_a_limit_above_every_number_is_all(perfuse: Perfuse, words: tuple[str, ...]) -> None:
    assert perfuse(*words, "--limit", str(10**20)) == perfuse(*words, "--limit", "0")


def test_options_of_a_target_are_listed_in_either_order(perfuse: Perfuse) -> None:
    listed = perfuse("convert", "--to", "collapsed", "--list-options")
    assert listed.code == 0
    assert {line.split()[0] for line in listed.out.splitlines()} == {"target", "collapsed"}
    assert perfuse("convert", "--list-options", "--to", "collapsed") == listed
    assert perfuse("convert", "--list-options", "--to", "colapsed").code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("report", "perf.data"),
        ("info", DUMP),
        ("explain",),
        ("records", DUMP, "--limit", "0"),
        ("query", DUMP, "FROM line_rows", "--format", "csv", "--limit", "0"),
        ("query", DUMP, "FROM line_rows", "--format", "arrow"),
        ("convert", "perf.data", "--to", "collapsed", "-o", "-"),
        ("pack", "perf.data", "-o", "-"),
    ],
)
def test_a_full_standard_output_is_an_error(recordings: Path, words: tuple[str, ...]) -> None:
    """/dev/full has room for nothing."""
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "perfuse", *words]
        done = subprocess.run(command, cwd=recordings, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert re.fullmatch(r"perfuse: .*o space left on device\n   hint: free space .*\n", done.stderr), done.stderr
