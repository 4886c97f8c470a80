"""The heat map of the lengths of calls is that of the chosen function, of several with one name.

Two libraries have the same functions. The log is assembled here: number and length of the calls of each are planted.
"""

from __future__ import annotations

import shlex
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from view_page import Page, served_session

import perfuse
import xray_program
from perfuse.viewer.session import Session

CALLS = {1: [1000] * 3 + [4000] * 2, 2: [70_000] * 4}
"""Lengths in nanoseconds of the calls of one function, by the number of the library."""
FUNCTION = 1 + list(xray_program.FUNCTIONS).index("sleeper")
HZ = 1_000_000_000


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """The page of a Basic log, version 3, of a program with two libraries."""
    maps = {number: tmp_path / directory / "core.so" for number, directory in enumerate(("main", "a", "b"))}
    for path in maps.values():
        path.parent.mkdir()
        path.write_bytes(xray_program.program())
    records, now = [], 1000
    for number, lengths in CALLS.items():
        for length in lengths:
            for kind, after in ((0, 0), (1, length)):
                now += after
                function = number << 24 | FUNCTION
                records.append(struct.pack("<HBBiQIIQ", 0, 0, kind, function, now, 7, 7, 0))
    log = tmp_path / "xray-log.main.AAAAAA"
    log.write_bytes(struct.pack("<HHIQ16x", 3, 0, 3, HZ) + b"".join(records))
    options = [text for number, path in maps.items() for text in ("--map", f"{number}={path}")]
    session = Session(lambda progress: perfuse.fuse(log, maps=maps, progress=progress), [str(log)], options)
    with served_session(session) as one:
        session.start()
        session.join()
        yield one


def shown(head: dict[str, Any], columns: dict[str, list[Any]]) -> Counter[int]:
    """Number of calls by the power of two of their length."""
    width = head["columns_num"]
    sums = {row: sum(columns["cells"][row * width : (row + 1) * width]) for row in range(head["rows_num"])}
    return Counter({row: int(number) for row, number in sums.items() if number})


def planted(*libraries: int) -> Counter[int]:
    return Counter(length.bit_length() - 1 for library in libraries for length in CALLS[library])


def test_a_handle_chooses_one_of_several_functions(page: Page) -> None:
    rows = page.get("calls")["rows"]
    assert [row["name"] for row in rows] == ["sleeper", "sleeper"]
    for row in rows:
        (library,) = (one for one, lengths in CALLS.items() if len(lengths) == row["num_calls"])
        head, columns = page.binary(f"heat?kind=latency&column_ns=10000&function=sleeper&handle=f{row['function']}")
        assert shown(head, columns) == planted(library)
        assert (head["function"], head["num_functions"]) == ("sleeper", 1)
        # The command has the same calls.
        command = [sys.executable, "-m", "perfuse", *shlex.split(head["command"])[1:], "--format", "csv"]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        assert sorted(int(line.split(",")[1]) for line in lines[1:]) == sorted(CALLS[library])


def test_a_name_chooses_all_that_have_it(page: Page) -> None:
    for text, number in (("", None), (f"&function={quote('sleeper')}", 2)):
        head, columns = page.binary(f"heat?kind=latency&column_ns=10000{text}")
        assert shown(head, columns) == planted(*CALLS)
        assert head.get("num_functions") == number
    assert page.error("heat?kind=latency&function=nothing")[0] == 404
    assert page.error("heat?kind=latency&handle=f999")[0] == 404


def test_slices_have_the_handle_of_their_function(page: Page) -> None:
    numbers = {row["function"]: row["num_calls"] for row in page.get("calls")["rows"]}
    slices = page.get("slowest?limit=100")["slices"]
    assert Counter(one["function"] for one in slices) == numbers
