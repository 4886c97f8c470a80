"""The viewer's timeline and heat map: what is drawn and selected is what was recorded."""

from collections import Counter

import pytest
from playwright.sync_api import expect
from viewer import POSTCARDS, SERVER, queried, reported


def timeline(viewed, **state):
    """The timeline, when all tiles in sight are there and the table has them."""
    viewed.show("timeline", **state)
    viewed.page.wait_for_selector("#view-timeline[data-filled]")
    return viewed.page.locator("#view-timeline .timeline-body > .canvas")


def nanoseconds(text):
    number, unit = text.split()
    return float(number) * {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1}[unit]


@pytest.mark.parametrize("height", [800, 3200])
def test_the_longest_calls_are_those_of_the_slices(view, height):
    """Also in a window that has room for more depths than the calls have."""
    viewed = view(SERVER, size=(1280, height))
    timeline(viewed)
    rows = viewed.rows("Longest in sight")
    slices = queried(
        SERVER,
        "SELECT f.name, s.duration_ns, s.depth FROM slices s JOIN functions f USING (function_id) "
        "WHERE s.kind = 'call' ORDER BY s.duration_ns DESC LIMIT 3",
    )
    assert [(row[0], row[4]) for row in rows[:3]] == [(name, str(depth)) for name, _, depth in slices]
    for row, (_, duration, _) in zip(rows, slices, strict=False):
        assert nanoseconds(row[2]) == pytest.approx(duration, rel=0.005)


def test_keys_walk_over_the_calls(view):
    viewed = view(SERVER)
    canvas = timeline(viewed)
    page = viewed.page
    folded = page.locator(".header[aria-expanded=false]")
    while folded.count():
        folded.first.click()
    page.locator("#view-timeline .in-sight th button", has_text="Depth").click()
    expect(page.locator("#view-timeline .in-sight tbody tr").first.locator("td").nth(4)).not_to_have_text("0")
    title = page.locator("#view-timeline .slice h2")
    page.locator("#view-timeline .in-sight table").focus()
    page.keyboard.press("ArrowDown")
    title.wait_for()
    caller = page.locator("#view-timeline .parents button").first.inner_text()
    canvas.focus()
    page.keyboard.press("ArrowUp")
    expect(title).to_have_text(caller)
    page.keyboard.press("ArrowDown")
    page.locator("#view-timeline .parents button", has_text=caller).wait_for()
    page.keyboard.press("r")
    page.wait_for_selector("#selection .chip button")
    assert "range" in viewed.state()
    page.keyboard.press("0")
    page.wait_for_url(lambda address: "window=" not in address)
    page.keyboard.press("w")
    page.wait_for_url("**window=*")
    start, end = map(int, viewed.state()["window"].split("-"))
    span = reported(SERVER)["totals"]["span_ns"]
    assert end - start == pytest.approx(0.7 * (span[1] - span[0]), rel=0.01)


def test_dragging_selects_and_the_flame_graph_follows(view):
    viewed = view(POSTCARDS)
    canvas = timeline(viewed)
    box = canvas.bounding_box()
    page = viewed.page
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.4, y, steps=3)
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=3)
    page.mouse.up()
    page.wait_for_selector("#selection .chip button")
    start, end = map(int, viewed.state()["range"].split("-"))
    span = reported(POSTCARDS)["duration_ns"]
    assert start == pytest.approx(span / 4, rel=0.02)
    assert end == pytest.approx(span / 2, rel=0.02)
    page.keyboard.press("Enter")
    viewed.settled("flame")
    report = reported(POSTCARDS, "--between", f"{start / 1e9:.9f}..{end / 1e9:.9f}")
    viewed.show("tree", range=f"{start}-{end}")
    assert viewed.rows("Call tree")[0][2] == f"{report['events'][0]['samples']:,}"


def test_the_hottest_cells_are_where_most_samples_are(view):
    viewed = view(POSTCARDS)
    viewed.show("heat", heat="threads", column="10000000")
    rows = viewed.rows("Hottest cells")
    samples = queried(POSTCARDS, "SELECT ts_ns, thread_id, weight FROM samples")
    zero = reported(POSTCARDS)["start_ns"]
    cells = Counter()
    for time, thread, weight in samples:
        cells[(time - zero) // 10_000_000, thread] += weight
    assert nanoseconds(rows[0][1]) == pytest.approx(max(cells.values()), rel=0.005)
    hottest = {column * 10_000_000 for (column, _), weight in cells.items() if weight == max(cells.values())}
    assert nanoseconds(rows[0][0]) in hottest


def test_a_cell_selects_its_time(view):
    viewed = view(POSTCARDS)
    viewed.show("heat", heat="threads", column="10000000")
    table = viewed.page.locator('table[aria-label="Hottest cells"]')
    time = nanoseconds(viewed.rows("Hottest cells")[0][0])
    table.focus()
    viewed.page.keyboard.press("ArrowDown")
    viewed.page.keyboard.press("Enter")
    viewed.page.wait_for_selector("#selection .chip button")
    assert viewed.state()["range"].split("-")[0] == f"{time:.0f}"
