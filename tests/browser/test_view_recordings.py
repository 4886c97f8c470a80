"""The viewer's page: another recording, processors, the life of a function, a timeline that is not computed yet."""

import json
import re
import shutil

from playwright.sync_api import expect
from viewer import POSTCARDS, ROOT, SERVER, Viewed, reported, served

from perf_crafting import IP, PERIOD, TID, TIME, Attribute, PerfFile, comm, sample
from xray_bytes import HZ, buffer, log

SLOWER = ROOT / "examples" / "slower"
BEFORE, AFTER = SLOWER / "before" / "run1.folded", SLOWER / "after" / "run1.folded"


def test_the_difference_from_another_recording(open_page):
    totals = {path: reported((path,))["events"][0]["weight"] for path in (BEFORE, AFTER)}
    shares = {
        path: {row["name"]: row["self_weight"] / totals[path] for row in reported((path,))["top_self"]}
        for path in (BEFORE, AFTER)
    }
    with served((AFTER,), "--base", str(BEFORE)) as address:
        page = open_page(address, reduced_motion="reduce")
        viewed = Viewed(page, address)
        viewed.settled("overview")
        page.keyboard.press("b")
        viewed.settled("flame")
        rows = viewed.rows("Changes by function")
        assert len(rows) > 5
        for _, base, selection, name in rows:
            for text, path in ((base, BEFORE), (selection, AFTER)):
                assert abs(float(text.rstrip("%")) / 100 - shares[path].get(name, 0)) < 0.001
        assert "run1.folded" in page.locator("#selection .chip.base").inner_text()
        page.get_by_role("group", name="What is shown").get_by_role("button", name="Base").click()
        viewed.settled("flame")
        expect(page.locator("#functions")).to_be_visible()
        page.reload()
        page.wait_for_selector("html[data-ready]")
        assert viewed.state()["versus"] == "1"
        page.keyboard.press("Escape")
        viewed.settled("flame")
        assert "versus" not in viewed.state()
        page.close()


def test_recordings_in_two_directories_are_drawn_as_one_tree(open_page, tmp_path):
    """`perfuse record` puts the program beside its log: each box was two, a new one and one gone."""
    sides = []
    for name in ("before", "after"):
        directory = tmp_path / name
        directory.mkdir()
        shutil.copy(SERVER[0], directory)
        shutil.copy(SERVER[0].parent / "server.o", directory / "server")
        sides.append(directory / SERVER[0].name)
    with served((sides[1],), "--base", str(sides[0])) as address:
        page = open_page(address, reduced_motion="reduce")
        viewed = Viewed(page, address)
        viewed.settled("overview")
        page.keyboard.press("b")
        viewed.settled("flame")
        area = page.locator(".difference canvas").bounding_box()
        found = set()
        for row in (1, 2, 3):
            for step in range(40):
                page.mouse.move(area["x"] + area["width"] * (step + 0.5) / 40, area["y"] + 20 * row + 8)
                hint = page.locator("#hint")
                if hint.is_visible():
                    found.add(hint.inner_text())
        assert len(found) >= 3
        for text in found:
            selection, base = re.search(r"selection\s+(\S+)\s+base\s+(\S+)", text).groups()
            assert selection == base, text
        page.close()


def test_processors_are_rows_of_the_timeline(view, tmp_path):
    calls = [(0, 1, 10), (1, 1, 1_000_000)]
    buffers = [buffer(HZ, calls, tid=7, cpu=0), buffer(HZ, calls, tid=8, cpu=1)]
    viewed = view((log(tmp_path / "xray-log.a.AAAAAA", *buffers),))
    section = viewed.show("timeline")
    viewed.page.wait_for_selector("#view-timeline[data-filled]")
    names = section.locator(".headers .header b").all_inner_texts()
    assert names[:3] == ["processors", "CPU 0", "CPU 1"]
    viewed.show("heat", heat="processes")
    rows = viewed.rows("Hottest cells")
    assert rows


def test_the_life_of_a_function_states_its_samples(view):
    viewed = view(POSTCARDS)
    viewed.show("code", q="packLempelZiv")
    page = viewed.page
    page.locator("#view-code tbody tr[role=row]").first.click()
    items = page.locator("ol[aria-label=Compilations] li")
    items.first.wait_for()
    samples = sum(int(number) for number in re.findall(r"(\d+) samples", "\n".join(items.all_inner_texts())))
    reports = [row for row in reported(POSTCARDS)["top_self"] if row["name"] == "packLempelZiv"]
    assert samples == sum(row["samples"] for row in reports)
    assert "compiled again" in page.locator("ol[aria-label=Compilations]").inner_text()


def test_a_timeline_that_is_opened_before_it_is_computed_is_drawn_whole(view):
    viewed = view(POSTCARDS)
    page = viewed.page
    asked = []

    def not_yet(route):
        asked.append(route.request.url)
        if len(asked) > 2:
            return route.continue_()
        answer = {"state": "computing", "tracks": [], "counters": [], "command": ""}
        return route.fulfill(body=json.dumps(answer), content_type="application/json")

    page.route("**/api/timeline", not_yet)
    viewed.show("heat")
    viewed.show("timeline")
    page.wait_for_selector("#view-timeline[data-filled]")
    assert len(asked) == 3, "asked until it is computed, then known"
    assert viewed.rows("Longest in sight")
    # The strip has colours besides those of an empty one, and the axis has texts.
    for element, least in ((".strip canvas", 3), (".timeline-body > .canvas canvas", 6)):
        colours = page.locator(f"#view-timeline {element}").first.evaluate(
            """canvas => {
                const { width, height } = canvas;
                const context = canvas.getContext("2d");
                const { data } = context.getImageData(0, 0, width, Math.min(height, 26 * devicePixelRatio));
                return new Set(new Uint32Array(data.buffer)).size;
            }"""
        )
        assert colours >= least


def test_names_come_first_on_a_narrow_screen(view):
    viewed = view(POSTCARDS, size=(390, 844))
    viewed.show("functions")
    page = viewed.page
    table = page.locator('table[aria-label="Functions"]')
    name = viewed.rows("Functions")[0][0]
    assert name == reported(POSTCARDS)["top_self"][0]["name"]
    cell = table.locator("tbody tr[role=row] td").first.bounding_box()
    assert cell["x"] >= 0
    assert cell["x"] + cell["width"] < 390
    page.locator("#view-functions .scroller").evaluate("scroller => { scroller.scrollLeft = 200 }")
    left = "cell => cell.getBoundingClientRect().left"
    assert table.locator("tbody tr[role=row] td").first.evaluate(left) >= 0


def test_names_of_deep_rows_of_a_tree_are_not_cut_to_nothing(view):
    """On a telephone the indentation of the tenth row left no room for its name."""
    viewed = view(POSTCARDS, size=(390, 844))
    viewed.show("tree")
    names = viewed.page.locator('table[aria-label="Call tree"] tbody tr[aria-level] td.first')
    names.nth(9).wait_for()
    rooms = names.evaluate_all(
        "cells => cells.map(cell => cell.clientWidth - parseFloat(getComputedStyle(cell).paddingLeft))"
    )
    assert min(rooms[:10]) > 70


def test_names_beside_another_pane_are_not_cut_to_nothing(view):
    """In a window of 800 pixels names of calls in sight were `…`, and those of compiled functions beyond the edge."""
    viewed = view(POSTCARDS, size=(800, 600))
    for tab, table in (("timeline", "Longest in sight"), ("code", "Functions that were compiled")):
        viewed.show(tab)
        viewed.rows(table)
        # Rows are made anew while the picture comes to rest.
        viewed.page.wait_for_function(
            """name => {
                const table = document.querySelector(`table[aria-label="${name}"]`);
                const cell = table.querySelector("tbody tr[role=row] td")?.getBoundingClientRect();
                const pane = table.closest(".scroller").getBoundingClientRect();
                return cell && cell.width >= 130 && Math.abs(cell.left - pane.left) < 2;
            }""",
            arg=table,
        )


def test_shares_of_what_is_counted_are_whole(view, tmp_path):
    """The end of `221 events  51.6%` was cut: the share."""
    stacks = tmp_path / "counts.folded"
    stacks.write_text("main;first 123456\nmain;second 65432\n", encoding="utf-8")
    viewed = view((stacks,), size=(800, 600))
    for tab, table in (("functions", "Functions"), ("tree", "Call tree")):
        section = viewed.show(tab)
        viewed.rows(table)
        cells = section.locator("tbody tr[role=row] td.number, tbody tr[role=row] td.number *")
        assert cells.evaluate_all("all => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length") == 0, tab
    viewed.show("functions")
    assert viewed.rows("Functions")[0][:3] == ["first", "123,456  65.4%", "123,456  65.4%"]


def test_names_have_the_room_that_numbers_leave(view):
    viewed = view(POSTCARDS, size=(700, 900))
    for tab, table in (("tree", "Call tree"), ("code", "Functions that were compiled")):
        viewed.show(tab)
        heads = viewed.page.locator(f'table[aria-label="{table}"]:visible thead th')
        widths = heads.evaluate_all("cells => cells.map((cell) => cell.getBoundingClientRect().width)")
        assert widths[0] >= max(widths[1:]), (tab, widths)


def test_heads_of_columns_are_whole(view):
    for files, tabs in ((POSTCARDS, ("functions", "code")), (SERVER, ("functions",))):
        viewed = view(files, size=(1400, 900))
        for tab in tabs:
            heads = viewed.show(tab).locator("thead th > button, thead th:not(:has(button))")
            assert heads.evaluate_all("all => all.filter((one) => one.scrollWidth > one.clientWidth).length") == 0, tab


def test_tables_are_sorted_with_the_keyboard(view):
    viewed = view(POSTCARDS)
    viewed.show("functions")
    page = viewed.page
    page.locator('table[aria-label="Functions"] thead button', has_text="Total").focus()
    page.keyboard.press("Enter")
    viewed.settled("functions")
    page.locator('table[aria-label="Functions"] th[aria-sort=descending]', has_text="Total").wait_for()
    assert viewed.rows("Functions")[0][-1] == reported(POSTCARDS)["top_total"][0]["name"]


def test_lengths_of_the_calls_of_one_function(view):
    viewed = view(SERVER)
    section = viewed.show("heat", heat="latency")
    page = viewed.page
    kinds = section.locator("select").first.locator("option").all_inner_texts()
    assert kinds == ["offset in the second", "thread", "process", "length of calls"]
    function = max(reported(SERVER)["functions"], key=lambda row: row["num_calls"])["name"]
    field = section.locator("input[type=search]")
    field.fill(function)
    field.press("Enter")
    expect(section.locator(".bar output")).to_have_text(f"calls of {function}")
    field = section.locator("input[type=search]")
    field.fill("no_such_function")
    field.press("Enter")
    page.locator("#view-heat [role=alert]").wait_for()
    expect(section.locator(".bar output")).to_have_text(f"calls of {function}")


def test_processes_that_no_sample_is_of_are_not_counted_as_those_that_ran(open_page, tmp_path):
    """A recording of the whole machine names every process: three here, of which two ran, in three threads."""
    attribute = Attribute.of((1, 0), IP | TID | TIME | PERIOD)
    threads = [(10, 10), (10, 11), (20, 20), (30, 30)]
    ran = [(10, 10), (10, 11), (20, 20), (10, 11)]
    named = [comm(attribute, pid, tid, f"app{pid}") for pid, tid in threads]
    samples = [sample(attribute, ip=0x10, pid=pid, tid=tid, time=1000 + n) for n, (pid, tid) in enumerate(ran)]
    recording = PerfFile([attribute], [*named, *samples]).write(tmp_path / "perf.data")
    report = reported((recording,))
    assert (len(report["processes"]), len(report["threads"])) == (2, 3)
    with served((recording,)) as address:
        page = open_page(address, reduced_motion="reduce")
        Viewed(page, address).settled("overview")
        text = " ".join(page.get_by_role("region", name="Recording").inner_text().split())
        assert "processes 2 with samples, 3 in all" in text
        assert "threads 3 with samples, 4 in all" in text
        page.close()


def test_a_recording_of_ten_years_has_a_heat_map(view, tmp_path):
    event = Attribute.of((1, 0), IP | TID | TIME | PERIOD)
    years = [sample(event, ip=0x5000, pid=7, tid=7, time=365 * 86_400 * 10**9 * year) for year in range(10)]
    viewed = view((PerfFile([event], years).write(tmp_path / "perf.data"),))
    viewed.show("heat", heat="seconds")
    assert sum(int(row[1].removesuffix(" ns")) for row in viewed.rows("Hottest cells")) == len(years)
