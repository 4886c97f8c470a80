"""Measures the page of `perfuse view` on a heap snapshot of 11 million objects: time to the types, answers, memory.

The log is that of `mono_heap.py`. Chromium without a GPU opens the page and asks what one would: types, sorted and
searched, the objects of a type with what holds them, an object deep in a list, the dominator tree. A time is what
passes between the click and the answer on the page; the numbers of the types are compared with `perfuse report`.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import mono_heap
from measure import Goal

WIDTH, HEIGHT = 1280, 800
TIMEOUT_MS = 120_000
LIST = "Link"
"""The type of a list of five million objects."""


def main() -> int:
    """Runs the benchmark and prints the results; returns 1 if a goal is not met."""
    measure.compile_perfuse()
    missing = [tool for tool in ("mono", "mcs", "chromium") if shutil.which(tool) is None]
    if missing:
        print(f"not installed: {', '.join(missing)}")
        return 1
    cache = Path(os.environ.get("PERFUSE_BENCH_DIR", "build/bench")).resolve() / "mono"
    cache.mkdir(parents=True, exist_ok=True)
    log = mono_heap.log_of(cache, mono_heap.LARGEST)
    print(f"{log.name}: {log.stat().st_size:,} bytes")
    print(f"{platform.platform()}, {os.cpu_count()} processors\n")
    report = subprocess.run(
        [mono_heap.PERFUSE, "report", "--json", "--limit", "0", "--section", "heap", log],
        capture_output=True,
        check=False,
    )
    started = time.perf_counter()
    command = [mono_heap.PERFUSE, "view", "--no-browser", log]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            goals = _measured(address, started, process.pid, json.loads(report.stdout)["heap"]["last"])
        finally:
            process.terminate()
    print()
    print(*goals, sep="\n")
    return 0 if all(goal.is_met for goal in goals) else 1


def _measured(address: str, started: float, pid: int, last: Any) -> list[Goal]:
    from playwright.sync_api import sync_playwright

    before = time.perf_counter() - started
    problems: list[str] = []
    times: dict[str, float] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
        page.set_default_timeout(TIMEOUT_MS)
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        origin = address.partition("#")[0]
        page.on("request", lambda request: problems.extend([] if request.url.startswith(origin) else [request.url]))
        opened = time.perf_counter()
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        page.wait_for_selector("#view-overview[aria-busy=false]:visible")
        print(f"{'overview':40} {before + time.perf_counter() - opened:8.2f} s after the command")

        def ask(what: str, act: Callable[[], object], shown: str) -> None:
            begun = time.perf_counter()
            act()
            page.wait_for_selector(shown)
            page.wait_for_selector("#view-heap[aria-busy=false]:visible")
            times[what] = time.perf_counter() - begun

        types = page.locator('table[aria-label="Types"]')
        search = page.get_by_label("Search types")
        button = page.locator("#view-heap button")
        ask("types of the snapshot", lambda: page.click("#tab-heap"), 'table[aria-label="Types"] tbody tr')
        same = _rows(types) == {
            (row["type"], f"{row['num_objects']:,}") for row in last["classes"][: len(_rows(types))]
        }
        ask(
            "types by number of objects",
            lambda: types.locator("th button", has_text="Objects").click(),
            'table[aria-label="Types"] th[aria-sort=descending] button:text-is("Objects")',
        )
        ask("search of types", lambda: search.fill(LIST), "#view-heap p.where:has-text('1 type')")
        # Counts are in the line above the table when the answer is there; the search waits for the end of typing.
        row = types.locator("tbody tr", has=page.get_by_text(LIST, exact=True))
        ask("objects of a list, and what holds them", row.click, "ol[aria-label='Paths from roots, merged by type'] li")
        objects = page.locator('table[aria-label="Objects of the type"]')
        objects.focus()
        ask("1,000 objects further", lambda: _walk(page, objects, 1000), 'tr[aria-rowindex="1001"]')
        ask("an object with its path", lambda: page.keyboard.press("Enter"), "ol[aria-label='Path from a root'] li")
        ask("dominator tree", button.filter(has_text="Dominators").click, ".dominators[data-inside=all]")
        tree = page.locator('table[aria-label="Dominator tree"] tbody tr', has=page.get_by_text(LIST, exact=True))
        tree.first.click()
        ask("into the list", lambda: page.keyboard.press("Enter"), ".dominators[data-inside^='0x']")
        ask("icicle", button.filter(has_text="Icicle").click, "#view-heap button[aria-pressed=true]:text-is('Icicle')")
        for what, seconds in times.items():
            print(f"{what:40} {seconds:8.2f} s")
        used = page.context.new_cdp_session(page).send("Runtime.getHeapUsage")
        browser.close()
    of_page = used["usedSize"] + used.get("backingStorageSize", 0)
    of_server = measure.peak_bytes(pid)
    print(f"{'memory of the page':40} {of_page / 1e6:8,.0f} MB")
    print(f"{'memory of the server':40} {of_server / 1e6:8,.0f} MB")
    first, *later = times.values()
    return [
        Goal(f"types in {first:.1f} s: at most 10 s", first <= 10),
        Goal(f"later answers in {max(later):.2f} s: at most 2 s", max(later) <= 2),
        Goal(f"memory of the page {of_page / 1e6:,.0f} MB: under 300 MB", of_page < 300e6),
        Goal(f"memory of the server {of_server / 1e9:.2f} GB: at most 2", of_server <= 2e9),
        Goal("the types have the numbers of the report", same),
        Goal(f"no messages of the browser, no other requests: {problems}", not problems),
    ]


def _rows(table: Any) -> set[tuple[str, str]]:
    """Type and number of objects of the rows that are elements."""
    rows: list[list[str]] = table.evaluate(
        """table => [...table.querySelectorAll("tbody tr[role=row]")].map(
            (row) => [row.cells[3].querySelector("b").textContent, row.cells[2].textContent])"""
    )
    return {(name, num) for name, num in rows}


def _walk(page: Any, table: Any, num: int) -> None:
    """Walks to the end of a table, which asks for further pages, until it has so many rows."""
    while int((table.get_attribute("aria-activedescendant") or "-0").rpartition("-")[2]) < num - 1:
        page.keyboard.press("End")


if __name__ == "__main__":
    sys.exit(main())
