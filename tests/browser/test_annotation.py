"""The page of annotated machine code, in a real browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import perfuse
from perfuse.analysis.annotation import Annotation
from perfuse.analysis.source_files import SourceFiles
from perfuse.exporters.annotation_page import write_page

POSTCARDS = Path(__file__).parents[2] / "examples" / "postcards"


@pytest.fixture(scope="module")
def annotation() -> Annotation:
    profile = perfuse.fuse(POSTCARDS / "perf.data.gz", POSTCARDS / "jit-32015.dump.gz")
    return profile.annotate("shade")


@pytest.fixture
def shown(open_page: Callable[..., Any], annotation: Annotation, tmp_path: Path) -> Callable[[str], Any]:
    """Opens the page in a theme."""

    def show(theme: str) -> Any:
        path = tmp_path / "shade.html"
        sources = SourceFiles(annotation._profile, [POSTCARDS])
        write_page(annotation, [annotation.listing(one) for one in annotation.compilations], sources, path)
        ready = "#first-pane .one[aria-current]"
        return open_page(path.as_uri(), ready=ready, size=(1200, 800), color_scheme=theme)

    return show


def current(page: Any) -> str:
    """The offset of the selected instruction."""
    return page.locator("#first-pane .one[aria-current] .offset").inner_text()


def test_it_opens_at_the_hottest_instruction(shown: Callable[[str], Any], annotation: Annotation) -> None:
    page = shown("light")
    instructions = annotation.listing(annotation.hottest).instructions
    ranked = sorted(instructions, key=lambda one: (-one.self_weight, one.offset))
    assert current(page) == f"{ranked[0].offset:x}"
    box = page.locator("#first-pane .one[aria-current]").bounding_box()
    assert 0 < box["y"] < 800
    page.keyboard.press("n")
    assert current(page) == f"{ranked[1].offset:x}"
    page.keyboard.press("N")
    page.keyboard.press("j")
    after = instructions[instructions.index(ranked[0]) + 1]
    assert current(page) == f"{after.offset:x}"
    page.keyboard.press("h")
    assert current(page) == f"{ranked[0].offset:x}"


def test_compilations_are_shown_one_by_one_and_side_by_side(
    shown: Callable[[str], Any], annotation: Annotation
) -> None:
    page = shown("light")
    assert page.locator("#compilations tbody tr").count() == len(annotation.compilations)
    page.keyboard.press("[")
    selected = page.locator("#compilations tr[aria-selected=true]").get_attribute("data-number")
    assert int(selected) == annotation.hottest.number - 1
    page.select_option("#second", "1")
    assert page.locator("#second-pane .one").count() == len(annotation.listing(annotation.compilation(1)).instructions)


def test_jumps_are_followed_and_sources_hidden(shown: Callable[[str], Any], annotation: Annotation) -> None:
    page = shown("light")
    listing = annotation.listing(annotation.hottest)
    size = listing.compilation.size_bytes
    index, jump = next(
        (n, one)
        for n, one in enumerate(listing.instructions)
        if one.flow == "branch" and 0 <= one.target_address - listing.compilation.address < size
    )
    page.click(f"#first-pane .one[data-index='{index}']")
    page.keyboard.press("Enter")
    assert current(page) == f"{jump.target_address - listing.compilation.address:x}"
    page.keyboard.press("Backspace")
    assert current(page) == f"{jump.offset:x}"
    assert page.locator("#first-pane .line").count() > 0
    assert "shade(" in page.locator("#first-pane").inner_text()
    page.keyboard.press("s")
    assert page.locator("#first-pane .line").count() == 0


def test_it_is_dark_where_the_system_is(shown: Callable[[str], Any]) -> None:
    page = shown("dark")
    lightness = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert lightness.startswith("oklch(0.19")
