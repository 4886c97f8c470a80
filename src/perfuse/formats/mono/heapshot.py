"""Heap shots on demand: a running profiler takes the command on a port."""

import socket
import time
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from perfuse.errors import UnreadableInput, UsageError
from perfuse.recording import open

_COMMAND = b"heapshot\n"
_HINT = "run the program with --profile=log:heapshot=ondemand"
_EVERY_S = 0.2
_LAST_PORT = 0xFFFF


def heapshot(
    log: str | PathLike[str] | None = None,
    *,
    port: int | None = None,
    host: str = "localhost",
    timeout_s: float = 10.0,
) -> int | None:
    """Asks a running profiler for a heap shot, which it makes at its next collection.

    The program runs with `--profile=log:heapshot=ondemand`. Its profiler listens on a port that the header of the log
    says, and answers nothing: with the log, this waits until the shot is in it.

    Args:
        log: The log that is being written.
        port: The port; that of the log where not given.
        host: Where the program runs.
        timeout_s: How long to wait for the connection, and for the shot.

    Returns:
        How many heap shots the log has now; None without a log.

    Raises:
        UsageError: Neither a log nor a port is given, or the log's profiler takes no commands.
        UnreadableInput: Nobody listens there, the log cannot be read, or no shot came in time.
    """
    before = 0
    if log is not None:
        recording = open(log)
        if recording.format != "mono":
            raise UsageError(f"{recording.path} is no Mono log, but {recording.format}", path=recording.path)
        before = recording.summary.records.get("HEAP_END", 0)
        port = _port(recording.header) if port is None else port
    if port is None:
        raise UsageError("where is the profiler?", field="port", hint="give its log, or the port it listens on")
    if not 0 < port <= _LAST_PORT:
        raise UsageError(f"there is no port {port}", field="port", hint=f"ports are 1 to {_LAST_PORT}")
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(_COMMAND)
    except OSError as error:
        message = f"no profiler listens on port {port} of {host}: {error.strerror or error}"
        raise UnreadableInput(message, field="port", hint=f"is the program still running? {_HINT}") from error
    return None if log is None else _wait(log, before, timeout_s)


def _port(header: Mapping[str, Any]) -> int:
    """The port a log's profiler listens on, if it makes shots on demand."""
    if "ondemand" not in header.get("args", "ondemand"):
        raise UsageError("the profiler of this log makes no heap shots on demand", hint=_HINT)
    port = header.get("port", 0)
    if not port:
        raise UsageError("the profiler of this log listens on no port", field="port", hint=_HINT)
    return int(port)


def _wait(log: str | PathLike[str], before: int, timeout_s: float) -> int:
    end = time.monotonic() + timeout_s
    while True:
        shots = open(log).summary.records.get("HEAP_END", 0)
        if shots > before:
            return shots
        if time.monotonic() >= end:
            raise UnreadableInput(
                f"no heap shot came into {fspath(log)} within {timeout_s:g} s",
                path=fspath(log),
                hint="a log that is packed, or of an idle program, is written late; the shot may come yet",
            )
        time.sleep(_EVERY_S)
