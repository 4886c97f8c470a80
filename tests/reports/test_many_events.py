"""A recording of many events, such as all system calls: what is stated about them stays short."""

import json
from pathlib import Path

import pytest

import perf_crafting as crafting
from truth.command import output, run

NUM = 300
A = 0x1000


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample of each of many events, and a second one of the first."""
    fields = crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD | crafting.IDENTIFIER
    events = [crafting.Attribute.of((2, number), fields, ids=[number + 1]) for number in range(NUM)]
    records = [
        crafting.sample(event, ip=A, pid=7, tid=7, time=1000 * at) for at, event in enumerate([*events, events[0]], 1)
    ]
    described = crafting.event_desc((event, f"calls:{number:03}") for number, event in enumerate(events))
    found = crafting.PerfFile(events, records, {crafting.EVENT_DESC: described})
    return found.write(tmp_path_factory.mktemp("events") / "perf.data")


def test_the_report_lists_the_first_of_them(recording: Path) -> None:
    text = output("report", recording)
    assert text.count("--event calls:") == 19
    assert "… 280 more events (--json shows all)" in text
    assert len(json.loads(output("report", recording, "--json"))["events"]) == NUM


def test_a_note_about_what_is_not_written_names_the_first_of_them(recording: Path, tmp_path: Path) -> None:
    done = run("convert", recording, "-o", tmp_path / "stacks.collapsed")
    assert "only event calls:000 is written, not calls:001, " in done.stderr
    assert "calls:010 and 289 more\n" in done.stderr
    assert "calls:011" not in done.stderr
