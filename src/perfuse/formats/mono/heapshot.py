"""Heap snapshots on demand: a running profiler accepts the command on a port."""

import socket
import time
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from perfuse.errors import UnreadableInput, UsageError
from perfuse.recording import open, open_of_format

_COMMAND = b"heapshot\n"
_HINT = "run the program with --profile=log:heapshot=ondemand"
_POLL_S = 0.2
_LAST_PORT = 0xFFFF


def heapshot(
    log: str | PathLike[str] | None = None,
    *,
    port: int | None = None,
    host: str = "localhost",
    timeout_s: float = 10.0,
) -> int | None:
    """Requests a heap snapshot from a running profiler, which takes it at its next collection.

    The program runs with `--profile=log:heapshot=ondemand`. Its profiler listens on a port, which the header of the log
    states, and does not answer: with the log, this function waits until the snapshot is in it.

    Args:
        log: The log that is being written.
        port: The port; by default that of the log.
        host: Host of the program.
        timeout_s: Seconds to wait for the connection, and for the snapshot.

    Returns:
        Number of heap snapshots in the log; None without a log.

    Raises:
        UsageError: Neither a log nor a port is given, or the log's profiler accepts no commands.
        UnreadableInput: Nothing listens on the port, the log cannot be read, or no snapshot was taken in time.
    """
    before = 0
    if log is not None:
        recording = open_of_format(log, "mono", "a Mono log")
        before = recording.summary.records.get("HEAP_END", 0)
        port = _port(recording.header) if port is None else port
    if port is None:
        raise UsageError("the profiler's port is unknown", field="port", hint="give its log, or the port it listens on")
    if not 0 < port <= _LAST_PORT:
        raise UsageError(f"{port} is not a port", field="port", hint=f"ports are 1 to {_LAST_PORT}")
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(_COMMAND)
    except OSError as error:
        message = f"no profiler listens on port {port} of {host}: {error.strerror or error}"
        raise UnreadableInput(message, field="port", hint=f"is the program still running? {_HINT}") from error
    return None if log is None else _wait_for_snapshot(log, before, timeout_s)


def _port(header: Mapping[str, Any]) -> int:
    """The port on which a log's profiler listens for requests of snapshots."""
    if "ondemand" not in header.get("args", "ondemand"):
        raise UsageError("the profiler of this log takes no heap snapshots on demand", hint=_HINT)
    port = header.get("port", 0)
    if not port:
        raise UsageError("the profiler of this log listens on no port", field="port", hint=_HINT)
    return int(port)


def _wait_for_snapshot(log: str | PathLike[str], before: int, timeout_s: float) -> int:
    end = time.monotonic() + timeout_s
    while True:
        snapshots = open(log).summary.records.get("HEAP_END", 0)
        if snapshots > before:
            return snapshots
        if time.monotonic() >= end:
            raise UnreadableInput(
                f"no heap snapshot was written to {fspath(log)} within {timeout_s:g} s",
                path=fspath(log),
                hint="a compressed log, or that of an idle program, is written late; the snapshot may still be written",
            )
        time.sleep(_POLL_S)
