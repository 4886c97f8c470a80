"""Commands of answers of `perfuse view` print the numbers of the answer, also of an event that is not the default."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import perf_crafting as crafting
from service.view_page import Page, served
from truth.command import command_line

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "examples" / "mono_shop" / "output.mlpd.zst"
SERVER = ROOT / "examples" / "xray_server" / "xray-log.server.KJtK6H.zst"
A, B = 0x1000, 0x2000


@pytest.fixture(scope="module")
def two_events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three samples of an event at A and two of another at B, most of these in thread 8."""
    fields = crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD | crafting.IDENTIFIER
    events = [crafting.Attribute.of((1, 0), fields, ids=[1]), crafting.Attribute.of((1, 3), fields, ids=[2])]
    taken = [(0, A, 7), (0, A, 7), (1, B, 8), (1, B, 8), (0, A, 8)]
    records = [
        crafting.sample(events[event], ip=address, pid=7, tid=tid, time=1000 * at, period=1)
        for at, (event, address, tid) in enumerate(taken, 1)
    ]
    described = crafting.event_desc(zip(events, ("cpu-clock", "context-switches"), strict=True))
    found = crafting.PerfFile(events, records, {crafting.EVENT_DESC: described})
    return found.write(tmp_path_factory.mktemp("events") / "perf.data")


def printed(command: str, *more: str) -> Any:
    """The document of a command of `perfuse`."""
    verb, *words = shlex.split(command)
    assert verb == "perfuse"
    return json.loads(command_line(*words, *more, "--json"))


def self_weights(page: Page, query: str) -> tuple[dict[str, int], Any]:
    answer = page.get(f"functions?limit=5000&{query}")
    return {row["name"]: row["self"] for row in answer["rows"] if row["self"]}, answer["command"]


@pytest.mark.parametrize("event", ["sample", "allocated-bytes", "allocations"])
def test_functions_of_a_runtime_log(event: str) -> None:
    with served(SHOP) as page:
        weights, command = self_weights(page, f"event={event}&from=1000000")
    document = printed(command, "--limit", "0")
    assert {row["name"]: row["self_weight"] for row in document["top_self"] if row["self_weight"]} == weights
    assert weights


def test_functions_of_calls() -> None:
    with served(SERVER) as page:
        counts, of_calls = self_weights(page, "event=calls")
        times, of_times = self_weights(page, "sort=self")
    document = printed(of_calls, "--limit", "0")
    assert {row["name"]: row["self_weight"] for row in document["top_self"]} == counts
    document = printed(of_times, "--limit", "0")
    assert {row["name"]: row["self_ns"] for row in document["functions"]} == times


def test_a_part_with_more_samples_of_another_event(two_events: Path, tmp_path: Path) -> None:
    with served(two_events) as page:
        thread = next(row["thread"] for row in page.get("overview")["threads"] if row["tid"] == 8)
        answer = page.get(f"functions?threads={thread}")
        assert (answer["event"], answer["samples"]) == ("cpu-clock", 1)
        (event,) = printed(answer["command"])["events"][:1]
        assert (event["name"], event["samples"]) == ("cpu-clock", 1)
        status, _, body = page.request(f"/api/tree?event=context-switches&threads={thread}")
        assert status == 200
    head = json.loads(body[4 : 4 + int.from_bytes(body[:4], "little")])
    drawn = tmp_path / "flame.svg"
    command_line(*shlex.split(head["command"].replace("flame.html", str(drawn)))[1:])
    assert "2 samples" in drawn.read_text(encoding="utf-8")


def test_a_thread_whose_number_another_process_has(tmp_path: Path) -> None:
    event = crafting.Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
    taken = [(7, A), (9, B), (9, B)]
    records = [
        crafting.sample(event, ip=address, pid=pid, tid=5, time=1000 * at, period=1)
        for at, (pid, address) in enumerate(taken, 1)
    ]
    with served(crafting.PerfFile([event], records).write(tmp_path / "perf.data")) as page:
        threads = [row["thread"] for row in page.get("overview")["threads"] if row["tid"] == 5]
        answers = [page.get(f"functions?threads={thread}") for thread in threads]
    assert sorted(answer["samples"] for answer in answers) == [1, 2]
    for answer in answers:
        assert printed(answer["command"])["events"][0]["samples"] == answer["samples"]
