"""`--debuginfod`: a server in the test has the program and the debug information of a recording."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import Attribute, PerfFile

PID = 4242
START = 0x400000
SOURCE = """\
static volatile int sink;
__attribute__((noinline)) int
busy(int n)
{
    return sink + n;
}
int main(void) { return busy(1); }
"""


@dataclass
class Server:
    """A debuginfod server: files by path, and the paths that it was asked for."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    announce: int = 0
    """Added to the announced size of a file."""
    status: int = 404
    """Answer for other paths."""


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            content = state.files.get(self.path)
            self.send_response(state.status if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"") + (state.announce if content else 0)))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_arguments: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state = Server(f"http://127.0.0.1:{http.server_address[1]}")
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield state
    http.shutdown()
    http.server_close()
    thread.join()


@dataclass(frozen=True)
class Recorded:
    """A recording of a program that is not on this machine, and what a server may have of it."""

    path: Path
    build_id: str
    executable: bytes
    debuginfo: bytes

    def address(self, kind: str) -> str:
        return f"/buildid/{self.build_id}/{kind}"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    need("gcc", "objcopy", "nm", "readelf")
    directory = tmp_path_factory.mktemp("program")
    (directory / "busy.c").write_text(SOURCE)
    compile_it = ["gcc", "-g", "-O1", "-no-pie", "-Wl,--build-id=sha1", "-o", "busy", "busy.c"]
    subprocess.run(compile_it, cwd=directory, check=True)
    symbols = subprocess.run(["nm", "busy"], cwd=directory, check=True, capture_output=True, text=True).stdout
    [busy] = [int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" T busy")]
    notes = subprocess.run(["readelf", "-n", "busy"], cwd=directory, check=True, capture_output=True, text=True).stdout
    [build_id] = [line.split()[-1] for line in notes.splitlines() if "Build ID:" in line]
    subprocess.run(["objcopy", "--only-keep-debug", "busy", "busy.debug"], cwd=directory, check=True)
    subprocess.run(["objcopy", "--strip-all", "busy", "stripped"], cwd=directory, check=True)
    kind = crafting.IDENTIFIER | crafting.IP | crafting.TID | crafting.TIME | crafting.CPU | crafting.PERIOD
    event = Attribute.of((1, 0), kind, ids=[1])
    records = [
        crafting.comm(event, PID, PID, "busy"),
        crafting.mmap2(event, PID, "/gone/busy", START, 0x4000, build_id=bytes.fromhex(build_id)),
        crafting.sample(event, ip=busy + 4, pid=PID, tid=PID, time=1_000_000),
    ]
    path = PerfFile([event], records, {}).write(directory / "perf.data")
    return Recorded(path, build_id, (directory / "stripped").read_bytes(), (directory / "busy.debug").read_bytes())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(directory))
    for name in ("DEBUGINFOD_MAXSIZE", "DEBUGINFOD_TIMEOUT", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return directory


def _named(profile: pf.Profile) -> list[tuple[str | None, str | None, int | None]]:
    rows = profile.sql("""SELECT f.name, s.path, s.line FROM samples JOIN stacks USING (stack_id)
        JOIN frames s USING (frame_id) LEFT JOIN functions f USING (function_id)""").fetchall()
    return [(name, path and Path(path).name, line) for name, path, line in rows]


def _failures(profile: pf.Profile) -> list[str]:
    return [one.message for one in profile.diagnostics if one.code == "FU022"]


@pytest.mark.usefixtures("cache")
def test_nothing_is_downloaded_by_default(recorded: Recorded, server: Server) -> None:
    server.files[recorded.address("debuginfo")] = recorded.debuginfo
    assert _named(pf.fuse(recorded.path)) == [(None, None, None)]
    assert server.asked == []


def test_functions_and_lines_of_a_program_that_only_a_server_has(
    recorded: Recorded, server: Server, cache: Path
) -> None:
    server.files = {
        recorded.address("executable"): recorded.executable,
        recorded.address("debuginfo"): recorded.debuginfo,
    }
    profile = pf.fuse(recorded.path, debuginfod=[server.address])
    [(name, path, line)] = _named(profile)
    assert (name, path) == ("busy", "busy.c")
    assert line is not None
    assert SOURCE.splitlines()[line - 1] in ("{", "    return sink + n;", "}")
    assert sorted(server.asked) == sorted(server.files)
    assert (cache / recorded.build_id / "debuginfo").read_bytes() == recorded.debuginfo
    # What is in the cache is not asked for again.
    again = pf.fuse(recorded.path, debuginfod=["http://127.0.0.1:1"])
    assert _named(again) == [("busy", "busy.c", line)]
    assert _failures(again) == []


@pytest.mark.usefixtures("cache")
def test_servers_are_asked_in_turn(recorded: Recorded, server: Server) -> None:
    server.files[recorded.address("executable")] = recorded.executable
    server.files[recorded.address("debuginfo")] = recorded.debuginfo
    profile = pf.fuse(recorded.path, debuginfod=["http://127.0.0.1:1", server.address])
    assert _named(profile)[0][0] == "busy"
    [failure] = _failures(profile)
    assert failure.startswith("http://127.0.0.1:1: ")


@pytest.mark.usefixtures("cache")
def test_a_server_without_the_files_is_no_failure(recorded: Recorded, server: Server) -> None:
    profile = pf.fuse(recorded.path, debuginfod=[server.address])
    assert _named(profile) == [(None, None, None)]
    assert sorted(server.asked) == sorted(map(recorded.address, ("debuginfo", "executable")))
    assert _failures(profile) == []


def test_another_program_is_not_used(recorded: Recorded, server: Server, cache: Path) -> None:
    other = recorded.executable.replace(bytes.fromhex(recorded.build_id), bytes(20))
    server.files[recorded.address("executable")] = other
    server.files[recorded.address("debuginfo")] = recorded.debuginfo.replace(
        bytes.fromhex(recorded.build_id), bytes(20)
    )
    assert _named(pf.fuse(recorded.path, debuginfod=[server.address])) == [(None, None, None)]
    assert (cache / recorded.build_id / "executable").read_bytes() == other


def test_limits(recorded: Recorded, server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.files[recorded.address("executable")] = recorded.executable
    monkeypatch.setenv("DEBUGINFOD_MAXSIZE", "1000")
    [failure] = _failures(pf.fuse(recorded.path, debuginfod=[server.address]))
    assert "more than the limit of 1000" in failure
    assert not list(cache.rglob("*/*"))


def test_a_file_that_is_cut_is_not_stored(recorded: Recorded, server: Server, cache: Path) -> None:
    server.files[recorded.address("executable")] = recorded.executable
    server.announce = 100
    profile = pf.fuse(recorded.path, debuginfod=[server.address])
    assert _named(profile) == [(None, None, None)]
    assert len(_failures(profile)) == 1
    assert not [path for path in cache.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("cache")
def test_refusals_are_reported(recorded: Recorded, server: Server) -> None:
    server.status = 500
    [failure] = _failures(pf.fuse(recorded.path, debuginfod=[server.address]))
    assert failure.startswith(f"{server.address}: 500")


@pytest.mark.parametrize("address", ["debuginfod.example.org", "file:///etc", "ftp://x/", "http://"])
def test_addresses_are_checked(recorded: Recorded, address: str) -> None:
    with pytest.raises(pf.UsageError, match="not the address of a debuginfod server"):
        pf.fuse(recorded.path, debuginfod=[address])
    with pytest.raises(pf.UsageError, match="may be opened"):
        pf.fuse(recorded.path, debuginfod=["http://127.0.0.1:1"], follow="none")
