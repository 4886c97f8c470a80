"""`perfuse annotate` of dumps with known code: what is selected, what is shown, and requests that name nothing."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import pytest
from command_line import Perfuse

import perf_crafting as crafting
import perfuse as pf
from perfuse.formats.jitdump.code import Declaration, InlineCall, Line
from perfuse.formats.jitdump.writer import Writer

# loop: dec %ecx; jne loop; call other (0x2000); ret
LOOP = bytes.fromhex("ffc9 75fc e8f70f0000 c3")
RETURN = b"\xc3"
AARCH64 = struct.pack("<2I", 0xD2800540, 0xD65F03C0)  # mov x0, #42; ret
SOURCE = "def loop():\n    count -= 1\n    other()\n"


@pytest.fixture
def dump(recordings: Path) -> str:
    """Functions `loop` (two tiers), `other`, `other_one`, `nothing` (no bytes) and `inlining`."""
    path = recordings / "jit-77.dump"
    times = iter(range(1_000_000_000, 2_000_000_000, 1_000_000))
    with Writer(path, pid=77, arch="x86_64", dialect="debug_info2", timestamps=lambda: next(times)) as out:
        out.embedded_source("/src/loop.py", SOURCE)
        lines = [Line(0, "/src/loop.py", 2, 5), Line(4, "/src/loop.py", 3, 5)]
        out.code_load("loop", 0x2000, RETURN, tier="baseline")
        out.code_load("other", 0x2000, RETURN, tier="baseline")
        out.code_load("loop", 0x1000, LOOP, lines=lines, tier="optimised")
        out.code_load("other_one", 0x3000, RETURN)
        out.code_load("nothing", 0x4000, b"")
    return path.name


def listing(done_out: str) -> list[str]:
    """The lines with an offset and an instruction."""
    return [line for line in done_out.splitlines() if re.search(r" [0-9a-f]+  \w", line) and "offset" not in line]


def test_an_annotation_is_shown_by_its_function(dump: str) -> None:
    assert repr(pf.fuse(dump).annotate("loop")) == "<perfuse annotation of loop: 2 compilations, 0 samples>"


def test_the_code_of_the_last_compilation_with_its_source(perfuse: Perfuse, dump: str) -> None:
    done = perfuse("annotate", dump, "loop")
    assert (done.code, done.err) == (0, "")
    assert "no samples" in done.out
    rows = [line.strip() for line in done.out.splitlines()]
    assert any(re.search(r"loop.py:2 +count -= 1", row) for row in rows)
    assert any(re.search(r"jne +0$", row) for row in rows), done.out
    assert any(re.search(r"call +other \[baseline\]$", row) for row in rows), done.out
    assert [row.split()[1] for row in rows if re.match(r"►? *\d+ +c\d+", row.replace("► ", ""))]


def test_json_has_the_bytes_of_each_compilation(perfuse: Perfuse, dump: str) -> None:
    done = perfuse("annotate", dump, "loop", "--compilation", "all", "--json")
    document = json.loads(done.out)
    assert [one["tier"] for one in document["compilations"]] == ["baseline", "optimised"]
    sizes = [sum(row["size_bytes"] for row in one["instructions"]) for one in document["listings"]]
    assert sizes == [len(RETURN), len(LOOP)]
    texts = [row["text"] for row in document["listings"][1]["instructions"]]
    assert texts == ["dec %ecx", "jne 1000", "call 2000", "ret"]
    assert document["listings"][1]["instructions"][1]["target_offset"] == 0
    assert document["sources"]["/src/loop.py"] == {
        "origin": "recording",
        "lines": {"2": "    count -= 1", "3": "    other()"},
    }


def test_a_tier_a_number_and_a_handle_select_a_compilation(perfuse: Perfuse, dump: str) -> None:
    document = json.loads(perfuse("annotate", dump, "loop", "--json").out)
    baseline, optimised = (one["handle"] for one in document["compilations"])
    for words, expected in (
        (["loop", "--tier", "baseline"], baseline),
        (["loop", "--compilation", "1"], baseline),
        (["loop", "--compilation", optimised], optimised),
        ([baseline], baseline),
        ([document["function"]["handle"]], optimised),
        (["0x1004"], optimised),
    ):
        found = json.loads(perfuse("annotate", dump, *words, "--json").out)
        number = found["listings"][0]["number"]
        assert [one["handle"] for one in found["compilations"] if one["number"] == number] == [expected], words


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["lop"], "no function 'lop'", "did you mean loop?"),
        (["othe"], "2 functions match 'othe'", "other_one"),
        (["/^o/"], "2 functions match '/^o/'", "other"),
        (["/(/"], "not a valid regular expression", ""),
        (["loop", "--tier", "turbofan"], "no code of tier 'turbofan'", "baseline, optimised"),
        (["loop", "--compilation", "7"], "has no compilation 7", "1 (c"),
        (["f999"], "no function has the handle f999", "handles are from f"),
        (["c999"], "no code has the handle c999", "handles are from c"),
        (["0x9999"], "no code is at 0x9999", "inside JIT code"),
        (["0x2000"], "2 pieces of code were at 0x2000", "loop"),
        (["loop", "--event", "cycles"], "no samples of event 'cycles'", ""),
        (["other", "--source"], "no source text", ""),
        ([""], "is empty", ""),
    ],
)
def test_requests_that_name_nothing_are_errors(
    perfuse: Perfuse, dump: str, words: list[str], message: str, hint: str
) -> None:
    done = perfuse("annotate", dump, *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert hint in done.err


def test_a_name_without_parameters_is_that_function_before_it_is_a_part_of_others(
    perfuse: Perfuse, recordings: Path
) -> None:
    with Writer(recordings / "jit-78.dump", pid=78, arch="x86_64") as out:
        out.code_load("void sort<fill()::Less>(int*)", 0x1000, RETURN)
        out.code_load("fill()", 0x2000, RETURN)
    assert perfuse("annotate", "jit-78.dump", "fill").out.startswith("fill()")
    done = perfuse("annotate", "jit-78.dump", "il")
    assert "2 functions match 'il'" in done.err


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("ns::Map<…>::find", "int ns::Map<int, long>::find(int const&)"),
        ("ns::Map::find", "int ns::Map<int, long>::find(int const&)"),
        ("ns::Map<…>::operator[]", "long& ns::Map<int, long>::operator[](int const&)"),
        ("ns::parse", "ns::parse(std::string const&)"),
        ("ns::parse [clone .cold]", "ns::parse(std::string const&) [clone .cold]"),
    ],
)
def test_a_name_as_reports_show_it_is_that_function(perfuse: Perfuse, recordings: Path, wanted: str, name: str) -> None:
    names = (
        "int ns::Map<int, long>::find(int const&)",
        "ns::Map<int, long>::find_all()",
        "long& ns::Map<int, long>::operator[](int const&)",
        "ns::parse(std::string const&)",
        "ns::parse(std::string const&) [clone .cold]",
    )
    with Writer(recordings / "jit-79.dump", pid=79, arch="x86_64") as out:
        for number, one in enumerate(names):
            out.code_load(one, 0x1000 + number * 0x100, RETURN)
    done = perfuse("annotate", "jit-79.dump", wanted, "--json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["function"]["name"] == name


@pytest.mark.parametrize("budget", [260, 400, 700])
def test_a_budget_is_kept_and_what_is_left_out_is_stated(perfuse: Perfuse, dump: str, budget: int) -> None:
    whole = perfuse("annotate", dump, "loop").out
    done = perfuse("annotate", dump, "loop", "--budget", str(budget))
    assert done.code == 0, done.err
    assert len(done.out.encode()) <= budget
    assert done.out == whole or "are left out: a larger --budget shows more" in done.out
    assert perfuse("annotate", dump, "loop", "--budget", "100").code == 2
    assert perfuse("annotate", dump, "loop", "--budget", "900", "--json").code == 2


def test_a_name_like_a_handle(perfuse: Perfuse, recordings: Path) -> None:
    with Writer(recordings / "jit-4.dump", pid=4, arch="x86_64") as out:
        for name in ("other", "f0", "c9"):
            out.code_load(name, 0x1000, RETURN)
    done = perfuse("annotate", "jit-4.dump", "f0")
    assert done.code == 2
    assert "is the name of a function and the handle of other code" in done.err
    for words in ("/^f0$/", "f1"):
        assert json.loads(perfuse("annotate", "jit-4.dump", words, "--json").out)["function"]["name"] == "f0"
    assert json.loads(perfuse("annotate", "jit-4.dump", "c9", "--json").out)["function"]["name"] == "c9"


def test_code_without_bytes(perfuse: Perfuse, dump: str) -> None:
    done = perfuse("annotate", dump, "nothing")
    assert done.code == 0
    assert "does not contain its bytes" in done.out


def test_a_file_in_place_of_the_function(perfuse: Perfuse, dump: str) -> None:
    done = perfuse("annotate", dump)
    assert done.code == 2
    assert "no FUNCTION" in done.err


@pytest.mark.parametrize(("arch", "texts"), [("aarch64", ["mov x0, #0x2a", "ret"]), ("riscv64", [".byte"])])
def test_other_machines(perfuse: Perfuse, recordings: Path, arch: str, texts: list[str]) -> None:
    with Writer(recordings / "jit-5.dump", pid=5, arch=arch) as out:
        out.code_load("f", 0x1000, AARCH64)
    done = perfuse("annotate", "jit-5.dump", "f", "--json")
    found = [row["text"] for row in json.loads(done.out)["listings"][0]["instructions"]]
    assert len(found) == len(texts)
    assert all(one.startswith(text) for one, text in zip(found, texts, strict=True)), found


def test_inlined_calls_are_marked(perfuse: Perfuse, recordings: Path) -> None:
    called = Declaration("called", "/src/called.py", 10)
    inlines = [InlineCall(2, 7, 0, called, "/src/outer.py", 3)]
    lines = [Line(0, "/src/outer.py", 2), Line(2, "/src/called.py", 11), Line(9, "/src/outer.py", 4)]
    with Writer(recordings / "jit-8.dump", pid=8, arch="x86_64", dialect="debug_info2") as out:
        out.code_load("outer", 0x1000, LOOP, lines=lines, inlines=inlines)
    done = perfuse("annotate", "jit-8.dump", "outer")
    assert "inlined called at outer.py:3" in done.out
    rows = json.loads(perfuse("annotate", "jit-8.dump", "outer", "--json").out)["listings"][0]["instructions"]
    names = [[call["name"] for call in row["inlined"]] for row in rows]
    assert names == [[], ["called"], ["called"], []]
    assert [row["line"] for row in rows] == [2, 11, 11, 4]
    done = perfuse("annotate", "jit-8.dump", "called")
    assert done.code == 2
    assert "no machine code of its own" in done.err


def test_functions_that_are_names_alone_state_what_has_their_code(perfuse: Perfuse, recordings: Path) -> None:
    event = crafting.Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
    kernel = 0xFFFFFFFF81000000
    body = struct.pack("<iiQQQ", -1, 0, kernel, 0x1000000, kernel) + crafting.text("[kernel.kallsyms]_text")
    records = [
        crafting.Record(crafting.MMAP, 1, body + event.sample_id(2**32 - 1)),
        crafting.mmap2(event, 61, "//anon", 0x7000, 0x1000, prot=7),
        crafting.sample(event, pid=61, tid=61, time=10, ip=0x7010),
        crafting.sample(event, pid=61, tid=61, time=20, ip=kernel + 0x110, misc=1),
    ]
    crafting.PerfFile([event], records).write(recordings / "names.data")
    (recordings / "perf-61.map").write_text("7000 100 ofMap\n", encoding="ascii")
    (recordings / "lists").mkdir()
    listed = f"{kernel:x} T _text\n{kernel + 0x100:x} T do_work\n{kernel + 0x200:x} T other\n"
    (recordings / "lists" / "kallsyms").write_text(listed, encoding="ascii")
    for name, message, hint in (
        ("ofMap", "ofMap is from a perf map, which has no machine code", "perfuse doctor"),
        (
            "do_work",
            "the machine code of do_work is not available",
            "directory of the kernel's vmlinux with --symbols",
        ),
    ):
        done = perfuse("annotate", "names.data", name, "--symbols", "lists")
        assert (done.code, done.out) == (2, "")
        assert message in done.err
        assert hint in done.err


@pytest.mark.parametrize("declared", [1, 4])
def test_lines_of_javascript_that_was_made_of_typescript_are_not_those_of_that_file(
    perfuse: Perfuse, recordings: Path, declared: int
) -> None:
    """deno removes lines of types, as those of the interface here; node leaves functions on their lines."""
    source = recordings / "app.ts"
    text = "interface P {\n  x: number;\n}\nfunction hot(p: P): number {\n  return p.x * 42;\n}\n"
    source.write_text(text, encoding="ascii")
    with Writer(recordings / "jit-9.dump", pid=9, arch="x86_64") as out:
        line = Line(0, f"file://{source}", declared + 1)
        out.code_load(f"JS:*hot file://{source}:{declared}:13", 0x1000, LOOP, lines=[line])
    done = perfuse("annotate", "jit-9.dump", "hot", columns=300)
    assert done.code == 0, done.err
    made = "lines are those of JavaScript that was made of app.ts, not of this file"
    assert (made in done.out, "return p.x * 42;" in done.out) == (declared == 1, declared == 4)


def test_moved_code_is_listed_by_place(perfuse: Perfuse, recordings: Path) -> None:
    times = iter(range(1_000_000_000, 2_000_000_000, 1_000_000))
    with Writer(recordings / "jit-6.dump", pid=6, arch="x86_64", timestamps=lambda: next(times)) as out:
        index = out.code_load("f", 0x1000, LOOP)
        out.code_move(index, 0x1000, 0x5000, len(LOOP))
    done = perfuse("annotate", "jit-6.dump", "f")
    assert "0x5000" in done.out
    assert "moved" in done.out
    places = json.loads(perfuse("annotate", "jit-6.dump", "f", "--json").out)["compilations"][0]["places"]
    assert [place["address"] for place in places] == ["0x1000", "0x5000"]


def test_samples_of_a_recording(perfuse: Perfuse) -> None:
    done = perfuse("annotate", "perf.data", "jit-2345.dump", "crc")
    assert done.code == 0
    assert "share" in done.out
    assert "cpu-clock" in done.out


def test_a_page_is_one_file(perfuse: Perfuse, dump: str, recordings: Path) -> None:
    done = perfuse("annotate", dump, "loop", "-o", "loop.html")
    assert done.code == 0
    page = (recordings / "loop.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg|http-equiv", "", page)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    assert [one["number"] for one in data["listings"]] == [1, 2]


def test_tables_of_code(perfuse: Perfuse, dump: str) -> None:
    done = perfuse("query", dump, "SELECT text FROM instructions WHERE size_bytes = 5", "--json")
    assert json.loads(done.out) == [{"text": "call 2000"}]
    done = perfuse("tables", dump, "code_objects", "--columns", "size_bytes,code", "--json")
    assert [row["code"] for row in json.loads(done.out)][2] == LOOP.hex()
    done = perfuse("tables", dump, "code_objects", "--columns", "cod")
    assert done.code == 2
    assert "did you mean code?" in done.err
    assert json.loads(perfuse("tables", dump, "--json").out)["tables"]


def test_code_is_from_a_time_that_selects_it(perfuse: Perfuse, tmp_path: Path) -> None:
    """Times of compilations count from the first sample of all, as `--between` does, whatever is selected."""
    fields = crafting.IP | crafting.TID | crafting.TIME | crafting.IDENTIFIER
    clock, faults = (crafting.Attribute.of((1, number), fields, ids=[number + 1]) for number in (0, 2))
    dump, recording = tmp_path / "jit-8.dump", tmp_path / "perf.data"
    with Writer(dump, pid=8, arch="x86_64", timestamps=lambda: 3_000_000_000) as out:
        out.code_load("f", 0x1000, LOOP)
    rows = [(faults, 8, 1), (clock, 8, 2), (clock, 9, 4), (faults, 9, 5), (clock, 8, 6)]
    samples = [crafting.sample(event, pid=8, tid=tid, time=at * 10**9, ip=0x1000) for event, tid, at in rows]
    crafting.PerfFile([clock, faults], [crafting.comm(clock, 8, 8, "main"), *samples]).write(recording)
    for words in ((), ("--thread", "9"), ("--between", "2.5..4"), ("--event", "page-faults"), ("--only", "f")):
        done = perfuse("annotate", str(recording), str(dump), "f", *words)
        assert done.code == 0, done.err
        (row,) = [line.split() for line in done.out.splitlines() if "0x1000" in line and " B " in line and "►" in line]
        assert row[row.index("B") - 3 : row.index("B") - 1] == ["2.000", "s"], done.out


def test_samples_of_events_that_are_not_shown(perfuse: Perfuse, tmp_path: Path) -> None:
    """Of the event with the most samples none is in the function."""
    fields = crafting.IP | crafting.TID | crafting.TIME | crafting.IDENTIFIER
    clock, faults = (crafting.Attribute.of((1, number), fields, ids=[number + 1]) for number in (0, 2))
    dump, recording = tmp_path / "jit-8.dump", tmp_path / "perf.data"
    with Writer(dump, pid=8, arch="x86_64", timestamps=lambda: 1) as out:
        out.code_load("f", 0x1000, LOOP)
    rows = [(faults, 0x9000), (faults, 0x9000), (faults, 0x9000), (clock, 0x1000), (clock, 0x1002)]
    samples = [crafting.sample(event, pid=8, tid=8, time=at + 9, ip=ip) for at, (event, ip) in enumerate(rows)]
    crafting.PerfFile([clock, faults], [crafting.comm(clock, 8, 8, "main"), *samples]).write(recording)
    done = perfuse("annotate", str(recording), str(dump), "f")
    assert "\n0 samples of page-faults in it; 2 of cpu-clock (--event cpu-clock)\n" in done.out
    done = perfuse("annotate", str(recording), str(dump), "f", "--event", "cpu-clock")
    assert "\n2 samples of cpu-clock in it\n" in done.out


def test_code_without_a_tier_is_of_its_kind(perfuse: Perfuse, dump: str) -> None:
    done = perfuse("annotate", dump, "other_one", "--tier", "jit")
    assert (done.code, "0x3000" in done.out) == (0, True), done.err
    done = perfuse("annotate", dump, "other_one", "--tier", "none")
    assert (done.code, "its tiers: jit" in done.err) == (2, True)
