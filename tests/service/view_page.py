"""A server of `perfuse view` in this process, and plain requests to it."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import perfuse
from perfuse.viewer.policy import TOKEN_HEADER, new_token
from perfuse.viewer.routes import Routes
from perfuse.viewer.server import ViewServer
from perfuse.viewer.session import Session


class Page:
    """A client with the token, as the page is one."""

    def __init__(self, server: ViewServer) -> None:
        self.server = server
        self.port = server.port
        self.token = server.token

    def request(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        with_token: bool = True,
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            token = {TOKEN_HEADER: self.token} if with_token else {}
            connection.request(method, path, body=body, headers={**token, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def get(self, question: str) -> Any:
        """The answer to a question in JSON."""
        status, _, body = self.request(f"/api/{question}")
        assert status == 200, (question, body[:500])
        return json.loads(body)

    def binary(self, question: str) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        """Head and columns of an answer in a container."""
        status, _, body = self.request(f"/api/{question}")
        assert status == 200, (question, body[:500])
        return read_container(body)

    def error(self, question: str, **options: Any) -> tuple[int, str]:
        """Status and code of an error."""
        status, _, body = self.request(f"/api/{question}", **options)
        return status, json.loads(body)["error"]["code"]

    def sql(self, query: str, limit: int = 1000) -> Any:
        """The answer to a query."""
        body = json.dumps({"query": query, "limit": limit}).encode()
        status, _, answer = self.request("/api/sql", method="POST", body=body)
        return status, json.loads(answer)

    def raw(self, data: bytes) -> bytes:
        """What the server sends after some bytes, until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=600) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            received = b""
            while part := connection.recv(65536):
                received += part
            return received


def read_container(data: bytes) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Reads a container as its specification states, without our writer's code."""
    import struct

    formats = "bBhHiIfdqQ"
    assert data[:8] == b"\xdc\xdfJSLB\x01\x00"
    version, num, root = struct.unpack_from("<3I", data, 8)
    assert version == 1
    parts = [struct.unpack_from("<3I", data, 20 + 12 * n) for n in range(num)]
    assert all(offset % 8 == 0 and offset + size <= len(data) for _, offset, size in parts)
    kind, offset, size = parts[root]
    assert kind == 10
    head = json.loads(data[offset : offset + size])
    columns = {}
    for name, number in head.pop("columns").items():
        kind, offset, size = parts[number]
        width = struct.calcsize(formats[kind])
        columns[name] = list(struct.unpack_from(f"<{size // width}{formats[kind]}", data, offset))
    return head, columns


@contextmanager
def served(*files: str | Path, **options: Any) -> Iterator[Page]:
    """A server of files, until the block ends; everything is computed when it starts."""
    session = Session(lambda progress: perfuse.fuse(*files, progress=progress), [str(file) for file in files])
    with served_session(session, **options) as page:
        session.start()
        session.join()
        yield page


@contextmanager
def served_session(session: Session, **options: Any) -> Iterator[Page]:
    """A server of a session that is not opened yet."""
    server = ViewServer(Routes(session), new_token(), **options)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield Page(server)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
