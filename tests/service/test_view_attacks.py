"""Requests that are not of the page: each is refused, and the server continues to answer the page."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfuse import jitdump
from perfuse.viewer import policy, server
from profiles import HOSTILE as HOSTILE_NAMES
from service.view_page import Page, served

HOSTILE = "<script>alert(1)</script>\u202e&quot\"'`${x}"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = tmp_path_factory.mktemp("view") / "stacks.collapsed"
    path.write_text(f"main;work 3\nmain;{HOSTILE} 4\n", encoding="utf-8")
    with served(path) as page:
        yield page


def answers(page: Page) -> None:
    """The page still has its answers."""
    assert page.get("overview")["title"]


def test_the_page_and_its_modules_need_no_token_and_have_no_data(page: Page) -> None:
    for path in ("/", "/m/flame/format.js"):
        status, headers, body = page.request(path, with_token=False)
        assert status == 200
        assert b"stacks.collapsed" not in body
        assert page.token.encode() not in body
        for name, value in policy.HEADERS.items():
            assert headers[name.lower()] == value
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]


@pytest.mark.parametrize("token", [None, "", "x", "0" * 43, "\xff\xfe"])
def test_a_wrong_token_is_refused(page: Page, token: str | None) -> None:
    headers = {} if token is None else {policy.TOKEN_HEADER: token}
    for question in ("overview", "state", "sql", "no-such-question"):
        assert page.error(question, with_token=False, headers=headers) == (401, "wrong_token")
    answers(page)


def test_a_token_in_the_address_is_not_enough(page: Page) -> None:
    assert page.error(f"overview?t={page.token}", with_token=False) == (401, "wrong_token")


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        "evil.test:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "0.0.0.0:{port}",
        "[::]:{port}",
        "",
        "127.0.0.1:{port}.evil.test",
    ],
)
@pytest.mark.parametrize("path", ["/", "/m/flame/format.js", "/api/overview"])
def test_a_foreign_host_is_refused_before_anything_else(page: Page, host: str, path: str) -> None:
    """A name that its owner points to this machine (DNS rebinding), with the token or without."""
    status, _, body = page.request(path, headers={"Host": host.format(port=page.port)})
    assert (status, body) == (421, b"")
    answers(page)


def test_no_host_and_two_hosts_are_refused(page: Page) -> None:
    for lines in ("", f"Host: 127.0.0.1:{page.port}\r\nHost: evil.test\r\n"):
        assert page.raw(f"GET / HTTP/1.1\r\n{lines}\r\n".encode()).startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("origin", ["http://evil.test", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
def test_a_foreign_origin_is_refused(page: Page, origin: str) -> None:
    assert page.error("overview", headers={"Origin": origin.format(port=page.port)}) == (403, "foreign_origin")


@pytest.mark.parametrize(
    ("site", "status"), [("same-origin", 200), ("same-site", 403), ("cross-site", 403), ("none", 403)]
)
def test_a_request_of_another_sites_page_is_refused(page: Page, site: str, status: int) -> None:
    assert page.request("/api/overview", headers={"Sec-Fetch-Site": site})[0] == status


def test_another_sites_preflight_gets_no_permission(page: Page) -> None:
    headers = {"Origin": "http://evil.test", "Access-Control-Request-Headers": policy.TOKEN_HEADER}
    status, found, _ = page.request("/api/overview", method="OPTIONS", headers=headers, with_token=False)
    assert status == 403
    assert not [name for name in found if name.startswith("access-control")]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "HEAD", "CONNECT", "BREW", "G" * 300])
def test_other_methods_are_refused(page: Page, method: str) -> None:
    assert page.request("/api/overview", method=method)[0] == 405
    answers(page)


@pytest.mark.parametrize(
    "path",
    [
        "//etc/passwd",
        "/../../etc/passwd",
        "/m/../server.py",
        "/m/flame/../../server.py",
        "/m/flame/%2e%2e/%2e%2e/server.py",
        "/m/flame/..%2f..%2fserver.py",
        "/m/flame/format.js%00",
        "/m\\flame\\format.js",
        "/m/flame/",
        "/m/",
        "/m/answers/sql.py",
        "/m/flame/format.js/",
        "/etc/passwd",
        "/api",
        "http://evil.test/",
    ],
)
def test_no_path_leads_to_a_file_that_is_not_of_the_page(page: Page, path: str) -> None:
    status, _, body = page.request(path)
    assert status in (404, 421)
    assert b"root:" not in body
    assert b"import" not in body


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("POST /api/sql HTTP/1.1\r\n{known}\r\n", 411),
        ("POST /api/sql HTTP/1.1\r\n{known}Transfer-Encoding: chunked\r\n\r\n", 411),
        ("POST /api/sql HTTP/1.1\r\n{known}Content-Length: 99999999999999999999\r\n\r\n", 413),
        ("POST /api/sql HTTP/1.1\r\n{known}Content-Length: 1048577\r\n\r\n", 413),
        ("POST /api/sql HTTP/1.1\r\n{known}Content-Length: -1\r\n\r\n", 400),
        ("POST /api/sql HTTP/1.1\r\n{known}Content-Length: 1_0\r\n\r\n", 400),
        ("GET /" + "a" * 70_000 + " HTTP/1.1\r\n{known}\r\n", 414),
        ("GET /api/find?q=" + "a" * 9_000 + " HTTP/1.1\r\n{known}\r\n", 414),
        ("GET / HTTP/1.1\r\n{known}" + "".join(f"X-{n}: 1\r\n" for n in range(150)) + "\r\n", 431),
        ("GET / HTTP/1.1\r\n{known}X: " + "a" * 70_000 + "\r\n\r\n", 431),
        ("GET / HTTP/9.9\r\n{known}\r\n", 505),
        ("\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
    ],
    ids=range(12),
)
def test_oversized_and_malformed_requests_are_refused(page: Page, head: str, status: int) -> None:
    known = f"Host: 127.0.0.1:{page.port}\r\n{policy.TOKEN_HEADER}: {page.token}\r\n"
    answer = page.raw(head.replace("{known}", known).encode("latin-1"))
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer[:200]
    assert b"Content-Security-Policy" in answer
    answers(page)


def test_a_body_that_ends_early_is_not_answered(page: Page) -> None:
    known = f"Host: 127.0.0.1:{page.port}\r\n{policy.TOKEN_HEADER}: {page.token}\r\nContent-Length: 100\r\n\r\n"
    assert page.raw(f"POST /api/sql HTTP/1.1\r\n{known}{{}}".encode()) == b""
    answers(page)


def test_the_body_of_a_refused_request_is_not_a_request(page: Page) -> None:
    """Else a page of another site could send a whole request as the body of one that needs no permission."""
    inner = f"GET /api/overview HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n"
    head = f"POST /api/sql HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nContent-Length: {len(inner)}\r\n\r\n"
    answer = page.raw((head + inner).encode())
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[",
        b"[]",
        b'"x"',
        b"{}",
        b'{"query": 5}',
        b'{"query": "SELECT 1", "limit": 1e99}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_bodies_that_are_not_questions_are_refused(page: Page, body: bytes) -> None:
    assert page.error("sql", method="POST", body=body)[0] == 400
    answers(page)


@pytest.mark.parametrize(
    "question",
    [
        "tiles?k=99&first=0&last=0&tracks=0",
        "tiles?k=1&first=0&last=100000&tracks=0",
        "tiles?k=-1&first=0&last=0&tracks=0",
        "overview?x=1",
        "functions?limit=-1",
        "functions?limit=1&limit=2",
        "functions?limit=1e400",
        "functions?threads=1;DROP%20TABLE",
        "functions?threads=99999",
        "functions?sort=__class__",
        "functions?event=nothing",
        "functions?q=/(/",
        "heat?kind=../../x",
        "callers?function=%00",
        "%2e%2e/sql",
    ],
)
def test_parameters_that_do_not_exist_are_refused(page: Page, question: str) -> None:
    status, _, body = page.request(f"/api/{question}")
    assert status in (400, 404), body
    assert set(json.loads(body)["error"]) == {"code", "message", "hint"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/written-by-sql'",
        "ATTACH '/tmp/written-by-sql'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
    ],
)
def test_sql_reaches_no_file(page: Page, query: str) -> None:
    status, answer = page.sql(query)
    assert status == 400, answer
    assert not Path("/tmp/written-by-sql").exists()
    assert page.sql("SELECT count(*) FROM samples")[1]["rows"] == [[2]]


def test_hostile_names_arrive_as_text(page: Page) -> None:
    status, headers, body = page.request("/api/functions?limit=0".replace("0", "10"))
    assert (status, headers["content-type"]) == (200, "application/json")
    assert headers["x-content-type-options"] == "nosniff"
    names = {row["name"] for row in json.loads(body)["rows"]}
    assert any("<script>" in name for name in names)


def test_hostile_names_of_code_in_every_answer(tmp_path: Path) -> None:
    """Script, bidirectional and control characters, and texts that look like parts of the protocol."""
    path = tmp_path / "jit-7.dump"
    names = [name.replace("\0", "\1") for name in HOSTILE_NAMES if name]
    with jitdump.Writer(path, pid=7) as writer:
        for number, name in enumerate(names):
            writer.code_load(name=name, address=0x1000 * (number + 1), code=b"\xc3")
    with served(path) as page:
        questions = ("overview", "code?limit=500", "code/space", "files", "report", "tables")
        for question in questions:
            status, headers, body = page.request(f"/api/{question}")
            assert (status, headers["content-type"]) == (200, "application/json"), question
            assert not [byte for byte in body if byte < 0x20], question
            json.loads(body)
        assert len(page.get("code?limit=500")["rows"]) == len(set(names))
        status, answer = page.sql("SELECT name FROM functions")
        assert (status, len(answer["rows"])) == (200, len(set(names)))


HOLD_CONNECTIONS = """
import socket, sys
held = []
for number in range(1000):
    held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=600))
    if number % 2:
        try:
            held[-1].sendall(b"GET /api/overview HTTP/1.1\\r\\nHost: ")
        except OSError:
            pass  # the server has closed it
print("held", flush=True)
sys.stdin.read()
"""


def test_a_thousand_connections_do_not_keep_the_page_out(page: Page) -> None:
    """Connections that send nothing, or half of a request: the server closes the oldest to answer the next."""
    # In a process of its own, which may have 1,024 open files.
    command = [sys.executable, "-c", HOLD_CONNECTIONS, str(page.port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as clients:
        assert clients.stdout is not None
        assert clients.stdout.readline() == "held\n"
        answers(page)
        assert len(page.server._connections) <= server.MOST_CONNECTIONS
        clients.communicate("")
    assert clients.returncode == 0
    answers(page)


def test_a_thousand_requests_at_the_same_time_are_answered_or_closed(page: Page) -> None:
    answered: list[int] = []
    start = threading.Barrier(50)

    def ask() -> None:
        start.wait()
        for _ in range(20):
            try:
                answered.append(page.request("/api/overview")[0])
            except (OSError, EOFError):
                answered.append(0)
            except Exception as error:
                answered.append(-1 if "RemoteDisconnected" not in type(error).__name__ else 0)

    threads = [threading.Thread(target=ask) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answered) == 1000
    # How many is a matter of load: a server that is slow closes what waits.
    assert 200 in answered
    assert set(answered) <= {0, 200}
    answers(page)


def test_a_slow_request_is_closed_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that sends a byte now and then does not keep its connection beyond the limit of a whole request."""
    usual_s = server.REQUEST_S
    monkeypatch.setattr(server, "REQUEST_S", 0.2)
    monkeypatch.setattr(server, "CHECK_S", 0.02)
    monkeypatch.setattr(server.RequestHandler, "timeout", 60)
    path = tmp_path / "stacks.collapsed"
    path.write_text("main;work 1\n", encoding="utf-8")
    with served(path) as page, socket.create_connection(("127.0.0.1", page.port), timeout=600) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        # Without a limit this would wait for the timeout of the socket.
        assert connection.recv(1) == b""
        monkeypatch.setattr(server, "REQUEST_S", usual_s)
        answers(page)
