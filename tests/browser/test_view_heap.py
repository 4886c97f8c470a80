"""The heap explorer on a program whose heap is known: a list, an array of cells, and a dictionary of strings."""

import time

import pytest
from playwright.sync_api import expect
from viewer import PATIENCE_S, reported

from mono_programs import compiled, recorded

NUM = 3000
"""Links of the list, and as many cells; benchmarks/view_heap.py has five million."""
LINK_BYTES = 32
SHOWN_STEPS = 60


@pytest.fixture(scope="module")
def heap(mono_corpus, tmp_path_factory):
    directory = tmp_path_factory.mktemp("heap")
    program = compiled(mono_corpus / "src" / "BigHeap.cs", directory)
    options = "nodefaults,gcroot,gc,heapshot=ondemand,heapshot-on-shutdown"
    return (recorded(program, directory / "heap.mlpd", options, str(NUM)),)


UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20}


def is_size(text, num_bytes):
    """Whether a size on the page is a number of bytes, rounded as it is shown."""
    number, unit = text.split()[:2]
    digits = len(number.partition(".")[2])
    return abs(float(number.replace(",", "")) - num_bytes / UNITS[unit]) <= 0.5 * 10**-digits + 1e-9


def types(viewed):
    """All rows of the table of types, which is walked to its end."""
    grid = viewed.page.locator('table[aria-label="Types"]')
    num = int(grid.get_attribute("aria-rowcount")) - 1
    found = {}
    end = time.monotonic() + PATIENCE_S
    while len(found) < num and time.monotonic() < end:
        rows = grid.locator("tbody tr[role=row]").evaluate_all(
            """rows => rows.map((row) => [row.ariaRowIndex,
                ...[...row.cells].map((cell) => (cell.querySelector("b") ?? cell).textContent)])"""
        )
        found |= {row[0]: row[1:] for row in rows}
        # Rows that were not drawn in time are met again from the start.
        viewed.page.locator("#view-heap .scroller").first.evaluate(
            """scroller => {
                const atEnd = scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 1;
                scroller.scrollTop = atEnd ? 0 : scroller.scrollTop + 400;
            }"""
        )
        viewed.page.wait_for_timeout(50)
    assert len(found) == num
    return [found[number] for number in sorted(found, key=int)]


def test_all_types_equal_the_report(view, heap):
    viewed = view(heap)
    viewed.show("heap")
    last = reported(heap, "--section", "heap")["heap"]["last"]
    rows = types(viewed)
    assert {(name, num) for _, _, num, name in rows} == {
        (row["type"], f"{row['num_objects']:,}") for row in last["classes"]
    }
    expected = {row["type"]: row for row in last["classes"]}
    for retained, own, _, name in rows:
        assert is_size(retained, expected[name]["retained_bytes"])
        assert is_size(own, expected[name]["size_bytes"])
    numbers = {name: num for _, _, num, name in rows}
    assert numbers["Link"] == numbers["Cell"] == f"{NUM:,}"
    assert numbers["Cell[]"] == "1"


def choose(viewed, name):
    page = viewed.page
    table = page.locator('table[aria-label="Types"]')
    table.locator("tbody tr", has=page.get_by_text(name, exact=True)).click()
    objects = page.locator('table[aria-label="Objects of the type"]')
    objects.locator("tbody tr[role=row]").first.wait_for()
    viewed.settled("heap")
    return objects


def test_what_holds_the_objects_of_a_type_is_known(view, heap):
    viewed = view(heap)
    viewed.show("heap")
    choose(viewed, "Link")
    [path] = viewed.page.locator("ol[aria-label='Paths from roots, merged by type'] li").all_inner_texts()
    assert path.startswith(f"{NUM:,} objects, retained ")
    assert path.endswith("static field of BigHeap → Link")
    choose(viewed, "Cell")
    [path] = viewed.page.locator("ol[aria-label='Paths from roots, merged by type'] li").all_inner_texts()
    assert path.startswith(f"{NUM:,} objects, retained ")
    assert path.endswith("static field of BigHeap → Cell[] → Cell")


def test_the_path_to_the_end_of_a_list_has_both_ends(view, heap):
    viewed = view(heap)
    viewed.show("heap")
    page = viewed.page
    objects = choose(viewed, "Link")
    objects.focus()
    # Each end of what is there asks for the next page; links that retain more are nearer to the root.
    for end in range(200, NUM + 1, 200):
        page.keyboard.press("End")
        objects.locator(f'tr[aria-rowindex="{end + 1}"][aria-selected=true]').wait_for()
        if end < NUM:
            objects.locator(f'tr[aria-rowindex="{end + 2}"]').wait_for()
    page.keyboard.press("Enter")
    path = page.locator("ol[aria-label='Path from a root'] > li")
    path.first.wait_for()
    texts = path.all_inner_texts()
    assert texts[0] == "static field of BigHeap"
    assert len(texts) == 1 + SHOWN_STEPS + 1
    assert texts[1 + SHOWN_STEPS // 2] == f"… {NUM - SHOWN_STEPS:,} objects …"
    assert is_size(texts[1].removeprefix("Link "), NUM * LINK_BYTES)
    assert is_size(texts[-1].removeprefix("Link "), LINK_BYTES)
    expect(page.locator("#view-heap .inspector h2")).to_have_text("Link")


def test_the_dominator_tree_of_a_known_heap(view, heap):
    viewed = view(heap)
    viewed.show("heap", heap="dominators")
    page = viewed.page
    page.wait_for_selector(".dominators[data-inside=all]")
    retainers = reported(heap, "--section", "heap")["heap"]["last"]["retainers"]
    rows = viewed.rows("Dominator tree")
    for (retained, own, num, name), row in list(zip(rows, retainers, strict=False))[:3]:
        assert (name, num) == (row["type"], f"{row['num_retained']:,}")
        assert is_size(retained, row["retained_bytes"])
        assert is_size(own, row["size_bytes"])
    assert {name: num for _, _, num, name in rows[:3]}["Cell[]"] == f"{NUM + 1:,}"
    cut = page.locator('table[aria-label="Dominator tree"] td.number').evaluate_all(
        "cells => cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"
    )
    assert cut == [], "numbers are whole"
    page.get_by_role("button", name="Icicle").click()
    viewed.settled("heap")


def test_growth_needs_an_earlier_snapshot(view, heap):
    viewed = view(heap)
    for state in ({"heap": "growth"}, {"heap": "growth", "since": "0"}, {"since": "7"}):
        viewed.show("heap", **state)
        assert viewed.page.locator(".failure").count() == 0
        assert viewed.rows("Types")
    assert viewed.page.get_by_role("button", name="Growth").count() == 0


def test_each_view_opens(view, heap):
    viewed = view(heap)
    tabs = [tab.get_attribute("id").removeprefix("tab-") for tab in viewed.page.locator("#tabs [role=tab]").all()]
    assert tabs == ["overview", "timeline", "annotate", "heap", "code", "files", "sql"]
    for tab in tabs:
        viewed.show(tab)
        assert viewed.page.locator(".failure").count() == 0, tab
    viewed.show("heap", heap="sites")
    assert "No allocation" in viewed.page.locator("#view-heap").inner_text()
