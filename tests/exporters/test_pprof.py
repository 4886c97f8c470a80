"""pprof's profiles, read by pprof itself."""

import io
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile
from perf_script import perf_script
from small_profile import add_cache_miss
from tools import output_of

import perfuse
from needs import need
from perfuse.errors import ExportError, ExportWarning
from perfuse.exporters import export
from perfuse.exporters.queries import type_names

_FUNCTION = re.compile(r" \S*:\d+:\d+ s=\d+(\(.*\))?$")
"""File, line, column and system name, which follow a name."""


def pprof(path: Path, *options: str) -> str:
    need("go")
    return output_of("go", "tool", "pprof", *options, path)


def test_small_profile(small: FakeProfile, golden: Any, tmp_path: Path) -> None:
    export(small, tmp_path / "p.pb.gz")
    golden("small.pprof.txt", pprof(tmp_path / "p.pb.gz", "-symbolize=none", "-raw"))


def test_another_event_is_another_value(small: FakeProfile, tmp_path: Path) -> None:
    add_cache_miss(small)
    export(small, tmp_path / "p.pb")
    raw = pprof(tmp_path / "p.pb", "-symbolize=none", "-raw")
    assert "cpu_clock_samples/count cpu_clock/nanoseconds[dflt] cache_misses_samples/count cache_misses/count" in raw, (
        raw
    )
    assert "1    1000000          1        100: 1 2" in raw, raw


def test_labels_name_threads_processes_and_tiers(small: FakeProfile, tmp_path: Path) -> None:
    """As pprof adds them up."""
    export(small, tmp_path / "p.pb")
    printed = pprof(tmp_path / "p.pb", "-symbolize=none", "-sample_index=samples", "-tags")
    found: dict[str, dict[str, int]] = {}
    for paragraph in printed.strip().split("\n\n"):
        name, *values = paragraph.splitlines()
        rows = [re.match(r"\s*(\d+) \([ \d.]+%\): (.*)", value) for value in values]
        found[name.strip().partition(":")[0]] = {row[2]: int(row[1]) for row in rows if row}
    expected = small.sql("""
        SELECT 'process', p.name::VARCHAR, count(*) FROM samples JOIN threads USING (thread_id)
            JOIN processes p USING (process_id) GROUP BY 2
        UNION ALL SELECT 'thread', t.name::VARCHAR, count(*) FROM samples JOIN threads t USING (thread_id) GROUP BY 2
        UNION ALL SELECT 'tier', tier::VARCHAR, count(*) FROM samples JOIN stacks USING (stack_id)
            JOIN frames USING (frame_id) JOIN code_objects USING (code_object_id) GROUP BY 2
    """).fetchall()
    for label, value, num in expected:
        if value is not None:
            assert found[label].pop(value) == num
    assert not any(found[label] for label in ("process", "thread", "tier"))


@pytest.mark.parametrize("events", [["cpu-clock", "faults:u", "faults.u"], ["a/b/", "sched:sched_switch"]])
def test_names_of_types_are_those_that_servers_take(events: list[str]) -> None:
    """Parca's queries separate names by `:`, and it and Pyroscope refuse `-`."""
    names = type_names(events)
    assert list(names) == events
    assert len({*names.values()}) == len(events)
    assert all(re.fullmatch("[A-Za-z0-9_]+", name) for name in names.values())


def test_stacks_are_those_of_the_tables(expected_script: Path, tmp_path: Path) -> None:
    profile = perf_script(expected_script)
    path = tmp_path / "p.pb.gz"
    export(profile, path)
    out = io.BytesIO()
    export(profile, out, to="collapsed", root="none")
    lines = (line.rpartition(" ") for line in out.getvalue().decode().splitlines())
    ours = {stack: int(count) for stack, _, count in lines if stack != "[no stack]"}
    assert traces(pprof(path, "-symbolize=none", "-raw")) == ours


def traces(raw: str) -> Counter[str]:
    """Samples of each stack, as `-raw` shows them: locations by number, each with a line for every function at it."""
    samples, _, rest = raw.partition("\nLocations\n")
    functions: dict[str, list[str]] = {}
    for line in rest.partition("\nMappings\n")[0].splitlines():
        number, is_new, at = line.partition(": 0x")
        if is_new and number.strip().isdigit():
            names = functions.setdefault(number.strip(), [])
            at = at.partition(" M=")[2].partition(" ")[2]
        names.append(_FUNCTION.sub("", at.strip()))
    found: Counter[str] = Counter()
    for line in samples.splitlines():
        values, is_sample, locations = line.partition(":")
        if is_sample and values.split() and all(value.isdigit() for value in values.split()):
            stack = [name for location in locations.split() for name in functions[location]]
            found[";".join(" ".join(name.replace(";", ":").split()) for name in reversed(stack))] += int(
                values.split()[0]
            )
    return Counter({stack: num for stack, num in found.items() if stack})


@pytest.mark.parametrize("name", ["small-v5", "sqmt-small-v5", "lua-small-v5"])
def test_traces_are_summed(name: str, traces: Path, tmp_path: Path) -> None:
    """Time in each function itself, and calls of it, are those of its slices."""
    profile = perfuse.fuse(traces / "fdr" / f"{name}.xray")
    profile.export(tmp_path / "p.pb.gz")
    for index, column, unit in (("wall_time", "sum(self_ns)", "ns"), ("calls", "count(*)", "")):
        rows = profile.sql(f"""
            SELECT f.name::VARCHAR, {column} FROM slices JOIN functions f USING (function_id) GROUP BY 1
        """).fetchall()
        options = ("-top", "-nodecount=0", "-nodefraction=0", f"-sample_index={index}", *(["-unit=ns"] if unit else []))
        lines = pprof(tmp_path / "p.pb.gz", *options).splitlines()
        first = next(number for number, line in enumerate(lines) if "flat%" in line) + 1
        split = (line.split(maxsplit=5) for line in lines[first:])
        theirs = {fields[5]: int(fields[0].removesuffix("ns")) for fields in split}
        assert {name: num for name, num in theirs.items() if num} == {name: num for name, num in rows if num}


def test_a_profile_without_samples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no samples"):
        export(FakeProfile(), tmp_path / "p.pb.gz")
    assert list(tmp_path.iterdir()) == []


_MAPPED = re.compile(r"MMAP2? .*: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (?:0x)?([0-9a-f]+)[^]]*\]: \S+ (\S+)")
"""Start, size, offset in the file and file of a mapping, as perf prints it."""
_RAW_MAPPING = re.compile(r"(\d+): 0x([0-9a-f]+)/0x([0-9a-f]+)/0x([0-9a-f]+) (\S+)")
_RAW_LOCATION = re.compile(r" +\d+: 0x([0-9a-f]+) M=(\d+) ")


@pytest.fixture(scope="module")
def node(corpus: Path) -> tuple[Path, Path]:
    """A perf.data and the dump of its process."""
    return corpus / "produced" / "node24.perf.data", corpus / "produced" / "node24.dump"


def perf(*command: str | Path) -> str:
    """The output of perf, which reports on stderr that the recorded kernel has no symbols here."""
    need("perf")
    return subprocess.run(["perf", *command], capture_output=True, text=True, check=True).stdout


def times(path: Path) -> tuple[int, int]:
    """`time_nanos` and `duration_nanos`: fields 9 and 10 of the message, walked without a schema."""
    data, at, found = path.read_bytes(), 0, {9: 0, 10: 0}

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        value = varint()
        if tag & 7 == 2:
            at += value
        elif tag >> 3 in found:
            found[tag >> 3] = value
    return found[9], found[10]


@pytest.mark.truth(
    recording="perf_node", path="convert:pprof", source="go tool pprof; mappings as perf script prints them"
)
def test_mappings_are_those_of_perf(node: tuple[Path, Path], tmp_path: Path) -> None:
    """The main program is the first one, each has its range and offset, and its locations are inside of it."""
    perfuse.fuse(*node).export(tmp_path / "p.pb")
    raw = pprof(tmp_path / "p.pb", "-symbolize=none", "-raw")
    mappings = {int(number): of for number, *of in _RAW_MAPPING.findall(raw.partition("\nMappings\n")[2])}
    assert mappings[1][3].endswith("/bin/node")
    mapped = perf("script", "--show-mmap-events", "-i", node[0])
    theirs = {
        (int(start, 16), int(start, 16) + int(size, 16), int(offset, 16), path)
        for start, size, offset, path in _MAPPED.findall(mapped)
    }
    for start, end, offset, path in mappings.values():
        if path.startswith("/"):
            assert (int(start, 16), int(end, 16), int(offset, 16), path) in theirs
    located = [(int(address, 16), int(number)) for address, number in _RAW_LOCATION.findall(raw)]
    assert {number for _, number in located} <= mappings.keys()
    for address, number in located:
        start, end, _, path = mappings[number]
        if path.startswith("/"):
            assert int(start, 16) <= address < int(end, 16)


@pytest.mark.truth(recording="perf_node", path="convert:pprof", source="perf report --header-only; perf script")
def test_times_are_those_of_perf(node: tuple[Path, Path], tmp_path: Path) -> None:
    """The time of day of the first event, from perf's reference time, and the time until the last one."""
    perfuse.fuse(*node).export(tmp_path / "p.pb")
    header = perf("report", "--header-only", "-i", node[0])
    reference = re.search(r"reference time: .* = (\d+)\.(\d{6}) \(TOD\) = (\d+)\.(\d{9}) \(monotonic\)", header)
    assert reference is not None
    wall_s, wall_us, own_s, own_ns = map(int, reference.groups())
    printed = perf("script", "-F", "time", "-i", node[0]).split()
    first, last = (round(float(time.removesuffix(":")) * 1e6) for time in (printed[0], printed[-1]))
    time_ns, duration_ns = times(tmp_path / "p.pb")
    expected_us = wall_s * 10**6 + wall_us + first - (own_s * 10**6 + own_ns // 1000)
    assert time_ns / 1000 == pytest.approx(expected_us, abs=2)
    assert duration_ns / 1000 == pytest.approx(last - first, abs=2000)


@pytest.mark.truth(
    recording="mono_allocations",
    path="convert:pprof",
    source="go tool pprof; mprof-report; the header by a struct walk",
)
def test_a_mono_log_has_its_time_of_day(mono_corpus: Path, mprof_report: str, tmp_path: Path) -> None:
    """The start in the header is in milliseconds of the wall clock, and in nanoseconds of the log's clock."""
    log = mono_corpus / "v17" / "alloc.mlpd"
    profile = perfuse.fuse(log)
    profile.export(tmp_path / "p.pb")
    startup_ms, startup_ns = struct.unpack_from("<QQ", log.read_bytes(), 8)
    time_ns, duration_ns = times(tmp_path / "p.pb")
    ((first, last),) = profile.sql("""
        SELECT min(ts_ns), max(ts_ns) FROM (
            SELECT ts_ns FROM instants UNION ALL SELECT ts_ns FROM counter_samples UNION ALL SELECT ts_ns FROM samples
            UNION ALL SELECT start_ns FROM slices UNION ALL SELECT start_ns + duration_ns FROM slices)
    """).fetchall()
    assert time_ns - startup_ms * 10**6 == pytest.approx(first - startup_ns, abs=3 * 10**6)
    assert duration_ns == pytest.approx(last - first, abs=5 * 10**6)
    printed = output_of(mprof_report, "--reports=alloc", log)
    total = re.search(r"Total memory allocated: (\d+) bytes in (\d+) objects", printed)
    assert total is not None
    top = pprof(tmp_path / "p.pb", "-sample_index=allocations", "-raw")
    assert sum(int(count) for count in re.findall(r"^ +\d+ +(\d+) +\d+:", top, re.MULTILINE)) == int(total[2])


def test_a_filter_of_stacks_leaves_exceptions_out(mono_corpus: Path, tmp_path: Path) -> None:
    with perfuse.fuse(mono_corpus / "v17" / "sample.mlpd") as profile:
        ((name,),) = profile.sql("""
            SELECT min(f.name::VARCHAR) FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
            JOIN functions f USING (function_id)
        """).fetchall()
        profile.export(tmp_path / "all.pb")
        assert "exceptions/count" in pprof(tmp_path / "all.pb", "-raw")
        with pytest.warns(ExportWarning, match="exceptions are not written"):
            profile.only(name).export(tmp_path / "some.pb")
        assert "exceptions/count" not in pprof(tmp_path / "some.pb", "-raw")


@pytest.mark.truth(recording="xray_fdr", path="convert:pprof", source="sleeps of the program by its source")
def test_the_duration_of_a_call_trace_is_its_length(xray_corpus: Path, tmp_path: Path) -> None:
    """Sums over calls are at the time of the first call of their path, which is not how long the program ran."""
    perfuse.fuse(xray_corpus.parent / "found" / "xray" / "pair" / "fdr.xray").export(tmp_path / "p.pb")
    time_ns, duration_ns = times(tmp_path / "p.pb")
    # 250 ms; the rate in the header of this log is 6 % too high.
    assert (time_ns, duration_ns / 1e6) == (0, pytest.approx(250, rel=0.08))


def test_lines_have_columns(small: FakeProfile, tmp_path: Path) -> None:
    export(small, tmp_path / "p.pb")
    raw = pprof(tmp_path / "p.pb", "-symbolize=none", "-raw")
    for position in ("app.js:8:3", "app.js:9:9", "lib.js:2:7", "app.c:4:0"):
        assert position in raw


@pytest.mark.truth(
    recording="perf_node", path="convert:pprof", source="perf script: periods; the server of go tool pprof"
)
def test_a_server_shows_all_of_it(node: tuple[Path, Path], tmp_path: Path) -> None:
    """Its flame graph is drawn from stacks with values, as text in the page."""
    need("go", "perf")
    perfuse.fuse(*node).export(tmp_path / "p.pb")
    periods = [int(text) for text in perf("script", "-F", "period", "-i", node[0]).split()]
    page = None
    while page is None:
        page = page_of_pprof(tmp_path / "p.pb")
    shown = json.JSONDecoder().raw_decode(page.rpartition("stackViewer(")[2])[0]
    assert (shown["Type"], shown["Unit"]) == ("cpu_clock", "s")
    assert shown["Total"] == sum(stack["Value"] for stack in shown["Stacks"]) == sum(periods)
    assert len(shown["Stacks"]) <= len(periods)


def page_of_pprof(path: Path) -> str | None:
    """The flame graph's page; None where another process took the port in the meantime."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    command = ["go", "tool", "pprof", "-symbolize=none", "-no_browser", f"-http={address}", path]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, process_group=0
    ) as server:
        try:
            return page_of(f"http://{address}/ui/flamegraph", server)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGTERM)


def page_of(url: str, server: "subprocess.Popen[str]") -> str | None:
    """A page of a server, once it listens."""
    while True:
        if server.poll() is not None:
            messages = server.stderr.read() if server.stderr else ""
            assert "address already in use" in messages, messages
            return None
        try:
            with urllib.request.urlopen(url, timeout=600) as answer:
                return str(answer.read(), "utf-8")
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            time.sleep(0.1)
