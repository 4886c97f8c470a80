"""Where names of native functions are searched: copies with one build id, and the directories of `--symbols`."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

import perfuse as pf
from perfuse.analysis.function_search import find_function
from perfuse.analysis.source_files import SourceFiles

SOURCE = """\
#include <time.h>
static volatile unsigned sink;
__attribute__((noinline)) static void
secret(void)
{
    for (unsigned n = 0; n < 1000000; n++) sink += n;
}
int main(void) { while (clock() < CLOCKS_PER_SEC / 4) secret(); }
"""


@dataclass(frozen=True)
class Recorded:
    """A recording of a stripped program that perf put into its cache, and the same program with its symbols."""

    home: Path
    path: Path
    program: Path
    unstripped: bytes

    def perf_names(self) -> Counter[str]:
        """Functions of the program by samples, as `perf script` names them."""
        environment = {"HOME": str(self.home), "PATH": "/usr/bin:/bin"}
        command = ["perf", "script", "-i", str(self.path), "-F", "ip,sym,dso"]
        printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        of_program = [line for line in printed.splitlines() if str(self.program) in line]
        return Counter(re.sub(r"\+0x[0-9a-f]+$", "", line.split()[1]) for line in of_program)

    def names(self, **options: object) -> Counter[str]:
        """The same of a profile."""
        rows = (
            pf.fuse(self.path, **options)  # type: ignore[arg-type]
            .sql(
                """SELECT coalesce(f.name, '[unknown]') FROM samples JOIN stacks USING (stack_id)
                JOIN frames s USING (frame_id) LEFT JOIN functions f USING (function_id)
                JOIN mappings m USING (mapping_id)
                WHERE m.path = ?""",
                parameters=[str(self.program)],
            )
            .fetchall()
        )
        return Counter(name for (name,) in rows)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    (tmp_path / "busy.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "-o", "busy", "busy.c"], cwd=tmp_path, check=True)
    program = tmp_path / "busy"
    unstripped = program.read_bytes()
    subprocess.run(["strip", "--strip-all", program], check=True)
    home = tmp_path / "home"
    home.mkdir()
    command = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "500", "-o", "perf.data", program]
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    monkeypatch.setenv("HOME", str(home))
    assert list(home.glob(".debug/.build-id/*/*/elf")), "perf stored no copy of the program"
    return Recorded(home, tmp_path / "perf.data", program, unstripped)


def test_a_stripped_copy_in_the_cache_does_not_hide_the_program_with_symbols(recorded: Recorded) -> None:
    """`strip` keeps the build id. perf stores a program when it is recorded first, and not again."""
    assert set(recorded.names()) == {"[unknown]"}
    recorded.program.write_bytes(recorded.unstripped)
    names = recorded.names()
    assert names == recorded.perf_names()
    assert names["secret"] > 20


def test_a_directory_with_a_stripped_copy_does_not_hide_the_cache(recorded: Recorded, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    (copies / "busy").write_bytes(recorded.program.read_bytes())
    recorded.program.write_bytes(recorded.unstripped)
    assert recorded.names(symbol_dirs=[copies])["secret"] > 20


def test_a_directory_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "symbols").mkdir()
    profile = tmp_path / "x.collapsed"
    profile.write_text("main;work 1\n")
    with pytest.raises(pf.UsageError, match="there is no directory") as caught:
        pf.fuse(profile, symbol_dirs=[tmp_path / "symbol"])
    assert caught.value.hint == "did you mean symbols?"
    with pytest.raises(pf.UsageError, match="is not a directory") as caught:
        pf.fuse(profile, symbol_dirs=[profile])
    assert f"--symbols {tmp_path}" in str(caught.value.hint)
    with pytest.raises(pf.UsageError, match="a list of directories"):
        pf.fuse(profile, symbol_dirs=str(tmp_path))
    with pytest.raises(pf.UsageError, match="source files were to be searched"):
        SourceFiles(pf.fuse(profile), [tmp_path / "none"])
    with pytest.raises(pf.UsageError, match="there is no directory"):
        pf.fleet.open(tmp_path / "fleet").add([profile], symbol_dirs=[str(tmp_path / "none")])


def test_a_debug_file_beside_a_program_is_found_where_perf_has_stored_the_program(recorded: Recorded) -> None:
    """The copy in perf's cache has the link to the debug file, which is not beside the copy."""
    program, (cached,) = recorded.program, recorded.home.glob(".debug/.build-id/*/*/elf")
    program.write_bytes(recorded.unstripped)
    debug = program.with_name("busy.debug")
    for command in (
        ["objcopy", "--only-keep-debug", program, debug],
        ["strip", "--strip-all", program],
        ["objcopy", f"--add-gnu-debuglink={debug}", program],
    ):
        subprocess.run(command, check=True)
    content = program.read_bytes()
    cached.unlink()
    cached.write_bytes(content)
    names = recorded.names()
    assert names == recorded.perf_names()
    assert names["secret"] > 20


LAMBDAS = """\
#include <time.h>
static volatile unsigned sink;
template <class F> __attribute__((always_inline)) static inline void repeat(F work)
{
    for (clock_t end = clock() + CLOCKS_PER_SEC / 8; clock() < end;)
        for (unsigned n = 0; n < 100000; n++) work(n);
}
namespace { struct Adder { __attribute__((always_inline)) void add(unsigned n) {
    sink += n * 5; } }; }
int main()
{
    repeat([](unsigned n) {
        sink += n * 7; });
    repeat([](unsigned n) {
        sink += n * 11; });
    Adder adder;
    repeat([&](unsigned n) { adder.add(n); });
}
"""


def test_inlined_functions_without_a_name_for_the_linker_have_that_of_their_place(tmp_path: Path) -> None:
    """Lambdas are all called `operator()`. Which of them a sample is in, its line shows."""
    (tmp_path / "lambdas.cc").write_text(LAMBDAS)
    subprocess.run(["g++", "-g", "-O1", "-o", "lambdas", "lambdas.cc"], cwd=tmp_path, check=True)
    command = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "500", "-o", "perf.data", "./lambdas"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    profile = pf.fuse(tmp_path / "perf.data")
    found = profile.sql(
        """SELECT f.name, s.line FROM samples JOIN stacks USING (stack_id) JOIN frames s USING (frame_id)
        JOIN functions f USING (function_id) WHERE s.path LIKE '%lambdas.cc'"""
    )
    places: dict[str, set[int]] = {}
    for name, line in found.fetchall():
        places.setdefault(name, set()).add(line)
    with pytest.raises(pf.UsageError, match="has no machine code of its own") as caught:
        find_function(profile, "Adder::add")
    assert re.fullmatch(r"it was inlined, annotate a caller: f\d+ main", str(caught.value.hint))
    places = {name: lines for name, lines in places.items() if lines & {9, 13, 15}}
    assert places == {
        "(anonymous namespace)::Adder::add": {9},
        "main()::{lambda#1}::operator()": {13},
        "main()::{lambda#2}::operator()": {15},
    }


def test_names_of_ocaml_are_those_of_perf(tmp_path: Path) -> None:
    """A program with functions that are named as ocamlopt names them."""
    symbols = ("camlStdlib__Map__bal_170", "camlOc__$3e$7c_12", "camlOc.fib_81")
    functions = "".join(
        f'__attribute__((noinline)) void f{number}(void) __asm__("{symbol}");\n'
        f"void f{number}(void) {{ for (unsigned n = 0; n < {1_000_000 + number}; n++) sink += n; }}\n"
        for number, symbol in enumerate(symbols)
    )
    main = "int main(void) { for (clock_t end = clock() + CLOCKS_PER_SEC / 3; clock() < end;) { f0(); f1(); f2(); } }\n"
    (tmp_path / "oc.c").write_text(f"#include <time.h>\nstatic volatile unsigned sink;\n{functions}{main}")
    subprocess.run(["gcc", "-O1", "-o", "oc", "oc.c"], cwd=tmp_path, check=True)
    program = tmp_path / "oc"
    command = ["perf", "record", "-qN", "-e", "cpu-clock:u", "-F", "500", "-o", "perf.data", str(program)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    recorded = Recorded(tmp_path, tmp_path / "perf.data", program, b"")
    names = recorded.names()
    assert {"Stdlib.Map.bal_170", "Oc.>|_12", "Oc.fib_81"} <= names.keys()
    of_perf = recorded.perf_names()
    assert {name: names[name] for name in of_perf if "." in name} == {
        name: count for name, count in of_perf.items() if "." in name
    }
