"""Sums of a dataset, compared with those of the files that the tests wrote."""

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from fleet.generated import PROGRAM, Written, write_collapsed
from perfuse.fleet import Fleet
from perfuse.fleet.questions import FleetEvent, FunctionShare, find_recordings, select_event, share_by, top_functions
from perfuse.fleet.selecting import Recordings, parse_recordings
from perfuse.fleet.stacks import collapsed_stacks
from perfuse.reports.fleet import top_lines
from perfuse.reports.text import Style

ALL = Recordings()


def test_every_recording_has_its_sums(fleet: Fleet, written: Written) -> None:
    rows = fleet.rows(
        "SELECT json_extract_string(inputs, '$[0].path'), weight, event_totals.num_samples FROM recordings"
        " JOIN event_totals USING (recording_id) ORDER BY 1"
    )
    assert {path: weight for path, weight, _ in rows} == {p: sum(s.values()) for p, s in written.stacks.items()}


def test_top_functions_are_those_of_the_files(fleet: Fleet, written: Written) -> None:
    event = select_event(fleet, ALL, None)
    assert (event.num_recordings, event.weight) == (len(written.paths), written.weight)
    rows, number = top_functions(fleet, ALL, event, limit=None)
    names = {name for stack in PROGRAM for name in stack.split(";")}
    assert number == len(rows) == len(names)
    assert {one.name: (one.self, one.total) for one in rows} == {
        name: (written.self_of(name), written.total_of(name)) for name in names
    }
    assert [one.self for one in rows] == sorted((one.self for one in rows), reverse=True)


def test_the_example_is_the_recording_with_the_largest_share(fleet: Fleet, written: Written) -> None:
    event = select_event(fleet, ALL, None)
    (row, *_), _ = top_functions(fleet, ALL, event, function="compare")
    shares = {
        path: sum(n for stack, n in one.items() if stack.endswith(";compare")) / sum(one.values())
        for path, one in written.stacks.items()
    }
    best = max(shares, key=lambda path: shares[path])
    ((inputs,),) = fleet.rows("SELECT inputs FROM recordings WHERE recording_id = ?", [row.example])
    assert json.loads(inputs)[0]["path"] == best
    assert row.example_share == pytest.approx(shares[best])


def test_shares_by_build_are_means_of_recordings(fleet: Fleet, written: Written) -> None:
    from math import sqrt
    from statistics import fmean, stdev

    event = select_event(fleet, ALL, None)
    (row, *_), _ = top_functions(fleet, ALL, event, function="compare")
    groups = share_by(fleet, ALL, event, [row.function_hash], "build")[row.function_hash]
    by_build: dict[str, list[float]] = {}
    for path, one in written.stacks.items():
        own = sum(n for stack, n in one.items() if stack.endswith(";compare")) / sum(one.values())
        by_build.setdefault(Path(path).parts[-3], []).append(own)
    assert [group.value for group in groups] == sorted(by_build)
    t_of_3 = 3.182446305284263  # the table of Student's distribution: 97.5 %, 3 degrees of freedom
    for group in groups:
        values = by_build[str(group.value)]
        reach = t_of_3 * stdev(values) / sqrt(len(values))
        assert group.mean == pytest.approx(fmean(values))
        assert (group.low, group.high) == pytest.approx((fmean(values) - reach, fmean(values) + reach))
        assert group.max == pytest.approx(max(values))


def test_builds_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    builds = ["9", "10", "1.9", "1.10", "r2-b", "r2-a", "r10"]
    inputs = [
        write_collapsed(tmp_path / str(n) / build / "a.folded", {"main;f": n + 1}) for n, build in enumerate(builds)
    ]
    fleet = Fleet(tmp_path / "dataset")
    fleet.add(inputs, labels_from=r"/\d+/(?P<build>[^/]+)/a")
    event = select_event(fleet, ALL, None)
    (row, *_), _ = top_functions(fleet, ALL, event, function="f")
    groups = share_by(fleet, ALL, event, [row.function_hash], "build")[row.function_hash]
    assert [group.value for group in groups] == ["1.9", "1.10", "9", "10", "r2-a", "r2-b", "r10"]


def test_functions_that_differ_in_the_program_alone_have_it_beside_the_file() -> None:
    rows = [
        FunctionShare("00", name, module, path, 1, 1, 1, "ab", 1.0)
        for name, path, module in (
            ("f", "/src/a.c", "/bin/one"),
            ("f", "/src/a.c", "/bin/two"),
            ("g", "/src/a.c", "/bin/two"),
            ("h", "/src/a.c", "/bin/two"),
            ("h", "/lib/a.c", "/bin/two"),
        )
    ]
    event = FleetEvent("cpu-clock", "ns", 1, 5, 5, 0)
    text = "\n".join(top_lines(event, 1, rows, len(rows), Style(), selection=""))
    for name, place in (
        ("f", "one a.c"),
        ("f", "two a.c"),
        ("g", "a.c"),
        ("h", "src/a.c"),
        ("h", "lib/a.c"),
    ):
        assert re.search(rf" {name} +{place} ", text), text


def test_a_selection_has_only_its_recordings(fleet: Fleet, written: Written) -> None:
    which = parse_recordings("build=41|42, host=a, service=web")
    chosen = {path for path in written.stacks if "/41/a/" in path or "/42/a/" in path}
    event = select_event(fleet, which, None)
    assert event.weight == sum(sum(written.stacks[path].values()) for path in chosen)
    assert fleet.selected(parse_recordings("build!=4[0-4]")) == 4
    assert fleet.selected(parse_recordings("since 2026-11-05")) == 8
    assert fleet.selected(parse_recordings("until 2026-11-02, last 3")) == 3


def test_stacks_are_those_of_the_files(fleet: Fleet, written: Written) -> None:
    event = select_event(fleet, ALL, None)
    lines = collapsed_stacks(fleet, ALL, event).decode().splitlines()
    expected: Counter[str] = Counter()
    for one in written.stacks.values():
        expected.update(one)
    assert dict(line.rsplit(" ", 1) for line in lines) == {stack: str(n) for stack, n in expected.items()}


@pytest.mark.parametrize(
    ("chain", "wanted"),
    [
        ("query > sort", lambda names: any(pair == ("query", "sort") for pair in pairwise(names))),
        ("main >> compare", lambda names: "compare" in names),
        ("serve>>blend", lambda names: "blend" in names),
        ("mark", lambda names: "mark" in names),
        ("/^(mark|sweep)$/", lambda names: "mark" in names or "sweep" in names),
    ],
)
def test_recordings_with_a_chain_of_calls(fleet: Fleet, written: Written, chain: str, wanted: object) -> None:
    assert callable(wanted)
    event = select_event(fleet, ALL, None)
    expected = sorted(
        sum(number for stack, number in one.items() if wanted(stack.split(";"))) for one in written.stacks.values()
    )
    rows = find_recordings(fleet, ALL, event, chain)
    assert sorted(one.weight for one in rows) == expected


def test_a_chain_that_is_nowhere_has_no_recordings(fleet: Fleet) -> None:
    assert find_recordings(fleet, ALL, select_event(fleet, ALL, None), "parse > sort") == []


def test_the_page_describes_every_column() -> None:
    from perfuse.fleet.layout import TABLES

    page = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text(encoding="utf-8")
    for table in TABLES.values():
        _, _, rest = page.partition(f"### {table.name}\n")
        part = rest.partition("\n### ")[0]
        assert table.doc in part
        for column in table.columns:
            shared = table.name != "recordings" and column.name in ("recording_id", "attempt_id")
            assert shared or f"| `{column.name}` |" in part, f"{table.name}.{column.name}"


def test_answers_do_not_depend_on_the_order_of_recordings(tmp_path: Path) -> None:
    """Half of each recording is `f`: of recordings with the largest share, that with the least identity is named."""
    paths = [
        write_collapsed(tmp_path / f"{n}.folded", {"main;f": 9 * n, "main;g": 9 * n - n % 7, "main;h": n % 7})
        for n in range(1, 25)
    ]
    answers = []
    for name, order in (("one", paths), ("other", paths[::-1])):
        fleet = Fleet(tmp_path / name)
        for start in range(0, len(order), 5):
            fleet.add(order[start : start + 5], labels={"host": "a"})
        least = min(key for (key,) in fleet.rows("SELECT recording_id FROM recordings"))
        event = select_event(fleet, ALL, None)
        functions, _ = top_functions(fleet, ALL, event, limit=None)
        (own,) = (one for one in functions if one.name == "f")
        assert own.example == least
        shares = share_by(fleet, ALL, event, [one.function_hash for one in functions], "host", unit="host")
        assert [(one.mean, one.example) for one in shares[own.function_hash]] == [(0.5, least)]
        answers.append((functions, shares))
    assert answers[0] == answers[1]
