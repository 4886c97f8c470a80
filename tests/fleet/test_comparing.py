"""Planted regressions are found, at the right build; equal builds are not reported beyond the stated rate."""

import json
import os
from pathlib import Path

import pytest

from fleet.conftest import LABELS
from fleet.generated import PROGRAM, write_fleet
from perfuse.cli import run
from perfuse.errors import UsageError
from perfuse.fleet import Fleet
from perfuse.fleet.comparing import beyond_noise, difference, graphs_of, steps_since
from perfuse.fleet.questions import select_event
from perfuse.fleet.selecting import Recordings, parse_recordings

ALL = Recordings()


def test_the_first_bad_build_is_named(fleet: Fleet) -> None:
    found = steps_since(fleet, ALL, "40")
    assert [(one.name, one.first, one.last_good) for one in found.steps] == [("compare", "43", "42")]
    (step,) = found.steps
    assert step.low is not None
    assert step.high is not None
    assert step.low < 0.5 < step.high
    assert [value for value, _ in found.values] == ["40", "41", "42", "43", "44", "45"]


def test_builds_after_the_step_have_none(fleet: Fleet) -> None:
    assert steps_since(fleet, parse_recordings("build!=40|41|42"), "43").steps == []


def test_an_unknown_build_is_an_error(fleet: Fleet) -> None:
    with pytest.raises(UsageError, match="no recording has build '39'"):
        steps_since(fleet, ALL, "39")
    with pytest.raises(UsageError, match="no build follows 45"):
        steps_since(fleet, ALL, "45")


@pytest.fixture
def programs(tmp_path: Path) -> Fleet:
    """Two programs with the same functions: one spends a third of the other's time in `compare`, which becomes slower
    from build 43 on in one, and from 44 on in the other."""
    fleet = Fleet(tmp_path / "dataset")
    for number, (name, since) in enumerate((("web", "43"), ("batch", "44"))):
        written = write_fleet(
            tmp_path / name, ("40", "41", "42", "43", "44", "45"), seed=number + 3, planted={"compare": (since, 1.4)}
        )
        if name == "batch":
            for path in written.paths:
                stacks = path.read_text(encoding="utf-8").splitlines()
                path.write_text("".join(f"{one}\n" for one in [*stacks, "main;compute 8000"]), encoding="utf-8")
        assert fleet.add(written.paths, labels={"program": name}, labels_from=LABELS).num_added == 24
    return fleet


def test_programs_are_compared_each_by_itself(programs: Fleet) -> None:
    """Together they show one build; each by itself shows its own."""
    assert {one.first for one in steps_since(programs, ALL, "40").steps} == {"43"}
    found = steps_since(programs, ALL, "40", within="program")
    assert {(one.name, one.within, one.first) for one in found.steps} == {
        ("compare", "web", "43"),
        ("compare", "batch", "44"),
    }
    assert (found.num_groups, found.num_recordings) == (2, 48)


@pytest.mark.usefixtures("programs")
def test_recordings_of_several_programs_are_noted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Compared as one, what changed in one program may be noise among those of others."""
    note = "compared as one, and of 2 programs: --within program compares only recordings of the same"
    command = ["fleet", "diff", str(tmp_path / "dataset"), "--since", "40"]
    assert (run(command), note in capfd.readouterr().out) == (0, True)
    assert (run([*command, "--within", "program"]), "compared as one" in capfd.readouterr().out) == (0, False)
    web = [*command, "--where", "program=web"]
    assert (run(web), "compared as one" in capfd.readouterr().out) == (0, False)


def test_what_shrinks_only_because_another_grows_is_not_named(tmp_path: Path) -> None:
    """Two functions, of which one becomes twice as slow: the share of the other is less then, and it is the same."""
    paths = []
    for number in range(24):
        since = 2 if number >= 12 else 1
        stacks = {"main;work": 8000 + 10 * number % 70, "main;slow": since * 1000 + 7 * number % 30}
        stacks["main"] = 500 + 11 * number % 30
        content = "".join(f"{stack} {samples}\n" for stack, samples in stacks.items())
        path = tmp_path / f"b{number // 4}" / "h" / f"{number}.folded"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        os.utime(path, (1_793_534_400 + number * 86_400,) * 2)
        paths.append(path)
    fleet = Fleet(tmp_path / "dataset")
    fleet.add(paths, labels_from=r"/b(?P<build>\d+)/")
    found = steps_since(fleet, ALL, "0")
    assert [(one.name, one.first) for one in found.steps] == [("slow", "3")]
    assert found.steps[0].before == pytest.approx(0.105, abs=0.005)
    assert found.steps[0].after == pytest.approx(0.19, abs=0.005)


def test_two_selections_are_compared_as_runs(fleet: Fleet) -> None:
    event = select_event(fleet, ALL, None)
    sides = [graphs_of(fleet, parse_recordings(text), event) for text in ("build=41|42", "build=43|44")]
    found = difference(sides[0], sides[1])
    named = {one.named.name: one for one in found.functions if one.verdict in ("changed", "new", "gone")}
    assert "compare" in named
    low, high = named["compare"].figures["self"].low, named["compare"].figures["self"].high
    assert low is not None
    assert high is not None
    assert 0.1 < low < 0.5 < high < 1


def test_a_new_recording_is_checked_against_those_before(fleet: Fleet) -> None:
    event = select_event(fleet, ALL, None)
    base = graphs_of(fleet, parse_recordings("until 2026-11-03T13:00"), event)
    assert len(base) == 12
    bad, good = (graphs_of(fleet, parse_recordings(f"build={one}, last 1"), event) for one in ("44", "42"))
    assert [one.change.named.name for one in beyond_noise(difference(base, bad))] == ["compare"]
    assert beyond_noise(difference(base, good)) == []


def test_recordings_of_other_events_do_not_displace_those_that_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The most recent recordings are of another event; those compared are the most recent ones that have it."""
    import perfuse.fleet.comparing as compared

    fleet = Fleet(tmp_path / "dataset")
    fleet.add(write_fleet(tmp_path / "runs", ["1", "2"], runs=3).paths, labels_from=LABELS)
    recorded = Path(__file__).parents[1] / "truth" / "recorded" / "perf_machine" / "switches.perf.data"
    assert fleet.add([recorded]).num_added == 1
    newest = fleet.rows("SELECT formats FROM recordings ORDER BY start_ns DESC LIMIT 1")
    assert newest == [("perf_data",)]
    monkeypatch.setattr(compared, "MOST_RUNS", 4)
    graphs = graphs_of(fleet, ALL, select_event(fleet, ALL, "samples"), nodes=True)
    assert [sum(one.nodes.self_weights) for one in graphs if one.nodes] == [one.whole for one in graphs]
    assert len(graphs) == 4


def test_call_trees_are_those_of_the_stacks(fleet: Fleet) -> None:
    event = select_event(fleet, ALL, None)
    (graph, *_) = graphs_of(fleet, ALL, event, nodes=True)
    nodes = graph.nodes
    assert nodes is not None
    stacks = []
    for place, function in enumerate(nodes.functions):
        parent = nodes.parents[place]
        assert parent < place
        stacks.append((*(stacks[parent] if parent >= 0 else ()), graph.functions[function].name))
    assert {";".join(one) for one, own in zip(stacks, nodes.self_samples, strict=True) if own} == set(PROGRAM)
    assert sum(nodes.self_weights) == graph.whole


def test_equal_programs_are_reported_no_more_often_than_stated(tmp_path: Path) -> None:
    """Of 200 checks, each of one recording against 20 others, at most 5 % name any function: 10 expected at most, and
    16 are in the interval of 99 % around that."""
    folder = tmp_path / "runs"
    written = write_fleet(folder, [str(n) for n in range(21)], hosts=["a"], runs=10, seed=7, samples=3000)
    fleet = Fleet(tmp_path / "dataset")
    fleet.add(written.paths, labels_from=LABELS)
    event = select_event(fleet, ALL, None)
    graphs = graphs_of(fleet, parse_recordings("build!=none"), event)
    others = graphs_of(fleet, parse_recordings("until 2026-11-12"), event)
    graphs = [*graphs, *others]
    assert len(graphs) >= 200
    alarms = 0
    for number in range(200):
        base = [graphs[(number + 1 + step) % 200] for step in range(20)]
        alarms += bool(beyond_noise(difference(base, [graphs[number]], normalize="share")))
    print(f"{alarms} of 200")
    assert alarms <= 16


def test_what_was_not_tested_is_stated(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of two and two recordings there are six ways to divide them: none is as unlikely as 5 %."""
    for number, samples in enumerate((1000, 1010, 5000, 5010)):
        path = tmp_path / f"b{number // 2}" / f"{number}.folded"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"main;slow {samples}\nmain;work {20_000 + number}\n", encoding="utf-8")
        os.utime(path, (1_793_534_400 + number * 86_400,) * 2)
    dataset = str(tmp_path / "dataset")
    assert run(["fleet", "add", dataset, str(tmp_path / "b*"), "--labels-from", r"/b(?P<build>\d+)/"]) == 0
    capfd.readouterr()
    assert run(["fleet", "diff", dataset, "--since", "0"]) == 0
    printed = capfd.readouterr()
    assert printed.out.splitlines()[-1].strip() == "not tested"
    assert "no build has enough recordings before it and from it on" in printed.err
    assert run(["fleet", "diff", dataset, "--since", "0", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert (document["num_boundaries"], document["num_tested"], document["steps"]) == (0, 0, [])
