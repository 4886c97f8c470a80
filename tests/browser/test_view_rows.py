"""Names of the rows beside the timeline, of a recording with many threads."""

from pathlib import Path

import pytest
from viewer import Viewed

from perf_crafting import CALLCHAIN, CONTEXT_USER, IP, PERIOD, TID, TIME, Attribute, PerfFile, comm, sample

NUM_THREADS = 600


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """A process with many threads, each with two samples of two frames."""
    event = Attribute.of((1, 0), IP | TID | TIME | CALLCHAIN | PERIOD)
    records = [comm(event, 1000, 1000 + number, f"worker-{number}") for number in range(NUM_THREADS)]
    for at in range(2 * NUM_THREADS):
        number = at % NUM_THREADS
        chain = (CONTEXT_USER, 0x5000, 0x6000)
        records.append(sample(event, ip=0x5000, pid=1000, tid=1000 + number, time=10**9 + at * 10**6, chain=chain))
    return (PerfFile([event], records).write(tmp_path_factory.mktemp("many") / "perf.data"),)


def shown(view, recording: tuple[Path, ...]) -> Viewed:
    viewed = view(recording)
    viewed.show("timeline")
    viewed.page.wait_for_selector("#view-timeline[data-filled]")
    return viewed


def names(viewed: Viewed) -> list[str]:
    return viewed.page.locator(".headers .header b").all_inner_texts()


def test_only_rows_near_those_in_sight_have_elements(view, recording):
    viewed = shown(view, recording)
    first = names(viewed)
    assert first[0] == "worker-0 1000"
    assert len(first) < 100
    viewed.page.evaluate("document.querySelector('.scrollbar').scrollTop = 1e9")
    last = NUM_THREADS - 1
    viewed.page.wait_for_selector(f".header:has-text('worker-{last} {1000 + last}')")
    assert len(names(viewed)) < 100


def test_a_higher_window_has_names_to_its_end(view, recording):
    viewed = shown(view, recording)
    viewed.page.set_viewport_size({"width": 1280, "height": 4000})
    viewed.page.wait_for_function(
        """() => {
            const end = document.querySelector(".headers").getBoundingClientRect().bottom;
            return [...document.querySelectorAll(".header")].some((one) => one.getBoundingClientRect().bottom >= end);
        }"""
    )


def test_tab_leads_to_rows_out_of_sight(view, recording):
    viewed = shown(view, recording)
    page = viewed.page
    page.locator("button.header").first.focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_function(
        """() => {
            const host = document.querySelector(".headers");
            const [whole, focused] = [host, document.activeElement].map((one) => one.getBoundingClientRect());
            return focused.top >= whole.top && focused.bottom <= whole.bottom + 1 && host.scrollTop === 0;
        }"""
    )
    assert page.evaluate("document.querySelector('.scrollbar').scrollTop") > 0


def test_a_row_that_is_folded_has_the_focus(view, recording):
    page = shown(view, recording).page
    page.locator("button.header[aria-expanded=false]").first.focus()
    name = page.evaluate("document.activeElement.title")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.ariaExpanded === 'true'")
    assert page.evaluate("document.activeElement.title") == name
