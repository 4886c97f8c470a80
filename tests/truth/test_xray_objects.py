"""Shared objects in XRay logs: each function is called a number of times that identifies it.

Library `a` has functions `a_one` and `a_two`; `a_two` calls `a_one` as often as `TIMES` states, and so on.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import perfuse
from needs import need

from .command import output
from .kinds import CORPUS
from .producers import PROGRAMS, run_tool
from .xray_programs import MODES

TIMES = {"a": 3, "b": 5, "c": 7, "d": 11}
EXPECTED = {"in_main": 2, **{f"{x}_two": 1 for x in TIMES}, **{f"{x}_one": n for x, n in TIMES.items()}}
FLAGS = ["-O1", "-fxray-instrument", "-fxray-instruction-threshold=1000"]
TRACED = "__attribute__((noinline, xray_always_instrument)) void"
LAYOUTS = {"independent": {}, "chain": {"a": "d", "c": "b"}, "reversed chain": {"d": "c", "c": "b", "b": "a"}}
"""Libraries that other libraries need, besides the program's."""


@dataclass(frozen=True, slots=True)
class Recorded:
    program: Path
    log: Path

    def library(self, name: str) -> str:
        return str(self.program.parent / f"libx{name}.so")

    def counts(self, *how: str) -> tuple[dict[str, int], list[str]]:
        """Calls by function, and findings about the maps."""
        document = json.loads(output("report", self.log, "--json", "--limit", "0", *how))
        codes = [one["code"] for one in document["diagnostics"] if not one["code"].startswith("XR")]
        return {one["name"]: one["num_calls"] for one in document["functions"]}, codes


@pytest.fixture(scope="module", params=[(layout, mode) for layout in LAYOUTS for mode in ("xray_fdr", "xray_basic")])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    need("clang-22", "clang++-22")
    layout, mode = request.param
    directory = tmp_path_factory.mktemp(layout.replace(" ", "_"))
    needs = LAYOUTS[layout]
    built: set[str] = set()

    def library(name: str) -> None:
        if name in built:
            return
        built.add(name)
        inner = needs.get(name)
        if inner:
            library(inner)
        source = f"volatile long s_{name};\n{TRACED} {name}_one(void) {{ s_{name}++; }}\n"
        loop = f"for (int i = 0; i < {TIMES[name]}; i++) {name}_one();"
        source += f"{TRACED} {name}_two(void) {{ {loop} s_{name}++; }}\n"
        (directory / f"{name}.c").write_text(source)
        linked = ["-Wl,--no-as-needed", "-L.", *([f"-lx{inner}"] if inner else []), "-Wl,-rpath,$ORIGIN"]
        command = [
            "clang-22",
            *FLAGS,
            "-fPIC",
            "-fxray-shared",
            "-shared",
            f"{name}.c",
            *linked,
            "-o",
            f"libx{name}.so",
        ]
        run_tool(command, directory)

    for name in TIMES:
        library(name)
    calls = "".join(f"extern void {name}_two(void);\n" for name in TIMES)
    body = "in_main(); in_main(); " + "".join(f"{name}_two(); " for name in TIMES)
    (directory / "main.c").write_text(
        f"{calls}volatile long s;\n{TRACED} in_main(void) {{ s++; }}\nint main(void) {{ {body}s++; return 0; }}\n"
    )
    run_tool(["clang-22", *FLAGS, "-c", "main.c"], directory)
    run_tool(["clang++-22", "-O1", "-c", PROGRAMS / "xray_recorder.cpp", "-o", "recorder.o"], directory)
    linked = ["-Wl,--wrap=main", "-Wl,--no-as-needed", "-L.", *(f"-lx{name}" for name in TIMES), "-Wl,-rpath,$ORIGIN"]
    modes = f"-fxray-modes={MODES['xray_fdr']},{MODES['xray_basic']}"
    program = directory / "main"
    run_tool(
        ["clang++-22", "-fxray-instrument", "-fxray-shared", modes, "main.o", "recorder.o", *linked, "-o", program],
        directory,
    )
    environment = {"XRAY_MODE": MODES["xray_fdr"], "XRAY_MODE_OPTIONS": "func_duration_threshold_us=0"}
    if mode == "xray_basic":
        environment = {
            "XRAY_OPTIONS": "patch_premain=true xray_mode=xray-basic xray_logfile_base=xray-log.",
            "XRAY_BASIC_OPTIONS": "func_duration_threshold_us=0",
        }
    subprocess.run([program], cwd=directory, env=environment, check=True, capture_output=True)
    (log,) = directory.glob("xray-log.*")
    return Recorded(program, log.rename(directory / "objects.xray"))


@pytest.mark.truth(
    recording="xray_shared_objects",
    path=["report", "report:calls"],
    source="each function of the program is called a number of times of its own",
)
def test_libraries_are_numbered_by_their_constructors(recorded: Recorded) -> None:
    """With the program alone, whose libraries are found, and with all files in link order or in another one."""
    program = ["--map", str(recorded.program)]
    assert recorded.counts(*program) == (EXPECTED, [])
    for order in ("abcd", "dacb"):
        files = [word for name in order for word in ("--map", recorded.library(name))]
        assert recorded.counts(*program, *files) == (EXPECTED, [])


@pytest.mark.truth(
    recording="xray_shared_objects",
    path=["report", "check"],
    source="each function of the program is called a number of times of its own",
)
def test_numbers_in_another_order_than_constructors_are_reported(recorded: Recorded) -> None:
    program = ["--map", str(recorded.program)]
    in_link_order = [word for n, name in enumerate("abcd", 1) for word in ("--map", f"{n}={recorded.library(name)}")]
    counts, codes = recorded.counts(*program, *in_link_order)
    if counts == EXPECTED:
        assert codes == []
        return
    assert codes == ["FU012"]
    profile = perfuse.fuse(recorded.log, maps={0: recorded.program, 1: recorded.library("a"), 2: recorded.library("b")})
    (message,) = [one.message for one in profile.diagnostics if one.code == "FU012"]
    proposed = message.partition("that the files need: ")[2].split()
    assert recorded.counts(*proposed) == (EXPECTED, [])


@pytest.mark.truth(
    recording="xray_shared_objects",
    path="report",
    source="libraries of equal size, which the program was not given for",
)
def test_libraries_that_fit_in_either_order_are_reported(recorded: Recorded) -> None:
    files = [word for n, name in enumerate("ab", 1) for word in ("--map", f"{n}={recorded.library(name)}")]
    _, codes = recorded.counts(*files)
    assert "FU013" in codes


@pytest.mark.truth(
    recording="xray_shared_objects",
    path=["report", "api:Profile.sql"],
    source="the program's text: it calls lib1_f to lib18_f in this order, each of which calls its inner function twice",
)
def test_eighteen_libraries_of_the_corpus_have_their_names() -> None:
    """FDR logs cut the object's number to 4 bits: three pairs of objects have the ids of each other, and both names."""
    directory = CORPUS / "xray" / "dso"
    if not directory.is_dir():
        pytest.skip(f"no {directory}")
    profile = perfuse.fuse(directory / "dso18-v5.xray", maps={0: directory / "dso22"})
    sql = "SELECT name FROM call_events JOIN functions USING (function_id) WHERE kind = 'enter'"
    sql += " ORDER BY ts_ns, record_offset"
    called = [name for (name,) in profile.sql(sql).fetchall()]
    expected = ["mainfn(long)"]
    expected += [f"lib{n}_{part}" for n in range(1, 19) for part in ("f", "inner", "inner")]
    assert len(called) == len(expected)
    for name, known in zip(called, expected, strict=True):
        assert known in name.split(" | "), (name, known)
    assert sum(" | " in name for name in called) <= 3 * 3 * 2


def run_with_opened(directory: Path, body: str) -> Recorded:
    """A program with libraries `a` and `b`, of which `b` has more functions, that its text opens with `dlopen`."""
    need("clang-22", "clang++-22")
    sources = {
        "a": f"{TRACED} a_one(void) {{ s++; }}\n{TRACED} a_two(void) {{ a_one(); a_one(); a_one(); s++; }}\n",
        "b": "".join(f"{TRACED} b_{n}(void) {{ s++; }}\n" for n in range(4))
        + f"{TRACED} b_two(void) {{ b_0(); b_0(); b_1(); b_2(); b_3(); s++; }}\n",
    }
    for name, text in sources.items():
        (directory / f"{name}.c").write_text(f"volatile long s;\n{text}")
        shared = ["-fPIC", "-fxray-shared", "-shared", f"{name}.c", "-o", f"libx{name}.so"]
        run_tool(["clang-22", *FLAGS, *shared], directory)
    (directory / "main.c").write_text(
        f"""#include <dlfcn.h>
        extern int __xray_patch(void);
        volatile long s;
        {TRACED} in_main(void) {{ s++; }}
        static void call(void* library, const char* name) {{ ((void (*)(void))dlsym(library, name))(); }}
        int main(void) {{ {body} return 0; }}"""
    )
    run_tool(["clang-22", *FLAGS, "-c", "main.c"], directory)
    run_tool(["clang++-22", "-O1", "-c", PROGRAMS / "xray_recorder.cpp", "-o", "recorder.o"], directory)
    program = directory / "main"
    linked = ["main.o", "recorder.o", "-Wl,--wrap=main", "-rdynamic", "-ldl", "-o", program]
    run_tool(
        ["clang++-22", "-fxray-instrument", "-fxray-shared", f"-fxray-modes={MODES['xray_fdr']}", *linked], directory
    )
    environment = {"XRAY_MODE": MODES["xray_fdr"], "XRAY_MODE_OPTIONS": "func_duration_threshold_us=0"}
    subprocess.run([program], cwd=directory, env=environment, check=True, capture_output=True)
    (log,) = directory.glob("xray-log.*")
    return Recorded(program, log)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A program that opens library `b`, then `a`."""
    body = """
        in_main();
        void *b = dlopen("./libxb.so", RTLD_NOW), *a = dlopen("./libxa.so", RTLD_NOW);
        if (!a || !b) return 1;
        __xray_patch();
        call(a, "a_two");
        call(b, "b_two");
    """
    return run_with_opened(tmp_path_factory.mktemp("dlopen"), body)


@pytest.mark.truth(
    recording="xray_shared_objects",
    path=["report", "report:calls"],
    source="each function of the program is called a number of times of its own",
)
def test_opened_libraries_are_numbered_by_the_functions_in_the_log(opened: Recorded) -> None:
    """No file states the order of `dlopen`: the log has five functions of one library, and the other has two."""
    known = {"in_main": 1, "a_one": 3, "a_two": 1, "b_0": 2, "b_1": 1, "b_2": 1, "b_3": 1, "b_two": 1}
    program = ["--map", str(opened.program)]
    for order in ("ab", "ba"):
        files = [word for name in order for word in ("--map", opened.library(name))]
        assert opened.counts(*program, *files) == (known, [])
    numbered = [word for n, name in enumerate("ab", 1) for word in ("--map", f"{n}={opened.library(name)}")]
    _, codes = opened.counts(*program, *numbered)
    assert "FU012" in codes
    words = [sys.executable, "-m", "perfuse", "report", str(opened.log), *program, *numbered]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    proposed = text.partition("this order fits: ")[2].partition("\n")[0].split()
    assert opened.counts(*proposed) == (known, [])


@pytest.mark.truth(
    recording="xray_shared_objects",
    path=["report", "report:calls"],
    source="each function of the program is called a number of times of its own",
)
def test_a_library_that_is_opened_again_has_another_number(tmp_path: Path) -> None:
    opened = "".join(
        f'{{ void *it = dlopen("./libx{name}.so", RTLD_NOW); __xray_patch(); call(it, "{name}_two"); dlclose(it); }}'
        for name in "aba"
    )
    recorded = run_with_opened(tmp_path, f"in_main(); {opened}")
    files = [f"{n}={recorded.library(name)}" for n, name in enumerate("aba", 1)]
    known = {"in_main": 1, "a_one": 6, "a_two": 2, "b_0": 2, "b_1": 1, "b_2": 1, "b_3": 1, "b_two": 1}
    maps = [word for file in files for word in ("--map", file)]
    counts, codes = recorded.counts("--map", str(recorded.program), *maps)
    assert (counts, codes) == (known, [])
    _, codes = recorded.counts("--map", str(recorded.program), *maps[:4])
    assert "XM013" in codes
