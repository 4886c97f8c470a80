"""Messages of JSON-RPC 2.0: one JSON text per line, read with a limit and written whole."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
BUSY = -32000
"""The first of the codes that the specification leaves to servers."""

MAX_MESSAGE_BYTES = 1 << 20

Id = int | str


class ProtocolError(Exception):
    """A message that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, request_id: Id | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id


@dataclass(frozen=True, slots=True)
class Request:
    """A request, or a notification where `request_id` is None."""

    method: str
    params: dict[str, Any]
    request_id: Id | None


def read_messages(stream: IO[bytes]) -> Iterator[Any | ProtocolError]:
    """The JSON value of each line of a stream; the error for a line that is not JSON, or too long."""
    while True:
        line = stream.readline(MAX_MESSAGE_BYTES + 1)
        if not line:
            return
        if len(line) > MAX_MESSAGE_BYTES:
            while line and not line.endswith(b"\n"):
                line = stream.readline(MAX_MESSAGE_BYTES)
            yield ProtocolError(INVALID_REQUEST, f"a message has at most {MAX_MESSAGE_BYTES:,} bytes")
        elif line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                yield ProtocolError(PARSE_ERROR, "the line is not a JSON text in UTF-8")


def parse_request(message: Any) -> Request | None:
    """A message as a request or notification; None for an answer, as this server sends no requests.

    Raises:
        ProtocolError: It is neither.
    """
    if not isinstance(message, dict):
        raise ProtocolError(INVALID_REQUEST, "a message is a JSON object")
    request_id = message.get("id")
    if "id" in message and (isinstance(request_id, bool) or not isinstance(request_id, int | str)):
        raise ProtocolError(INVALID_REQUEST, "the id of a request is a string or an integer")
    if message.get("jsonrpc") != "2.0":
        raise ProtocolError(INVALID_REQUEST, 'a message has "jsonrpc": "2.0"', request_id)
    if "method" not in message and ("result" in message or "error" in message):
        return None
    method = message.get("method")
    if not isinstance(method, str):
        raise ProtocolError(INVALID_REQUEST, "the method of a request is a string", request_id)
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise ProtocolError(INVALID_PARAMS, "the params of a request are an object", request_id)
    return Request(method, params, request_id)


def answer(request_id: Id | None, result: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_answer(error: ProtocolError) -> dict[str, Any]:
    """The answer to a request that cannot be served."""
    return {"jsonrpc": "2.0", "id": error.request_id, "error": {"code": error.code, "message": str(error)}}


class Output:
    """Writes messages to a file descriptor, from any thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self.is_closed = False
        """Whether nobody reads the messages any more."""

    def write(self, message: Any) -> None:
        """Writes a message in one line."""
        # ASCII: a reader that splits at other ends of lines than \n splits no message.
        data = memoryview(json.dumps(message).encode() + b"\n")
        with self._lock:
            try:
                while data and not self.is_closed:
                    data = data[os.write(self._descriptor, data) :]
            except OSError:
                self.is_closed = True
