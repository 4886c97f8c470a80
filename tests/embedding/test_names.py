"""Embedded in a C and in a Rust program, the library names addresses as perf does, and as the bytes of a dump state."""

import gzip
import re
import struct
import subprocess
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from corpus import perf_script
from corpus.test_perf_answer import printed_name
from truth import test_inline_dialects as inline_dialects

from .conftest import ROOT, Program

_SAMPLE = re.compile(r"^(?:\d+ )?(?P<time>\d+) 0x[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_SAMPLE")
_ADDRESS = re.compile(r"^\.{5}\s+\d+: (?P<address>[0-9a-f]{16})$")
_FIRST_MARK = 2**64 - 4095
"""Larger numbers in a chain say what follows them: kernel or user."""


def _answers(printed: str) -> list[list[list[str]]]:
    """For each question the frames of its answer, innermost first: address, name, tier, file, line, column, inlined."""
    rows = [line.split("\t") for line in printed.splitlines()]
    questions: list[list[list[str]]] = []
    for _, same in groupby(rows, key=lambda row: row[0]):
        answer: list[list[str]] = []
        for row in same:
            answer.append(row)
            # The last frame of an answer is the only one that is not inlined.
            if len(row) < 7 or row[6] != "inlined":
                questions.append(answer)
                answer = []
        assert not answer
    return questions


def _chains(perf_data: Path) -> list[tuple[int, list[int]]]:
    """Time in nanoseconds and addresses of each sample, as `perf script -D` prints the recorded bytes."""
    command = ["perf", "script", "-D", "-i", perf_data]
    printed = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout
    chains: list[tuple[int, list[int]]] = []
    for line in printed.splitlines():
        if sample := _SAMPLE.match(line):
            chains.append((int(sample["time"]), []))
        elif (found := _ADDRESS.match(line)) and (address := int(found["address"], 16)) < _FIRST_MARK:
            chains[-1][1].append(address)
    return chains


@pytest.mark.parametrize(
    ("stem", "num_frames"),
    [("node20", 10757), ("node24-5k", 19284), ("openjdk17-jvmti", 19379), ("wasmtime50", 3397), ("llvm14-mcjit", 898)],
)
def test_every_jit_frame_is_named_as_perf_names_it(
    stem: str, num_frames: int, jitdump_corpus: Path, symbolize: Program, tmp_path: Path
) -> None:
    produced = jitdump_corpus / "produced"
    dump = produced / f"{stem}.dump"
    if not dump.exists():
        dump = tmp_path / dump.name
        dump.write_bytes(gzip.decompress((produced / f"{stem}.dump.gz").read_bytes()))
    chains = _chains(produced / f"{stem}.perf.data")
    printed = list(perf_script.read(jitdump_corpus / "expected" / f"{stem}.script.txt.gz"))
    assert [time // 1000 for time, _ in chains] == [sample.time_us for sample in printed]
    asked, expected = [], []
    for (time, addresses), sample in zip(chains, printed, strict=True):
        assert len(addresses) == len(sample.frames)
        for address, frame in zip(addresses, sample.frames, strict=True):
            if frame.code_index is not None:
                asked.append(f"{time} {address:x}")
                expected.append(frame.symbol)
    assert len(asked) == num_frames
    answers = _answers(symbolize(dump, given="\n".join(asked)))
    names = [answer[-1][1] for answer in answers]
    assert len(names) == len(expected)
    wrong = [(a, b) for a, b in zip(names, expected, strict=True) if b is None or not printed_name(a, b)]
    assert wrong == []


def _record(kind: int, time: int, body: bytes) -> bytes:
    return struct.pack("<IIQ", kind, 16 + len(body), time) + body


def _load(time: int, address: int, size: int, index: int, name: str) -> bytes:
    fields = struct.pack("<IIQQQQ", 77, 78, address, address, size, index)
    return _record(0, time, fields + name.encode() + b"\0" + b"\xcc" * size)


def _debug(time: int, address: int, entries: list[tuple[int, int, int, str]]) -> bytes:
    body = struct.pack("<QQ", address, len(entries))
    for offset, line, column, path in entries:
        body += struct.pack("<QII", address + offset, line, column) + path.encode() + b"\0"
    return _record(2, time, body)


HEADER = b"DTiJ" + struct.pack("<IIIIIQQ", 1, 40, 62, 0, 77, 1000, 0)

FIRST = (
    HEADER
    + _debug(100, 0x4000, [(0, 3, 5, "one.src"), (0x10, 4, 9, "one.src"), (0x18, 8, 0, "two.src")])
    + _load(100, 0x4000, 0x40, 1, "first")
    + _load(110, 0x5000, 0x20, 2, "Builtin:Second")
)
LATER = _load(200, 0x4020, 0x40, 3, "third") + _record(3, 300, b"")


@pytest.mark.parametrize("program", ["symbolize", "symbolize_rust"])
def test_lines_tiers_and_reused_addresses(program: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    run: Program = request.getfixturevalue(program)
    dump = tmp_path / "jit-77.dump"
    dump.write_bytes(FIRST + LATER)
    asked = ["100 4000", "150 400f", "150 4010", "199 403f", "99 4000", "200 4000", "200 4020", "latest 405f"]
    asked += ["latest 5001", "latest 6000"]
    answers = _answers(run(dump, given="\n".join(asked)))
    assert [answer[0][1:] for answer in answers] == [
        ["first", "", "one.src", "3", "5", ""],
        ["first", "", "one.src", "3", "5", ""],
        ["first", "", "one.src", "4", "9", ""],
        ["first", "", "two.src", "8", "0", ""],
        ["?"],
        ["?"],
        ["third", "", "", "0", "0", ""],
        ["third", "", "", "0", "0", ""],
        ["Builtin:Second", "builtin", "", "0", "0", ""],
        ["?"],
    ]


@pytest.mark.parametrize("program", ["symbolize", "symbolize_rust"])
@pytest.mark.parametrize("layout", [inline_dialects.lists, inline_dialects.frames])
def test_inlined_calls_have_frames_of_their_own(
    program: str, layout: Callable[[], bytes], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    run: Program = request.getfixturevalue(program)
    path = tmp_path / "jit-7.dump"
    path.write_bytes(inline_dialects.dump(layout(), inline_dialects.load()))
    before, inside, after = _answers(run(path, given="1 7000\n1 7005\n1 7008"))
    # The lines that one function or call begins have no columns in one of the layouts.
    assert [row[1:2] + row[3:5] + row[6:] for row in inside] == [
        ["inner", "a.py", "31", "inlined"],
        ["outer", "a.py", "11", ""],
    ]
    assert [row[1:2] + row[3:5] for row in before] == [["outer", "a.py", "10"]]
    assert [row[1] for row in after] == ["outer"]


def test_a_dump_is_followed_while_it_is_written(symbolize_c: Path, tmp_path: Path) -> None:
    dump = tmp_path / "jit-77.dump"
    with (
        dump.open("wb", buffering=0) as out,
        subprocess.Popen([symbolize_c, dump], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(question: str) -> list[str]:
            process.stdin.write(question + "\n")
            process.stdin.flush()
            return process.stdout.readline().rstrip("\n").split("\t")[1:3]

        assert ask("latest 4000") == ["?"]
        out.write(FIRST[:21])
        assert ask("latest 4000") == ["?"]
        out.write(FIRST[21:-1])
        assert ask("latest 4000") == ["first", ""]
        assert ask("latest 5000") == ["?"]
        out.write(FIRST[-1:] + LATER[:60])
        assert ask("latest 5000") == ["Builtin:Second", "builtin"]
        assert ask("latest 4050") == ["?"]
        out.write(LATER[60:])
        assert ask("latest 4050") == ["third", ""]
        # The code that was there before is known at its time.
        assert ask("150 4030") == ["first", ""]
        assert ask("latest 4010") == ["?"]
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.parametrize("content", [b"", b"\x7fELF" + bytes(100), HEADER[:30], HEADER + b"\xff" * 1000])
def test_what_is_no_dump_is_an_error_and_what_is_damaged_is_not(
    content: bytes, symbolize_c: Path, tmp_path: Path
) -> None:
    path = tmp_path / "jit-1.dump"
    path.write_bytes(content)
    done = subprocess.run([symbolize_c, path], input="latest 10\n", capture_output=True, text=True, check=False)
    is_other = content.startswith(b"\x7fELF")
    assert done.returncode == int(is_other)
    assert done.stdout == ("" if is_other else "10\t?\n")
    assert ("magic" in done.stderr) == is_other


def test_a_missing_file_is_an_error_of_the_system(symbolize_c: Path, tmp_path: Path) -> None:
    done = subprocess.run([symbolize_c, tmp_path / "no"], capture_output=True, text=True, check=False)
    assert (done.returncode, "No such file" in done.stderr) == (1, True)


def test_the_c_and_the_rust_program_print_the_same(symbolize: Program, symbolize_rust: Program, tmp_path: Path) -> None:
    dump = tmp_path / "jit-32015.dump"
    dump.write_bytes(gzip.decompress((ROOT / "examples/postcards/jit-32015.dump.gz").read_bytes()))
    perf_data = tmp_path / "perf.data"
    perf_data.write_bytes(gzip.decompress((ROOT / "examples/postcards/perf.data.gz").read_bytes()))
    asked = "\n".join(f"{time} {address:x}" for time, addresses in _chains(perf_data) for address in addresses)
    printed = symbolize(dump, given=asked)
    assert printed == symbolize_rust(dump, given=asked)
    assert "JS:*shade " in printed
    assert "postcards.js\t" in printed


def test_the_library_has_neither_arrow_nor_python_in_it() -> None:
    """What a program that embeds the library is built from."""
    command = ["cargo", "tree", "--offline", "--edges", "normal", "--prefix", "none", "-p", "perfuse-symbolizer-c"]
    crates = {line.split()[0] for line in subprocess.check_output(command, cwd=ROOT, text=True).splitlines() if line}
    own = {crate for crate in crates if crate.startswith("perfuse-")}
    assert own == {
        "perfuse-addresses",
        "perfuse-jitdump",
        "perfuse-mapped",
        "perfuse-sframe",
        "perfuse-stopping",
        "perfuse-symbolizer",
        "perfuse-symbolizer-c",
        "perfuse-wire",
    }
    assert crates - own == {"libc", "memchr", "memmap2", "rustc-hash"}
