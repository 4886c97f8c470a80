"""`perfuse diff`: its output formats agree, and refusals state what cannot be compared."""

import csv
import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Perfuse

POSTCARDS = Path(__file__).parents[2] / "examples" / "postcards"
LOG, LATER = "xray-log.server.uocuES", "xray-log.server.Qd81xw"


PARTS = ("base", "new", "change", "low", "high")


def test_json_and_csv_have_the_same_rows(perfuse: Perfuse) -> None:
    document = json.loads(perfuse("diff", LOG, LATER, "--json", "--limit", "0").out)
    assert (document["kind"], document["unit"], document["sort"]) == ("calls", "ns", "self")
    assert [document[side]["num_counted"] for side in ("base", "new")] == [102, 30]
    assert document["num_functions"] == {"changed": 0, "new": 0, "gone": 0, "unclear": 17, "same": 0}
    rows = list(csv.DictReader(perfuse("diff", LOG, LATER, "--format", "csv", "--limit", "0").out.splitlines()))
    assert len(rows) == len(document["functions"]) == 17
    for row, listed in zip(rows, document["functions"], strict=True):
        assert (row["name"], row["verdict"]) == (listed["name"], listed["verdict"])
        for statistic in ("count", "self", "total", "p50", "p99"):
            assert tuple(listed[statistic]) == PARTS
            for part, value in listed[statistic].items():
                assert row[f"{statistic}_{part}"] == ("" if value is None else str(value))
    changes = [abs(one["self"]["new"] - one["self"]["base"]) for one in document["functions"]]
    assert changes == sorted(changes, reverse=True)


@pytest.mark.parametrize("budget", [300, 900, 1200])
def test_a_budget_is_kept_and_what_is_left_out_is_stated(perfuse: Perfuse, budget: int) -> None:
    done = perfuse("diff", LOG, LATER, "--budget", str(budget))
    assert done.code == 0, done.err
    assert len(done.out.encode()) <= budget
    assert "--budget: " in done.out
    for words in (("--limit", "3"), ("--format", "csv"), ("--format", "dot")):
        assert perfuse("diff", LOG, LATER, "--budget", str(budget), *words).code == 2


def test_a_budget_of_json(perfuse: Perfuse) -> None:
    done = perfuse("diff", LOG, LATER, "--json", "--budget", "9000")
    assert done.code == 0, done.err
    assert len(done.out.encode()) <= 9000
    assert 0 < len(json.loads(done.out)["functions"]) < 17


def test_dot_has_both_sides(perfuse: Perfuse) -> None:
    done = perfuse("diff", LOG, LATER, "--format", "dot")
    assert (done.code, done.err) == (0, "")
    (thrower,) = (line for line in done.out.splitlines() if re.search(r'^  f\d+ \[label="demo::thrower\\n', line))
    assert r"count 16 > 13 (-18.8%)" in thrower
    assert r'style="filled,rounded,dashed"' in done.out


def test_samples(perfuse: Perfuse, recordings: Path, golden: Callable[[str, str], None]) -> None:
    (recordings / "unnamed").mkdir()
    shutil.copy(recordings / "perf.data", recordings / "unnamed")
    sides = ("unnamed", "perf.data+jit-2345.dump")
    golden("diff-samples-80.txt", perfuse("diff", *sides, "--sort", "total").out)
    document = json.loads(perfuse("diff", *sides, "--json", "--sort", "name").out)
    assert (document["kind"], document["unit"], document["event"]) == ("samples", "ns", "cpu-clock")
    # With the dump, JIT functions have names.
    rows = {one["name"]: one for one in document["functions"]}
    for name in ("crc", "entry"):
        assert (rows[name]["self"]["base"], rows[name]["evidence"], rows[name]["members"]) == (0, None, [0, 1])
    assert sum(one["self"]["new"] - one["self"]["base"] for one in document["functions"]) == 0


def test_dumps_of_a_recording_are_found(perfuse: Perfuse) -> None:
    """A perf.data has the path of its dump, which is beside it."""
    for name in ("perf.data", "jit-32015.dump"):
        path = Path("postcards") / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.decompress((POSTCARDS / f"{name}.gz").read_bytes()))
    sides = ("postcards/perf.data", "postcards/perf.data+postcards/jit-32015.dump")
    document = json.loads(perfuse("diff", *sides, "--json", "--no-debug-info").out)
    assert {row["verdict"] for row in document["functions"]} == {"same"}
    assert "shade" in {row["name"] for row in document["functions"]}


@pytest.mark.parametrize(
    "options", [(), ("--by", "stack"), ("--by", "module"), ("--by", "tier"), ("--normalize", "share")]
)
@pytest.mark.parametrize("recording", [LOG, "perf.data", "output.mlpd", "sessions.mlpd.gz"])
def test_a_recording_and_itself_are_the_same(perfuse: Perfuse, recording: str, options: tuple[str, ...]) -> None:
    done = perfuse("diff", recording, recording, "--json", *options)
    assert done.code == 0
    document = json.loads(done.out)
    assert {one["verdict"] for one in document["functions"]} == {"same"}
    assert all(one["self"]["base"] == one["self"]["new"] for one in document["functions"])
    text = perfuse("diff", recording, recording, *options).out
    assert "unclear" not in text
    assert "Functions  by" not in text


def _runs(name: str, weights: list[dict[str, int]]) -> list[str]:
    """Files of collapsed stacks, one for each run."""
    files = []
    for number, run in enumerate(weights):
        path = Path(f"{name}{number}.folded")
        path.write_text("".join(f"main;{function} {count}\n" for function, count in run.items()), encoding="ascii")
        files.append(str(path))
    return files


def _weights(numbers: list[int], **others: int) -> list[dict[str, int]]:
    """Runs with a noise of some percent: every function has its own."""
    return [
        {
            "shade": 1500 + number,
            "trace": 3000 + 7 * number % 60 - 20,
            "parse": 2000 - 11 * number % 50,
            "hash": 900 + 13 * number % 30,
            "emit": 500 - 5 * number % 20,
            **others,
        }
        for number in numbers
    ]


def test_several_runs_prove_a_change(perfuse: Perfuse) -> None:
    before = _runs("a", _weights([0, 12, 25, 31, 40]))
    after = _runs("b", [{**run, "shade": run["shade"] * 6 // 5, "added": 300} for run in _weights([3, 9, 22, 35, 38])])
    document = json.loads(perfuse("diff", *before, "--", *after, "--json").out)
    rows = {one["name"]: one for one in document["functions"]}
    assert (document["runs"], document["num_tested"]) == ({"base": 5, "new": 5}, 6)
    assert {name: one["verdict"] for name, one in rows.items()} == {
        "main": "same",
        "shade": "changed",
        "added": "new",
        "trace": "same",
        "parse": "same",
        "hash": "same",
        "emit": "same",
    }
    # (1821.6 + 20 %) / 1521.6, and the smallest share of the 252 assignments.
    assert rows["shade"]["self"]["base"] == 1521.6
    assert rows["shade"]["self"]["low"] < 0.2 < rows["shade"]["self"]["high"]
    assert rows["shade"]["test"]["p_max"] == 2 / 252
    by_total = json.loads(perfuse("diff", *before, "--", *after, "--json", "--sort", "total").out)
    assert {one["name"]: one["verdict"] for one in by_total["functions"]}["main"] == "changed"
    by_share = json.loads(perfuse("diff", *before, "--", *after, "--json", "--normalize", "share").out)
    assert sum(one["self"]["base"] for one in by_share["functions"]) == pytest.approx(1)
    assert {one["name"]: one["verdict"] for one in by_share["functions"]}.items() >= {"shade": "changed"}.items()
    backwards = json.loads(perfuse("diff", *after, "--", *before, "--json").out)
    assert {one["verdict"] for one in backwards["functions"] if one["name"] == "added"} == {"gone"}


def test_three_runs_a_side_and_one_run_prove_nothing(perfuse: Perfuse) -> None:
    before, after = _runs("a", _weights([0, 12, 25])), _runs("b", _weights([1500, 1501, 1502], added=400))
    for words in ((*before, "--", *after), (before[0], after[0]), (before[0], "--", *after)):
        document = json.loads(perfuse("diff", *words, "--json").out)
        assert {one["verdict"] for one in document["functions"]} <= {"unclear", "same"}
        (shade,) = [one for one in document["functions"] if one["name"] == "shade"]
        assert shade["verdict"] == "unclear"
        assert shade["self"]["low"] < shade["self"]["change"] < shade["self"]["high"]
    assert "4 a side are the least" in perfuse("diff", *before, "--", *after).out
    assert "one run a side" in perfuse("diff", before[0], after[0]).out


@pytest.mark.parametrize(
    ("assertion", "code", "outcome"),
    [
        ("self(shade) < +5%", 1, "violated"),
        ("self['shade'] < 200", 1, "violated"),
        ("self(sha*) < +30%", 0, "holds"),
        ("self(shade) < +20%", 0, "undecided"),
        ("self(shade) > -5%", 0, "holds"),
        ("total(main) < +50%", 0, "holds"),
        ("whole < +1%", 1, "violated"),
        ("any.self < +10%", 1, "violated"),
        ("any.total < +40%", 0, "holds"),
    ],
)
def test_assertions_fail_only_beyond_the_interval(perfuse: Perfuse, assertion: str, code: int, outcome: str) -> None:
    before = _runs("a", _weights([0, 12, 25, 31, 40]))
    after = _runs("b", [{**run, "shade": run["shade"] * 6 // 5} for run in _weights([3, 9, 22, 35, 38])])
    done = perfuse("diff", *before, "--", *after, "--assert", assertion)
    assert done.code == code
    (line,) = [line for line in done.out.splitlines() if assertion in line]
    assert line.split()[0] == outcome
    assert ("undecided" in done.err) == (outcome == "undecided")
    document = json.loads(perfuse("diff", *before, "--", *after, "--assert", assertion, "--json").out)
    assert [one["outcome"] for one in document["assertions"]] == [outcome]


def test_runs_in_directories(perfuse: Perfuse) -> None:
    for side, runs in (("a", [0, 12, 25, 31]), ("b", [3, 9, 22, 35])):
        for run, file in enumerate(_runs(side, _weights(runs))):
            folder = Path("sides") / side / str(run)
            folder.mkdir(parents=True)
            shutil.copy(file, folder)
            flat = Path("flat") / side
            flat.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, flat)
    expected = json.loads(
        perfuse("diff", *(f"a{n}.folded" for n in range(4)), "--", *(f"b{n}.folded" for n in range(4)), "--json").out
    )
    for parent in ("sides", "flat"):
        document = json.loads(perfuse("diff", f"{parent}/a", f"{parent}/b", "--json").out)
        assert document["runs"] == {"base": 4, "new": 4}
        assert document["functions"] == expected["functions"]


def test_units_of_work(perfuse: Perfuse) -> None:
    """Twice the calls in twice the time is the same time a call."""
    document = json.loads(perfuse("diff", LOG, LATER, "--json", "--per", "calls").out)
    plain = json.loads(perfuse("diff", LOG, LATER, "--json").out)
    assert (document["normalize"], document["per"]) == ("work", "calls")
    per_call = {one["name"]: one["self"] for one in document["functions"]}
    for one in plain["functions"]:
        assert per_call[one["name"]]["base"] == pytest.approx(one["self"]["base"] / 102)
        assert per_call[one["name"]]["new"] == pytest.approx(one["self"]["new"] / 30)
        # Durations of single calls are per call as they are.
        assert one["p99"]["new"] == next(
            row["p99"]["new"] for row in document["functions"] if row["name"] == one["name"]
        )
    counts = {one["name"]: one["count"]["base"] for one in plain["functions"]}
    thrower = next(name for name in counts if "thrower" in name)
    by_function = json.loads(perfuse("diff", LOG, LATER, "--json", "--per", f"function {thrower}").out)
    for one in by_function["functions"]:
        assert one["count"]["base"] == pytest.approx(counts[one["name"]] / counts[thrower])


def test_heaps_and_allocations_by_type(perfuse: Perfuse) -> None:
    both = ("sessions.mlpd.gz", "sessions.mlpd.gz")
    for weight, unit in (("bytes", "bytes"), ("count", "allocations"), ("retained", "bytes")):
        document = json.loads(perfuse("diff", *both, "--by", "type", "--weight", weight, "--json").out)
        assert document["unit"] == unit
        assert all(("count" in one) == (weight != "retained") for one in document["functions"])
        assert "System.Byte[]" in {one["name"] for one in document["functions"]}
    # Types of all allocations have all of their bytes.
    report = json.loads(perfuse("report", "sessions.mlpd.gz", "--section", "allocations", "--json", "--limit", "0").out)
    document = json.loads(perfuse("diff", *both, "--by", "type", "--weight", "bytes", "--json").out)
    listed = {one["name"]: one["self"]["base"] for one in document["functions"]}
    assert sum(listed.values()) == report["allocations"]["bytes"]
    assert {one["name"]: one["bytes"] for one in report["allocations"]["by_type"]} == listed


def test_refusals(perfuse: Perfuse) -> None:
    for words, message in (
        (("perf.data", LOG), "the first has samples, the second calls"),
        (("jit-2345.dump", LOG), "neither calls nor samples"),
        (("perf.data", "perf.data", "--sort", "p99"), "the order of samples is one of count, self, total, name"),
        ((LOG, LATER, "--event", "cycles"), "no samples of event 'cycles'"),
        (("perf.data",), "give two sides"),
        (("perf.data", "perf.data", "perf.data"), "give two sides"),
        (("perf.data", "--"), "give two sides"),
        (("perf.data", "perf.data", "--per", "calls"), "has no calls to divide by"),
        (("perf.data", "perf.data", "--per", "requests"), "no counter or event 'requests'"),
        ((LOG, LOG, "--per", "function none"), "no calls of 'none'"),
        (("perf.data", "perf.data", "--per", "seconds", "--normalize", "share"), "give one of them"),
        (("perf.data", "perf.data", "--normalize", "typical"), "a typical change needs 30"),
        (("perf.data", "perf.data", "-o", "diff.csv", "--format", "csv"), "is saved as .html, not as 'diff.csv'"),
        (("perf.data", "perf.data", "--by", "type"), "has no types"),
        ((LOG, LOG, "--by", "type"), "has no types"),
        (("perf.data", "perf.data", "--assert", "self(crcc) < 5%"), "no function 'crcc'"),
        (("perf.data", "perf.data", "--assert", "p99(crc) < 5%"), "samples have no 'p99'"),
        (("perf.data", "perf.data", "--assert", "self(crc) is fine"), "is not an assertion"),
        (("perf.data", "perf.data", "--assert", "self(crc) < 5 parsecs"), "is not a unit"),
        (("perf.data", "perf.data", "--assert", "self(*) < 5%"), "functions are '*'"),
    ):
        done = perfuse("diff", *words)
        assert (done.code, done.out) == (2, ""), words
        assert message in done.err


def test_costs_that_moved(perfuse: Perfuse) -> None:
    """The compiler inlines `dot` into `shade`, and `parse` has a new name."""

    def run(name: str, number: int, stacks: dict[str, int]) -> str:
        path = Path(f"{name}{number}.folded")
        rows = (f"{stack} {count + (7 * number + len(stack)) % 9}\n" for stack, count in stacks.items())
        path.write_text("".join(rows), encoding="ascii")
        return str(path)

    rest = {"main;emit": 2000, "main;read": 1500, "main;wait": 900}
    base = [run("a", n, {**rest, "main;shade": 500, "main;shade;dot": 700, "main;parse": 400}) for n in range(5)]
    new = [run("b", n, {**rest, "main;shade": 1190, "main;parseFast": 410}) for n in range(5)]
    document = json.loads(perfuse("diff", *base, "--", *new, "--json").out)
    moved = {(one["from"]["name"], one["to"]["name"]): one for one in document["moved"]}
    assert {pair: one["how"] for pair, one in moved.items()} == {
        ("dot", "shade"): "inlined",
        ("parse", "parseFast"): "replaced",
    }
    assert moved["parse", "parseFast"]["under"]["name"] == "main"
    text = perfuse("diff", *base, "--", *new).out
    assert "from dot to shade, which calls dot: inlining" in text
    back = json.loads(perfuse("diff", *new, "--", *base, "--json").out)
    assert {one["how"] for one in back["moved"]} == {"outlined", "replaced"}
    # By total, the caller of what was inlined did not change.
    total = json.loads(perfuse("diff", *base, "--", *new, "--json", "--sort", "total").out)
    assert {one["name"]: one["verdict"] for one in total["functions"]}["shade"] == "same"


def test_other_machines_are_a_warning(perfuse: Perfuse) -> None:
    Path("other").mkdir()
    data = Path("perf.data").read_bytes()
    kernel = b"6.18.44-fc-v595"
    assert kernel in data
    Path("other/perf.data").write_bytes(data.replace(kernel, b"5.15.10-fc-v595"))
    document = json.loads(perfuse("diff", "perf.data", "other/perf.data", "--json").out)
    (warning,) = document["warnings"]
    assert "different machines or kernels" in warning
    assert "5.15.10-fc-v595" in warning
    assert json.loads(perfuse("diff", "perf.data", "perf.data", "--json").out)["warnings"] == []


def test_sides_that_were_not_recorded_in_turn_are_a_warning(perfuse: Perfuse) -> None:
    for name in (LOG, LATER):
        shutil.copy(name, f"{name}.copy")
    sides = ((LOG, f"{LOG}.copy"), (LATER, f"{LATER}.copy"))
    document = json.loads(perfuse("diff", *sides[0], "--", *sides[1], "--json").out)
    assert ["in turn" in warning for warning in document["warnings"]] == [True]
    assert json.loads(perfuse("diff", LOG, LATER, "--", LATER, LOG, "--json").out)["warnings"] == []


def test_a_run_counts_once_on_a_side(perfuse: Perfuse) -> None:
    """Copies of one run would be runs without any noise."""
    done = perfuse("diff", LOG, LOG, f"./{LOG}", "--", LATER, LATER, "--json")
    assert done.err.count("counted once") == 3
    assert json.loads(done.out)["runs"] == {"base": 1, "new": 1}


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("perf.data", "a.folded"), "B (a.folded) has no samples of event 'cpu-clock', the event of A", "has samples;"),
        (
            ("a.folded", "perf.data"),
            "B (perf.data) has no samples of event 'samples', the event of A",
            "has cpu-clock;",
        ),
        (
            ("perf.data", "a.folded", "--event", "samples"),
            "A (perf.data) has no samples of event 'samples'",
            "cpu-clock",
        ),
        (("jit-2345.dump", "perf.data"), "A has no samples that could be compared", "B (perf.data) has cpu-clock"),
    ],
)
def test_a_side_without_the_event_is_named(
    perfuse: Perfuse, recordings: Path, words: tuple[str, ...], message: str, hint: str
) -> None:
    (recordings / "a.folded").write_text("main;work 1\n")
    done = perfuse("diff", *words)
    assert done.code == 2
    assert message in done.err
    assert hint in done.err
