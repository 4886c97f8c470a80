"""The programs of the examples name addresses while a runtime writes its dump, as walks over the bytes so far do."""

from __future__ import annotations

import struct
import subprocess
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from needs import need

LOAD, MOVE = 0, 1
RECORD = struct.Struct("<IIQ")
CODE = struct.Struct("<IIQQQQ")

SCRIPT = """\
// Functions that become hot one after the other, are collected, and are replaced by others at their addresses.
const { existsSync } = require("fs");
const end = Date.now() + 4000;
for (let round = 0; Date.now() < end || !existsSync("enough"); round++) {
  for (let n = 0; n < 40; n++) {
    const body = `let s = ${round}; for (let i = 0; i < 300; i++) s = (s * 31 + i + a) | 0; return s;`;
    const made = new Function("a", body);
    for (let i = 0; i < 300; i++) made(i);
  }
  if (round % 5 === 0) gc();
}
"""


def code_at(data: bytes) -> dict[int, tuple[str, int]]:
    """Addresses of code that nothing was loaded over since: each with its function, and the place of its record."""
    starts: list[int] = []
    found: dict[int, tuple[str, int, int]] = {}
    at = struct.unpack_from("<I", data, 8)[0] if len(data) >= 12 else len(data)
    while at + RECORD.size <= len(data):
        kind, size, _ = RECORD.unpack_from(data, at)
        if size < RECORD.size or at + size > len(data):
            break
        assert kind != MOVE, "this producer does not state moves"
        if kind == LOAD:
            start, length = CODE.unpack_from(data, at + RECORD.size)[3:5]
            name = data[at + RECORD.size + CODE.size : data.index(b"\0", at + RECORD.size + CODE.size)].decode()
            first = bisect_left(starts, start)
            if first and found[starts[first - 1]][2] > start:
                first -= 1
            last = max(bisect_left(starts, start + length), bisect_right(starts, start))
            for replaced in starts[first:last]:
                del found[replaced]
            starts[first:last] = [start]
            found[start] = name, at, start + length
        at += size
    return {start: (name, at) for start, (name, at, _) in found.items()}


@contextmanager
def asking(program: Path, dump: Path) -> Iterator[Callable[[int], str]]:
    """Starts a program on a dump; what it is asked for is the function that is at an address now."""
    with subprocess.Popen([program, dump], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin
        assert running.stdout

        def ask(address: int) -> str:
            assert running.stdin
            assert running.stdout
            running.stdin.write(f"latest {address:x}\n")
            running.stdin.flush()
            while True:
                row = running.stdout.readline().rstrip("\n").split("\t")
                if row[1] == "?" or row[6] != "inlined":
                    return row[1]

        yield ask
        running.stdin.close()


def load(name: str, start: int, moment: int, index: int) -> bytes:
    body = CODE.pack(7, 7, start, start, 16, index) + name.encode() + b"\0" + b"\x90" * 16
    return RECORD.pack(LOAD, RECORD.size + len(body), moment) + body


@pytest.fixture(params=["C", "Rust"])
def program(request: pytest.FixtureRequest) -> Path:
    if request.param == "C":
        return request.getfixturevalue("symbolize_c")
    return request.getfixturevalue("built") / "symbolize"


def test_code_that_was_replaced_since_the_last_question(program: Path, tmp_path: Path) -> None:
    """The address was known, with the function that was there before."""
    dump = tmp_path / "jit-7.dump"
    dump.write_bytes(struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, 7, 1, 0) + load("first", 0x1000, 10, 1))
    with asking(program, dump) as ask:
        assert ask(0x1008) == "first"
        with dump.open("ab") as out:
            out.write(load("second", 0x1000, 20, 2))
        assert ask(0x1008) == "second"
        assert ask(0x2000) == "?"
        with dump.open("ab") as out:
            out.write(load("third", 0x2000, 30, 3))
        assert ask(0x2008) == "third"


def test_functions_of_a_running_node(program: Path, tmp_path: Path) -> None:
    """An address is compared if its code is the same before the question and after it."""
    need("node")
    (tmp_path / "app.js").write_text(SCRIPT)
    command = ["node", "--expose-gc", "--perf-prof", "app.js"]
    compared = 0
    with subprocess.Popen(command, cwd=tmp_path) as running:
        dump = tmp_path / f"jit-{running.pid}.dump"
        while not (dump.exists() and dump.stat().st_size > 100):
            assert running.poll() is None
            time.sleep(0.01)
        with asking(program, dump) as ask:
            seen: set[int] = set()
            while running.poll() is None:
                before = code_at(dump.read_bytes())
                addresses = sorted(before)[:: max(1, len(before) // 50)]
                answers = [(address, ask(address)) for address in addresses]
                after = code_at(dump.read_bytes())
                for address, answer in answers:
                    if after.get(address) == before[address]:
                        assert answer == before[address][0]
                        seen.add(address)
                        compared += 1
                if compared > 500 and len(seen) > 50:
                    (tmp_path / "enough").touch()
                time.sleep(0.05)
            assert running.wait() == 0
            whole = code_at(dump.read_bytes())
            for address in seen & whole.keys():
                assert ask(address) == whole[address][0]
