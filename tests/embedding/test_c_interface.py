"""What the C interface promises beyond names, asserted in C: statuses, NULL, the life of answers, threads."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from needs import need

from .conftest import ROOT
from .test_names import FIRST, LATER

PROGRAM = Path(__file__).with_name("interface.c")
IN_CPP = """\
#include "perfuse_symbolizer.h"
#include <cstdio>
int main() {
    perfuse_dump *dump = nullptr;
    if (perfuse_dump_open("", &dump) != PERFUSE_ERROR_IO) return 1;
    std::puts(perfuse_symbolizer_version());
}
"""


def test_the_interface_keeps_its_promises(compile_c: Callable[[Path], Path], tmp_path: Path) -> None:
    first, later = tmp_path / "first", tmp_path / "later"
    first.write_bytes(FIRST)
    later.write_bytes(LATER)
    done = subprocess.run([compile_c(PROGRAM), first, later], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "0.1.0\n"


def test_a_project_in_cmake_as_the_guide_has_it(built: Path, tmp_path: Path) -> None:
    """In C++, whose compiler has no complaints about the header."""
    need("cmake", "c++")
    [block] = re.findall(r"^```cmake\n(.*?)^```$", (ROOT / "docs/guides/embed.md").read_text(), re.M | re.S)
    target = block.replace("${PERFUSE}/target/release", str(built)).replace("${PERFUSE}", str(ROOT))
    (tmp_path / "profiler.cpp").write_text(IN_CPP)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(profiler CXX)\nadd_executable(profiler profiler.cpp)\n"
        f"target_compile_options(profiler PRIVATE -std=c++17 -Wall -Wextra -pedantic -Werror)\n{target}"
    )
    for command in (["-S", tmp_path, "-B", tmp_path / "build"], ["--build", tmp_path / "build"]):
        subprocess.run(["cmake", *command], check=True, capture_output=True)
    assert subprocess.check_output([tmp_path / "build" / "profiler"], text=True) == "0.1.0\n"


def test_the_shared_library(built: Path, tmp_path: Path) -> None:
    need("c++")
    (tmp_path / "profiler.cpp").write_text(IN_CPP)
    flags = [f"-I{ROOT / 'crates/symbolizer_c/include'}", f"-L{built}", f"-Wl,-rpath,{built}"]
    source = [tmp_path / "profiler.cpp", "-lperfuse_symbolizer_c"]
    subprocess.run(["c++", *flags, "-o", tmp_path / "profiler", *source], check=True)
    assert subprocess.check_output([tmp_path / "profiler"], text=True) == "0.1.0\n"


def test_a_program_with_its_own_handler_of_faults(compile_c: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "dump").write_bytes(FIRST)
    program = compile_c(PROGRAM.with_name("signals.c"))
    done = subprocess.run([program, tmp_path / "dump"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3 + 3 + 3 faults\n", "")
