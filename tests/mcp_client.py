"""A client of `perfuse mcp`: a scripted one, over the process's own input and output."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Client:
    """Talks to a server."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.num_requests = 0

    def send(self, line: bytes) -> None:
        """Writes bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def receive(self) -> Any:
        """The next message."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), f"the server ended: {self.process.poll()}"
        return json.loads(line)

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a request."""
        self.num_requests += 1
        message = {"jsonrpc": "2.0", "id": self.num_requests, "method": method, "params": params}
        self.send(json.dumps(message).encode() + b"\n")
        answer: dict[str, Any] = self.receive()
        assert answer["jsonrpc"] == "2.0"
        assert answer["id"] == self.num_requests
        return answer

    def initialize(self, version: str = "2025-06-18") -> dict[str, Any]:
        """Starts the session; returns what the server states about itself."""
        client = {"name": "test", "version": "1"}
        answer = self.request("initialize", protocolVersion=version, capabilities={}, clientInfo=client)
        self.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """The text that a tool answers, and whether it is an error."""
        result = self.request("tools/call", name=tool, arguments=arguments)["result"]
        assert set(result) == {"content", "isError"}
        (content,) = result["content"]
        assert content["type"] == "text"
        return content["text"], result["isError"]

    def text(self, tool: str, **arguments: Any) -> str:
        """The text that a tool answers, which is not an error."""
        text, is_error = self.call(tool, **arguments)
        assert not is_error, text
        return text

    def error(self, tool: str, **arguments: Any) -> str:
        """The text of the error that a tool answers."""
        text, is_error = self.call(tool, **arguments)
        assert is_error, text
        return text

    def close(self) -> tuple[int, bytes]:
        """Closes the server's input; its exit code and what it wrote after that."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        rest = self.process.stdout.read()
        return self.process.wait(), rest


@contextmanager
def serving(directory: Path, *options: str) -> Iterator[Client]:
    """A server of a directory."""
    command = [sys.executable, "-m", "perfuse", "mcp", str(directory), *options]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Client(process)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()
