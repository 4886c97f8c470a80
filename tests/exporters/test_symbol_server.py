"""Symbols, source and machine code for the Firefox Profiler, asked for by its own front end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import perfuse
from perfuse.viewer.session import Session
from service.view_page import Page, served_session

POSTCARDS = Path(__file__).parents[2] / "examples" / "postcards"
FILES = (POSTCARDS / "perf.data.gz", POSTCARDS / "jit-32015.dump.gz")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A server of the example that answers the Firefox Profiler too."""
    names = [str(path) for path in FILES]
    session = Session(lambda _progress: perfuse.fuse(*names), names, source_dirs=[str(POSTCARDS)])
    with served_session(session, symbol_token="a-secret-of-this-test") as page:
        session.start()
        session.join()
        yield page


@pytest.mark.truth(
    recording="perf_node",
    path="view",
    source="profiler-cli: its samples of each line and instruction; the source file",
)
def test_the_front_end_prints_source_and_machine_code_of_javascript(page: Page, profiler: Any) -> None:
    url = page.server.symbol_url
    profiler.load(f"{url}/profile.json")
    hottest = functions_of(profiler, "shade")[0]
    shown = annotated(profiler, hottest, "all", url)
    lines = (POSTCARDS / "postcards.js").read_text().split("\n")
    texts = {one["lineNumber"]: one["sourceText"] for one in shown["srcAnnotation"]["lines"]}
    assert texts == {number: text for number, text in enumerate(lines, 1) if number in texts}
    assert len(texts) >= len(lines) - 1
    listings = shown["asmAnnotations"]
    assert sum(one["selfSamples"] for each in listings for one in each["instructions"]) == shown["totalSelfSamples"]
    annotation = perfuse.fuse(*FILES).annotate("shade", tier="turbofan", intel=True)
    found = [[(one["selfSamples"], one["decodedString"]) for one in each["instructions"]] for each in listings]
    for compilation in annotation.compilations:
        expected = annotation.listing(compilation).instructions
        assert [(one.self_samples, one.text) for one in expected] in found


def test_the_front_end_prints_machine_code_of_native_functions(page: Page, profiler: Any) -> None:
    """Where the file of the code is on this machine; else it states why there is none."""
    url = page.server.symbol_url
    profiler.load(f"{url}/profile.json")
    shown = annotated(profiler, functions_of(profiler, "Builtins_LoadIC")[0], "asm", url)
    (listing,) = shown["asmAnnotations"]
    if listing["fetchError"] is None:
        assert sum(one["selfSamples"] for one in listing["instructions"]) == shown["totalSelfSamples"]
    else:
        assert "no machine code at 0x" in listing["fetchError"]


def functions_of(profiler: Any, name: str) -> list[dict[str, Any]]:
    """Functions whose names contain a text, those with the most samples first."""
    found = profiler.ask("thread", "functions", "--search", name, "--limit", "0")["functions"]
    return sorted(found, key=lambda one: -one["selfSamples"])


def annotated(profiler: Any, function: dict[str, Any], mode: str, server: str | None) -> Any:
    """What the front end prints of a function with a symbol server."""
    options = ("--mode", mode, "--context", "file", "--symbol-server", str(server))
    return profiler.ask("function", "annotate", function["functionHandle"], *options)
