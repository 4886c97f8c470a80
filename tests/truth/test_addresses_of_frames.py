"""Addresses and names of frames, by what `objdump` and perf print for the same program and the same kernel."""

import itertools
import re
import subprocess
from pathlib import Path

import pytest

import perfuse
from needs import need

from .producers import PROGRAMS, run_tool


@pytest.mark.truth(recording="perf_data", path="api:Profile.sql", source="objdump: the instructions after calls")
@pytest.mark.parametrize("layout", ["-pie", "-no-pie"])
def test_callers_have_the_address_after_the_call(layout: str, tmp_path: Path) -> None:
    need("perf", "gcc", "objdump")
    flags = ["-O0", "-fno-omit-frame-pointer", layout]
    run_tool(
        ["gcc", *flags, *(["-fPIE"] if layout == "-pie" else []), PROGRAMS / "call_chain.c", "-o", "chain"], tmp_path
    )
    run_tool(["perf", "record", "-qN", "-e", "cpu-clock", "-F", "999", "-g", "-o", "perf.data", "./chain"], tmp_path)
    command = ["objdump", "-d", "--no-show-raw-insn", "chain"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    lines = [line for line in listing.splitlines() if re.match(r"\s+[0-9a-f]+:\t", line)]
    after = {
        (re.split(r"[<>]", line)[1], int(following.split(":")[0], 16))
        for line, following in itertools.pairwise(lines)
        if re.search(r"call .*<(inner|middle)>", line)
    }
    assert len(after) == 3
    found = set(
        perfuse.fuse(tmp_path / "perf.data")
        .sql("""SELECT fn.name, cf.relative_address
            FROM stacks JOIN frames f USING (frame_id) JOIN functions fn USING (function_id)
            JOIN stacks c ON c.stack_id = stacks.parent_stack_id JOIN frames cf ON cf.frame_id = c.frame_id
            JOIN functions cn ON cn.function_id = cf.function_id
            WHERE (fn.name, cn.name) IN (('inner', 'middle'), ('middle', 'main'))""")
        .fetchall()
    )
    assert found == after


@pytest.mark.truth(recording="perf_data", path="api:Profile.sql", source="perf script of the same recording")
def test_kernel_functions_of_several_names_have_the_one_that_perf_shows(tmp_path: Path) -> None:
    """System calls without arguments have one address for `__x64_sys_`, `__ia32_sys_` and `__do_sys_`."""
    need("perf", "gcc")
    (tmp_path / "calls.c").write_text(
        "#include <sched.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n"
        "int main(void) { for (long i = 0; i < 300000; i++) { sched_yield(); syscall(SYS_getppid); } return 0; }\n"
    )
    run_tool(["gcc", "-O1", "calls.c", "-o", "calls"], tmp_path)
    run_tool(["perf", "record", "-qN", "-e", "cpu-clock", "-F", "1999", "-g", "-o", "perf.data", "./calls"], tmp_path)
    command = ["perf", "script", "-i", "perf.data", "-F", "ip,sym", "--no-inline"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    theirs = dict(re.findall(r"^\s+(ffff[0-9a-f]{12}) (\S+)$", printed, re.MULTILINE))
    ours = dict(
        perfuse.fuse(tmp_path / "perf.data")
        .sql(
            "SELECT format('{:x}', address), name FROM frames JOIN functions USING (function_id) WHERE kind = 'kernel'"
        )
        .fetchall()
    )
    # The kernel's symbols may be hidden, or it is of another machine: perf then has other names, or none.
    if "__x64_sys_sched_yield" in theirs.values():
        assert {name for name in ours.values() if "sched_yield" in name} >= {"__x64_sys_sched_yield"}
    assert {at: (name, theirs[at]) for at, name in ours.items() if at in theirs and theirs[at] != name} == {}


@pytest.mark.truth(recording="perf_data", path="api:Profile.sql", source="c++filt")
def test_names_of_templates_are_those_of_cxxfilt(tmp_path: Path) -> None:
    """Empty parameter packs leave no comma and no reference, unsigned arguments are short: `Run<Phase>()`, `9u`."""
    need("perf", "g++", "c++filt")
    flags = ["-O0", "-fno-omit-frame-pointer"]
    run_tool(["g++", *flags, PROGRAMS / "mangled.cc", "-o", "mangled"], tmp_path)
    run_tool(["perf", "record", "-qN", "-e", "cpu-clock", "-F", "499", "-g", "-o", "perf.data", "./mangled"], tmp_path)
    rows = (
        perfuse.fuse(tmp_path / "perf.data")
        .sql("""SELECT DISTINCT linkage_name, functions.name FROM functions
            JOIN modules USING (module_id) WHERE modules.name LIKE '%mangled' AND linkage_name IS NOT NULL""")
        .fetchall()
    )
    mangled = "\n".join(linkage for linkage, _ in rows)
    printed = subprocess.run(["c++filt"], input=mangled, capture_output=True, text=True, check=True).stdout
    # c++filt has the return type of templates, and so does nothing else here.
    theirs = [name.removeprefix("void ") for name in printed.splitlines()]
    assert [name for _, name in rows] == theirs
    assert {"Pipeline::run<Phase>()", "Pipeline::run<Phase, int&>(int&)", "Table<int, 9u, 10ul>::insert(int)"} <= {
        *theirs
    }
