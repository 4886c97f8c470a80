"""PostgreSQL: its servers compile expressions with LLVM, where the session asks for a dump."""

from __future__ import annotations

from perfuse.capture.finding import Finding
from perfuse.capture.runtime import Preparation, Runtime, Setting, Workspace

SETTING = "-c jit_profiling_support=on"


def prepare(workspace: Workspace) -> Preparation:
    """For clients, an option of their sessions; the processes that compile are those of the server."""
    names = workspace.program.names
    if "postgres" in names:
        command = workspace.program.command
        num_first = 2 if command[1:2] == ("--single",) else 1  # it has to be the first option
        command = (*command[:num_first], *SETTING.split(), *command[num_first:])
        return Preparation((_directory(workspace),), command, "fp")
    found = Finding(
        "postgresql",
        "limited",
        "the server's processes run the queries, and are not children of the client",
        "perfuse record --pid PID, with the pid of `SELECT pg_backend_pid()`",
    )
    why = "sessions of a superuser write dumps of what they compile"
    return Preparation((Setting("PGOPTIONS", SETTING, " ", why), _directory(workspace)), findings=(found,))


def _directory(workspace: Workspace) -> Setting:
    return Setting("JITDUMPDIR", str(workspace.directory), None, "where LLVM writes dumps")


RUNTIME = Runtime(
    name="postgresql",
    title="PostgreSQL",
    executables=r"postgres|psql|pgbench",
    mapped=r"llvmjit\.so",
    prepare=prepare,
    is_quiet=False,
    writes="dump",
    advice="SET jit_profiling_support = on, at the start of the session, by a superuser",
)
