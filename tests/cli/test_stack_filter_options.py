"""The filters of stacks on the command line: their order, their errors, and what they do not apply to."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import pytest
from command_line import Perfuse

STACKS = "main;render;trace;trace;leaf 4\nmain;render;shade 3\nmain;load;trace 2\nmain 1\n"


@pytest.fixture
def folded(tmp_path: Path) -> str:
    path = tmp_path / "out.folded"
    path.write_text(STACKS)
    return str(path)


def stacks(perfuse: Perfuse, path: str, *words: str) -> dict[str, int]:
    done = perfuse("report", path, "--stacks", "--json", *words)
    assert done.code == 0, done.err
    return {";".join(one["functions"]): one["weight"] for one in json.loads(done.out)["stacks"]}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--only trace", {"main;render;trace;trace;leaf": 4, "main;load;trace": 2}),
        ("--only tra", {"main;render;trace;trace;leaf": 4, "main;load;trace": 2}),
        ("--drop render", {"main;load;trace": 2, "main": 1}),
        ("--hide render --hide load", {"main;trace;trace;leaf": 4, "main;shade": 3, "main;trace": 2, "main": 1}),
        ("--hide main", {"render;trace;trace;leaf": 4, "render;shade": 3, "load;trace": 2}),
        ("--root trace", {"trace;trace;leaf": 4, "trace": 2}),
        ("--leaf trace", {"main;render;trace": 4, "main;render;shade": 3, "main;load;trace": 2, "main": 1}),
        ("--collapse-recursion --only trace", {"main;render;trace;leaf": 4, "main;load;trace": 2}),
        # The order in which they are written is the order in which they are applied.
        ("--root render --hide render", {"trace;trace;leaf": 4, "shade": 3}),
        ("--hide trace --only render --hide leaf", {"main;render": 4, "main;render;shade": 3}),
        ("--root /^tr/ --collapse-recursion --hide leaf", {"trace": 6}),
    ],
)
def test_steps(perfuse: Perfuse, folded: str, words: str, expected: dict[str, int]) -> None:
    assert stacks(perfuse, folded, *words.split()) == expected


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--only rendr", "did you mean render?"),
        ("--hide render --root render", ""),
        ("--drop load --only load", ""),
        ("--tier turbofan", "known: traced"),
        ("--jit-only", "dump of the JIT"),
        ("--collapse-module libc", ""),
        ("--during slice gc", "there is no slice in the recording"),
    ],
)
def test_what_matches_nothing_is_an_error(perfuse: Perfuse, folded: str, words: str, hint: str) -> None:
    for verb in ("report", "query"):
        done = perfuse(verb, folded, *(["SELECT 1"] if verb == "query" else []), *words.split())
        assert (done.code, done.out) == (2, ""), done.err
        assert hint.split(maxsplit=1)[0] in done.err if hint else "matches" in done.err


def test_totals_of_views_agree(perfuse: Perfuse, folded: str) -> None:
    """The outermost function is hidden: its own sample is dropped, in trees and in flat lists alike."""
    for view in ("--tree", "--stacks", "--by=function", "--by=module", "--inverted"):
        done = perfuse("report", folded, view, "--hide", "main", "--json", "--percent-limit", "0")
        report = json.loads(done.out)
        assert (report["recorded"]["weight"], report["selected"]["weight"]) == (10, 9)
    flat = json.loads(perfuse("report", folded, "--hide", "main", "--json").out)
    assert flat["events"][0]["weight"] == 9
    assert sum(one["self_weight"] for one in flat["top_self"]) == 9


def test_handles_select_what_they_name(perfuse: Perfuse, folded: str) -> None:
    tree = json.loads(perfuse("report", folded, "--tree", "--json").out)["tree"]
    nodes = {node["function"]["name"]: node for node in tree["nodes"] if node["depth"] == 1}
    handle, stack = nodes["load"]["function"]["handle"], nodes["render"]["handle"]
    assert stacks(perfuse, folded, "--only", handle) == {"main;load;trace": 2}
    assert stacks(perfuse, folded, "--drop", stack) == {"main;load;trace": 2, "main": 1}
    # Filters do not change the handles.
    filtered = json.loads(perfuse("report", folded, "--tree", "--json", "--hide", "trace").out)["tree"]
    assert stack in {node["handle"] for node in filtered["nodes"]}
    view = json.loads(perfuse("report", folded, "--function", handle, "--json").out)["views"]
    assert [one["function"]["name"] for one in view] == ["load"]


@pytest.mark.parametrize("target", ["collapsed", "svg", "dot"])
def test_exports_contain_what_is_selected(perfuse: Perfuse, folded: str, tmp_path: Path, target: str) -> None:
    out = tmp_path / "out"
    done = perfuse("convert", folded, "-o", str(out), "--to", target, "--drop", "render", "--drop", "shade|leaf")
    assert done.code == 2
    done = perfuse("convert", folded, "-o", str(out), "--to", target, "--drop", "render")
    assert done.code == 0, done.err
    assert b"shade" not in out.read_bytes()
    if target == "collapsed":
        assert out.read_text().split("\n") == ["main 1", "main;load;trace 2", ""]


def test_targets_without_stacks_refuse_filters(perfuse: Perfuse, folded: str, tmp_path: Path) -> None:
    done = perfuse("convert", folded, "-o", str(tmp_path / "x.map"), "--to", "perf-map", "--only", "main")
    assert done.code == 2
    assert "filters of stacks do not select what perf-map contains" in done.err


@pytest.mark.parametrize(("option", "target"), [("--root", "firefox"), ("--function", "perf-map")])
def test_targets_of_a_hint_take_the_filter_of_calls(perfuse: Perfuse, tmp_path: Path, option: str, target: str) -> None:
    log = "xray-log.server.uocuES"
    refused = perfuse("convert", log, "-o", str(tmp_path / "x"), "--to", target, option, "*")
    assert refused.code == 2
    hint = re.search(r"hint: (.+?) take ", refused.err)
    assert hint
    for one in hint[1].split(", "):
        done = perfuse("convert", log, "-o", str(tmp_path / one), "--to", one, option, "*")
        assert done.code == 0, (one, done.err)


@pytest.mark.parametrize("budget", [260, 400, 700, 5000])
@pytest.mark.parametrize("words", [("--tree",), ("--stacks",), ("--by", "function"), ()])
def test_a_budget_is_kept_and_what_is_left_out_is_stated(
    perfuse: Perfuse, folded: str, words: tuple[str, ...], budget: int
) -> None:
    done = perfuse("report", folded, *words, "--budget", str(budget))
    assert done.code == 0, done.err
    size = len(done.out.encode())
    assert size <= budget
    whole = perfuse("report", folded, *words, "--limit", "0").out
    assert done.out == whole or "--budget: " in done.out
    if len(whole.encode()) <= budget:
        assert done.out == whole
    smaller = perfuse("report", folded, *words, "--budget", str(budget - 50)).out
    assert len(smaller.encode()) <= budget - 50


def test_a_budget_of_json(perfuse: Perfuse, folded: str) -> None:
    done = perfuse("report", folded, "--tree", "--json", "--budget", "2500")
    assert done.code == 0, done.err
    tree = json.loads(done.out)["tree"]
    assert 0 < len(tree["nodes"]) < tree["num_nodes"]
    done = perfuse("report", folded, "--tree", "--json", "--budget", "300")
    assert (done.code, done.out) == (2, "")
    assert "no JSON document of at most 300 bytes" in done.err
    for words in (("--budget", "100"), ("--budget", "900", "--limit", "3")):
        assert perfuse("report", folded, "--tree", *words).code == 2


OTHER = "main;render;shade 5\nmain;load;trace 2\nmain;save 3\n"


def test_runs_of_a_side_may_lack_what_a_filter_names(perfuse: Perfuse, folded: str, tmp_path: Path) -> None:
    """One of two runs has no `save`: nothing of it is selected. It is an error where no run of a side has it."""
    other = tmp_path / "other.folded"
    other.write_text(OTHER)
    both = (folded, str(other), "--", str(other), folded)
    done = perfuse("diff", *both, "--only", "save", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert [document[side]["self"] for side in ("base", "new")] == [3, 3]
    assert document["warnings"] == ["1 run of base has no weight", "1 run of new has no weight"]
    (row,) = [one for one in document["functions"] if one["name"] == "save"]
    assert (row["self"]["base"], row["self"]["new"]) == (1.5, 1.5)
    # A frame that a run does not have is not taken out of it.
    document = json.loads(perfuse("diff", *both, "--hide", "save", "--json").out)
    assert [one["num_counted"] for one in document["base"]["runs"]] == [10, 10]
    done = perfuse("diff", folded, str(other), "--only", "save")
    assert (done.code, done.out) == (2, "")
    assert "A: --only save matches nothing here" in done.err
    done = perfuse("diff", str(other), folded, "--", folded, "--only", "savee")
    assert "A: --only savee matches nothing here, nor in any other of its 2 runs" in done.err
    assert "did you mean save or shade?" in done.err
    done = perfuse("diff", folded, folded, "--by", "module", "-o", "diff.html", "--hide", "nosuch")
    assert "A: --hide nosuch matches nothing here\n" in done.err
    done = perfuse("diff", str(other), folded, "--only", "save")
    assert "B: --only save matches nothing here" in done.err
    for words, message in (
        (("--only", "f1"), "a handle is of one recording"),
        (("--drop", "main"), "A: --drop main leaves nothing"),
        (("--during", "slice", "gc"), "A: --during slice gc"),
        (("--only", "main", "--sort", "p99"), "filters of stacks do not select single calls"),
        (("--only", "save", "--normalize", "share"), "has no weight"),
    ):
        done = perfuse("diff", *both, *words)
        assert (done.code, done.out) == (2, ""), words
        assert message in done.err


def test_a_name_of_a_free_function_of_cpp_needs_no_parameters(perfuse: Perfuse, tmp_path: Path) -> None:
    """`handle` was part of the names of all three, since none of them is `handle` to the letter."""
    path = tmp_path / "stacks.folded"
    path.write_text("main;handle(int) 5\nmain;handle_all(int) 10\nmain;ns::rehandle<int>(char const*) 20\n")
    for pattern, weight in (("handle", 5), ("handle_all(int)", 10), ("ns::rehandle", 20), ("andle", 35)):
        document = json.loads(perfuse("report", str(path), "--only", pattern, "--json").out)
        assert document["events"][0]["weight"] == weight, pattern


@pytest.mark.parametrize("option", ["--only", "--hide", "--leaf"])
def test_a_text_does_not_select_other_functions_of_another_run(perfuse: Perfuse, tmp_path: Path, option: str) -> None:
    """`extra` is a function of one run; in the other it is only part of a name, whose samples were compared with it."""
    one, two = tmp_path / "one.folded", tmp_path / "two.folded"
    one.write_text("main;add_extra 5\nmain;work 10\n")
    two.write_text("main;add_extra 5\nmain;work 10\nmain;extra 7\n")
    for runs, part, whole in (((one, two), "A", "B"), ((two, one), "B", "A"), ((one, two, "--", two), "A", "A")):
        done = perfuse("diff", *map(str, runs), option, "extra")
        assert (done.code, done.out) == (2, "")
        assert (
            f"{option} extra is a name in {whole}, and in {part} only a part of others, such as add_extra" in done.err
        )
        assert f"give {option} '/^extra$/'" in done.err
    document = json.loads(perfuse("diff", str(one), str(two), "--", str(two), "--only", "/^extra$/", "--json").out)
    assert [document[side]["self"] for side in ("base", "new")] == [7, 7]
    document = json.loads(perfuse("diff", str(one), str(two), "--only", "*extra", "--json").out)
    assert [document[side]["self"] for side in ("base", "new")] == [5, 12]


def test_differences_by_stack_are_of_what_is_selected(perfuse: Perfuse, folded: str, tmp_path: Path) -> None:
    other, page = tmp_path / "other.folded", tmp_path / "diff.html"
    other.write_text(OTHER)
    done = perfuse("diff", folded, str(other), "--root", "render", "--by", "stack", "--json")
    found = json.loads(done.out)["functions"]
    rows = {";".join(one["stack"]): (one["self"]["base"], one["self"]["new"]) for one in found}
    assert {stack: sides for stack, sides in rows.items() if any(sides)} == {
        "render;shade": (3, 5),
        "render;trace;trace;leaf": (4, 0),
    }
    assert perfuse("diff", folded, str(other), "--drop", "render", "-o", str(page)).code == 0
    data = re.search(r'id="difference"[^>]*>([^<]*)<', page.read_text(encoding="utf-8"))
    assert data is not None
    description = zlib.decompress(base64.b64decode(data[1])).decode()
    assert "--drop render" in description
    assert "shade" not in description


def test_a_handle_of_an_equal_function_of_another_file_selects_the_same(perfuse: Perfuse, recordings: Path) -> None:
    (recordings / "one.folded").write_text("main;load;trace 2\nmain;render 3\n")
    (recordings / "two.folded").write_text("main;load 5\nmain;other 1\n")
    files = ("one.folded", "two.folded")
    rows = json.loads(perfuse("query", *files, "SELECT function_id, name FROM functions", "--json").out)
    handles = [f"f{row['function_id']}" for row in rows if row["name"] == "load"]
    assert len(handles) == 2
    by_handle = [perfuse("report", *files, "--only", handle, "--stacks", "--json").out for handle in handles]
    assert '"load"' in by_handle[0]
    assert json.loads(by_handle[0])["stacks"] == json.loads(by_handle[1])["stacks"]
    assert (
        perfuse("report", *files, "--function", handles[1]).out == perfuse("report", *files, "--function", "load").out
    )


@pytest.mark.parametrize("words", ["--only module:[kernel]", "--only tier:kernel", "--tier kernel"])
def test_the_names_that_reports_show_are_patterns(perfuse: Perfuse, recordings: Path, words: str) -> None:
    """Reports have one name for the kernel, which perf calls `[kernel.kallsyms]_text`, and a tier for code without."""
    del recordings
    shown = perfuse("report", "perf.data").out
    share = re.search(r"By module\n(?:.*\n)*? +([0-9.]+%).*\[kernel\]\n", shown)
    selected = perfuse("report", "perf.data", *words.split()).out
    assert share
    assert f"selected  {share[1]} of" in selected


def test_a_module_of_one_frame_has_the_name_that_reports_show(perfuse: Perfuse, recordings: Path) -> None:
    del recordings
    done = perfuse("report", "perf.data", "--collapse-module", "[kernel]", "--stacks", "--json")
    assert any("[kernel]" in one["functions"] for one in json.loads(done.out)["stacks"]), done.err
