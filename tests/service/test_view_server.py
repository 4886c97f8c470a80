"""The server of `perfuse view` before, while and after the files are read, and what it remembers."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import perfuse
from perfuse.profile import Profile
from perfuse.viewer.answers.parameters import Parameters, RequestError
from perfuse.viewer.answers.sql import Runner
from perfuse.viewer.container import container
from perfuse.viewer.session import Session
from service.view_page import Page, read_container, served, served_session

EXAMPLE = Path(__file__).parents[2] / "examples" / "xray_server"
LOG = next(EXAMPLE.glob("xray-log.*.zst"))


def test_the_page_comes_before_the_files_are_read(tmp_path: Path) -> None:
    """While they are read, the state has the progress, and everything else is refused for now."""
    go_on = threading.Event()

    def opens(progress: Callable[[str, float], None]) -> Profile:
        progress("joining", 0.5)
        go_on.wait()
        return perfuse.fuse(LOG)

    session = Session(opens, [str(LOG)])
    with served_session(session) as page:
        session.start()
        assert page.request("/", with_token=False)[0] == 200
        state = page.get("state")
        while not state["stage"]:
            state = page.get(f"state?after={state['generation']}")
        assert (state["state"], state["stage"], state["share"]) == ("opening", "joining", 0.5)
        assert page.error("overview") == (503, "opening")
        assert page.error("tiles?k=1&first=0&last=0&tracks=0") == (503, "opening")
        go_on.set()
        generations = []
        while state["timeline"] != "ready":
            state = page.get(f"state?after={state['generation']}")
            generations.append(state["generation"])
        assert generations == sorted(set(generations))
        assert page.get("overview")["has"]["timeline"]
    assert tmp_path.is_dir()


def test_the_opening_can_be_cancelled() -> None:
    has_begun, go_on = threading.Event(), threading.Event()

    def opens(progress: Callable[[str, float], None]) -> Profile:
        has_begun.set()
        go_on.wait()
        progress("joining", 0.5)
        raise AssertionError("it was not cancelled")

    session = Session(opens, ["x"])
    with served_session(session) as page:
        session.start()
        has_begun.wait()
        assert page.request("/api/cancel", method="POST", body=b"")[0] == 200
        go_on.set()
        session.join()
        assert page.get("state")["state"] == "cancelled"
        assert page.error("overview") == (503, "cancelled")


def test_why_a_file_cannot_be_read_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "noise"
    path.write_bytes(b"no recording at all")
    with served(path) as page:
        state = page.get("state")
        assert state["state"] == "failed"
        assert "unknown magic" in state["error"]["message"]
        assert state["error"]["hint"].startswith("perfuse reads")
        assert page.error("overview") == (503, "failed")


def test_a_file_that_becomes_shorter_is_an_error_and_not_a_wrong_answer(tmp_path: Path) -> None:
    import gzip

    example = Path(__file__).parents[2] / "examples" / "postcards"
    path = tmp_path / "jit-32015.dump"
    path.write_bytes(gzip.decompress((example / "jit-32015.dump.gz").read_bytes()))
    with served(path) as page:
        assert page.get("code?limit=1")["num"] > 0
        with path.open("r+b") as file:
            file.truncate(5000)
        status, answer = page.sql("SELECT count(code_offset) FROM line_rows")
        assert status == 409
        assert "shorter" in answer["error"]["message"]


def test_a_timeline_that_needs_more_memory_is_an_error() -> None:
    session = Session(lambda progress: perfuse.fuse(LOG, progress=progress), [str(LOG)], memory_bytes=1000)
    with served_session(session) as page:
        session.start()
        session.join()
        state = page.get("state")
        assert (state["state"], state["timeline"]) == ("ready", "failed")
        assert "--between" in state["error"]["hint"]
        assert not page.get("overview")["has"]["timeline"]
        assert page.error("timeline")[0] == 404
        # What needs no timeline is there.
        assert page.get("calls?limit=1")["num"] > 0


@pytest.fixture(scope="module")
def page() -> "Page":
    with served(LOG) as page:
        yield page


def test_several_requests_for_one_answer_make_it_once() -> None:
    session = Session(lambda progress: perfuse.fuse(LOG, progress=progress), [str(LOG)])
    made = []
    start = threading.Barrier(8)
    found = []

    def ask() -> None:
        start.wait()
        found.append(session.cached("key", lambda: made.append(1) or object()))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(set(map(id, found))) == 1


def test_answers_that_need_much_memory_are_forgotten_first() -> None:
    session = Session(lambda progress: perfuse.fuse(LOG, progress=progress), [str(LOG)])
    made = []

    def make(key: tuple[str, int]) -> int:
        return session.cached(key, lambda: made.append(key) or key[1])

    session.cached("events", lambda: 0)
    for number in (1, 2, 1, 3, 1, 2):
        assert make(("heap", number)) == number
    assert [number for _, number in made] == [1, 2, 3, 2]
    for number in range(500):
        make(("x", number))
    assert session.cached("events", lambda: made.append("again")) == 0
    with pytest.raises(ValueError, match="once"):
        session.cached("fails", lambda: int("once"))
    assert session.cached("fails", lambda: 5) == 5


def test_neighbours_lead_through_a_row_and_back(page: Page) -> None:
    """From the first call of a function to the last, and back: as many as the table of calls has."""
    row = page.get("calls?sort=num_calls&limit=1")["rows"][0]
    (slowest,) = page.get(f"slowest?function={row['name']}&limit=1")["slices"]
    assert (slowest["name"], slowest["duration_ns"]) == (row["name"], row["max_ns"])
    threads = {track["thread"] for track in page.get("timeline")["tracks"] if track["thread"] is not None}
    found = sum(
        count
        for thread in threads
        for count in [
            one["count"]
            for one in page.get(f"find?q=/^{row['name']}$/&threads={thread}")["symbols"]
            if one["name"] == row["name"]
        ]
    )
    assert found == row["num_calls"]
    place, seen = slowest, 0
    for direction in ("previous", "next"):
        while place is not None and seen < 500:
            seen += 1
            last = place
            where = "&".join(f"{name}={place[name]}" for name in ("track", "depth", "index"))
            place = page.get(f"neighbour?{where}&direction={direction}&same=symbol")["slice"]
            if place is not None:
                assert place["name"] == row["name"]
                key = place["start_ns"], place["depth"]
                before = last["start_ns"], last["depth"]
                assert key < before if direction == "previous" else key > before
        place = last


def test_a_slice_has_its_callers_and_what_it_calls(page: Page) -> None:
    """The slices around and directly in a call are those that the table of slices has."""
    deepest = max(page.get("slowest?limit=1000")["slices"], key=lambda one: one["depth"])
    where = "&".join(f"{name}={deepest[name]}" for name in ("track", "depth", "index"))
    found = page.get(f"slice?{where}")
    assert [one["depth"] for one in found["parents"]] == list(range(deepest["depth"]))
    for one in found["parents"]:
        assert one["start_ns"] <= deepest["start_ns"]
        assert one["start_ns"] + one["duration_ns"] >= deepest["start_ns"] + deepest["duration_ns"]
    top = page.get("slowest?limit=1")["slices"][0]
    where = "&".join(f"{name}={top[name]}" for name in ("track", "depth", "index"))
    inner = page.get(f"slice?{where}")
    zero = int(page.get("overview")["zero_ns"])
    _, answer = page.sql(
        f"SELECT sum(duration_ns)::BIGINT FROM slices WHERE depth = {top['depth'] + 1} AND thread_id = {top['thread']}"
        f" AND start_ns >= {zero + top['start_ns']} AND start_ns < {zero + top['start_ns'] + top['duration_ns']}"
    )
    ((total,),) = answer["rows"]
    assert inner["slice"]["self_ns"] == top["duration_ns"] - (total or 0)


def test_a_query_that_runs_can_be_stopped(page: Page) -> None:
    found = []

    def ask() -> None:
        found.append(page.sql("SELECT count(*) FROM range(10000000000) a, range(10) b WHERE a.range % 7 = b.range"))

    thread = threading.Thread(target=ask)
    thread.start()
    stopped = False
    while not stopped:
        status, _, body = page.request("/api/sql/cancel", method="POST", body=b"{}")
        assert status == 200
        stopped = json.loads(body)["cancelled"]
    thread.join()
    ((status, answer),) = found
    assert (status, answer["error"]["code"]) == (409, "cancelled")
    assert page.sql("SELECT 1 AS one")[1]["rows"] == [[1]]


def test_a_query_that_is_cancelled_before_it_begins_is_stopped() -> None:
    """The database loses an interrupt that arrives then: here the first one."""
    runner = Runner()
    begun, interrupts, stopped = threading.Event(), [], threading.Event()

    def interrupt() -> None:
        interrupts.append(1)
        if len(interrupts) > 1:
            stopped.set()

    def work() -> str:
        runner.interrupt = interrupt
        begun.set()
        stopped.wait()
        return "stopped"

    def cancel() -> None:
        begun.wait()
        runner.was_cancelled = True
        interrupt()

    threading.Thread(target=cancel).start()
    assert runner.result(work, 3600) == (False, "stopped")


def test_numbers_that_javascript_cannot_have_are_text(page: Page) -> None:
    _, answer = page.sql(
        "SELECT 9007199254740993 AS n, -9007199254740993 AS m, 5 AS k, 255 AS start_address, true AS t"
    )
    assert answer["rows"] == [["9007199254740993", "-9007199254740993", 5, "0xff", True]]
    assert [column["name"] for column in answer["columns"]] == ["n", "m", "k", "start_address", "t"]
    _, answer = page.sql("SELECT * FROM range(20) r(n) ORDER BY n", limit=3)
    assert (answer["rows"], answer["truncated"]) == ([[0], [1], [2]], True)


def test_a_container_is_read_as_its_specification_states() -> None:
    import struct

    columns = {"a": ("u16", struct.pack("<3H", 1, 2, 65535)), "b": ("f64", struct.pack("<d", 0.5)), "c": ("i32", b"")}
    head, found = read_container(container({"kind": "x", "text": "\u202e\ud800<"}, columns))
    assert head == {"kind": "x", "text": "\u202e\ud800<"}
    assert found == {"a": [1, 2, 65535], "b": [0.5], "c": []}


@pytest.mark.parametrize("query", ["a=1&a=2", "a=%zz%", "=", "&".join(f"x{n}=1" for n in range(100))])
def test_queries_that_are_not_parameters(query: str) -> None:
    with pytest.raises(RequestError):
        Parameters(query).check_all_read()
