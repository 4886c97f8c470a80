"""V8's CPU profiles: the protocol's own description of them, speedscope's importer, times by hand."""

import base64
import json
import shutil
import subprocess
import sys
from collections import Counter
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile
from perf_script import perf_script
from small_profile import MS

import perfuse
from needs import need_module
from perfuse.errors import ExportError, ExportWarning, UsageError
from perfuse.exporters import export
from perfuse.exporters.queries import FRAMES

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "postcards"

SAVE_AGAIN = """
import sys
from playwright.sync_api import sync_playwright

chromium, address, out = sys.argv[1:]
with sync_playwright() as running:
    browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
    page = browser.new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    page.get_by_text("Left Heavy").first.wait_for()
    page.get_by_text("node 32015/32015").or_(page.get_by_text("p.cpuprofile")).first.wait_for()
    page.locator("body").click(position={"x": 5, "y": 300})  # keys go to the page
    with page.expect_download() as download:
        page.keyboard.press("Control+s")
    download.value.save_as(out)
    browser.close()
"""
"""Opens a page of speedscope, and saves in its own format what it has loaded."""


def violations(value: Any, kind: dict[str, Any], types: dict[str, Any], place: str, domain: str) -> list[str]:
    """Where a value is not of a type that the protocol's description declares in a domain."""
    if "$ref" in kind:
        of, _, name = kind["$ref"].rpartition(".")
        return violations(value, types[f"{of or domain}.{name}"], types, place, of or domain)
    python = {"integer": int, "number": (int, float), "string": str, "array": list, "object": dict, "boolean": bool}
    if not isinstance(value, python[kind["type"]]):
        return [f"{place} is no {kind['type']}: {value!r:.60}"]
    if kind["type"] == "array":
        found = (violations(one, kind["items"], types, f"{place}[{at}]", domain) for at, one in enumerate(value))
        return [problem for some in found for problem in some]
    problems = []
    for field in kind.get("properties", []):
        if field["name"] in value:
            problems += violations(value[field["name"]], field, types, f"{place}.{field['name']}", domain)
        elif not field.get("optional"):
            problems.append(f"{place}.{field['name']} is missing")
    return problems


def check(file: Path, peers: Path) -> dict[str, Any]:
    """A file that is as the protocol describes, and whose tree is one."""
    protocol = json.loads((peers / "devtools-protocol" / "json" / "js_protocol.json").read_bytes())
    types = {
        f"{domain['domain']}.{one['id']}": one for domain in protocol["domains"] for one in domain.get("types", [])
    }
    written: dict[str, Any] = json.loads(file.read_bytes())
    assert violations(written, types["Profiler.Profile"], types, "profile", "Profiler") == []
    nodes = {node["id"]: node for node in written["nodes"]}
    children = [child for node in written["nodes"] for child in node.get("children", [])]
    assert len(nodes) == len(written["nodes"])
    assert sorted(children) == sorted(nodes.keys() - {written["nodes"][0]["id"]}), "each node has one parent"
    assert len(written["samples"]) == len(written["timeDeltas"])
    assert Counter(written["samples"]) == Counter({key: node["hitCount"] for key, node in nodes.items()})
    for node in written["nodes"]:
        assert sum(tick["ticks"] for tick in node.get("positionTicks", [])) <= node["hitCount"]
    return written


def stacks(written: dict[str, Any]) -> list[tuple[int, tuple[str, ...]]]:
    """Time in microseconds and functions of each sample, root first, without idle time."""
    names = {node["id"]: node["callFrame"]["functionName"] for node in written["nodes"]}
    above = {child: node["id"] for node in written["nodes"] for child in node.get("children", [])}
    paths = {}
    for key in names:
        at, path = key, []
        while at in above:
            path.append(names[at])
            at = above[at]
        paths[key] = tuple(reversed(path))
    times = accumulate(written["timeDeltas"], initial=written["startTime"])
    next(times)
    return [(at, paths[node]) for at, node in zip(times, written["samples"], strict=True) if paths[node] != ("(idle)",)]


def test_every_sample_of_perf(expected_script: Path, peers: Path, tmp_path: Path) -> None:
    """Every sample of perf's own output, with its time and its functions, root first."""
    profile = perf_script(expected_script)
    (tmp_path / "all").mkdir()
    export(profile, tmp_path / "all", to="cpuprofile")
    theirs: Counter[tuple[int, int, tuple[str, ...]]] = Counter()
    for file in (tmp_path / "all").iterdir():
        written = check(file, peers)
        tid = int(file.stem.split("-")[-1])
        theirs.update((tid, at_us, path) for at_us, path in stacks(written))
    frames = dict(profile.sql(f"SELECT frame_id, label FROM ({FRAMES})").fetchall())
    paths: dict[int | None, tuple[str, ...]] = {None: ()}
    for stack, parent, frame in profile.sql(
        "SELECT stack_id, parent_stack_id, frame_id FROM stacks ORDER BY 1"
    ).fetchall():
        paths[stack] = (*paths[parent], frames[frame])
    rows = profile.sql("SELECT tid, ts_ns, stack_id FROM samples JOIN threads USING (thread_id)").fetchall()
    assert theirs == Counter((tid, (at + 500) // 1000, paths[stack] or ("[no stack]",)) for tid, at, stack in rows)


def test_lines_and_times(tmp_path: Path, peers: Path) -> None:
    """Two bursts of three samples of 1 ms, in two lines of one function: one node, 6 ms and idle time."""
    profile = FakeProfile()
    profile.add("processes", process_id=0, pid=7, name="app")
    profile.add("threads", thread_id=0, process_id=0, tid=7, name="a/b c")
    profile.add("functions", function_id=0, name="busy", path="/src/app.js", line=12, column=3)
    for number, line in enumerate((13, 14)):
        profile.add("frames", frame_id=number, function_id=0, kind="jit", line=line)
        profile.add("stacks", stack_id=number, frame_id=number)
    for number, at_ms in enumerate((0, 1, 2, 100, 101, 102)):
        profile.add("samples", sample_id=number, ts_ns=5_000_000_000 + at_ms * MS, thread_id=0, stack_id=number // 4,
                    weight=MS, weight_unit="ns", event="cpu-clock")  # fmt: skip
    file = tmp_path / "p.cpuprofile"
    export(profile, file)
    written = check(file, peers)
    (node,) = [node for node in written["nodes"] if node["callFrame"]["functionName"] == "busy"]
    assert [node["callFrame"][key] for key in ("url", "lineNumber", "columnNumber")] == ["/src/app.js", 11, 2]
    assert node["positionTicks"] == [{"line": 13, "ticks": 4}, {"line": 14, "ticks": 2}]
    lasted: Counter[int] = Counter()
    for at, length in zip(written["samples"], [*written["timeDeltas"][1:], 0], strict=True):
        lasted[at] += length
    assert lasted[node["id"]] == 6_000
    assert (written["startTime"], written["endTime"], written["title"]) == (5_000_000, 5_103_000, "a/b c 7/7")
    (tmp_path / "all").mkdir()
    assert [Path(name).name for name in export(profile, tmp_path / "all", to="cpuprofile")] == ["a_b_c-7-7.cpuprofile"]


def test_speedscope_opens_it(peers: Path, tmp_path: Path) -> None:
    """What speedscope makes of the file has the functions and the time of each."""
    need_module("playwright.sync_api")
    chromium = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    assert chromium, "chromium is not installed"
    with perfuse.fuse(EXAMPLE / "perf.data.gz", EXAMPLE / "jit-32015.dump.gz") as profile:
        file = tmp_path / "p.cpuprofile"
        with pytest.warns(ExportWarning, match="only thread"):
            profile.export(file)
        by_function = profile.sql(f"""
            SELECT label, sum(weight) / 1000 FROM samples JOIN threads USING (thread_id) JOIN stacks USING (stack_id)
            JOIN ({FRAMES}) USING (frame_id) WHERE tid = 32015 GROUP BY 1 ORDER BY 2 DESC LIMIT 5
        """).fetchall()
    content = base64.b64encode(file.read_bytes()).decode()
    script = tmp_path / "load.js"
    script.write_text(f"speedscope.loadFileFromBase64('p.cpuprofile', '{content}')", encoding="ascii")
    address = (peers / "speedscope" / "dist" / "release" / "index.html").as_uri() + f"#localProfilePath={script}"
    # In a process of its own: tests of pages have a browser open, and playwright has one loop in a process.
    command = [sys.executable, "-c", SAVE_AGAIN, chromium, address, str(tmp_path / "theirs.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = json.loads((tmp_path / "theirs.json").read_bytes())
    names = [frame["name"] for frame in theirs["shared"]["frames"]]
    (one,) = theirs["profiles"]
    assert (one["type"], one["unit"]) == ("evented", "microseconds")
    inside: list[str] = []
    lasted: Counter[str] = Counter()
    for event, following in pairwise([*one["events"], {"at": one["endValue"]}]):
        inside.append(names[event["frame"]]) if event["type"] == "O" else inside.pop()
        lasted[inside[-1] if inside else ""] += following["at"] - event["at"]
    for name, weight_us in by_function:
        assert lasted[name] == pytest.approx(weight_us, rel=0.1), name


def test_refusals(small: FakeProfile, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no samples"):
        export(FakeProfile(), tmp_path / "p.cpuprofile")
    with pytest.raises(UsageError, match="no samples of event 'cycles'"):
        export(small, tmp_path / "p.cpuprofile", event="cycles")
    with pytest.raises(ExportError, match="thread 99 has no samples"):
        export(small, tmp_path / "p.cpuprofile", tid=99)
    assert not list(tmp_path.iterdir())
