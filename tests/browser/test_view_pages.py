"""The viewer's other views: heap, code, files, SQL; what is saved; keys, names, narrow windows, access."""

import gzip
import json
import shutil
import xml.etree.ElementTree as ET

import pytest
from playwright.sync_api import expect
from viewer import POSTCARDS, SERVER, reported

from perfuse.cli.verbs import VERBS

TABS = ("overview", "timeline", "heat", "flame", "tree", "functions", "callers", "annotate", "code", "files", "sql")


@pytest.fixture(scope="session")
def heapshot(mono_corpus):
    return (mono_corpus / "v17" / "heapshot.mlpd",)


def test_the_overview_has_the_totals_of_the_report(view):
    viewed = view(POSTCARDS)
    section = viewed.show("overview")
    report = reported(POSTCARDS)
    event = report["events"][0]
    assert f"{event['samples']:,} samples" in section.inner_text()
    assert [row[-1] for row in viewed.rows("Heaviest functions")][:3] == [row["name"] for row in report["top_self"][:3]]
    names = viewed.page.locator("#tabs [role=tab]").all_inner_texts()
    assert names[0] == "Overview"
    assert "Heap" not in names, "perf.data has no heap"


def test_the_overview_of_allocations_lists_types_as_such(view, mono_corpus):
    log = (mono_corpus / "v17" / "alloc.mlpd",)
    viewed = view(log)
    viewed.show("overview")
    types = [row["name"] for row in reported(log, "--section", "allocations")["allocations"]["by_type"]]
    assert types[0] in [row[-1] for row in viewed.rows("Heaviest functions and types")]


def test_types_of_the_heap_equal_the_report(view, heapshot):
    viewed = view(heapshot)
    viewed.show("heap")
    last = reported(heapshot, "--section", "heap")["heap"]["last"]
    expected = {row["type"]: f"{row['num_objects']:,}" for row in last["classes"]}
    rows = viewed.rows("Types")
    assert len(rows) > 10
    assert {row[-1]: row[2] for row in rows}.items() <= expected.items()
    assert f"{last['num_objects']:,} objects" in viewed.page.locator("#view-heap p.where").inner_text()


def test_snapshots_have_the_numbers_of_the_report(view, heapshot):
    viewed = view(heapshot)
    viewed.show("overview")
    numbers = [str(one["snapshot_id"]) for one in reported(heapshot, "--section", "heap")["heap"]["snapshots"]]
    shown = viewed.page.locator('[aria-label="Heap snapshots"] button')
    assert shown.all_inner_texts() == [f"Snapshot {number}" for number in numbers]
    viewed.show("heap")
    viewed.rows("Types")
    options = viewed.page.locator("#view-heap select").first.locator("option").all_inner_texts()
    assert [option.split()[0].rstrip(":") for option in options] == numbers


def test_an_object_has_a_path_from_a_root(view, heapshot):
    viewed = view(heapshot)
    viewed.show("heap")
    page = viewed.page
    table = page.locator('table[aria-label="Types"]')
    table.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("ol[aria-label='Path from a root'] li").first.wait_for()
    name = viewed.rows("Types")[0][-1]
    expect(page.locator("#view-heap .inspector h2")).to_have_text(name)
    assert viewed.state()["object"].startswith("0x")
    assert page.locator("ol[aria-label='Path from a root'] button").last.inner_text() == name


def test_the_dominator_tree_has_the_whole_heap(view, heapshot):
    viewed = view(heapshot)
    viewed.show("heap", heap="dominators")
    page = viewed.page
    page.wait_for_selector(".dominators[data-inside=all]")
    last = reported(heapshot, "--section", "heap")["heap"]["last"]
    shares = [row[0].split()[-1] for row in viewed.rows("Dominator tree")]
    assert shares
    first = page.locator('table[aria-label="Dominator tree"] tbody tr').first
    assert first.get_attribute("aria-level") == "1"
    first.click()
    page.keyboard.press("ArrowRight")
    expect(page.locator('table[aria-label="Dominator tree"] tbody tr').first).to_have_attribute("aria-expanded", "true")
    assert last["num_classes"] > 1


def test_compilations_equal_the_dump(view, tmp_path):
    dump = tmp_path / "jit-32015.dump"
    with gzip.open(POSTCARDS[1]) as packed, dump.open("wb") as out:
        shutil.copyfileobj(packed, out)
    report = reported((dump,))
    viewed = view(POSTCARDS)
    viewed.show("code")
    text = viewed.page.locator("#view-code .where").inner_text()
    counts = [int(part.rsplit(": ", 1)[1].split(" ")[0].replace(",", "")) for part in text.split(" · ")[1:]]
    assert sum(counts) == report["code_objects"]


def test_findings_are_those_of_check(view):
    viewed = view(POSTCARDS)
    section = viewed.show("files")
    assert section.locator(".card h2").all_inner_texts() == [path.name for path in POSTCARDS]
    heading = section.locator("h2", has_text="Findings").inner_text()
    assert heading == f"Findings ({section.locator('details').count()})"


def test_records_have_the_names_of_their_specifications(view):
    text = view(POSTCARDS).show("files").inner_text()
    # `perf report -D` counts 1,713 of these; the dump has as many code loads as unwinding records.
    assert "PERF_RECORD_SAMPLE: 1,713" in text
    assert "JIT_CODE_LOAD: 2,584" in text


@pytest.mark.parametrize("files", [POSTCARDS, SERVER], ids=["samples", "calls"])
def test_the_first_query_of_the_page_has_rows(view, files):
    viewed = view(files)
    viewed.show("sql")
    viewed.page.click("#view-sql button.primary")
    viewed.page.locator('table[aria-label="Result"] tbody tr').first.wait_for()
    assert int(viewed.rows("Result")[0][1 if files is SERVER else 3]) > 0


def test_sql_answers(view):
    viewed = view(SERVER)
    viewed.show("sql")
    page = viewed.page
    calls = reported(SERVER)["totals"]["num_calls"]
    page.fill("#query", "SELECT count(*) AS calls FROM slices WHERE kind = 'call'")
    page.keyboard.press("Control+Enter")
    result = page.locator('table[aria-label="Result"]')
    result.wait_for()
    assert viewed.rows("Result") == [[str(calls)]]
    viewed.settled("sql")
    assert "query" in viewed.state()


def test_what_is_saved_is_what_is_shown(view, tmp_path):
    viewed = view(POSTCARDS)
    page = viewed.page
    for tab in ("functions", "flame", "timeline", "heat", "code"):
        viewed.show(tab)
        if tab == "timeline":
            page.wait_for_selector("#view-timeline[data-filled]")
        page.click("#save")
        names = page.locator("#save-items button").all_inner_texts()
        assert "Rows (CSV)" in names
        if tab != "functions":
            with page.expect_download() as saved:
                page.get_by_role("menuitem", name="Picture (SVG)").click()
            picture = tmp_path / f"{tab}.svg"
            saved.value.save_as(picture)
            assert len(ET.parse(picture).getroot()) > 3
            page.click("#save")
            with page.expect_download() as saved:
                page.get_by_role("menuitem", name="Picture (PNG)").click()
            picture = tmp_path / f"{tab}.png"
            saved.value.save_as(picture)
            assert picture.read_bytes().startswith(b"\x89PNG\r\n")
            page.click("#save")
        with page.expect_download() as saved:
            page.get_by_role("menuitem", name="Rows (CSV)").click()
        rows = tmp_path / f"{tab}.csv"
        saved.value.save_as(rows)
        assert len(rows.read_text().splitlines()) > 1
    viewed.show("functions")
    page.click("#save")
    command = page.locator("#command").inner_text()
    assert command.split()[0] == "perfuse"
    assert command.split()[1] in set(VERBS)


def test_every_view_opens_without_an_error_in_both_themes(view):
    for theme in ("light", "dark"):
        viewed = view(POSTCARDS, theme=theme)
        for tab in TABS:
            viewed.show(tab)
            assert viewed.page.locator(".failure").count() == 0, tab


@pytest.mark.parametrize(
    ("path", "tabs"),
    [
        ("sframe/v2/x86_64/small_omitfp.elf", ["overview", "files", "sql"]),
        ("jitdump/produced/node24.dump", ["overview", "annotate", "code", "files", "sql"]),
        ("xray/profiling/prof-lua.0.xray", ["overview", "flame", "tree", "functions", "callers", "files", "sql"]),
        ("mono/v17/heapshot.mlpd", ["overview", "timeline", "annotate", "heap", "code", "files", "sql"]),
    ],
    ids=["sframe", "jitdump", "xray sums", "mono"],
)
def test_views_without_anything_to_show_are_absent(view, request, path, tabs):
    part, _, file = path.partition("/")
    viewed = view((request.getfixturevalue(f"{part}_corpus") / file,))
    found = [tab.get_attribute("id").removeprefix("tab-") for tab in viewed.page.locator("#tabs [role=tab]").all()]
    assert found == tabs
    for tab in found:
        viewed.show(tab)
        assert viewed.page.locator(".failure").count() == 0, tab


def test_keys_reach_everything(view):
    viewed = view(POSTCARDS)
    page = viewed.page
    for number, tab in enumerate(TABS[:9], 1):
        page.keyboard.press(str(number))
        viewed.settled(tab)
    page.keyboard.press("2")
    viewed.settled("timeline")
    page.keyboard.press("?")
    listed = page.locator("#keys dl").all_inner_texts()
    assert len(listed) == 2
    assert "zoom in and out" in listed[0]
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.locator("#tab-timeline").focus()
    page.keyboard.press("ArrowRight")
    viewed.settled("heat")


def test_everything_has_a_name(view):
    """Buttons, fields, tables and pictures have names in the accessibility tree."""
    viewed = view(POSTCARDS)
    client = viewed.page.context.new_cdp_session(viewed.page)
    named = {"button", "tab", "combobox", "searchbox", "textbox", "slider", "grid", "treegrid", "img", "application"}
    for tab in TABS:
        viewed.show(tab)
        nodes = client.send("Accessibility.getFullAXTree")["nodes"]
        without = [
            node["role"]["value"]
            for node in nodes
            if not node.get("ignored")
            and node["role"]["value"] in named
            and not node.get("name", {}).get("value", "").strip()
        ]
        assert without == [], tab


def test_a_narrow_window_is_not_wider_than_it_is(view):
    viewed = view(POSTCARDS, size=(390, 800))
    for tab in TABS:
        viewed.show(tab)
        assert viewed.page.evaluate("document.documentElement.scrollWidth") <= 390, tab


def test_hostile_names_are_text(view, tmp_path):
    script = "<img src=x onerror=alert(1)>"
    stacks = tmp_path / "hostile.folded"
    stacks.write_text(f"main;{script} 3\nmain;\u202egnp.exe\u2066 2\nmain;=cmd() 4\n", encoding="utf-8")
    viewed = view((stacks,))
    viewed.show("functions")
    names = {row[-1] for row in viewed.rows("Functions")}
    assert script in names
    assert any("\\u{202e}" in name for name in names)
    for tab in ("overview", "flame", "tree", "callers", "files"):
        viewed.show(tab)
    viewed.show("functions")
    viewed.page.click("#save")
    with viewed.page.expect_download() as saved:
        viewed.page.get_by_role("menuitem", name="Rows (CSV)").click()
    rows = tmp_path / "rows.csv"
    saved.value.save_as(rows)
    assert "'=cmd()" in rows.read_text(), "a spreadsheet does not run it"


def test_without_the_token_nothing_is_shown(view, addresses):
    viewed = view(POSTCARDS)
    page = viewed.page
    page.evaluate("sessionStorage.clear()")
    page.goto("about:blank")
    page.goto(addresses(POSTCARDS).split("#")[0])
    page.wait_for_selector("html[data-ready=failed]")
    assert "token" in page.locator("[role=alert]").inner_text()
    assert json.dumps(page.evaluate("location.hash")) == '""'


@pytest.mark.parametrize("tab", ["tree", "functions", "callers"])
def test_numbers_are_not_cut_off(view, xray_corpus, tab):
    viewed = view((xray_corpus / "profiling/prof-threads.0.xray",))
    viewed.show(tab)
    cells = viewed.page.locator(f"#view-{tab} td.number")
    cells.first.wait_for()
    texts = """(cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"""
    assert cells.evaluate_all(texts) == []


def test_functions_without_times_have_no_columns_of_times(view, xray_corpus):
    viewed = view((xray_corpus / "profiling/prof-threads.0.xray",))
    section = viewed.show("functions")
    viewed.rows("Functions")
    names = [name.strip("▾ ") for name in section.locator("th").all_inner_texts()]
    assert names == ["Self", "Total", "Calls", "Function"]
