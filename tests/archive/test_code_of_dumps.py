"""What is about code of dumps in a saved profile: the answers of the recordings, without copies that are not needed."""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zipfile import ZipFile

import pytest
from questions import annotated, answer_to, exported, graph, report, table

import perfuse as pf
from packs_of_tests import damaged_copy, rewritten
from perfuse.archive import writing
from perfuse.archive.resolved_code import BYTES, FACTS
from perfuse.archive.xz import packed, unpacked
from perfuse.exporters import TARGETS
from perfuse.table import OF_DUMPS
from perfuse.viewer.routes import Routes
from perfuse.viewer.session import Session

STEMS = ("openjdk17-jvmti", "cpython313", "erlang27")
PERF_DATA, COPIES = "inputs/0/", "inputs/"
"""The copy of the perf.data, and all copies."""
SOME, ALL = 0, 1_000_000
"""Shares that rows of other code may need: only those of code on stacks are saved, and all are."""


class Pair:
    """Recordings, and their saved profiles, of which some copies cannot be read.

    Attributes:
        recorded: The recordings.
        files: The saved profiles, by the share that rows of other code may need, and the copies that are damaged.
    """

    def __init__(self, files: tuple[Path, ...], folder: Path) -> None:
        self.recorded = pf.fuse(*files)
        self.files = {}
        self._code: dict[str, bytes] | None = None
        for share in (SOME, ALL):
            whole = folder / f"{share}.perfuse"
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(writing, "SMALL_COPIES", 0)
                patch.setattr(writing, "MOST_FURTHER", share)
                self.save(whole)
            for number, copies in enumerate((PERF_DATA, COPIES)):
                self.files[share, copies] = damaged_copy(whole, folder / f"{share}-{number}.perfuse", copies)

    def save(self, path: Path) -> None:
        """Saves the recordings with all machine code, which is looked up once: that takes most of the time."""
        with pytest.MonkeyPatch.context() as patch:
            if self._code is not None:
                patch.setattr(writing, "record", lambda *_: self._code)
            self.recorded.save(path, code="all")
        with ZipFile(path) as archive:
            self._code = {name: archive.read(name) for name in (FACTS, BYTES) if name in archive.namelist()}

    def is_same(self, ask: Callable[[pf.Profile], Any], *files: tuple[int, str]) -> bool:
        """Whether saved profiles answer as the recordings."""
        expected = answer_to(partial(ask, self.recorded))
        assert not isinstance(expected, Exception), expected
        for key in files:
            with pf.fuse(self.files[key]) as saved:
                if answer_to(partial(ask, saved)) != expected:
                    return False
        return True

    def function_on_no_stack(self) -> tuple[int, str]:
        """Key and name of a function of the dump."""
        query = """SELECT function_id, name FROM functions WHERE function_id IN (SELECT function_id FROM code_objects)
            AND name NOT IN (SELECT name FROM frames JOIN functions USING (function_id)) ORDER BY 1 LIMIT 1"""
        (row,) = self.recorded.sql(query).fetchall()
        return row[0], row[1]


@pytest.fixture(scope="module", params=STEMS)
def pair(
    request: pytest.FixtureRequest, jitdump_corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Recordings of a runtime with their saved profile."""
    produced = jitdump_corpus / "produced"
    files = (produced / f"{request.param}.perf.data", produced / f"{request.param}.dump")
    made = Pair(files, tmp_path_factory.mktemp(request.param))
    yield made
    made.recorded.close()


STEPS: dict[str, Callable[[pf.Profile], pf.Profile]] = {
    "only": lambda whole: whole.only("*a*"),
    "only of nothing": lambda whole: whole.only("no_such_function"),
    "only of a module": lambda whole: whole.only("module:*lib*"),
    "drop": lambda whole: whole.drop("*a*"),
    "hide": lambda whole: whole.hide("*a*"),
    "root": lambda whole: whole.root("*a*"),
    "leaf": lambda whole: whole.leaf("*a*"),
    "tier of nothing": lambda whole: whole.tier("turbo"),
    "jit only": lambda whole: whole.jit_only(),
    "collapsed recursion": lambda whole: whole.collapse_recursion(),
    "collapsed module": lambda whole: whole.collapse_module("*lib*"),
    "several": lambda whole: whole.collapse_module("*lib*").hide("*e*").only("*a*"),
    "of a time": lambda whole: whole.between(0.1, 0.3).only("*a*"),
}
"""Filters of stacks."""
STEPS_OF_EACH = 5
"""Filters of the recordings of a runtime."""


def test_filters_need_no_copies(pair: Pair, tmp_path: Path, choice: random.Random) -> None:
    asked: dict[str, Callable[[pf.Profile], Any]] = {
        **{str(one): lambda part, o=one: report(part, o) for one in ({}, {"--tree": True}, {"--by": "module"})},
        "stacks": lambda part: report(part, {"--stacks": True}),
        "module": lambda part: graph(part, "module"),
        "flame": lambda part: part.flame()._repr_html_(),
        "frames": lambda part: table(part, "frames"),
    }
    for target in TARGETS:
        if target.name in ("collapsed", "speedscope", "pprof", "html", "svg"):
            asked[target.name] = lambda part, t=target: exported(part, t, t.outputs[0], tmp_path / "out")

    def ask(whole: pf.Profile, name: str) -> dict[str, Any]:
        """The answers; the error of a filter that selects nothing is the answer to all."""
        part = answer_to(partial(STEPS[name], whole))
        if not isinstance(part, pf.Profile):
            return dict.fromkeys(asked, part)
        return {what: answer_to(partial(one, part)) for what, one in asked.items()}

    for name in choice.sample(list(STEPS), STEPS_OF_EACH):
        expected = ask(pair.recorded, name)
        with pf.fuse(pair.files[SOME, COPIES]) as saved:
            found = ask(saved, name)
        assert not any(isinstance(one, Exception) for one in expected.values()), name
        assert [what for what in expected if expected[what] != found[what]] == [], name


def test_functions_on_no_stack_are_refused_as_of_recordings(pair: Pair) -> None:
    """By name and by handle: the saved tables have neither, and the hints are of the functions on stacks."""
    key, name = pair.function_on_no_stack()
    for pattern in (name, f"f{key}", f"/^{name[:3]}$/"):
        assert pair.is_same(lambda whole, p=pattern: report(whole.only(p), {}), (SOME, COPIES), (ALL, COPIES))
        assert pair.is_same(lambda whole, p=pattern: report(whole, {"--callers": p}), (SOME, COPIES))
    for (handle,) in pair.recorded.sql("SELECT DISTINCT function_id FROM frames ORDER BY 1 LIMIT 40").fetchall():
        assert handle is None or pair.is_same(lambda whole, h=handle: report(whole.only(f"f{h}"), {}), (SOME, COPIES))


def test_filters_of_the_page_need_no_copies(pair: Pair) -> None:
    filters = quote(json.dumps([["hide", "*e*"], ["only", "*a*"]]))

    def ask(whole: pf.Profile) -> list[bytes]:
        session = Session(lambda _progress: whole, ["x"])
        session.open_now()
        asked = ("tree", "functions", "filters")
        return [Routes(session).answer("GET", f"/api/{one}", f"filters={filters}", b"").body for one in asked]

    assert pair.is_same(ask, (SOME, PERF_DATA), (ALL, COPIES))


CODE: dict[str, Callable[[pf.Profile], Any]] = {
    **{name: lambda whole, n=name: table(whole, n) for name in ("functions", "code_objects")},
    "filtered functions": lambda whole: table(whole.hide("*e*"), "functions"),
    "collapsed functions": lambda whole: table(whole.collapse_module("*lib*"), "functions"),
    "diff": lambda whole: graph(whole, "function"),
    "filtered diff": lambda whole: graph(whole.only("*a*"), "function"),
}
"""What is about all code."""


@pytest.mark.parametrize("name", CODE)
def test_all_code_needs_the_dump_or_its_tables(pair: Pair, name: str) -> None:
    assert pair.is_same(CODE[name], (SOME, PERF_DATA), (ALL, COPIES))
    assert not pair.is_same(CODE[name], (SOME, COPIES))


@pytest.mark.parametrize("name", ["line_rows", "inline_calls"])
def test_lines_need_the_dump_alone(pair: Pair, name: str) -> None:
    assert pair.is_same(lambda whole: table(whole, name), (SOME, PERF_DATA), (ALL, PERF_DATA))


def test_annotate_needs_the_dump_alone(pair: Pair) -> None:
    query = "SELECT function_id FROM frames WHERE code_object_id IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC, 1"
    functions = [f"f{key}" for (key,) in pair.recorded.sql(f"{query} LIMIT 3").fetchall()]
    for function in (*functions, f"f{pair.function_on_no_stack()[0]}x", "no_such_function"):
        assert pair.is_same(lambda whole, f=function: annotated(whole, f, False), (SOME, PERF_DATA), (ALL, PERF_DATA))


def test_the_page_needs_the_dump_alone(pair: Pair) -> None:
    """The timeline with its compilations, and the page of code."""

    def ask(whole: pf.Profile) -> list[bytes]:
        session = Session(lambda _progress: whole, ["x"])
        session.open_now()
        asked = ("overview", "timeline", "symbols", "code", "code/timeline", "code/space")
        return [Routes(session).answer("GET", f"/api/{one}", "", b"").body for one in asked]

    assert pair.is_same(ask, (SOME, PERF_DATA), (ALL, COPIES))
    assert not pair.is_same(ask, (SOME, COPIES))


def _size_of_tables(archive: ZipFile) -> int:
    members = {f"tables/{name}.parquet" for name in OF_DUMPS}
    return sum(one.file_size for one in archive.infolist() if one.filename in members)


def test_few_further_rows_are_saved(pair: Pair, tmp_path: Path) -> None:
    """All rows of code where they need at most an eighth of what the copy of the dump needs, else those of stacks."""
    sizes = {}
    for share in (SOME, ALL):
        with ZipFile(pair.files[share, COPIES]) as archive:
            sizes[share] = _size_of_tables(archive)
    path = tmp_path / "saved.perfuse"
    pair.save(path)
    with ZipFile(path) as archive:
        found = _size_of_tables(archive)
        copy = archive.getinfo("inputs/1/jitdump.zst").file_size
    assert found == sizes[ALL if sizes[ALL] - sizes[SOME] <= copy / 8 else SOME]


def test_damaged_machine_code_is_an_error(jitdump_corpus: Path, tmp_path: Path) -> None:
    """What is read of it when a function asks for it: texts, targets and modules that are not there."""
    produced = jitdump_corpus / "produced"
    path, out = tmp_path / "saved.perfuse", tmp_path / "changed.perfuse"
    with pf.fuse(produced / "node20.perf.data", produced / "node20.dump") as profile:
        profile.save(path, code="sampled")
        query = "SELECT function_id FROM frames WHERE {} GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"
        jit, native = (
            f"f{profile.sql(query.format(kind)).fetchall()[0][0]}"
            for kind in ("code_object_id IS NOT NULL", "kind = 'native' AND function_id IS NOT NULL")
        )
    with ZipFile(path) as archive:
        facts = json.loads(unpacked(archive.read(FACTS), 1 << 30))
    modules, others = (
        [{**one, of: [[0, 10**9, None]]} for one in facts["modules"]] for of in ("instructions", "targets")
    )
    targets = [[process, address, [[0, 10**9, 0, 0]]] for process, address, _ in facts["targets"]]
    changes: list[tuple[str, dict[str, bytes]]] = [
        (native, {BYTES: b"not xz"}),
        (native, {FACTS: packed(json.dumps({**facts, "modules": modules}).encode())}),
        (native, {FACTS: packed(json.dumps({**facts, "modules": others}).encode())}),
        (jit, {FACTS: packed(json.dumps({**facts, "targets": targets}).encode())}),
        (jit, {FACTS: packed(json.dumps({**facts, "targets": 7}).encode())}),
        (jit, {FACTS: b"not xz"}),
    ]
    for function, members in changes:
        out.write_bytes(rewritten(path.read_bytes(), members))
        with pf.fuse(out) as saved, pytest.raises(pf.UnreadableInput, match="the saved machine code cannot be read"):
            annotated(saved, function, False)


def test_machine_code_of_files_before_version_1_6(jitdump_corpus: Path, tmp_path: Path) -> None:
    """These have a row for each instruction; functions are annotated as in files with a row for each change."""
    produced = jitdump_corpus / "produced"
    path, out = tmp_path / "saved.perfuse", tmp_path / "before.perfuse"
    with pf.fuse(produced / "cpython313.perf.data", produced / "cpython313.dump") as profile:
        profile.save(path, code="sampled")
    with ZipFile(path) as archive:
        facts = json.loads(unpacked(archive.read(FACTS), 1 << 30))
    for module in facts["modules"]:
        changes = module.pop("instructions")
        starts = [row[0] for row in changes]
        of_functions = [
            [address, *changes[bisect_right(starts, address) - 1][1:]]
            for start, _, size, _ in module["functions"]
            for address in range(start, start + size)
        ]
        module["addresses"] = [*of_functions, *module.pop("targets")]
    out.write_bytes(rewritten(path.read_bytes(), {FACTS: packed(json.dumps(facts).encode())}))
    query = """SELECT DISTINCT function_id FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
        WHERE kind = 'native' AND inline_depth = 0 AND function_id IS NOT NULL ORDER BY 1 LIMIT 4"""
    with pf.fuse(path) as saved, pf.fuse(out) as before:
        functions = [f"f{key}" for (key,) in saved.sql(query).fetchall()]
        assert len(functions) == 4
        for function in functions:
            assert annotated(saved, function, False) == annotated(before, function, False)


def test_files_before_version_1_8_need_the_dump(jitdump_corpus: Path, tmp_path: Path) -> None:
    """These may not have the last function, after whose key filters number theirs."""
    produced = jitdump_corpus / "produced"
    path, out = tmp_path / "saved.perfuse", tmp_path / "before.perfuse"
    files = produced / "erlang27.perf.data", produced / "erlang27.dump"
    with pf.fuse(*files) as profile:
        profile.save(path)
    with ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    manifest["version"]["minor"] = 7
    out.write_bytes(rewritten(path.read_bytes(), {"manifest.json": json.dumps(manifest).encode()}))
    query = "SELECT * FROM functions ORDER BY function_id"
    with pf.fuse(*files) as profile, pf.fuse(path) as saved, pf.fuse(out) as before:
        for step in ("jit only", "collapsed module"):
            filtered = [STEPS[step](one) for one in (profile, saved, before)]
            first, *others = [(report(one, {}), one.sql(query).fetchall()) for one in filtered]
            assert others == [first, first]
