"""CPython: trampolines that give Python functions frames and names, from 3.12 on."""

from __future__ import annotations

import re
from pathlib import Path

from perfuse.capture.finding import Finding
from perfuse.capture.installed import Tool, at_least
from perfuse.capture.runtime import Preparation, Runtime, Setting, SourceDefinitions, Stacks, Workspace
from perfuse.capture.versions import output_of, text_of

FIRST_WITH_MAP = (3, 12)
FIRST_WITH_DUMP = (3, 13)
_QUESTION = (
    "import sys, sysconfig;"
    "print(*sys.version_info[:3], 'fno-omit-frame-pointer' in"
    " ' '.join(str(sysconfig.get_config_var(n)) for n in ('PY_CORE_CFLAGS', 'CFLAGS')))"
)
_DUMP = Setting("PYTHON_PERF_JIT_SUPPORT", "1", None, "CPython 3.13+ writes /tmp/jit-PID.dump")
_MAP = Setting("PYTHONPERFSUPPORT", "1", None, "CPython 3.12+ writes /tmp/perf-PID.map")
_LINES = """
import json, sys, warnings

def lines(source):
    found = {}
    # What is left out with -O may define a name again.
    for optimize in (0, 1) if b"__debug__" in source else (0,):
        codes = [compile(source, "<source>", "exec", dont_inherit=True, optimize=optimize)]
        for code in codes:
            found.setdefault(code.co_qualname, set()).add(code.co_firstlineno)
            codes += [one for one in code.co_consts if isinstance(one, type(code))]
    unnamed = ("<lambda>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
    return {name: min(at) for name, at in found.items() if len(at) == 1 and not name.endswith(unnamed)}

warnings.simplefilter("ignore")
answer = {}
for path, source in json.load(sys.stdin).items():
    try:
        answer[path] = lines(source.encode("latin-1"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
json.dump(answer, sys.stdout)
"""
"""Functions and their first lines: those of their code, which are those of the first decorator where there are some."""
ADVICE = "names of Python functions need 3.12 or newer; `py-spy record` reads older ones"


def prepare(workspace: Workspace) -> Preparation:
    """Trampolines with a dump where there is 3.13; copied stacks where the interpreter has no frame pointers."""
    if workspace.executable is None:
        return Preparation((_DUMP, _MAP))
    version, has_frame_pointers = describe(workspace.executable)
    name = f"CPython {text_of(version)}"
    if not version:
        return Preparation((_DUMP, _MAP), findings=(Finding("python", "limited", f"{name}: it does not run", None),))
    if version < FIRST_WITH_MAP:
        return Preparation(findings=(Finding("python", "limited", f"{name} writes no names", ADVICE),))
    stacks: Stacks = "fp" if has_frame_pointers else "dwarf"
    if version < FIRST_WITH_DUMP:
        limits = _without_dump(name, has_frame_pointers)
        return Preparation((_MAP,), _command(workspace, "perf"), stacks, findings=limits)
    return Preparation((_DUMP,), _command(workspace, "perf_jit"), stacks)


def describe(executable: Path) -> tuple[tuple[int, ...], bool]:
    """The version of an interpreter, and whether it was compiled with frame pointers."""
    words = output_of((str(executable), "-I", "-S", "-c", _QUESTION)).split()
    if len(words) != 4 or not all(word.isdecimal() for word in words[:3]):
        return (), False
    return tuple(map(int, words[:3])), words[3] == "True"


def _command(workspace: Workspace, option: str) -> tuple[str, ...] | None:
    """The command with `-X perf_jit`, where the interpreter is called with an option that makes it ignore variables."""
    first, *rest = workspace.program.command
    for word in rest:
        if not word.startswith("-"):
            break
        if re.fullmatch(r"-[a-zA-Z]*[IE][a-zA-Z]*", word):
            return (first, "-X", option, *rest)
    return None


def _without_dump(name: str, has_frame_pointers: bool) -> tuple[Finding, ...]:
    if has_frame_pointers:
        return ()
    cure = "use Python 3.13 or newer, or build 3.12 with CFLAGS='-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer'"
    detail = f"{name} has no frame pointers: callers of Python functions will be missing"
    return (Finding("frame pointers", "limited", detail, cure),)


RUNTIME = Runtime(
    name="python",
    title="CPython",
    executables=r"python(3(\.\d+t?)?)?",
    mapped=r"python3(\.\d+t?)?|libpython3.*\.so.*",
    prepare=prepare,
    is_quiet=True,
    writes="dump",
    advice=ADVICE,
    while_running="CPython keeps up to 4 KiB of its dump in memory: copy it again when the process has ended",
    tool=Tool(
        "python",
        ("python3.15", "python3.14", "python3.13", "python3"),
        ("--version",),
        "python3 -X perf_jit SCRIPT",
        "apt install python3.13",
        at_least(3, 13, "-X perf_jit"),
        directories=("$PYENV_ROOT/versions/*/bin", "~/.pyenv/versions/*/bin", "~/.local/share/uv/python/*/bin"),
    ),
    definitions=SourceDefinitions(r"py::(?P<name>.+?):(?P<path>/.+)", "CPython", _LINES),
)
