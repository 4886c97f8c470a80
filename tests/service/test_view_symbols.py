"""The symbol server of `perfuse view --firefox`: what it answers, whom, and what it never gives away."""

import gzip
import json
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import perf_crafting as crafting
import perfuse
from perfuse.profile import Profile
from perfuse.viewer.firefox import ORIGIN
from perfuse.viewer.session import Session
from service.view_page import Page, served_session

POSTCARDS = Path(__file__).parents[2] / "examples" / "postcards"
NAMES = [str(POSTCARDS / name) for name in ("perf.data.gz", "jit-32015.dump.gz")]
TOKEN = "the-secret-of-the-symbol-server"
JIT = {"debugName": "[jit] node 32015", "debugId": "0" * 33}


def opened(source_dirs: tuple[str, ...] = ()) -> Session:
    return Session(lambda _progress: profile(), NAMES, source_dirs=source_dirs)


@cache
def profile() -> Profile:
    return perfuse.fuse(*NAMES)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    session = opened()
    with served_session(session, symbol_token=TOKEN) as page:
        session.start()
        session.join()
        yield page


def ask(page: Page, path: str, request: object, **headers: str) -> Any:
    """The answer to a question, whose status is 200."""
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    given = {"Content-Type": "text/plain", **headers}
    status, _, answer = page.request(f"/{TOKEN}{path}", method="POST", body=body, headers=given, with_token=False)
    assert status == 200, answer
    return json.loads(answer)


def head(page: Page, path: str, method: str = "POST", **headers: str) -> tuple[int, dict[str, str]]:
    """Status and headers of an answer."""
    body = b"{}" if method == "POST" else None
    status, found, _ = page.request(path, method=method, body=body, headers=headers, with_token=False)
    return status, dict(found)


def test_the_profile_is_that_of_convert(page: Page, tmp_path: Path) -> None:
    status, headers, body = page.request(f"/{TOKEN}/profile.json", with_token=False)
    assert (status, headers["content-encoding"]) == (200, "gzip")
    profile().export(tmp_path / "p.json", to="firefox")
    assert json.loads(gzip.decompress(body)) == json.loads((tmp_path / "p.json").read_bytes())


@pytest.mark.parametrize(
    "path",
    ["/symbolicate/v5", "/source/v1", "/asm/v1", "/profile.json", "/", "", "/api/overview", "/../symbolicate/v5"],
)
def test_without_the_secret_there_is_nothing(page: Page, path: str) -> None:
    for token in ("", "wrong", TOKEN[:-1], f"{TOKEN}x", page.token, TOKEN.upper()):
        status, headers = head(page, f"/{token}{path}")
        # The paths of the viewer itself need its own token.
        assert status in (401, 404, 405)
        assert "access-control-allow-origin" not in headers


def test_a_server_without_the_option_has_no_symbols() -> None:
    session = opened()
    with served_session(session) as page:
        assert page.server.symbol_url is None
        for token in (TOKEN, "None", ""):
            assert head(page, f"/{token}/symbolicate/v5")[0] == 404


def test_only_the_firefox_profiler_may_read_answers(page: Page) -> None:
    path = f"/{TOKEN}/symbolicate/v5"
    for name in ("Origin", "origin", "ORIGIN"):
        status, headers = head(page, path, **{name: ORIGIN, "Sec-Fetch-Site": "cross-site"})
        assert (status, headers["access-control-allow-origin"]) == (200, ORIGIN)
        assert "access-control-allow-credentials" not in headers
        for foreign in ("https://evil.test", f"{ORIGIN}.evil.test", "http://profiler.firefox.com", "null", "*"):
            status, headers = head(page, path, **{name: foreign})
            assert status == 403
            assert "access-control-allow-origin" not in headers
    status, headers = head(page, path)
    assert status == 200
    assert "access-control-allow-origin" not in headers
    assert head(page, path, Host="evil.test")[0] == 421


def test_browsers_may_ask_before(page: Page) -> None:
    status, headers = head(page, f"/{TOKEN}/asm/v1", "OPTIONS", Origin=ORIGIN)
    assert status == 204
    assert headers["access-control-allow-origin"] == ORIGIN
    assert set(headers["access-control-allow-headers"].split(", ")) == {"content-type", "user-agent"}
    assert head(page, f"/{TOKEN}/asm/v1", "OPTIONS", Origin="https://evil.test")[0] == 403
    # The viewer's own answers stay closed.
    status, headers = head(page, "/api/overview", "OPTIONS", Origin=ORIGIN)
    assert status == 403
    assert "access-control-allow-origin" not in headers
    assert page.request("/api/overview", headers={"origin": ORIGIN})[0] == 403


def test_methods_and_paths(page: Page) -> None:
    assert head(page, f"/{TOKEN}/profile.json", "POST")[0] == 405
    assert head(page, f"/{TOKEN}/asm/v1", "GET")[0] == 405
    assert head(page, f"/{TOKEN}/asm/v2")[0] == 404
    assert head(page, f"/{TOKEN}/api/overview")[0] == 404


MALFORMED: list[Any] = [
    b"",
    b"{",
    b"[]",
    b"\xff",
    b"[" * 100_000,
    {"jobs": 1},
    {"jobs": [1]},
    {"jobs": [{"memoryMap": [["a"]], "stacks": []}]},
    {"memoryMap": [["a", "b"]], "stacks": [[[0, "1"]]]},
    {"memoryMap": [["a", "b"]], "stacks": [[[0, True]]]},
    {"memoryMap": [["a", "b"]], "stacks": [[[0, 10**30]]]},
    {"memoryMap": [["a", "b"]], "stacks": [[[0, 1]] * 100_000] * 3},
    {**JIT, "startAddress": "-1", "size": "0x1", "moduleOffset": "0x", "file": "x"},
    {**JIT, "startAddress": 5, "size": "0x1", "moduleOffset": 5, "file": "x"},
    {**JIT, "startAddress": "0x7fffffff", "size": "0x1", "moduleOffset": "0x7fffffff", "file": "x"},
    {"debugName": "../../etc/passwd", "debugId": "0", "startAddress": "0x1", "size": "0x1"},
    {"debugName": "/etc/passwd", "debugId": "", "moduleOffset": "0x1", "file": "/etc/passwd"},
]


@pytest.mark.parametrize("path", ["/symbolicate/v5", "/source/v1", "/asm/v1"])
@pytest.mark.parametrize("number", range(len(MALFORMED)))
def test_malformed_questions_have_an_error_that_the_front_end_shows(page: Page, path: str, number: int) -> None:
    request = MALFORMED[number]
    if isinstance(request, dict) and len(json.dumps(request)) > 1 << 20:
        request = {"memoryMap": [["a", "b"]], "stacks": [[[0, 1]] * 100_000]}
        assert len(json.dumps(request)) < 1 << 20
    answer = ask(page, path, request)
    if "results" in answer:
        (result,) = answer["results"]
        assert result["found_modules"] == {"a/b": False}
        return
    assert list(answer) == ["error"]
    assert isinstance(answer["error"], str)


def test_modules_that_are_not_in_the_recording_are_not_found(page: Page) -> None:
    request = {
        "memoryMap": [["libc.so.6", "0" * 33], [JIT["debugName"], JIT["debugId"]]],
        "stacks": [[[0, 5], [9, 1], [-1, 1]]],
    }
    (result,) = ask(page, "/symbolicate/v5", request)["results"]
    assert result["found_modules"] == {f"libc.so.6/{'0' * 33}": False, f"{JIT['debugName']}/{JIT['debugId']}": True}
    assert [sorted(frame) for frame in result["stacks"][0]] == [["frame", "module", "module_offset"]] * 3


def test_libraries_of_one_name_without_build_ids_are_two(tmp_path: Path) -> None:
    """Each has its own functions: what its compiler says, and not those of the other."""
    event = crafting.Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
    records = [crafting.comm(event, 7, 7, "main")]
    for number, name in enumerate(("first", "second")):
        directory = tmp_path / name
        directory.mkdir()
        (directory / "x.c").write_text(f"int {name}(int n) {{ return n * {number + 3}; }}")
        command = ["gcc", "-shared", "-fPIC", "-O1", "-Wl,--build-id=none", "-o", "core.so", "x.c"]
        subprocess.run(command, cwd=directory, check=True)
        symbols = subprocess.run(["nm", "core.so"], cwd=directory, check=True, capture_output=True, text=True).stdout
        (offset,) = (int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(f" T {name}"))
        start = 0x400000 * (number + 1)
        records.append(crafting.mmap2(event, 7, str(directory / "core.so"), start, 0x4000))
        records.append(crafting.sample(event, ip=start + offset + 1, pid=7, tid=7, time=number + 1, period=1))
    path = crafting.PerfFile([event], records).write(tmp_path / "perf.data")
    session = Session(lambda _progress: perfuse.fuse(path), [str(path)])
    with served_session(session, symbol_token=TOKEN) as page:
        session.start()
        session.join()
        exported = json.loads(gzip.decompress(page.request(f"/{TOKEN}/profile.json", with_token=False)[2]))
        found = set()
        for library in exported["libs"]:
            keys = library["debugName"], library["breakpadId"]
            request = {"jobs": [{"memoryMap": [keys], "stacks": [[[0, at] for at in range(0x1000, 0x1200)]]}]}
            (result,) = ask(page, "/symbolicate/v5", request)["results"]
            names = {frame.get("function") for frame in result["stacks"][0]}
            found.add((Path(library["path"]).parent.name, *sorted(names & {"first", "second"})))
    assert found == {("first", "first"), ("second", "second")}


def shade(page: Page) -> dict[str, Any]:
    """Offset and file of a function in the JIT library, as symbolication states them."""
    stack = [[0, offset] for offset in range(0, 250_000, 500)]
    request = {"jobs": [{"memoryMap": [[JIT["debugName"], JIT["debugId"]]], "stacks": [stack]}]}
    (result,) = ask(page, "/symbolicate/v5", request)["results"]
    return next(frame for frame in result["stacks"][0] if frame.get("function") == "shade" and "file" in frame)


def test_paths_that_only_the_recording_names_are_not_opened(tmp_path: Path) -> None:
    """A recording may name a file of this user as the source of its code; its text leaves the machine's programs."""
    for source_dirs in ((), (str(tmp_path),), (str(POSTCARDS),)):
        session = opened(source_dirs)
        with served_session(session, symbol_token=TOKEN) as page:
            session.start()
            session.join()
            found = shade(page)
            request = {**JIT, "moduleOffset": found["module_offset"], "file": found["file"]}
            answer = ask(page, "/source/v1", request)
            if source_dirs == (str(POSTCARDS),):
                assert answer["source"] == (POSTCARDS / "postcards.js").read_text()
                assert answer["file"] == found["file"]
            else:
                assert list(answer) == ["error"]
                assert "--source-dir" in answer["error"]
            for other in ("/etc/passwd", "../postcards.js", str(POSTCARDS / "postcards.js")):
                assert (
                    "is not a source file of the code" in ask(page, "/source/v1", {**request, "file": other})["error"]
                )


def test_links_out_of_a_source_directory_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.js"
    secret.write_text("a secret")
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "postcards.js").symlink_to(secret)
    session = opened((str(folder),))
    with served_session(session, symbol_token=TOKEN) as page:
        session.start()
        session.join()
        found = shade(page)
        answer = ask(page, "/source/v1", {**JIT, "moduleOffset": found["module_offset"], "file": found["file"]})
        assert list(answer) == ["error"]


def test_instructions_are_those_of_the_asked_bytes(page: Page) -> None:
    found = shade(page)
    start = int(found["module_offset"], 16) - int(found["function_offset"], 16)
    size = int(found["function_size"], 16)
    whole = ask(page, "/asm/v1", {**JIT, "startAddress": hex(start), "size": hex(size)})
    assert (whole["startAddress"], whole["size"], whole["arch"]) == (hex(start), hex(size), "x86_64")
    offsets = [row[0] for row in whole["instructions"]]
    assert offsets[0] == 0
    assert size - 16 < offsets[-1] < size
    part = ask(
        page, "/asm/v1", {**JIT, "startAddress": hex(start + offsets[10]), "size": hex(offsets[20] - offsets[10])}
    )
    assert part["instructions"] == [[at - offsets[10], *texts] for at, *texts in whole["instructions"][10:20]]
    rest = {**JIT, "startAddress": hex(start + offsets[10]), "size": "0x1", "continueUntilFunctionEnd": True}
    assert len(ask(page, "/asm/v1", rest)["instructions"]) == len(offsets) - 10
