"""Programs with a new section keep working, and keep the section, after each tool that copies ELF files."""

import os
import re
import shutil
import struct
import subprocess
from functools import cache
from pathlib import Path

import pytest

from needs import need
from perfuse import sframe

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
static __thread int five = 5;
int data = 3, zeros[1000];
__attribute__((constructor)) static void before(void) { zeros[3] = 1; }
__attribute__((noinline)) static int twice(int n) { char *room = malloc(n + 1); free(room); return 2 * n + five - 5; }
int main(int argc, char **argv) { printf("%d of %s %d\\n", twice(argc), argv[1], zeros[3] + data); return 7; }
"""
EXCEPTION = """
#include <cstdio>
#include <stdexcept>
struct Guard { ~Guard() { std::puts("unwound"); } };
__attribute__((noinline)) int thrower(int n) { Guard guard; if (n) throw std::runtime_error("thrown"); return n; }
int main(int n, char **argv) { try { return thrower(n); } catch (std::exception &e) { std::puts(e.what()); return 7; } }
"""
LIBRARY = "int table[64] = {2}; __attribute__((noinline)) int helper(int n) { return n * table[0] + table[n]; }"
USER = """
#include <stdio.h>
extern int helper(int);
int main(int argc, char **argv) { printf("%d\\n", helper(argc)); return 7; }
"""
OUTPUT = {"exception": b"unwound\nthrown\n", "library": b"4\n"}

BUILDS = {
    "pie": ["gcc", "-O2"],
    "fixed_address": ["gcc", "-O2", "-no-pie"],
    "static": ["gcc", "-O2", "-static"],
    "static_pie": ["gcc", "-O2", "-static-pie"],
    "exception": ["g++", "-O2"],
    "no_build_id": ["gcc", "-O2", "-Wl,--build-id=none", "-Wl,-z,noseparate-code"],
    "sysv_hash": ["gcc", "-O2", "-no-pie", "-Wl,--build-id=none", "-Wl,--hash-style=sysv"],
    "gold": ["gcc", "-O2", "-fuse-ld=gold"],
    "lld": ["clang-22", "-O2", "-fuse-ld=lld"],
    "old_section": ["gcc", "-O2", "-Wa,--gsframe"],
    "library": ["gcc", "-O2", "-g", "-fPIC", "-shared"],
}
"""How each program is compiled. `library` is a shared library, of which a program is the user."""

COMMANDS = {
    "strip": [["{strip}", "-o", "{out}", "{made}"], ["{strip}", "--strip-debug", "-o", "{out}", "{made}"]],
    "objcopy": [
        ["{objcopy}", "{made}", "{out}"],
        ["{objcopy}", "--strip-all", "{made}", "{out}"],
        ["{objcopy}", "--remove-section=.comment", "{made}", "{out}"],
    ],
}


def tools() -> list[str]:
    """`strip` and `objcopy` of binutils and LLVM, every version of them on the path and in `PERFUSE_BINUTILS`."""
    folders = [*os.environ.get("PATH", "").split(":"), os.environ.get("PERFUSE_BINUTILS", "")]
    name = re.compile(r"(llvm-)?(strip|objcopy)(-[\d.]+)?")
    found: dict[str, str] = {}
    for folder in filter(None, folders):
        for path in Path(folder).glob("*"):
            if name.fullmatch(path.name):
                found.setdefault(path.name, str(path))
    return [found[name] for name in sorted(found)] or ["strip"]


@cache
def program(build: str, folder: Path) -> Path:
    """A program, compiled."""
    command = BUILDS[build]
    need(command[0])
    folder.mkdir()
    text = {"exception": EXCEPTION, "library": LIBRARY}.get(build, PROGRAM)
    source = folder / ("source.cc" if build == "exception" else "source.c")
    source.write_text(text, encoding="utf-8")
    name = "libhelper.so" if build == "library" else "program"
    subprocess.run([*command, "-o", folder / name, source], check=True)
    if build == "library":
        (folder / "user.c").write_text(USER, encoding="utf-8")
        link = ["gcc", "-O2", "-o", folder / "user", folder / "user.c", f"-L{folder}", "-lhelper"]
        subprocess.run([*link, "-Wl,-rpath,$ORIGIN"], check=True)
    return folder / name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def output(target: Path, original: Path, room: Path) -> tuple[int, bytes]:
    """Exit code and output of a program, or of a library's user."""
    target.chmod(0o755)
    if original.suffix == ".so":
        room.mkdir(exist_ok=True)
        shutil.copy(target, room / original.name)
        target = Path(shutil.copy(original.parent / "user", room / "user"))
    done = subprocess.run([target, "them"], capture_output=True, check=False)
    return done.returncode, done.stdout


def loaded_section(path: Path) -> tuple[int, bytes]:
    """Address and bytes of the segment PT_GNU_SFRAME, which a loaded segment contains: by a walk of the headers."""
    data = path.read_bytes()
    table, size, num = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
    assert table == 64, "where tools that copy ELF files write program headers"
    segments = [struct.unpack_from("<IIQQQQQQ", data, table + index * size) for index in range(num)]
    [(_, _, offset, address, _, length, _, _)] = [segment for segment in segments if segment[0] == 0x6474E554]
    loads = [segment for segment in segments if segment[0] == 1]
    assert loads == sorted(loads, key=lambda segment: segment[3])
    assert any(load[2] <= offset and offset + length <= load[2] + load[5] for load in loads)
    assert all(offset - load[2] == address - load[3] for load in loads if load[3] <= address < load[3] + load[6])
    return address, data[offset : offset + length]


@pytest.mark.parametrize("tool", [pytest.param(tool, id=Path(tool).name) for tool in tools()])
@pytest.mark.parametrize("build", BUILDS)
def test_a_program_with_a_new_section_survives_the_tools_that_copy_it(
    folder: Path, tmp_path: Path, build: str, tool: str
) -> None:
    original = program(build, folder / build)
    expected = (7, OUTPUT.get(build, b"4 of them 4\n"))
    assert output(original, original, tmp_path / "original") == expected
    made = tmp_path / "made"
    sframe.from_eh_frame(original).section.write_into(original, made)
    assert output(made, original, tmp_path / "unchanged") == expected
    section = loaded_section(made)
    kind = "strip" if "strip" in Path(tool).name else "objcopy"
    for index, command in enumerate(COMMANDS[kind]):
        out = tmp_path / f"copy-{index}"
        refused = run(command, tool, kind, original, out).returncode != 0
        out.unlink(missing_ok=True)
        done = run(command, tool, kind, made, out)
        # LLVM's tools refuse a static program of GNU ld, with and without a new section.
        assert (done.returncode != 0) == refused, done.stderr
        if refused:
            assert (build, Path(tool).name[:4]) == ("static", "llvm"), done.stderr
            continue
        assert done.stderr == b""
        assert output(out, original, tmp_path / f"room-{index}") == expected, command
        assert loaded_section(out) == section


def run(command: list[str], tool: str, kind: str, made: Path, out: Path) -> subprocess.CompletedProcess[bytes]:
    words = [word.format(**{kind: tool, "made": made, "out": out}) for word in command]
    return subprocess.run(words, capture_output=True, check=False)


@pytest.mark.parametrize("build", ["pie", "static", "lld"])
def test_a_stripped_program_takes_a_larger_section_and_is_stripped_again(
    folder: Path, tmp_path: Path, build: str
) -> None:
    need("strip")
    original = program(build, folder / build)
    small, large = sframe.from_eh_frame(original, version=1).section, sframe.from_eh_frame(original, version=3).section
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    small.write_into(original, first)
    subprocess.run(["strip", first], check=True, capture_output=True)
    large.write_into(first, second)
    large.write_into(second, third)
    subprocess.run(["strip", second], check=True, capture_output=True)
    for path in (second, third):
        assert output(path, original, tmp_path) == (7, b"4 of them 4\n")
        address, data = loaded_section(path)
        assert data == large.encode(address)
        assert address == loaded_section(first)[0], "the segment grows where it is"


def test_debug_information_of_a_new_program_is_split_off(folder: Path, tmp_path: Path) -> None:
    need("objcopy")
    original = program("pie", folder / "pie")
    made, debug = tmp_path / "made", tmp_path / "made.debug"
    sframe.from_eh_frame(original).section.write_into(original, made)
    for command in (
        ["objcopy", "--only-keep-debug", made, debug],
        ["strip", made],
        ["objcopy", f"--add-gnu-debuglink={debug}", made],
    ):
        assert subprocess.run(command, capture_output=True, check=True).stderr == b""
    assert output(made, original, tmp_path) == (7, b"4 of them 4\n")
    loaded_section(made)
