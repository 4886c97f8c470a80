"""The JVM, by perf's own JVMTI agent: sampled lines are lines of the method that was busy.

Debian ships no libperf-jvmti.so, so this is a stored recording and not a run; recorded/jvmti/README.md
describes how it was made.
"""

import json
import re
from pathlib import Path

import pytest

import perfuse as pf
from perfuse.analysis.weights import Weights

from .kinds import KINDS
from .producers import PROGRAMS, function_lines, phases
from .sampled import leaves, share

RECORDED = Path(__file__).parent / "recorded" / "jvmti"
SOURCE = PROGRAMS / "Phases.java"


@pytest.mark.truth(recording="perf_openjdk", path="api:Profile.sql", source="the program's own times")
def test_samples_are_on_lines_of_the_method_that_was_busy() -> None:
    sampled = leaves(RECORDED / "perf.data.gz", RECORDED / "jit.dump.gz", main_thread_only=False)
    for phase in phases((RECORDED / "phases.txt").read_text(encoding="utf-8")):
        lines = function_lines(SOURCE, f"static int {phase.function}(")
        inside = [leaf for leaf in sampled if phase.start_ns <= leaf.ts_ns <= phase.end_ns]
        right = [
            leaf
            for leaf in inside
            if leaf.linkage_name == f"LPhases;{phase.function}(I)I" and leaf.line in lines and leaf.column is None
        ]
        assert share(len(right), len(inside), at_least=200) >= 0.99, phase.function
        assert {Path(leaf.path or "").name for leaf in right} == {"Phases.java"}


_JAVA_METHOD = re.compile(r"(?:[\w.]+\.)?([A-Z]\w*)[\w$]*\.[\w<>$]+\(")


@pytest.mark.truth(recording="perf_openjdk", path="convert:firefox", source="Java names a file after its class")
def test_files_of_methods_are_named_after_their_classes(tmp_path: Path) -> None:
    """A method's code starts on a line of its own file; most of the rest may be of methods that were inlined."""
    kind = KINDS["perf_openjdk"]
    out = tmp_path / "out.json"
    with pf.fuse(*kind.paths, **kind.fuse_options) as profile:
        profile.export(out, to="firefox")
    shared = json.loads(out.read_text(encoding="utf-8"))["shared"]
    strings, funcs, sources = shared["stringArray"], shared["funcTable"], shared["sources"]
    found = [
        (method[1], Path(strings[sources["filename"][source]]).stem)
        for name, source in zip(funcs["name"], funcs["source"], strict=True)
        if source is not None and (method := _JAVA_METHOD.match(strings[name]))
    ]
    right = [one for one in found if one[0] == one[1]]
    assert share(len(right), len(found), at_least=40) >= 0.95, set(found) - set(right)
    assert ("W", "W") in right


@pytest.mark.truth(recording="perf_openjdk", path="report:profile", source="Java names a file after its class")
def test_a_method_is_not_reported_in_the_file_of_one_that_was_inlined_into_it() -> None:
    """perf's agent writes the line of the innermost inlined method, without its name."""
    kind = KINDS["perf_openjdk"]
    with pf.fuse(*kind.paths, **kind.fuse_options) as profile:
        weights = Weights(profile).functions()
        lines = profile.sql(
            "SELECT name, frames.path FROM frames JOIN functions USING (function_id) WHERE frames.path LIKE '%.java'"
        ).fetchall()
    classes = {one.name: method[1] for one in weights if (method := _JAVA_METHOD.match(one.name))}
    others = {name for name, path in lines if name in classes and Path(path).stem != classes[name]}
    assert len(others) >= 3
    found = [(classes[one.name], Path(one.path).stem) for one in weights if one.name in classes and one.path]
    assert len(found) >= 40
    assert {one for one in found if one[0] != one[1]} == set()


@pytest.mark.truth(recording="perf_openjdk", path="convert:speedscope", source="Java names a file after its class")
@pytest.mark.truth(recording="perf_openjdk", path="convert:cpuprofile", source="Java names a file after its class")
def test_a_method_is_one_function_of_its_own_file(tmp_path: Path) -> None:
    """Speedscope adds up weights by name and file: of several files, a method was several functions."""
    kind = KINDS["perf_openjdk"]
    speedscope, cpuprofile = tmp_path / "out.json", tmp_path / "out.cpuprofile"
    with pf.fuse(*kind.paths, **kind.fuse_options) as profile:
        profile.export(speedscope, to="speedscope")
        profile.export(cpuprofile, to="cpuprofile")
    frames = json.loads(speedscope.read_text(encoding="utf-8"))["shared"]["frames"]
    calls = [node["callFrame"] for node in json.loads(cpuprofile.read_text(encoding="utf-8"))["nodes"]]
    for named in (
        [(one["name"], one.get("file")) for one in frames],
        list({(one["functionName"], one["url"]) for one in calls}),
    ):
        methods = [(method[1], name, path) for name, path in named if (method := _JAVA_METHOD.match(name))]
        assert len(methods) == len({name for _, name, _ in methods}) >= 40
        found = [(in_class, Path(path).stem) for in_class, _, path in methods if path]
        right = [one for one in found if one[0] == one[1]]
        assert share(len(right), len(found), at_least=40) >= 0.95, set(found) - set(right)
