"""Writes the saved profiles of a release, and what it answers of them: `python -m packs.writing VERSION`."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import perfuse
from perfuse.table import ON_REQUEST, names

HERE = Path(__file__).parent
TESTS = HERE.parent


@dataclass(frozen=True, slots=True)
class Example:
    """A profile to be saved: files below `tests`, and how they are opened."""

    files: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)


RECORDED = "truth/recorded"
EXAMPLES = {
    "perf-jitdump": Example(("cli/testdata/perf.data", "cli/testdata/jit-2345.dump")),
    "perf-xray": Example(
        (f"{RECORDED}/perf_xray/perf.data.gz", f"{RECORDED}/perf_xray/log.xray"),
        {"maps": {1: f"{RECORDED}/perf_xray/ph.o"}},
    ),
    "perf-mono": Example((f"{RECORDED}/perf_mono/perf.data.gz", f"{RECORDED}/perf_mono/output.mlpd.gz")),
    "collapsed": Example((f"{RECORDED}/collapsed/threads.folded",)),
    "sframe": Example((f"{RECORDED}/sframe_archive/small.a",)),
}


def report_of(path: Path) -> Any:
    """The report of a saved profile as JSON."""
    command = [sys.executable, "-m", "perfuse", "report", path.name, "--json", "--limit", "0"]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def rows_of(profile: perfuse.Profile, table: str, columns: list[str]) -> dict[str, Any]:
    """Number and hash of the rows of a table."""
    listed = ", ".join(f'"{column}"' for column in columns)
    rows = profile.sql(f"SELECT {listed} FROM {table}").fetchall()
    digest = hashlib.sha256("\n".join(map(repr, rows)).encode()).hexdigest()
    return {"columns": columns, "rows": len(rows), "sha256": digest}


def answers_of(path: Path) -> dict[str, Any]:
    """What is compared."""
    tables = {}
    with perfuse.fuse(path) as profile:
        # Machine code is not saved by default.
        for name in sorted(set(names()) - {"instructions"}):
            columns = [one for one in profile.tables[name].columns if one not in ON_REQUEST.get(name, ())]
            tables[name] = rows_of(profile, name, columns)
    return {"report": report_of(path), "tables": {name: rows for name, rows in tables.items() if rows["rows"]}}


def main() -> None:
    """Writes a directory of a version, which must not exist."""
    folder = HERE / sys.argv[1]
    folder.mkdir()
    os.chdir(TESTS)
    for name, example in EXAMPLES.items():
        with perfuse.fuse(*example.files, **example.options) as profile:
            profile.save(folder / f"{name}.perfuse")
        text = json.dumps(answers_of(folder / f"{name}.perfuse"), indent=1, ensure_ascii=False)
        (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
