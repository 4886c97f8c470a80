"""Names from recordings and of files: no control character reaches a terminal or a text file."""

import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import perfuse as pf
from perfuse.cli import run
from perfuse.cli.verbs import VERBS
from perfuse.exporters import TARGETS
from perfuse.output.terminal import escaped

TESTDATA = Path(__file__).parents[1] / "cli" / "testdata"
HOSTILE = "\x1b[2J\n\r;\u202e\x9b=\x07"
"""Clears a terminal, ends a line and a frame, turns text around, and rings."""
BYTES = HOSTILE.encode()
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
KINDS = {"samples": "perf.data", "code": "jit-2345.dump", "runtime": "output.mlpd", "stacks": "stacks.collapsed"}
NAMES = "SELECT name FROM functions"
DIRECTORY = "evil\x1b[31m\u202e\x9bname"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Recordings in which the names of functions, threads and files are hostile, in a directory with such a name."""
    directory = tmp_path_factory.mktemp("names") / DIRECTORY
    directory.mkdir()
    paths = {}
    for kind, name in KINDS.items():
        paths[kind] = directory / name
        if kind == "stacks":
            paths[kind].write_bytes(
                b"main;a 1\n" * 7500
                + b"main;"
                + BYTES.replace(b"\n", b"").replace(b";", b"")
                + b"evil;=1+1 90000\nmain;+x 30000\n"
            )
            continue
        if kind == "code":
            with pf.jitdump.Writer(paths[kind], pid=2345, timestamps=iter(range(1, 100)).__next__) as writer:
                for number in range(3):
                    writer.code_load(
                        f"{HOSTILE}{number}", 0x1000 * (number + 1), b"\xc3" * 16, lines=[(0, HOSTILE, 1, 0)]
                    )
            continue
        content = (TESTDATA / name).read_bytes()
        profile = pf.fuse(content)
        query = "SELECT name FROM functions UNION SELECT path FROM functions UNION SELECT name FROM modules"
        names = {text.encode() for (text,) in profile.sql(query).fetchall() if text}
        count = 0
        for one in sorted(names):
            if len(one) > len(BYTES) and one.isascii() and one in content:
                content = content.replace(one, BYTES + one[len(BYTES) :])
                count += 1
        assert count > 2 or kind == "samples", kind
        paths[kind].write_bytes(content)
    return paths


def commands(paths: dict[str, Path]) -> dict[str, list[str]]:
    """A command of each verb that prints names."""
    samples, code, runtime, stacks = (str(paths[kind]) for kind in KINDS)
    names = "SELECT name FROM functions"
    return {
        **{f"info {kind}": ["info", str(path)] for kind, path in paths.items()},
        **{f"info {kind} JSON": ["info", str(path), "--json"] for kind, path in paths.items()},
        "annotate code": ["annotate", code, "0x1000"],
        "annotate code JSON": ["annotate", code, "0x1000", "--json"],
        **{f"records {kind}": ["records", str(path), "--limit", "300"] for kind, path in paths.items()},
        **{f"records {kind} JSON": ["records", str(path), "--limit", "300", "--json"] for kind, path in paths.items()},
        **{f"check {kind}": ["check", str(path)] for kind, path in paths.items()},
        **{f"report {kind}": ["report", str(path), "--limit", "0"] for kind, path in paths.items()},
        **{f"report {kind} JSON": ["report", str(path), "--json"] for kind, path in paths.items()},
        **{f"query {kind}": ["query", str(path), names] for kind, path in paths.items()},
        **{f"query {kind} JSON": ["query", str(path), names, "--format", "json"] for kind, path in paths.items()},
        **{f"tables {kind}": ["tables", str(path), "functions"] for kind, path in paths.items()},
        "report joined": ["report", samples, code],
        "report tree": ["report", stacks, "--tree"],
        "report allocations": ["report", runtime, "--section", "allocations"],
        "diff": ["diff", stacks, stacks],
        "diff JSON": ["diff", stacks, stacks, "--json"],
        "watch": ["watch", code],
        "explain": ["explain", HOSTILE],
        "help": ["help", HOSTILE],
        "unknown verb": [HOSTILE, code],
        "unknown file": ["report", code + HOSTILE],
        "unknown table": ["tables", code, HOSTILE],
        "wrong SQL": ["query", code, f'SELECT * FROM "{HOSTILE}"'],
        "wrong target": ["convert", code, "-o", "x", "--to", HOSTILE],
        "wrong option": ["convert", stacks, "-o", "x.collapsed", "-O", f"{HOSTILE}=1"],
        "wrong section": ["report", runtime, "--section", HOSTILE],
        "wrong thread": ["report", samples, "--thread", HOSTILE],
        "wrong range": ["report", samples, "--between", HOSTILE],
        "wrong kind": ["records", code, "--kind", HOSTILE],
        "wrong choice": ["report", code, "--color", HOSTILE],
        "a device": ["report", "/dev/zero"],
    }


@pytest.mark.parametrize("what", commands(dict.fromkeys(KINDS, Path())))
def test_no_verb_prints_control_characters(
    hostile: dict[str, Path], what: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    code = run(commands(hostile)[what])
    printed = capfd.readouterr()
    assert code in {0, 1, 2, 3}
    for text in (printed.out, printed.err):
        assert FORBIDDEN.search(text) is None, (what, FORBIDDEN.findall(text), text[:2000])
    if what.endswith("JSON") and not what.startswith("records"):
        json.loads(printed.out)


def test_every_verb_that_reads_recordings_is_tried() -> None:
    tried = {words[0] for words in commands(dict.fromkeys(KINDS, Path())).values()}
    # Names in answers of view and mcp have tests of their own; record prints what report does.
    outputs_and_tools = {"flame", "convert", "repair", "pack", "sframe", "mono", "doctor", "completion", "record"}
    untried = set(VERBS) - tried - outputs_and_tools - {"view", "mcp", "fleet"}
    assert not untried, "a verb that prints names needs a command here"


@pytest.mark.parametrize(
    "words",
    [["status"], ["report"], ["report", "--by", "build"], ["find", "*"], ["report", "--json"], ["query", NAMES]],
    ids=" ".join,
)
def test_a_fleet_prints_no_control_characters(fleet: Path, words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    action, *options = words
    code = run(["fleet", action, str(fleet), *options])
    printed = capfd.readouterr()
    assert code in {0, 1}, printed.err
    assert printed.out
    for text in (printed.out, printed.err):
        assert FORBIDDEN.search(text) is None, FORBIDDEN.findall(text)


@pytest.fixture(scope="module")
def fleet(hostile: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with stacks, a damaged file, and a label, of hostile names."""
    dataset = tmp_path_factory.mktemp("fleet") / "dataset"
    broken = hostile["stacks"].with_name("broken.data")
    broken.write_bytes(b"PERFILE2" + bytes(20))
    label = "build=\x1b[31m\u202e"
    assert run(["fleet", "add", str(dataset), str(hostile["stacks"]), str(broken), "--label", label]) == 1
    return dataset


@pytest.mark.parametrize("verb", ["repair", "flame", "convert", "pack"])
def test_names_of_outputs_are_escaped(
    hostile: dict[str, Path], tmp_path: Path, verb: str, capfd: pytest.CaptureFixture[str]
) -> None:
    ending = {"repair": "dump", "flame": "svg", "convert": "collapsed", "pack": "perfuse"}[verb]
    source = hostile["code" if verb == "repair" else "stacks"]
    out = tmp_path / f"out\x1b[31m\u202e.{ending}"
    assert run([verb, str(source), "-o", str(out)]) in {0, 1}
    printed = capfd.readouterr()
    assert out.exists()
    assert FORBIDDEN.search(printed.out + printed.err) is None, printed


TEXT_TARGETS = {
    "collapsed",
    "perf-map",
    "svg",
    "html",
    "dot",
    "csv",
    "xray-yaml",
    "firefox",
    "speedscope",
    "chrome",
    "cpuprofile",
    "perf-script",
    "heapsnapshot",
}
BINARY_TARGETS = {"hprof", "jslb", "perfetto", "pprof", "otlp", "elf", "perf-data", "xray", "mono"}


def test_every_target_is_text_or_binary() -> None:
    assert {target.name for target in TARGETS} == TEXT_TARGETS | BINARY_TARGETS


@pytest.mark.parametrize(("target", "kind"), [
    ("collapsed", "stacks"), ("collapsed", "runtime"), ("perf-map", "code"), ("svg", "stacks"), ("html", "stacks"),
    ("dot", "stacks"), ("speedscope", "stacks"), ("firefox", "samples"), ("chrome", "runtime"), ("svg", "runtime"),
    ("cpuprofile", "stacks"), ("perf-script", "samples"),
])  # fmt: skip
def test_text_exports_have_no_control_characters(hostile: dict[str, Path], target: str, kind: str) -> None:
    out = io.BytesIO()
    pf.fuse(hostile[kind]).export(out, to=target)
    text = out.getvalue().decode()
    if target in {"firefox", "speedscope", "chrome", "cpuprofile"}:
        # For programs: JSON escapes what controls a terminal, and the names are as recorded.
        json.loads(text)
        text = text.encode("ascii", "ignore").decode()
    found = {char for char in FORBIDDEN.findall(text) if not (target == "html" and char in "\u2028\u2029")}
    assert not found


def test_a_name_stays_one_frame_and_one_line(hostile: dict[str, Path]) -> None:
    out = io.BytesIO()
    pf.fuse(hostile["runtime"]).export(out, to="collapsed")
    lines = out.getvalue().decode().splitlines()
    assert all(re.fullmatch(r".+ \d+", line) for line in lines)
    out = io.BytesIO()
    pf.fuse(hostile["code"]).export(out, to="perf-map")
    lines = out.getvalue().decode().splitlines()
    assert lines
    assert all(re.fullmatch(r"[0-9a-f]+ [0-9a-f]+ .+", line) for line in lines)


def in_terminal(*words: str) -> tuple[int, str]:
    """Exit code and output of a command whose standard streams are a terminal."""
    main, other = pty.openpty()
    command = [sys.executable, "-m", "perfuse", *words]
    process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env={**os.environ, "NO_COLOR": "1"})
    os.close(other)
    output = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:
            break
        if not part:
            break
        output += part
    os.close(main)
    # The terminal itself writes line feeds as CR LF.
    return process.wait(), output.decode().replace("\r\n", "\n").replace("\r\x1b[K", "")


@pytest.mark.parametrize(
    "words",
    [["query", "code", NAMES, "--format", form] for form in ("csv", "tsv", "ndjson", "table")]
    + [["convert", "stacks", "-o", "-", "--to", to] for to in ("collapsed", "speedscope", "svg")]
    + [["records", "code"], ["report", "runtime"]],
    ids=lambda words: "-".join(word for word in words if " " not in word),
)
def test_a_terminal_receives_no_control_characters(hostile: dict[str, Path], words: list[str]) -> None:
    code, text = in_terminal(*(str(hostile.get(word, word)) for word in words))
    assert code in {0, 1}, text
    assert FORBIDDEN.search(text) is None, FORBIDDEN.findall(text)
    # A picture shows a sign for each control character.
    assert "svg" in words or "\\x1b[2J" in text or "\\u001b[2J" in text


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_binary_data_is_not_written_to_a_terminal(hostile: dict[str, Path], form: str) -> None:
    code, text = in_terminal("query", str(hostile["code"]), NAMES, "--format", form)
    assert code == 2
    assert "binary data is not written to a terminal" in text


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """An XRay log and the program whose map has hostile names."""
    for name in ("xray-log.server.Qd81xw",):
        shutil.copy(TESTDATA / name, tmp_path)
    return tmp_path / "xray-log.server.Qd81xw"


def statistics(trace: Path, **options: str) -> list[list[str]]:
    out = io.BytesIO()
    pf.fuse(trace).export(out, to="csv", **options)
    return list(csv.reader(io.StringIO(out.getvalue().decode())))


def test_spreadsheets_compute_no_names() -> None:
    from perfuse.exporters.csv import _text

    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "plain", 7, None]
    assert [_text(one, "text") for one in texts] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "plain", 7, None]
    assert [_text(one, "keep") for one in texts] == texts


def test_the_option_of_csv(trace: Path) -> None:
    assert statistics(trace) == statistics(trace, formulas="text")
    with pytest.raises(pf.UsageError):
        statistics(trace, formulas="maybe")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\n", "a\tb\n"),
        ("\x1b[0m", "\\x1b[0m"),
        ("\u202e", "\\u202e"),
        ("\x9b", "\\x9b"),
        ("é名", "é名"),
        ("\r\n", "\\r\n"),
    ],
)
def test_what_a_terminal_receives(text: str, shown: str) -> None:
    assert escaped(text) == shown


NOT_UTF8 = os.fsdecode(b"caf\xe9.data")


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_whose_name_is_not_utf8_is_refused(tmp_path, verb, capsys):
    path = tmp_path / NOT_UTF8
    shutil.copyfile(TESTDATA / "perf.data", path)
    assert run([verb, str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "caf\\xe9.data: not UTF-8" in printed.err
    assert "ln -s FILE LINK" in printed.err


def test_a_file_whose_name_is_not_utf8_is_refused_by_the_library(tmp_path):
    path = tmp_path / NOT_UTF8
    shutil.copyfile(TESTDATA / "perf.data", path)
    for call in (pf.open, pf.fuse, pf.check):
        with pytest.raises(pf.UsageError, match="not UTF-8"):
            call(path)
    link = tmp_path / "link"
    link.symlink_to(path)
    assert pf.fuse(link).sql("SELECT count(*) > 0 FROM samples").fetchall() == [(True,)]


def test_a_command_that_reads_early_refuses_such_a_name_too(tmp_path):
    path = tmp_path / NOT_UTF8
    shutil.copyfile(TESTDATA / "perf.data", path)
    done = subprocess.run([sys.executable, "-m", "perfuse", "report", path], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"caf\\xe9.data: not UTF-8" in done.stderr
