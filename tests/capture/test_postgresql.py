"""PostgreSQL: a query runs in a process of the server, whose expressions are compiled by LLVM."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .recorded import Run, record_until

DIRECTORIES = ("/usr/lib/postgresql", "/usr/pgsql")
OWNER = "postgres"
"""The server does not run as root: there as the user that the package makes."""
SETTINGS = {
    "listen_addresses": "''",
    "jit_profiling_support": "on",
    "jit_above_cost": "0",
    "jit_inline_above_cost": "0",
    "jit_optimize_above_cost": "0",
    "max_parallel_workers_per_gather": "0",
}
TABLE = "CREATE TABLE n AS SELECT i AS a, i % 97 AS b FROM generate_series(1, 1000) i"
TERM = "(x.a * x.b + z.a) % {} * 3 - y.b * z.a + x.a % 7 * (y.b + 1)"
QUERY = f"SELECT count(*) FROM n x, n y, n z WHERE {' + '.join(TERM.format(number) for number in (89, 97, 101))} > y.b"
"""A thousand million rows: it runs until it is ended."""
ACTIVE = (
    "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%n x, n y%' AND pid <> pg_backend_pid()"
)


def _programs() -> Path:
    """The directory of the newest server with its JIT provider."""
    found = [
        path.parent
        for directory in DIRECTORIES
        for path in Path(directory).glob("*/bin/initdb")
        if (path.parents[1] / "lib" / "llvmjit.so").exists()
    ]
    if not found:
        pytest.skip("no PostgreSQL with llvmjit.so")
    return max(found, key=lambda path: int(path.parent.name) if path.parent.name.isdecimal() else 0)


@contextmanager
def _server(programs: Path) -> Iterator[Path]:
    """A server of its own; the directory with its socket and its dumps."""
    directory = Path(tempfile.mkdtemp(prefix="perfuse-pg-"))
    user = OWNER if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(directory, user)
    environment = {**os.environ, "JITDUMPDIR": str(directory)}
    data = directory / "data"
    options = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
    control = [programs / "pg_ctl", "-D", data, "-w"]

    def run(*command: str | Path) -> None:
        log = (directory / "log").open("ab")
        with log:
            subprocess.run(
                command,
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=user,
                env=environment,
                cwd=directory,
            )

    try:
        run(programs / "initdb", "-D", data, "-A", "trust", "-U", OWNER, "--no-sync")
        run(*control, "-o", f"-F -k {directory} {options}", "start")
        yield directory
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=False, capture_output=True, user=user)
        shutil.rmtree(directory)


def test_the_expressions_of_a_query(tmp_path: Path) -> None:
    """The query is busy with one expression."""
    programs = _programs()
    with _server(programs) as directory:
        client = [programs / "psql", "-h", directory, "-U", OWNER, "-At", "-c"]

        def ask(text: str) -> str:
            return subprocess.run([*client, text], check=True, capture_output=True, text=True).stdout.strip()

        ask(TABLE)
        with subprocess.Popen([*client, QUERY], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as query:
            try:
                while not (pid := ask(ACTIVE)):
                    assert query.poll() is None
                run = record_until(is_busy_with_one_expression, [], tmp_path, "--pid", pid)
            finally:
                query.terminate()
    assert run.done.returncode == 0, run.done.stderr
    assert [file["kind"] for file in run.note["files"]] == ["dump"]
    [process] = run.note["processes"]
    assert (process["pid"], process["runtime"]) == (int(pid), "PostgreSQL")
    assert is_busy_with_one_expression(run), run.report()["top_self"]


def is_busy_with_one_expression(run: Run) -> bool:
    """Whether one compiled expression has most samples, as when the server has compiled it."""
    report = run.report()
    if not report["top_self"]:
        return False
    hot, total = report["top_self"][0], report["events"][0]["weight"]
    is_compiled = hot["name"].startswith("evalexpr_") and hot["kind"] == "jit"
    return is_compiled and hot["self_weight"] > 0.4 * total
