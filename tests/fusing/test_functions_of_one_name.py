"""Static functions of one name in one program are functions of their own, as nm and the source have them."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import Attribute, PerfFile, sample
from truth.command import command_line, json_of

PID = 7
EVENT = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
SOURCES = {
    "shared.h": """
        static __attribute__((noinline)) unsigned long shared(unsigned long n) { return n * n + n / 9; }
        static inline __attribute__((always_inline)) unsigned long inlined(unsigned long n) {
            for (unsigned long i = 0; i < 9; i++) *(volatile unsigned long *)&n += i;
            return n;
        }
    """,
    "a/first.c": """
        #include "../shared.h"
        static __attribute__((noinline)) unsigned long work(unsigned long n) { return n * n + n / 7; }
        unsigned long first(unsigned long n) { return work(n) + shared(n) + inlined(n); }
    """,
    "b/second.c": """
        #include "../shared.h"
        static __attribute__((noinline)) unsigned long work(unsigned long n) { return n * n - n / 5; }
        unsigned long second(unsigned long n) { return work(n) - shared(n) - inlined(n); }
    """,
    "main.c": """
        unsigned long first(unsigned long n), second(unsigned long n);
        int main(int argc, char **argv) { return (int)(first(argc) + second(argc)); }
    """,
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The objects are compiled in two directories, which have different paths to the header."""
    need("gcc", "nm", "objdump", "strip")
    directory = tmp_path_factory.mktemp("program")
    for name, text in SOURCES.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for name in ("a/first.c", "b/second.c", "main.c"):
        path = directory / name
        subprocess.run(["gcc", "-g", "-O1", "-fno-pie", "-c", path.name], cwd=path.parent, check=True)
    objects = ["a/first.o", "b/second.o", "main.o"]
    subprocess.run(["gcc", "-no-pie", "-o", "program", *objects], cwd=directory, check=True)
    subprocess.run(["strip", "--strip-debug", "-o", "symbols", "program"], cwd=directory, check=True)
    return directory / "program"


def _symbols(program: Path, names: Collection[str] = ("work", "shared", "first", "second")) -> list[tuple[int, str]]:
    printed = subprocess.run(["nm", "-n", program], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in printed.splitlines()]
    return [(int(row[0], 16), row[2]) for row in rows if len(row) == 3 and row[2] in names]


def _recorded(program: Path, addresses: Sequence[int], into: Path) -> Path:
    records = [crafting.mmap2(EVENT, PID, str(program), 0x400000, 0x4000)]
    for number, address in enumerate(addresses):
        records.append(sample(EVENT, ip=address, pid=PID, tid=PID, time=number + 1))
    return PerfFile([EVENT], records).write(into / "perf.data")


def _counts(recorded: Path) -> Counter[str]:
    """How many functions there are of each name."""
    return Counter(name for (name,) in pf.fuse(recorded).sql("SELECT name FROM functions").fetchall())


def test_static_functions_of_one_name_have_rows_of_their_own(program: Path, tmp_path: Path) -> None:
    symbols = _symbols(program)
    assert Counter(name for _, name in symbols) == {"work": 2, "shared": 2, "first": 1, "second": 1}
    recorded = _recorded(program, [address for address, _ in symbols], tmp_path)
    # The function of the header is one, in whichever object its code is.
    assert _counts(recorded) == {"work": 2, "shared": 1, "first": 1, "second": 1}


def test_one_of_them_alone_has_its_source_file(program: Path, tmp_path: Path) -> None:
    """What it is does not depend on what else was sampled, so that recordings compare; other functions have their name
    alone."""
    works = [address for address, name in _symbols(program) if name == "work"]
    for number, source in enumerate(("first.c", "second.c")):
        (tmp_path / source).mkdir()
        (first,) = (address for address, name in _symbols(program) if name == "first")
        with pf.fuse(_recorded(program, [works[number], first], tmp_path / source)) as profile:
            found = dict(profile.sql("SELECT name, path FROM functions").fetchall())
        assert (Path(found["work"]).name, found["first"]) == (source, None)


def test_a_static_function_and_the_global_one_of_its_name(tmp_path: Path) -> None:
    """Each alone has its source file, whichever of them is static."""
    need("gcc", "nm")
    body = "__attribute__((noinline)) unsigned long {}(unsigned long n) {{ return n * n + n / {}; }}\n"
    (tmp_path / "global.c").write_text(body.format("work", 7))
    alone = "static " + body.format("work", 5) + "static " + body.format("alone", 3)
    (tmp_path / "main.c").write_text(alone + "int main(int n) { return (int)(work(n) - alone(n)); }\n")
    command = ["gcc", "-g", "-O1", "-fno-pie", "-no-pie", "-w", "-o", "program", "main.c", "global.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    symbols = _symbols(tmp_path / "program", ["work", "alone"])
    found = []
    for number, (address, _) in enumerate(symbols):
        into = tmp_path / str(number)
        into.mkdir()
        with pf.fuse(_recorded(tmp_path / "program", [address], into)) as profile:
            found += profile.sql("SELECT name, path FROM functions").fetchall()
    files = sorted((name, path and Path(path).name) for name, path in found)
    assert files == [("alone", None), ("work", "global.c"), ("work", "main.c")]


def test_without_debug_information_each_symbol_is_a_function(program: Path, tmp_path: Path) -> None:
    symbols = _symbols(program)
    recorded = _recorded(program.with_name("symbols"), [address for address, _ in symbols], tmp_path)
    assert _counts(recorded) == Counter(name for _, name in symbols)


def test_inlined_copies_of_one_function_are_one(program: Path, tmp_path: Path) -> None:
    printed = subprocess.run(["objdump", "-d", program], check=True, capture_output=True, text=True).stdout
    addresses, symbol = [], ""
    for line in printed.splitlines():
        if line.endswith(">:"):
            symbol = line.split("<")[1][:-2]
        elif symbol in {"first", "second"} and ":\t" in line:
            addresses.append(int(line.split(":")[0], 16))
    assert _counts(_recorded(program, addresses, tmp_path)) == {"first": 1, "second": 1, "inlined": 1}


@pytest.mark.parametrize("name", ["program", "symbols"])
def test_reports_have_a_row_for_each(name: str, program: Path, tmp_path: Path) -> None:
    works = [address for address, name in _symbols(program) if name == "work"]
    recorded = _recorded(program.with_name(name), [works[0]] * 3 + [works[1]], tmp_path)
    self_rows = command_line("report", recorded).split("Top functions by total")[0].splitlines()
    rows = [line.split() for line in self_rows if " work " in line]
    assert [row[0] for row in rows] == ["75.0%", "25.0%"]
    files = [row[-1] for row in rows]
    assert files == (["first.c", "second.c"] if name == "program" else ["symbols", "symbols"])


DESTROYED = """
struct Part { virtual ~Part(); volatile int value = 0; };
Part::~Part() { value = 1; }
int main(int argc, char **) { Part *one = new Part, two; if (argc) delete one; return two.value; }
"""


def test_symbols_of_a_destructor_are_one_function(tmp_path: Path) -> None:
    """The one that frees memory and the one that does not have other names, and the name that is shown is the same."""
    need("g++", "nm")
    (tmp_path / "parts.cpp").write_text(DESTROYED)
    subprocess.run(["g++", "-O1", "-no-pie", "-o", "parts", "parts.cpp"], cwd=tmp_path, check=True)
    symbols = _symbols(tmp_path / "parts", ("_ZN4PartD0Ev", "_ZN4PartD1Ev", "_ZN4PartD2Ev"))
    addresses = sorted({address for address, _ in symbols})
    assert len(addresses) == 2
    recorded = _recorded(tmp_path / "parts", [addresses[0]] * 3 + [addresses[1]], tmp_path)
    (row,) = [
        line for line in command_line("report", recorded).split("Top functions by total")[0].splitlines() if "~" in line
    ]
    assert row.split()[:2] == ["100.0%", "100.0%"]
    assert "Part::~Part " in row


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same program, compiled from a copy of the sources in another directory, where one `work` has another name."""
    need("gcc", "nm", "strip")
    directory = tmp_path_factory.mktemp("later")
    for name, text in SOURCES.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("work", "labour") if name == "b/second.c" else text)
    objects = ["a/first.c", "b/second.c", "main.c"]
    subprocess.run(["gcc", "-g", "-O1", "-no-pie", "-o", "program", *objects], cwd=directory, check=True)
    subprocess.run(["strip", "--strip-debug", "-o", "symbols", "program"], cwd=directory, check=True)
    return directory / "program"


def _difference(base: Path, new: Path) -> list[tuple[str, str | None, float, float]]:
    """Name, source file, samples of both sides of each function."""
    rows = json_of("diff", base, new)["functions"]
    found = [(one["name"], one["path"], one["self"]["base"], one["self"]["new"]) for one in rows]
    return sorted((name, path and Path(path).name, base, new) for name, path, base, new in found)


def test_functions_of_two_builds_are_compared_with_those_of_their_file(
    program: Path, later: Path, tmp_path: Path
) -> None:
    """Also where they are in another directory, and where the name is of one function alone in one of the builds."""
    recordings = []
    for number, (path, weights) in enumerate([(program, {"work": [5, 3]}), (later, {"work": [4], "labour": [2]})]):
        symbols = dict.fromkeys(weights, 0)
        addresses = []
        for address, name in _symbols(path, weights):
            addresses += [address] * weights[name][symbols[name]]
            symbols[name] += 1
        directory = tmp_path / str(number)
        directory.mkdir()
        recordings.append(_recorded(path, addresses, directory))
    expected = [("labour", "second.c", 0, 2), ("work", "first.c", 5, 4), ("work", "second.c", 3, 0)]
    assert _difference(*recordings) == expected


def test_functions_of_a_build_without_source_files_are_compared_as_a_sum(program: Path, tmp_path: Path) -> None:
    works = [address for address, name in _symbols(program) if name == "work"]
    place = tmp_path / "stripped" / "program"
    place.parent.mkdir()
    place.write_bytes(program.with_name("symbols").read_bytes())
    base = _recorded(place, [works[0]] * 5 + [works[1]] * 3, place.parent)
    new = _recorded(program, [works[0]] * 4 + [works[1]] * 2, tmp_path)
    [(name, _, *numbers)] = _difference(base, new)
    assert (name, numbers) == ("work", [8, 6])
