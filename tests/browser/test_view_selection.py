"""The viewer: what is selected is in the address, in every view, and equals what the command line reports."""

import pytest
from viewer import POSTCARDS, SERVER, Viewed, reported, served

from perf_crafting import IP, PERIOD, TID, TIME, Attribute, PerfFile, sample


def shares(report):
    whole = report["events"][0]["weight"]
    return {
        (row["name"], f"{100 * row['self_weight'] / whole:.1f}%")
        for row in report["top_self"]
        if row["self_weight"] > 0.01 * whole
    }


def test_functions_equal_the_report(view):
    viewed = view(POSTCARDS)
    viewed.show("functions")
    expected = shares(reported(POSTCARDS))
    assert len(expected) > 5
    assert viewed.self_shares() == expected


def test_a_range_is_the_option_between(view):
    viewed = view(POSTCARDS)
    span = reported(POSTCARDS)["duration_ns"]
    first, end = span // 4 // 10**6 * 10**6, span // 2 // 10**6 * 10**6
    viewed.show("functions", range=f"{first}-{end}")
    assert viewed.self_shares() == shares(reported(POSTCARDS, "--between", f"{first / 1e9}..{end / 1e9}"))
    assert viewed.page.locator("#selection .chip").first.inner_text().startswith(f"{first / 1e6:.0f}")


def test_threads_of_the_overview_are_those_of_the_selection(view):
    viewed = view(POSTCARDS)
    for state, options in (({}, ()), ({"range": "100000000-300000000"}, ("--between", "0.1..0.3"))):
        viewed.show("overview", **state)
        report = reported(POSTCARDS, *options)
        whole = report["events"][0]["weight"]
        expected = [f"{100 * row['self_weight'] / whole:.1f}%" for row in report["threads"][:2]]
        assert [row[0] for row in viewed.rows("Threads")][: len(expected)] == expected


def test_flame_graph_tree_and_callers_show_the_same_selection(view):
    viewed = view(POSTCARDS)
    report = reported(POSTCARDS, "--between", "0.1..0.3")
    event = report["events"][0]
    state = {"range": "100000000-300000000"}
    viewed.show("flame", **state)
    viewed.page.locator("#functions tbody tr").first.wait_for()
    top = report["top_self"][0]
    first = viewed.page.locator("#functions tbody tr").first
    assert first.locator("td").first.inner_text() == f"{100 * top['self_weight'] / event['weight']:.1f}%"
    viewed.show("tree", **state)
    assert viewed.page.locator("#view-tree .where").inner_text().startswith(f"{event['samples']:,} samples · ")
    assert viewed.rows("Call tree")[0][2:] == [f"{event['samples']:,}", "all"]
    viewed.show("callers", **state)
    picked = viewed.rows("Functions of the selection")
    assert picked[0][0] == f"{100 * top['self_weight'] / event['weight']:.1f}%"


def test_one_thread(view):
    viewed = view(POSTCARDS)
    chooser = viewed.page.get_by_label("Thread", exact=True)
    labels = chooser.locator("option").all_inner_texts()
    chooser.select_option(index=1)
    viewed.show("tree", threads=viewed.state()["threads"])
    name = labels[1].rsplit(" ", 1)[0]
    tid = labels[1].rsplit("/", 1)[1]
    report = reported(POSTCARDS, "--thread", tid)
    assert viewed.rows("Call tree")[0][2] == f"{report['events'][0]['samples']:,}", name


def test_back_and_forward_go_over_selections(view):
    viewed = view(POSTCARDS)
    page = viewed.page
    viewed.show("functions")
    page.keyboard.press("g")
    page.keyboard.type("0.1s - 0.2s")
    page.keyboard.press("Enter")
    page.wait_for_selector("#selection .chip button")
    viewed.settled("functions")
    assert viewed.state() == {"tab": "functions", "range": "100000000-200000000"}
    narrow = viewed.self_shares()
    page.keyboard.press("[")
    page.wait_for_selector("#selection .chip.all")
    viewed.settled("functions")
    assert viewed.self_shares() == shares(reported(POSTCARDS)) != narrow
    page.keyboard.press("]")
    page.wait_for_selector("#selection .chip button")
    viewed.settled("functions")
    assert viewed.self_shares() == narrow
    page.keyboard.press("Escape")
    page.wait_for_selector("#selection .chip.all")
    assert "range" not in viewed.state()


def test_the_difference_of_two_times(view):
    viewed = view(POSTCARDS)
    viewed.show("flame", range="300000000-500000000", base="0-100000000")
    rows = viewed.rows("Changes by function")
    later = reported(POSTCARDS, "--between", "0.3..0.5")
    earlier = reported(POSTCARDS, "--between", "0..0.1")

    def share(report, name):
        weights = [row["self_weight"] for row in report["top_self"] if row["name"] == name]
        return sum(weights) / report["events"][0]["weight"]

    name = max(later["top_self"], key=lambda row: row["self_weight"])["name"]
    change, base, selected, _ = next(row for row in rows if row[3] == name)
    assert float(base.rstrip("%")) == pytest.approx(100 * share(earlier, name), abs=0.06)
    assert float(selected.rstrip("%")) == pytest.approx(100 * share(later, name), abs=0.06)
    assert float(change.replace("\N{MINUS SIGN}", "-").rstrip("%")) == pytest.approx(
        100 * (share(later, name) - share(earlier, name)), abs=0.06
    )


def test_a_difference_is_drawn_where_boxes_are_too_narrow_to_be_drawn_one_by_one(view):
    for width in (700, 1000, 1280):
        viewed = view(POSTCARDS, size=(width, 560))
        viewed.show("flame", range="800000000-1400000000", base="0-300000000")
        assert viewed.page.locator(".failure").count() == 0
        drawn = viewed.page.locator(".difference canvas").evaluate(
            """canvas => new Set(canvas.getContext("2d").getImageData(0, 30, canvas.width, 1).data).size"""
        )
        assert drawn > 3


def test_calls_equal_the_report(view):
    viewed = view(SERVER)
    report = reported(SERVER)
    viewed.show("functions")
    rows = viewed.rows("Functions")
    assert [row[-1] for row in rows] == [row["name"] for row in report["functions"]]
    longest = max(report["functions"], key=lambda row: row["max_ns"])
    viewed.show("calls")
    assert viewed.rows("Slowest calls")[0][-1] == longest["name"]


def test_a_time_to_the_end_contains_the_last_moment(view, tmp_path):
    event = Attribute.of((1, 0), IP | TID | TIME | PERIOD)
    samples = [sample(event, ip=0x5000, pid=7, tid=7, time=10**9 + at * 10**6) for at in range(10)]
    files = (PerfFile([event], samples).write(tmp_path / "perf.data"),)
    viewed = view(files)
    viewed.show("functions", range="5000000-9000000")
    (row,) = viewed.rows("Functions")
    assert row[2] == "5"
    assert viewed.command().endswith(" --between 0.005..")
    assert reported(files, "--between", "0.005..")["events"][0]["samples"] == 5


def test_a_page_that_is_opened_for_a_part_states_the_part(open_page):
    with served(POSTCARDS, "--between", "0.5..1", "--thread", "32018") as address:
        viewed = Viewed(open_page(address, reduced_motion="reduce"), address)
        viewed.settled("overview")
        assert viewed.page.locator("#selection .chip").all_inner_texts() == [
            "opened with --between 0.5..1 --thread 32018"
        ]
        assert viewed.command().endswith(" --between 0.5..1 --thread 32018")
        viewed.show("timeline", window="250000000-750000000")
        assert viewed.command().endswith(" --thread 32018 --between 0.5..0.75")
        viewed.page.close()


def test_a_printed_page_states_what_is_selected(view):
    viewed = view(POSTCARDS)
    viewed.show("functions", range="100000000-300000000")
    viewed.page.emulate_media(media="print")
    (stated,) = viewed.page.locator("#selection").inner_text().split("\n")
    assert stated.endswith(" ms (200 ms)")
