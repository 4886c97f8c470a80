"""The viewer as one file: the numbers of the report for every selection, without a server."""

import subprocess
import sys

import pytest
from viewer import POSTCARDS, SERVER, Viewed, reported

import perfuse
from perfuse.cli.console import Console
from perfuse.cli.page_output import write_view_page
from perfuse.viewer import one_file

EXPECTED = ["overview", "timeline", "flame", "tree", "functions", "callers", "files"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Pages that `perfuse flame` and `perfuse convert` write."""
    folder = tmp_path_factory.mktemp("pages")
    part = ["--between", "0.5..1", "--thread", "32018"]
    for name, verb, files, options in (
        ("postcards", "flame", POSTCARDS, []),
        ("part", "flame", POSTCARDS, part),
        ("server", "convert", SERVER, []),
    ):
        command = [sys.executable, "-m", "perfuse", verb, "-o", f"{name}.html", *map(str, files), *options]
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert done.returncode in (0, 1), done.stderr.decode()
    return folder


@pytest.fixture
def opened(open_page, written):
    """Opens a page from disk."""

    def opened(name, state="", *, theme="light", size=(1280, 800)):
        address = (written / f"{name}.html").as_uri()
        page = open_page(
            f"{address}#{state}" if state else address, size=size, color_scheme=theme, reduced_motion="reduce"
        )
        return Viewed(page, address)

    return opened


def test_its_commands_select_what_it_shows(opened):
    span = reported(POSTCARDS)["duration_ns"]
    first = (span + 1) * 91 // 100
    viewed = opened("postcards")
    viewed.show("flame", range=f"{first + 5}-{span}")
    assert viewed.command().endswith(f" --between {first / 1e9:.9f}..")
    viewed.show("functions", range=f"{first + 5}-{span}")
    report = reported(POSTCARDS, "--between", f"{first / 1e9:.9f}..")
    whole = report["events"][0]["weight"]
    assert viewed.self_shares() == {
        (row["name"], f"{100 * row['self_weight'] / whole:.1f}%")
        for row in report["top_self"]
        if row["self_weight"] > 0.01 * whole
    }
    viewed = opened("part")
    viewed.settled("flame")
    assert viewed.page.locator("#selection .chip").all_inner_texts() == ["opened with --between 0.5..1 --thread 32018"]
    assert viewed.command().endswith(" --thread 32018 -o flame.html --between 0.5..1")
    viewed.show("flame", processes="0")
    viewed.page.get_by_role("button", name="Save").click()
    assert viewed.page.locator("#command").count() == 0


def test_it_opens_at_the_flame_graph_and_has_all_its_views(opened):
    viewed = opened("postcards")
    viewed.settled("flame")
    tabs = [tab.get_attribute("id").removeprefix("tab-") for tab in viewed.page.locator("#tabs [role=tab]").all()]
    assert tabs == EXPECTED
    for theme in ("light", "dark"):
        viewed = opened("postcards", theme=theme, size=(420, 800) if theme == "dark" else (1280, 800))
        for tab in EXPECTED:
            viewed.show(tab)
            assert viewed.page.locator(".failure").count() == 0, tab


@pytest.mark.parametrize("threads", [False, True], ids=["all", "one thread"])
def test_a_part_of_the_time_has_the_weights_of_the_report(opened, threads):
    span = reported(POSTCARDS)["duration_ns"]
    first, end = ((span + 1) * step // 100 for step in (25, 60))
    viewed = opened("postcards")
    state = {"range": f"{first + 5}-{end - 5}"}
    options = ["--between", f"{first / 1e9:.9f}..{end / 1e9:.9f}"]
    if threads:
        chooser = viewed.page.get_by_label("Thread", exact=True)
        label = chooser.locator("option").nth(1).inner_text()
        state["threads"] = chooser.locator("option").nth(1).get_attribute("value")
        options += ["--thread", label.rsplit("/", 1)[1]]
    viewed.show("functions", **state)
    report = reported(POSTCARDS, *options)
    whole = report["events"][0]
    expected = {
        (row["name"], f"{100 * row['self_weight'] / whole['weight']:.1f}%")
        for row in report["top_self"]
        if row["self_weight"] > 0.01 * whole["weight"]
    }
    assert viewed.self_shares() == expected
    viewed.show("tree", **state)
    assert viewed.page.locator("#view-tree .where").inner_text().startswith(f"{whole['samples']:,} samples")
    # The time that is selected is what the numbers are of.
    assert viewed.page.locator("#selection .chip").first.inner_text().startswith(f"{first / 1e6:.0f}"[:3])


def test_the_timeline_has_the_calls_that_the_server_has(opened, view):
    rows = []
    for viewed in (opened("server"), view(SERVER)):
        shown = []
        for window in ("0-100000000", "20000000-21000000", "20000000-20100000"):
            viewed.show("timeline", window=window)
            viewed.page.wait_for_selector("#view-timeline[data-filled]")
            shown.append(viewed.rows("Longest in sight"))
        rows.append(shown)
    assert rows[0] == rows[1]
    assert len(rows[0][2]) > 3


def test_a_call_has_its_callers_and_callees(opened):
    viewed = opened("server", "tab=timeline")
    viewed.settled("timeline")
    viewed.page.wait_for_selector("#view-timeline[data-filled]")
    longest = viewed.rows("Longest in sight")[1]
    viewed.page.locator('table[aria-label="Longest in sight"] tbody tr').nth(1).click()
    panel = viewed.page.locator(".panel .slice h2")
    panel.wait_for()
    assert panel.inner_text() == longest[0] == "serve"
    text = viewed.page.locator(".panel .slice").inner_text()
    assert longest[2] in text
    assert "calls" in text


def test_a_recording_that_is_too_large_has_the_flame_graph_and_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr(one_file, "MOST_SAMPLES", 10)
    notes = []
    monkeypatch.setattr(Console, "note", lambda _self, text, hint=None: notes.append((text, hint)))
    console = Console.__new__(Console)
    assert not write_view_page(console, perfuse.fuse(*POSTCARDS), [str(POSTCARDS[0])], str(tmp_path / "x.html"))
    [(text, hint)] = notes
    assert "no timeline" in text
    assert "perfuse view" in hint
    assert not (tmp_path / "x.html").exists()


def test_a_notebook_shows_the_page_in_a_frame(open_page, tmp_path):
    """`profile.view()`: in a frame without an address of its own, in which states are not remembered."""
    shown = perfuse.fuse(*POSTCARDS).view()
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><meta charset=utf-8><title>notebook</title>{shown._repr_html_()}")
    page = open_page(notebook.as_uri(), ready="iframe", reduced_motion="reduce")
    frame = page.frame_locator("iframe")
    frame.locator("#view-timeline[aria-busy=false]").wait_for()
    frame.locator("#tab-functions").click()
    first = frame.locator("#view-functions tbody tr td b").first
    first.wait_for()
    report = reported(POSTCARDS)
    assert first.inner_text() == report["top_self"][0]["name"]
    shown.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == shown.page
