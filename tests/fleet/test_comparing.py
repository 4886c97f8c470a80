"""Planted regressions are found, at the right build; equal builds are not reported beyond the stated rate."""

from pathlib import Path

import pytest

from fleet.conftest import LABELS
from fleet.generated import PROGRAM, write_fleet
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
    assert step.low < 0.5 < step.high
    assert [value for value, _ in found.values] == ["40", "41", "42", "43", "44", "45"]


def test_builds_after_the_step_have_none(fleet: Fleet) -> None:
    assert steps_since(fleet, parse_recordings("build!=40|41|42"), "43").steps == []


def test_an_unknown_build_is_an_error(fleet: Fleet) -> None:
    with pytest.raises(UsageError, match="no recording has build '39'"):
        steps_since(fleet, ALL, "39")
    with pytest.raises(UsageError, match="no build after 45"):
        steps_since(fleet, ALL, "45")


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
