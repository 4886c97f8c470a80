"""The loopback server: connections, limits, headers. It serves this machine alone, and one run of one command."""

import contextlib
import json
import socket
import threading
import time
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

from perfuse.viewer import policy
from perfuse.viewer.answers.parameters import RequestError
from perfuse.viewer.policy import Refusal
from perfuse.viewer.routes import Answer, Routes

LOOPBACK = "127.0.0.1"
MOST_CONNECTIONS = 48
"""Connections at the same time; beyond them, the one that has waited longest for its request is closed."""
REQUEST_S = 10.0
"""Longest time for a request to arrive."""
IDLE_S = 90.0
"""Longest time that a connection of the page waits for its next request."""
CHECK_S = 0.5


@dataclass(slots=True)
class Connection:
    """A connection, and what it waits for.

    Attributes:
        socket: Its socket.
        since: Time since when it waits for a request.
        waits: Whether it waits for a request, or sends an answer slowly.
        is_known: Whether a request on it had the token.
    """

    socket: socket.socket
    since: float
    waits: bool = True
    is_known: bool = False


class ViewServer(HTTPServer):
    """The server of a session.

    Args:
        routes: What it answers.
        token: The secret that requests need.
        port: Port; 0 for any that is free.
        idle_s: The server ends after so many seconds without a request of a page; None for never.
        symbol_token: The secret in the path of questions of the Firefox Profiler; None where these are not answered.

    Raises:
        OSError: The port is in use.
    """

    request_queue_size = 512
    # Another program's server on the same port would be found instead of this one.
    allow_reuse_address = True

    def __init__(
        self,
        routes: Routes,
        token: str,
        *,
        port: int = 0,
        idle_s: float | None = None,
        symbol_token: str | None = None,
    ) -> None:
        self._connections: dict[int, Connection] = {}
        self._lock = threading.Lock()
        super().__init__((LOOPBACK, port), BaseHTTPRequestHandler)
        self.routes = routes
        self.token = token
        self.symbol_token = symbol_token
        self.port: int = self.server_address[1]
        self.idle_s = idle_s
        self.has_been_idle = False
        self.has_page = False
        """Whether a page has asked for anything."""
        self._last_request = time.monotonic()

    @property
    def url(self) -> str:
        """The address of the page, with the secret after `#`, which browsers send to nobody."""
        return f"http://{LOOPBACK}:{self.port}/#t={self.token}"

    @property
    def symbol_url(self) -> str | None:
        """The address of the symbol server; None where there is none."""
        return None if self.symbol_token is None else f"http://{LOOPBACK}:{self.port}/{self.symbol_token}"

    def server_bind(self) -> None:
        """Binds the socket, without HTTPServer's search for the name of this machine."""
        socket.socket.setsockopt(self.socket, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers a connection in a thread of its own; where there are too many, closes one that waits."""
        connection = Connection(request, time.monotonic())
        with self._lock:
            if len(self._connections) >= MOST_CONNECTIONS and not self._close_one():
                self.shutdown_request(request)
                return
            self._connections[id(request)] = connection
        thread = threading.Thread(target=self._answer, args=(request, client_address, connection), daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._forget(request)
            self.shutdown_request(request)

    def _answer(self, request: Any, client_address: Any, connection: Connection) -> None:
        try:
            with contextlib.suppress(OSError):
                RequestHandler(request, client_address, self, connection)
        finally:
            self._forget(request)
            self.shutdown_request(request)

    def _forget(self, request: Any) -> None:
        with self._lock:
            self._connections.pop(id(request), None)

    def _close_one(self) -> bool:
        """Closes the connection that has waited longest, one without a token first; called with the lock."""
        waiting = [one for one in self._connections.items() if one[1].waits]
        if not waiting:
            return False
        key, connection = min(waiting, key=lambda one: (one[1].is_known, one[1].since))
        _close(connection.socket)
        self._connections.pop(key)
        return True

    def service_actions(self) -> None:
        """Closes connections whose requests do not arrive, and ends the server where no page is left."""
        now = time.monotonic()
        with self._lock:
            for connection in self._connections.values():
                if connection.waits and now - connection.since > (IDLE_S if connection.is_known else REQUEST_S):
                    _close(connection.socket)
        if self.idle_s is not None and now - self._last_request > self.idle_s and not self.has_been_idle:
            self.has_been_idle = True
            # Not in this thread: it waits for the loop that calls this.
            threading.Thread(target=self.shutdown, daemon=True).start()

    def note_request(self) -> None:
        """A page is there."""
        self.has_page = True
        self._last_request = time.monotonic()

    def run(self) -> None:
        """Answers requests until `shutdown` is called, or no page is left."""
        self.serve_forever(poll_interval=CHECK_S)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a client that disconnects is not an error, and addresses have no place in a log."""

    def server_close(self) -> None:
        """Closes all connections."""
        super().server_close()
        with self._lock:
            for connection in self._connections.values():
                _close(connection.socket)


def _close(connection: socket.socket) -> None:
    """Ends a connection that a thread reads from."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class RequestHandler(BaseHTTPRequestHandler):
    """Checks requests and sends answers."""

    server: ViewServer
    protocol_version = "HTTP/1.1"
    # Head and body of an answer are separate packets, which the kernel would otherwise delay by 40 ms.
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = REQUEST_S
    server_version = "perfuse"
    sys_version = ""
    # Whatever is asked for, an answer names no part of it.
    error_message_format = ""
    METHODS: ClassVar[tuple[str, ...]] = ("GET", "POST", "OPTIONS")

    def __init__(self, request: Any, client_address: Any, server: ViewServer, connection: Connection) -> None:
        self.connection_state = connection
        super().__init__(request, client_address, server)

    def handle_one_request(self) -> None:
        """Reads and answers a request; the time until its head is complete is limited as a whole."""
        self.connection_state.since = time.monotonic()
        self.connection_state.waits = True
        if self.connection_state.is_known:
            self.connection.settimeout(IDLE_S)
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Whether the head is valid; then the request no longer counts as waiting."""
        is_valid = super().parse_request()
        self.connection.settimeout(REQUEST_S)
        return is_valid

    def do_GET(self) -> None:
        """Answers a question."""
        self._handle("GET")

    def do_POST(self) -> None:
        """Answers a question with a body."""
        self._handle("POST")

    def do_OPTIONS(self) -> None:
        """Answers a browser that asks whether a page of the Firefox Profiler may ask."""
        self._handle("OPTIONS")

    def _handle(self, method: str) -> None:
        body = b""
        is_known = False
        if method == "POST" or "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            refusal, length = policy.refusal_of_body(self._headers())
            if method == "GET" and length == 0 and refusal is None:
                refusal = None
            if refusal is not None:
                self._refuse(refusal)
                return
        else:
            length = 0
        refusal = self._refusal()
        if refusal is not None:
            # A body that is not read would be the next request.
            self.close_connection = self.close_connection or length > 0
            self._refuse(refusal, closes=length > 0)
            return
        if length:
            body = self.rfile.read(length)
            if len(body) < length:
                self.close_connection = True
                return
        self.connection_state.waits = False
        path, _, query = self.path.partition("?")
        question = self._symbol_question()
        if path.startswith("/api/") or question is not None:
            is_known = self.connection_state.is_known = True
            self.server.note_request()
        try:
            answer = self._answer(method, path, query, body, question)
        except RequestError as error:
            answer = _error_answer(error.status, error.code, str(error), error.hint)
        except Exception as error:
            answer = self.server.routes.failure(error) if is_known else _error_answer(500, "internal", "internal error")
        self._send(answer)

    def _headers(self) -> dict[str, str]:
        """The headers by their names as the policy spells them: clients may write them in small letters."""
        return {name.title(): value for name, value in self.headers.items()}

    def _symbol_question(self) -> str | None:
        """The path of a question of the Firefox Profiler; None where this is none."""
        token = self.server.symbol_token
        return None if token is None else policy.symbol_path(self.path.partition("?")[0], token)

    def _answer(self, method: str, path: str, query: str, body: bytes, question: str | None) -> Answer:
        if question is not None:
            return self._symbols(method, question, body)
        if method == "OPTIONS":
            return _error_answer(405, "method", "only GET and POST are answered")
        return self.server.routes.answer(method, path, query, body)

    def _symbols(self, method: str, question: str, body: bytes) -> Answer:
        from perfuse.viewer.firefox import ORIGIN

        allowed = policy.symbol_headers(self.headers.get("Origin"), ORIGIN)
        if method == "OPTIONS":
            return Answer(b"", "text/plain", 204, allowed)
        try:
            answer = self.server.routes.symbols(method, question, body)
        except RequestError as error:
            answer = _error_answer(error.status, error.code, str(error), error.hint)
        return replace(answer, headers={**answer.headers, **allowed})

    def _refusal(self) -> Refusal | None:
        """Why this request is not answered; None where it is."""
        port, path = self.server.port, self.path.partition("?")[0]
        hosts = self.headers.get_all("Host") or []
        refusal = policy.refusal_of_host(hosts[0] if len(hosts) == 1 else None, port)
        if refusal is None and self._symbol_question() is not None:
            from perfuse.viewer.firefox import ORIGIN

            return policy.refusal_of_symbol_origin(self._headers(), port, ORIGIN)
        if refusal is None:
            refusal = policy.refusal_of_origin(self._headers(), port, is_navigation_target=path == "/")
        if refusal is None and path.startswith("/api/"):
            refusal = policy.refusal_of_token(self.headers.get(policy.TOKEN_HEADER), self.server.token)
        if refusal is None and len(self.path) > policy.MOST_QUERY_BYTES:
            refusal = Refusal(414, "too_long", "the address is too long")
        return refusal

    def _refuse(self, refusal: Refusal, *, closes: bool = True) -> None:
        if closes:
            self.close_connection = True
        if refusal.status == HTTPStatus.MISDIRECTED_REQUEST:
            self._send(Answer(b"", "text/plain", refusal.status))
            return
        self._send(_error_answer(refusal.status, refusal.code, refusal.message))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """The answer to a request that http.server cannot parse."""
        _ = explain
        self.close_connection = True
        name = HTTPStatus(code).name.lower()
        # Of a request that cannot be parsed, http.server would send the body alone, as version 0.9 has it.
        self.request_version = "HTTP/1.1"
        self.requestline, self.command = getattr(self, "requestline", ""), getattr(self, "command", "")
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code, name, message = 405, "method", "only GET and POST are answered"
        self._send(_error_answer(code, name, (message or name) if name == "method" else name.replace("_", " ")))

    def _send(self, answer: Answer) -> None:
        self.connection_state.since = time.monotonic()
        self.send_response(answer.status)
        for name, value in {**policy.HEADERS, **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.content_type)
        if answer.status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(answer.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)
        self.wfile.flush()

    def version_string(self) -> str:
        """The name of the server, without versions."""
        return self.server_version

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: addresses may contain names from recordings."""


def _error_answer(status: int, code: str, message: str, hint: str | None = None) -> Answer:
    error = {"error": {"code": code, "message": message, "hint": hint}}
    return Answer(json.dumps(error).encode(), "application/json", status)
