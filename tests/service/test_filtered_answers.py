"""Filters of stacks in `perfuse view`: what the command line selects with the same options."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import perfuse
from perfuse.viewer.session import Session
from service.view_page import Page, served_session

POSTCARDS = Path(__file__).parents[2] / "examples" / "postcards"
FILES = [str(POSTCARDS / name) for name in ("perf.data.gz", "jit-32015.dump.gz")]
FILTERS: list[list[tuple[str, str | None]]] = [
    [("only", "render")],
    [("root", "render"), ("hide", "shade"), ("jit-only", None)],
    [("tier", "turbofan"), ("collapse-recursion", None)],
    [("drop", "dither"), ("leaf", "trace")],
]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    session = Session(lambda _progress: perfuse.fuse(*FILES), FILES)
    with served_session(session) as page:
        session.start()
        session.join()
        yield page


def parameter(filters: object) -> str:
    return f"filters={quote(json.dumps(filters))}"


def printed(command: str) -> Any:
    """What a command prints as JSON."""
    words = [sys.executable, "-m", "perfuse", *shlex.split(command)[1:]]
    if "--json" not in words:
        words.append("--json")
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("filters", FILTERS, ids=lambda filters: "-".join(name for name, _ in filters))
def test_a_filtered_selection_is_that_of_the_command(page: Page, filters: list[tuple[str, str | None]]) -> None:
    for query in (parameter(filters), f"from=300000000&to=900000000&{parameter(filters)}"):
        answer = page.get(f"report?{query}")
        assert all(f"--{name}" in answer["command"] for name, _ in filters)
        if query.startswith("from"):
            assert answer["report"] == printed(answer["command"])
        event = answer["report"]["events"][0]
        functions = page.get(f"functions?limit=5000&{query}")
        assert functions["samples"] == event["samples"]
        assert sum(row["self"] for row in functions["rows"]) == event["weight"]
        heat, columns = page.binary(f"heat?kind=seconds&{query}")
        assert heat["total"] == sum(columns["cells"]) == event["weight"]
        for kind in ("threads", "tiers"):
            assert page.binary(f"heat?kind={kind}&{query}")[0]["total"] == event["weight"]


def test_filters_that_match_nothing_have_an_explanation(page: Page) -> None:
    assert page.get(f"filters?{parameter(FILTERS[1])}")["valid"]
    wrong = page.get(f"filters?{parameter([['only', 'rendr']])}")
    assert not wrong["valid"]
    assert "rendr" in wrong["message"]
    assert "render" in wrong["hint"]
    assert page.error(f"functions?{parameter([['only', 'rendr']])}") == (400, "bad_request")
    # Nothing of it in a part of the time: an empty answer.
    assert page.get(f"functions?from=0&to=1000&{parameter([['only', 'render']])}")["empty"]


@pytest.mark.parametrize(
    "text", ["1", "{}", "[1]", '[["only"]]', '[["only",1]]', '[["nothing","x"]]', '[["tier",null]]', "[" * 9000, "[[]"]
)
def test_malformed_filters_are_refused(page: Page, text: str) -> None:
    status, code = page.error(f"functions?filters={quote(text[:1500])}")
    assert status == 400
    assert code in ("bad_parameter", "bad_request")


@pytest.mark.parametrize("question", ["code", "slowest", "annotate?function=shade", "heat?kind=latency"])
def test_answers_without_stacks_refuse_filters(page: Page, question: str) -> None:
    joint = "&" if "?" in question else "?"
    status, _ = page.error(f"{question}{joint}{parameter(FILTERS[0])}")
    assert status in (400, 404)


def test_the_commands_have_the_selection_of_the_command_that_opened_the_page() -> None:
    def opened(_progress: object) -> Any:
        return perfuse.fuse(*FILES).between(0.25, 1.0).thread(32015)

    session = Session(opened, FILES)
    with served_session(session) as page:
        session.start()
        session.join()
        for query in ("", "from=500000000&to=2000000000"):
            answer = page.get(f"report?{query}")
            assert answer["report"] == printed(answer["command"])
            assert "--thread 32015" in answer["command"]
