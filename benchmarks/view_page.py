"""Measures the page of `perfuse view` on an XRay log of 20 million records: first picture, frames, memory.

Chromium without a GPU opens the page, zooms in 40 steps, pans over 60 and zooms out 40. The time of a frame is what
passed between two callbacks of the page; a browser at rest calls back every 16.7 ms.
"""

import shutil
import sys
import time
from typing import Any

import view
from measure import Goal
from view import percentile

WIDTH, HEIGHT = 1600, 900
STEPS = {"zoom in": (40, True, (0, -120)), "pan": (60, False, (60, 0)), "zoom out": (40, True, (0, 140))}
"""Number of turns of the wheel, whether Ctrl is held, and the turn."""
STEP_MS = 30
RECORD_FRAMES = """() => {
    window.frames_ms = [];
    let last = performance.now();
    const frame = (now) => {
        window.frames_ms.push(now - last);
        last = now;
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
}"""
TILE_TIMES = """() => performance.getEntriesByType("resource")
    .filter(({ name }) => name.includes("/api/tiles")).map(({ duration }) => duration)"""


def main() -> int:
    """Runs the benchmark and prints the results; returns 1 if a goal is not met."""
    return view.run(__doc__ or "", _measured)


def _measured(_pid: int, address: str, started: float) -> list[Goal]:
    from playwright.sync_api import sync_playwright

    before = time.perf_counter() - started
    with sync_playwright() as playwright:
        chromium = next(path for name in ("chromium", "chromium-browser") if (path := shutil.which(name)))
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        # The start of the browser is not part of it: a browser is usually open.
        opened = time.perf_counter()
        page.goto(f"{address}&tab=timeline")
        page.wait_for_selector("#view-timeline[data-pending='']", timeout=60_000)
        first = before + time.perf_counter() - opened
        print(f"{'first picture of all calls':32} {first:8.2f} s after the command")
        slowest = 0.0
        page.evaluate(RECORD_FRAMES)
        for what, (num, with_control, turn) in STEPS.items():
            frames = _frames(page, num, with_control, turn)
            most = percentile(frames, 0.95)
            slowest = max(slowest, most)
            summary = f"{percentile(frames, 0.5):8.1f} ms median, {most:.1f} ms p95, {max(frames):.1f} ms at most"
            print(f"{'frames, ' + what:32} {summary}")
        tiles = page.evaluate(TILE_TIMES)
        answered = percentile(tiles, 0.95)
        print(f"{'tiles, from request to answer':32} {percentile(tiles, 0.5):8.1f} ms median, {answered:.1f} ms p95")
        session = page.context.new_cdp_session(page)
        used = session.send("Runtime.getHeapUsage")
        memory = used["usedSize"] + used.get("backingStorageSize", 0)
        print(f"{'memory of the page':32} {memory / 1e6:8,.0f} MB")
        browser.close()
    return [
        Goal(f"frames of pan and zoom in {slowest:.0f} ms (p95): at most 50 ms", slowest <= 50),
        Goal(f"memory of the page {memory / 1e6:,.0f} MB: under 300 MB", memory < 300e6),
    ]


def _frames(page: Any, num: int, with_control: bool, turn: tuple[int, int]) -> list[float]:
    """Times of frames while the wheel is turned over the timeline, in milliseconds."""
    box = page.locator("#view-timeline .timeline-body > .canvas").bounding_box()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"])
    page.evaluate("window.frames_ms.length = 0")
    if with_control:
        page.keyboard.down("Control")
    for _ in range(num):
        page.mouse.wheel(*turn)
        page.wait_for_timeout(STEP_MS)
    if with_control:
        page.keyboard.up("Control")
    frames: list[float] = page.evaluate("window.frames_ms")
    return frames


if __name__ == "__main__":
    sys.exit(main())
