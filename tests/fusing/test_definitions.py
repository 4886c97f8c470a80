"""Lines of functions that `perfuse record` noted: in tables, reports, exports, and when the profile was saved."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest

import perfuse
from packs_of_tests import rewritten
from truth.command import command_line, json_of
from truth.exported import _fields

ENCODER, WORK = "/usr/lib/python3.15/json/encoder.py", "/proj/py315/w.py"
LINES = {ENCODER: {"JSONEncoder.encode": 182, "absent": 5}, WORK: {"<module>": 1, "leaf": 4}}
DUMP = "jit-27103.dump"
TESTDATA = Path(__file__).parents[1] / "cli" / "testdata"
OF_FILES = "SELECT name::VARCHAR, path::VARCHAR, line FROM functions WHERE line IS NOT NULL AND path LIKE '%.py'"


@pytest.fixture
def directory(jitdump_corpus: Path, tmp_path: Path) -> Path:
    """A recording of CPython 3.15 with its dump and a note."""
    run = tmp_path / "run"
    run.mkdir()
    for name, source in (("perf.data", "cpython315-dwarf.perf.data"), (DUMP, "cpython315-dwarf.dump")):
        shutil.copy(jitdump_corpus / "produced" / source, run / name)
    (run / "record.json").write_text(json.dumps({"version": 1, "lines": LINES}), encoding="ascii")
    return run


def lines_of(profile: perfuse.Profile) -> set[tuple[str, str, int]]:
    """Functions of Python files that have a line."""
    return set(profile.sql(OF_FILES).fetchall())


NOTED = {("JSONEncoder.encode", ENCODER, 182), ("<module>", WORK, 1), ("leaf", WORK, 4)}


def test_tables(directory: Path) -> None:
    """Functions have the lines; frames, which are of samples, do not."""
    with perfuse.fuse(directory) as profile:
        assert lines_of(profile) == NOTED
        frames = "SELECT DISTINCT frames.line FROM frames JOIN functions fn USING (function_id)"
        assert profile.sql(f"{frames} WHERE fn.line IS NOT NULL AND fn.path LIKE '%.py'").fetchall() == [(None,)]
    with perfuse.fuse(directory / DUMP) as profile:
        assert lines_of(profile) == NOTED


def test_a_dump_in_another_directory(directory: Path) -> None:
    """A note is about the files beside it."""
    elsewhere = directory.parent / DUMP
    (directory / DUMP).rename(elsewhere)
    with perfuse.fuse(directory, elsewhere) as profile:
        assert [join.pid for join in profile.joins] == [27103]
        assert lines_of(profile) == set()


def test_functions_of_a_map(tmp_path: Path) -> None:
    """Names of CPython in a map have their file too; those of other runtimes stay as they are."""
    shutil.copy(TESTDATA / "perf.data", tmp_path)
    note = {"version": 1, "lines": {"/a.py": {"C.f": 7}}}
    (tmp_path / "record.json").write_text(json.dumps(note), encoding="ascii")
    for name, expected in (
        ("py::C.f:/a.py", ("C.f", "/a.py", 7)),
        ("py::C.f:/b.py", ("C.f", "/b.py", None)),
        ("py::C.f:<frozen os>", ("C.f", "<frozen os>", None)),
        ("JS:*f /a.py:3:1", ("JS:*f /a.py:3:1", None, None)),
    ):
        (tmp_path / "perf-14513.map").write_text(f"1000 7ffffffff000 {name}\n", encoding="ascii")
        with perfuse.fuse(tmp_path) as profile:
            sql = "SELECT DISTINCT name::VARCHAR, path::VARCHAR, line FROM functions WHERE linkage_name = $name"
            assert profile.sql(sql, {"name": name}).fetchall() == [expected]


def test_the_line_in_reports(directory: Path) -> None:
    report = json_of("report", directory)
    for table in ("top_total", "top_jit_only"):
        row = next(row for row in report[table] if row["name"] == "leaf")
        assert (row["path"], row["line"]) == (WORK, 4)
    text = command_line("report", directory)
    part = text[text.index("Top functions of JIT code") :]
    assert "w.py:4" in next(line for line in part.splitlines() if " leaf " in line)
    assert "w.py:4" in command_line("report", directory, "--function", "leaf")
    by_line = command_line("report", directory, "--by", "line", "--limit", "0")
    assert "w.py" in by_line
    assert "w.py:" not in by_line


def test_only_the_sampled_part_of_interpreted_code_is_listed(directory: Path) -> None:
    """The section has the self weight of `--jit-only`, and is not there where JIT code was sampled itself."""
    whole = json_of("report", directory)
    filtered = json_of("report", directory, "--jit-only")
    assert whole["top_jit_only"] == filtered["top_self"]
    assert "top_jit_only" not in filtered
    of_llvm = json_of("report", TESTDATA / "perf.data", TESTDATA / "jit-2345.dump")
    assert "top_jit_only" not in of_llvm


def exported(directory: Path, to: str, **options: Any) -> bytes:
    """The recording in another format."""
    out = io.BytesIO()
    with perfuse.fuse(directory) as profile:
        profile.export(out, to=to, **options)
    return out.getvalue()


def test_the_line_in_exports(directory: Path) -> None:
    """Where a format has the line of a function, and not as that of samples."""
    frames = json.loads(exported(directory, "speedscope"))["shared"]["frames"]
    (frame,) = [one for one in frames if one["name"] == "leaf"]
    assert (frame["file"], frame["line"]) == (WORK, 4)

    nodes = json.loads(exported(directory, "cpuprofile"))["nodes"]
    of_leaf = [one for one in nodes if one["callFrame"]["functionName"] == "leaf"]
    # V8 counts lines from 0.
    assert {(one["callFrame"]["url"], one["callFrame"]["lineNumber"]) for one in of_leaf} == {(WORK, 3)}
    assert not any(one.get("positionTicks") for one in of_leaf)

    shared = json.loads(exported(directory, "firefox"))["shared"]
    functions, of_samples = shared["funcTable"], shared["frameTable"]
    (leaf,) = [number for number, name in enumerate(functions["name"]) if shared["stringArray"][name] == "leaf"]
    assert functions["lineNumber"][leaf] == 4
    assert {line for func, line in zip(of_samples["func"], of_samples["line"], strict=True) if func == leaf} == {None}

    dictionary = json.loads(exported(directory, "otlp", encoding="json"))["dictionary"]
    texts = dictionary["stringTable"]
    (function,) = [one for one in dictionary["functionTable"] if texts[one.get("nameStrindex", 0)] == "leaf"]
    assert int(function["startLine"]) == 4

    assert f"{WORK}:4</title>" in exported(directory, "svg").decode()
    page = re.search(rb'id="profile">([^<]*)</script>', exported(directory, "html"))
    assert page is not None
    # JSON with its size in front, then columns.
    data = zlib.decompress(base64.b64decode(page[1]))
    symbols = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])["symbols"]
    assert symbols["line"][symbols["name"].index("leaf")] == 4


def test_the_line_in_pprof(directory: Path) -> None:
    """Field 5 of `Function` is `start_line`; field 2 of `Line` the line of the sample, which is not known."""
    fields = list(_fields(exported(directory, "pprof")))
    texts = [value.decode() for number, value in fields if number == 6]
    functions = [dict(_fields(value)) for number, value in fields if number == 5]
    (leaf,) = [one for one in functions if texts[one[2]] == "leaf"]
    assert (texts[leaf[4]], leaf[5]) == (WORK, 4)
    locations = [list(_fields(value)) for number, value in fields if number == 4]
    of_leaf = [
        line
        for location in locations
        for number, value in location
        if number == 4 and (line := dict(_fields(value)))[1] == leaf[1]
    ]
    assert of_leaf
    assert all(line.get(2, 0) == 0 for line in of_leaf)


def saved(directory: Path) -> bytes:
    """The recording as a saved profile."""
    path = directory.parent / "run.perfuse"
    with perfuse.fuse(directory) as profile:
        profile.save(path)
    return path.read_bytes()


def test_a_saved_profile(directory: Path) -> None:
    """All functions have what they had, also those without samples, which are made again of the dump's copy."""
    packed = saved(directory)
    sql = "SELECT function_id, name::VARCHAR, path::VARCHAR, line FROM functions ORDER BY 1"
    with perfuse.fuse(directory) as profile:
        rows = profile.sql(sql).fetchall()
    shutil.rmtree(directory)
    with perfuse.fuse(packed) as profile:
        assert lines_of(profile) == NOTED
        assert profile.sql(sql).fetchall() == rows


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"[3]", b'[{"/a.py": {"f": -1}}]', b"[" * 100_000])
def test_damaged_lines_of_a_saved_profile(directory: Path, content: bytes) -> None:
    from perfuse.archive.definitions import MEMBER
    from perfuse.archive.xz import packed as compressed

    for member in (content, compressed(content), compressed(content)[:-9]):
        with pytest.raises(perfuse.UnreadableInput):
            perfuse.fuse(rewritten(saved(directory), {MEMBER: member})).tables["functions"].to_arrow()
        (directory.parent / "run.perfuse").unlink()


def test_saved_lines_are_limited(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from perfuse.archive import definitions
    from perfuse.archive.xz import packed as compressed

    monkeypatch.setattr(definitions, "MAX_BYTES", 1 << 20)
    bomb = compressed(b" " * (1 << 24) + b"[]")
    with pytest.raises(perfuse.UnreadableInput, match="larger than 1 MiB"):
        perfuse.fuse(rewritten(saved(directory), {definitions.MEMBER: bomb})).tables["functions"].to_arrow()
