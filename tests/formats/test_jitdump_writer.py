"""The writer of dumps: its records, and the effects of threads, forks, kills and full disks."""

import ctypes
import io
import os
import platform
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import perfuse as pf
from perfuse import jitdump

LINES = [(0, "a.py", 10, 1), (2, "b.py", 20, 5), (4, "a.py", 12, 1)]
CALL = jitdump.InlineCall(2, 2, 0, jitdump.Declaration("inner", "b.py", 19, 3), "a.py", 11, 9)


def records(file: io.BytesIO | Path) -> list[pf.Record]:
    return list(pf.open(file.getvalue() if isinstance(file, io.BytesIO) else file).records())


@pytest.mark.parametrize("dialect", ["debug_info", "debug_info2", "frames"])
def test_a_load_follows_its_debug_and_unwind_records(dialect: jitdump.Dialect) -> None:
    file = io.BytesIO()
    with jitdump.Writer(file, pid=7, dialect=dialect, timestamps=lambda: 5) as writer:
        writer.embedded_source("a.py", "def outer(): ...")
        index = writer.code_load(
            "outer",
            0x7000,
            b"\x90" * 6,
            lines=LINES,
            inlines=[CALL] if dialect != "debug_info" else [],
            unwind=jitdump.Unwinding(b"frame", b"hdr"),
            tier="fast" if dialect != "frames" else None,
        )
        writer.code_move(index, 0x7000, 0x8000, 6)
    inline = ["SAMPLY_JIT_CODE_DEBUG_INFO2"] if dialect != "debug_info" else []
    assert [record.name for record in records(file)] == [
        "SAMPLY_EMBEDDED_SOURCE_FILE",
        "JIT_CODE_DEBUG_INFO",
        *inline,
        *(["SAMPLY_JIT_TIER"] if dialect != "frames" else []),
        "JIT_CODE_UNWINDING_INFO",
        "JIT_CODE_LOAD",
        "JIT_CODE_MOVE",
        "JIT_CODE_CLOSE",
    ]
    (load,) = (jitdump.from_record(record) for record in records(file) if record.name == "JIT_CODE_LOAD")
    assert isinstance(load, jitdump.CodeLoad)
    assert (load.pid, load.tid) == (7, threading.get_native_id())
    assert (load.code_addr, load.code_size, load.code_index, load.timestamp) == (0x7000, 6, index, 5)
    (unwind,) = (r for r in records(file) if r.name == "JIT_CODE_UNWINDING_INFO")
    assert unwind.unwinding_data == b"framehdr"
    (debug,) = (r for r in records(file) if r.name == "JIT_CODE_DEBUG_INFO")
    rows = [(entry["code_addr"], entry["name"], entry["line"], entry["discrim"]) for entry in debug.entries]
    assert rows == [(0x7000 + offset, *rest) for offset, *rest in LINES]


@pytest.mark.parametrize("dialect", ["debug_info2", "frames"])
def test_inlined_calls_reach_the_tables(dialect: jitdump.Dialect) -> None:
    file = io.BytesIO()
    with jitdump.Writer(file, dialect=dialect) as writer:
        writer.code_load("outer", 0x7000, b"\x90" * 6, lines=LINES, inlines=[CALL])
        assert writer.unsupported == jitdump.UnsupportedCounts()
    recording = pf.open(file.getvalue())
    calls = recording.tables["inline_calls"].to_arrow()
    functions = recording.tables["functions"].to_arrow()
    names = dict(zip(functions["function_id"].to_pylist(), functions["name"].to_pylist(), strict=True))
    assert [names[key] for key in calls["function_id"].to_pylist()] == ["inner"]
    assert calls["start_offset"].to_pylist() == [2]
    assert calls["call_line"].to_pylist() == [11]


def test_unrepresentable_values_are_counted() -> None:
    with jitdump.Writer(io.BytesIO(), dialect="debug_info2") as writer:
        writer.code_load("f", 0x7000, b"\xc3", lines=[(0, "a.py", 1, 0), (1 << 32, "a.py", 2, 1)])
        assert writer.unsupported == jitdump.UnsupportedCounts(offsets=1, unknown_columns=1)


@pytest.mark.parametrize("dialect", ["debug_info", "debug_info2", "frames"])
def test_check_finds_nothing_to_repair(dialect: jitdump.Dialect) -> None:
    file = io.BytesIO()
    with jitdump.Writer(file, arch="aarch64", dialect=dialect) as writer:
        writer.code_load("f", 0x7000, b"\xc3\xc3", lines=[(0, "a.py", 1, 1), (1, "a.py", 2, 1)])
    worse = [d for d in pf.open(file.getvalue()).check() if d.severity != "info"]
    assert worse == []


def test_refusals_leave_no_trace() -> None:
    file = io.BytesIO()
    with jitdump.Writer(file) as writer:
        empty = len(file.getvalue())
        with pytest.raises(ValueError, match="NUL"):
            writer.code_load("a\0b", 0x7000, b"\xc3", lines=LINES)
        with pytest.raises(ValueError, match="int"):
            writer.code_load("f", -1, b"\xc3", lines=[(0, "a.py", 1, 1)])
        with pytest.raises(pf.UsageError, match="dialect"):
            writer.code_load("f", 0x7000, b"\xc3", inlines=[CALL])
        with pytest.raises(pf.UsageError, match="size"):
            writer.code_load("f", 0x7000)
        assert len(file.getvalue()) == empty
        writer.debug_info(0x7000, LINES)
        with pytest.raises(ValueError, match="no load yet"):
            writer.code_load("g", 0x9000, b"\xc3")
        writer.code_load("h", 0x9000, b"\xc3")
    with pytest.raises(pf.UsageError, match="closed"):
        writer.code_load("f", 0x7000, b"\xc3")
    for wrong in ({"endian": "middle"}, {"arch": "pdp11"}, {"dialect": "dwarf"}):
        with pytest.raises(pf.UsageError):
            jitdump.Writer(io.BytesIO(), **wrong)


def test_a_full_disk_is_reported_and_a_cut_record_removed(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="space"):
        jitdump.Writer("/dev/full")
    script = f"""
import resource, signal
from perfuse import jitdump
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = jitdump.Writer({str(tmp_path / "cut.dump")!r})
writer.code_load("fits", 0x7000, bytes(100))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    writer.code_load("does not", 0x8000, bytes(5000))
except OSError:
    writer.code_load("fits too", 0x9000, bytes(100))
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    names = [record.fields.get("name") for record in records(tmp_path / "cut.dump")]
    assert names == ["fits", "fits too"]


def test_threads_do_not_interleave_records_of_a_function() -> None:
    file = io.BytesIO()
    start = threading.Barrier(4)

    def compile_many(base: int) -> None:
        start.wait()
        for number in range(200):
            address = base + number * 16
            writer.code_load(f"f{address}", address, b"\xc3", lines=[(0, "a.py", number + 1, 1)])

    with jitdump.Writer(file) as writer:
        threads = [threading.Thread(target=compile_many, args=(0x10000 * (n + 1),)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    written = records(file)[:-1]
    assert len(written) == 1600
    for debug, load in zip(written[::2], written[1::2], strict=True):
        assert (debug.name, load.name) == ("JIT_CODE_DEBUG_INFO", "JIT_CODE_LOAD")
        assert debug.code_addr == load.code_addr
    assert len({load.code_index for load in written[1::2]}) == 800


def mapped(pid: int | str) -> list[str]:
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [line for line in lines if line.endswith(".dump") and " r-xp " in line]


linux = pytest.mark.skipif(sys.platform != "linux", reason="perf and /proc are Linux's")


@linux
def test_this_process_announces_its_dump(tmp_path: Path) -> None:
    with jitdump.Writer.for_this_process(tmp_path) as writer:
        path = tmp_path / f"jit-{os.getpid()}.dump"
        assert writer.path == path
        (marker,) = mapped("self")
        assert marker.endswith(str(path))
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(pf.PerfuseError, match="exists already"):
            jitdump.Writer.for_this_process(tmp_path)
    assert mapped("self") == []
    header = pf.open(path).summary
    assert (header.arch, header.header["pid"]) == (platform.machine(), os.getpid())


@linux
def test_a_link_where_the_dump_should_be_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / f"jit-{os.getpid()}.dump").symlink_to(victim)
    with pytest.raises(pf.PerfuseError):
        jitdump.Writer.for_this_process(tmp_path)
    assert victim.read_bytes() == b"precious"


FORKING = """
import os, sys, threading
from perfuse import UsageError, jitdump
directory, other = sys.argv[1:]
own = jitdump.Writer.for_this_process(directory)
plain = jitdump.Writer(other)
own.code_load("parent", 0x7000, b"\\xc3")
busy = threading.Event()
def hold():
    with own._lock:
        busy.set()
        threading.Event().wait()
threading.Thread(target=hold, daemon=True).start()
busy.wait()
child = os.fork()
if child == 0:
    own.code_load("child", 0x8000, b"\\xc3")
    own.close()
    try:
        plain.code_load("child", 0x8000, b"\\xc3")
    except UsageError:
        print("refused", flush=True)
    plain.close()
    os._exit(0)
os.waitpid(child, 0)
print(child, flush=True)
plain.code_load("parent", 0x7000, b"\\xc3")
plain.close()
os._exit(0)
"""


@linux
def test_a_forked_child_writes_its_own_dump(tmp_path: Path) -> None:
    other = tmp_path / "other.dump"
    command = [sys.executable, "-c", FORKING, str(tmp_path), str(other)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    refused, child = done.stdout.split()
    assert refused == "refused"
    parent_path, child_path = sorted(tmp_path.glob("jit-*.dump"), key=lambda path: path.name == f"jit-{child}.dump")
    assert [r.fields.get("name") for r in records(parent_path)] == ["parent"]
    assert [r.name for r in records(child_path)] == ["JIT_CODE_LOAD", "JIT_CODE_CLOSE"]
    assert records(child_path)[0].pid == int(child)
    assert [r.name for r in records(other)] == ["JIT_CODE_LOAD", "JIT_CODE_CLOSE"]


@linux
def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    script = f"""
import os, signal
from perfuse import jitdump
writer = jitdump.Writer.for_this_process({str(tmp_path)!r})
for number in range(100):
    writer.code_load(f"f{{number}}", 0x7000 + 16 * number, b"\\xc3")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    (path,) = tmp_path.glob("jit-*.dump")
    assert len(records(path)) == 100


@linux
def test_code_is_read_from_this_process() -> None:
    buffer = ctypes.create_string_buffer(b"\x01\x02\x03\x04", 4)
    file = io.BytesIO()
    with jitdump.Writer(file) as writer:
        writer.code_load("f", ctypes.addressof(buffer), size=4)
    assert records(file)[0].code == b"\x01\x02\x03\x04"
