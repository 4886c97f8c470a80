"""Counters of the timeline, and charts of JIT code: their tables have the values of the picture, as recorded."""

from collections import Counter

import pytest
from viewer import POSTCARDS, queried, reported

TALL = (1280, 3200)
"""Has more rows of the table in sight, so that it is walked in fewer steps."""


def number(text):
    return None if text == "" else float(text.replace(",", ""))


@pytest.fixture
def counters(mono_corpus):
    return (mono_corpus / "v17" / "everything.mlpd",)


def table(viewed, **state):
    """All rows of the table of counters: it has elements for those in sight only, so it is walked to its end."""
    viewed.show("timeline", **state)
    page = viewed.page
    page.wait_for_selector("#view-timeline[data-filled]")
    page.get_by_role("group", name="Table below").get_by_role("button", name="Counters").click()
    page.wait_for_selector("section.counters[data-pending='']")
    grid = page.locator('table[aria-label="Counters in sight"]')
    num = int(grid.get_attribute("aria-rowcount")) - 1
    found = {}
    grid.focus()
    page.keyboard.press("Home")
    for _ in range(num):
        rows = grid.locator("tbody tr[role=row]").evaluate_all(
            """rows => rows.map((row) => [row.ariaRowIndex, row.cells[0].querySelector("small")?.textContent ?? "",
                ...[...row.cells].map((cell) => (cell.querySelector("b") ?? cell).textContent)])"""
        )
        found |= {row[0]: row[1:] for row in rows}
        if len(found) == num:
            break
        page.keyboard.press("PageDown")
    assert len(found) == num
    return list(found.values())


def test_the_table_of_counters_equals_the_report(view, counters):
    rows = table(view(counters, size=TALL))
    expected = {
        (one["name"], one["section"]): (len(one["values"]), one["min"], one["max"], one["last"])
        for one in reported(counters, "--section", "counters")["counters"]
        if one["text"] is None
    }
    shown = {(name, detail.split(", ")[0]): (int(num), *map(number, values)) for detail, name, _, *values, num in rows}
    assert shown.keys() == expected.keys()
    for key, values in shown.items():
        assert values == pytest.approx(expected[key], abs=1e-6), key
    assert all(before == "" for _, _, before, *_ in rows), "nothing precedes the whole recording"


def test_the_table_of_counters_follows_the_window(view, counters):
    start, end = 2_000_000_000, 2_118_000_000
    rows = table(view(counters, size=TALL), window=f"{start}-{end}")
    between = f"{start / 1e9:.9f}..{end / 1e9:.9f}"
    expected = {
        (one["name"], one["section"]): (one["min"], one["max"], one["last"])
        for one in reported(counters, "--section", "counters", "--between", between)["counters"]
        if one["text"] is None
    }
    shown = {
        (name, detail.split(", ")[0]): tuple(map(number, values))
        for detail, name, _, *values, num in rows
        if num != "0"
    }
    assert len(expected) > 5
    assert shown.keys() == expected.keys()
    for key, values in shown.items():
        assert values == pytest.approx(expected[key], abs=1e-6), key
    zero = reported(counters)["start_ns"]
    held = queried(
        counters,
        "SELECT name, section, arg_max(value, ts_ns) FROM counters JOIN counter_samples USING (counter_id) "
        f"WHERE value IS NOT NULL AND ts_ns < {zero + start} GROUP BY ALL",
    )
    before = {(name, detail.split(", ")[0]): number(at_start) for detail, name, at_start, *_ in rows}
    assert {key: value for key, value in before.items() if value is not None} == pytest.approx(
        {(name, section): value for name, section, value in held}, abs=1e-6
    )


def test_the_values_of_a_counter_are_those_of_the_report(view, counters):
    viewed = view(counters, size=TALL)
    table(viewed)
    page = viewed.page
    grid = page.locator('table[aria-label="Counters in sight"]')
    grid.locator("thead button", has_text="Values").click()
    grid.locator("th[aria-sort=descending]", has_text="Values").wait_for()
    grid.focus()
    page.keyboard.press("Home")
    num = int(viewed.rows("Counters in sight")[0][-1])
    name = viewed.rows("Counters in sight")[0][0]
    section = grid.locator("tbody tr[role=row] small").first.inner_text().split(", ")[0]
    page.locator("section[aria-label='Chosen counter'] h2", has_text=name).wait_for()
    report = reported(counters, "--section", "counters")
    [most] = [one for one in report["counters"] if (one["name"], one["section"]) == (name, section)]
    assert num == max(len(one["values"]) for one in report["counters"])
    rows = viewed.rows(f"Values of {most['name']}")
    zero = reported(counters)["start_ns"]
    assert [number(value) for _, value in rows] == [one["value"] for one in most["values"]]
    for (time, _), one in zip(rows, most["values"], strict=True):
        seconds, unit = time.split()
        assert unit == "s"
        assert float(seconds) == pytest.approx((one["ts_ns"] - zero) / 1e9, abs=1e-5)


def test_a_counter_without_a_value_in_sight_has_the_value_that_holds(view, counters):
    viewed = view(counters, size=TALL)
    rows = table(viewed, window="2200000000-2700000000")
    assert {num for *_, num in rows} == {"0"}
    last = {
        (one["name"], one["section"]): one["values"]
        for one in reported(counters, "--section", "counters", "--between", "0..2.2")["counters"]
        if one["text"] is None
    }
    for detail, name, before, *_ in rows:
        assert number(before) == pytest.approx(last[name, detail.split(", ")[0]][-1]["value"], abs=1e-6)


def test_charts_of_code_have_tables(view):
    viewed = view(POSTCARDS)
    viewed.show("code")
    page = viewed.page
    page.get_by_text("Chart as a table").click()
    page.locator('table[aria-label="Compilations over time"]').wait_for()
    heads = page.locator('table[aria-label="Compilations over time"] th').all_inner_texts()
    sums = Counter()
    grid = page.locator('table[aria-label="Compilations over time"]')
    num = int(grid.get_attribute("aria-rowcount")) - 1
    grid.focus()
    page.keyboard.press("Home")
    seen = {}
    while len(seen) < num:
        rows = grid.locator("tbody tr[role=row]").evaluate_all(
            "rows => rows.map((row) => [row.ariaRowIndex, ...[...row.cells].map((cell) => cell.textContent)])"
        )
        seen |= {row[0]: row[1:] for row in rows}
        page.keyboard.press("PageDown")
    for row in seen.values():
        for head, text in zip(heads[1:], row[1:], strict=True):
            sums[head] += int(text.replace(",", ""))
    expected = queried(POSTCARDS, "SELECT coalesce(tier, kind), count(*) FROM code_objects GROUP BY 1")
    assert dict(sums) == dict(expected)
    viewed.show("code", code="space")
    space = page.locator('table[aria-label="Code by address"]')
    space.wait_for()
    [[first, live]] = queried(
        POSTCARDS, "SELECT min(start_address), count(*) FROM code_objects WHERE retire_ns IS NULL"
    )
    assert int(viewed.rows("Code by address")[0][0], 16) == int(str(first), 0)
    assert int(space.get_attribute("aria-rowcount")) - 1 == live


@pytest.mark.parametrize("which", ["samples", "mono"])
def test_each_picture_has_a_table(view, counters, which):
    """In each view with a canvas there is a table with rows, which has a name."""
    viewed = view(POSTCARDS if which == "samples" else counters)
    page = viewed.page
    tabs = [tab.get_attribute("id").removeprefix("tab-") for tab in page.locator("#tabs [role=tab]").all()]
    states = [(tab, {}) for tab in tabs] + [("code", {"code": form}) for form in ("live", "space") if "code" in tabs]
    if which == "samples":
        states += [("heat", {"heat": rows}) for rows in ("threads", "origins", "tiers")]
        states += [("flame", {"range": "0-700000000", "base": "700000000-1400000000"})]
    else:
        states += [("heap", {"heap": "dominators"})]
    pictures = set()
    for tab, state in states:
        section = viewed.show(tab, **state)
        if tab == "timeline":
            page.wait_for_selector("#view-timeline[data-filled]")
        if section.locator("canvas:visible:not([aria-hidden=true])").count() == 0:
            continue
        pictures.add(tab)
        if tab == "code" and not section.locator("details.chart-table").evaluate("details => details.open"):
            section.get_by_text("Chart as a table").click()
            section.locator(".chart-table table").wait_for()
        tables = section.locator("table:visible:has(tbody tr)")
        tables.first.wait_for()
        for table in tables.all():
            name = table.get_attribute("aria-label") or table.locator("caption").inner_text()
            assert name.strip(), (tab, state)
    expected = (
        {"timeline", "heat", "flame", "code"} if which == "samples" else {"timeline", "heat", "flame", "heap", "code"}
    )
    assert pictures == expected
