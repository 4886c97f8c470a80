"""A saved profile answers as its recordings do: reports, tables, exports, machine code, for every kind of recording."""

import json
import random
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from questions import table

import perfuse as pf
from perfuse.exporters import TARGETS, Target
from perfuse.table import names
from truth.kinds import KINDS, Kind

OF_MACHINE_CODE = {"elf", "perf-data"}
Answer = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Kind], Path]:
    """The saved profile of a kind's example, made once."""
    folder = tmp_path_factory.mktemp("packs")

    def pack(kind: Kind) -> Path:
        path = folder / f"{kind.name}.perfuse"
        if not path.exists():
            for file in kind.paths:
                if not file.exists():
                    pytest.skip(f"no {file}")
            with pf.fuse(*kind.paths, **kind.fuse_options) as profile:
                profile.save(path, code="all", sources="used")
        return path

    return pack


pytestmark = pytest.mark.some(12)

REPORTS = ((), ("--tree",), ("--inverted", "--json"), ("--between", "0..0.5"))
"""Options of reports, of which a kind of recording gets one, besides all rows as JSON."""
MOST_TARGETS = 8
"""Targets that a kind of recording is exported to."""


@pytest.mark.parametrize("name", KINDS)
def test_reports_are_the_same(name: str, packs: Callable[[Kind], Path], answer: Answer, choice: random.Random) -> None:
    kind = KINDS[name]
    path = packs(kind)
    inputs = [*kind.paths, *kind.map_options]
    for options in (("--json", "--limit", "0"), choice.choice(REPORTS)):
        assert answer("report", path, *options) == answer("report", *inputs, *options), options


@pytest.mark.parametrize("name", KINDS)
def test_tables_are_the_same(name: str, packs: Callable[[Kind], Path]) -> None:
    kind = KINDS[name]
    with pf.fuse(packs(kind)) as saved, pf.fuse(*kind.paths, **kind.fuse_options) as profile:
        for one in names():
            assert table(saved, one) == table(profile, one), one
        assert saved.diagnostics == profile.diagnostics
        assert (saved.title, saved.joins, saved.span_ns) == (profile.title, profile.joins, profile.span_ns)
        assert saved.unwinding == profile.unwinding


@pytest.mark.parametrize("name", KINDS)
def test_exports_of_the_default_are_the_same(name: str, tmp_path: Path, choice: random.Random) -> None:
    """With the default options: what needs machine code is refused, all else is what the recordings give."""
    kind = KINDS[name]
    path = tmp_path / "app.perfuse"
    with pf.fuse(*kind.paths, **kind.fuse_options) as profile:
        profile.save(path)
        with pf.fuse(path) as saved:
            different = []
            for target in choice.sample(TARGETS, MOST_TARGETS):
                expected, found = (exported(one, target, tmp_path) for one in (profile, saved))
                is_refused = target.name in OF_MACHINE_CODE and "`perfuse pack --code all` saves it" in str(found[0])
                if found != expected and not is_refused:
                    different.append((target.name, str(expected)[:300], str(found)[:300]))
    assert different == []


def exported(profile: pf.Profile, target: Target, folder: Path) -> tuple[bytes | str, list[str]]:
    """The bytes of a file, or the error, and the warnings; a page without the names of its files."""
    out = folder / "out"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            profile.export(out, to=target.name)
            content: bytes | str = out.read_bytes()
        except pf.PerfuseError as error:
            content = f"{error} {error.hint}"
    return content, [str(one.message) for one in caught]


@pytest.mark.parametrize("name", ["perf_node", "perf_stacks", "perf_llvm", "jitdump"])
def test_machine_code_is_the_same(name: str, packs: Callable[[Kind], Path], answer: Answer) -> None:
    """JIT code and code of files, with the names of what it refers to and its source lines."""
    kind = KINDS[name]
    path = packs(kind)
    with pf.fuse(path) as saved:
        query = "SELECT function_id FROM frames GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 4"
        if not saved.has_samples:
            query = "SELECT function_id FROM code_objects ORDER BY size_bytes DESC, 1 LIMIT 4"
        functions = [f"f{key}" for (key,) in saved.sql(query).fetchall()]
    for function in functions:
        options = (function, "--json", "--compilation", "all")
        assert answer("annotate", path, *options) == answer("annotate", *kind.paths, *options)


@pytest.mark.parametrize("name", ["perf_node", "perf_stacks"])
def test_machine_code_that_was_not_saved_is_refused(name: str, tmp_path: Path, answer: Answer) -> None:
    kind = KINDS[name]
    path = tmp_path / "app.perfuse"
    with pf.fuse(*kind.paths, **kind.fuse_options) as profile:
        profile.save(path)
        query = "SELECT function_id FROM frames WHERE kind IN ('jit', 'native') AND function_id IS NOT NULL"
        ((function,),) = profile.sql(f"{query} GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1").fetchall()
    exit_code, out, errors = answer("annotate", path, f"f{function}")
    assert (exit_code, out) == (2, "")
    assert "was not saved" in errors
    assert "`perfuse pack --code sampled`" in errors


def test_what_other_programs_read(packs: Callable[[Kind], Path], tmp_path: Path) -> None:
    """DuckDB reads the tables; zstd's own program unpacks the copies, which are files of their format."""
    import duckdb

    path = packs(KINDS["perf_node"])
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path)
        manifest: dict[str, Any] = json.loads(archive.read("manifest.json"))
    samples = f"SELECT count(*), count(DISTINCT stack_id) > 1 FROM '{tmp_path / 'tables' / 'samples.parquet'}'"
    # `perf script` prints 1419 samples of this recording: the corpus' MANIFEST.md.
    assert duckdb.sql(samples).fetchall() == [(1419, True)]
    for row in manifest["tables"]:
        assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path / row['member']}'").fetchall() == [(row["rows"],)]
