"""Programs and debug information from debuginfod servers, for the build ids of a recording: `--debuginfod`.

Nothing is downloaded unless servers are named. What is stored is laid out as in debuginfod's cache, `ID/executable` and
`ID/debuginfo`; the core compares the build id in each file with that of the recording before it uses it.
"""

from __future__ import annotations

import os
import re
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from perfuse.errors import UsageError
from perfuse.table import Columns

if TYPE_CHECKING:
    from http.client import HTTPMessage

    from perfuse import _core

MAX_BYTES = 2 << 30
"""Largest file that is downloaded; `DEBUGINFOD_MAXSIZE` sets another."""
TIMEOUT_SECONDS = 90
"""Longest silence of a server; `DEBUGINFOD_TIMEOUT` sets another."""
_CHUNK_BYTES = 1 << 20
_BUILD_ID = re.compile(r"[0-9a-f]{8,40}")


def require_servers(servers: Sequence[str], follow: str) -> None:
    """Raises `UsageError` where an address is not one of a server, or no files are to be opened."""
    for server in servers:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"{server!r} is not the address of a debuginfod server", hint="write https://debuginfod.example.org"
            )
    if servers and follow == "none":
        raise UsageError("debuginfod was asked for, and no file that a recording names may be opened")


def cache_directory() -> Path:
    """debuginfod's own cache: `DEBUGINFOD_CACHE_PATH`, else in the user's directory of caches."""
    if named := os.environ.get("DEBUGINFOD_CACHE_PATH"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "debuginfod_client"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to ask servers for.

    Attributes:
        build_id: Its build id, in hexadecimal.
        kind: `executable` or `debuginfo`.
        path: Path in the recording.
    """

    build_id: str
    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of asking servers.

    Attributes:
        num_files: Files that were downloaded.
        num_bytes: Their size.
        failures: Why files could not be downloaded; a server that does not have one is not a failure.
    """

    num_files: int
    num_bytes: int
    failures: tuple[str, ...]


def wanted_files(fusion: _core.Profile) -> list[Wanted]:
    """Files of sampled native code without a name or without a line, by recorded build id."""

    def rows(name: str, *columns: str) -> list[tuple[object, ...]]:
        table = Columns(fusion.table(name))
        return list(zip(*(table[column] for column in columns), strict=True))

    files = {key: (path, build_id) for key, path, build_id in rows("mappings", "mapping_id", "path", "build_id")}
    found: dict[Wanted, None] = {}
    for mapping_id, function_id, path in rows("frames", "mapping_id", "function_id", "path"):
        recorded, build_id = files.get(mapping_id, ("", None))
        if path is not None or not _BUILD_ID.fullmatch(str(build_id)) or not str(recorded).startswith("/"):
            continue
        if function_id is None:
            found[Wanted(str(build_id), "executable", str(recorded))] = None
        found[Wanted(str(build_id), "debuginfo", str(recorded))] = None
    return list(found)


def fetch(
    wanted: Sequence[Wanted], servers: Sequence[str], cache: Path, progress: Callable[[str, float], None]
) -> Fetched:
    """Downloads the files that the cache does not have, from the first server that has each."""
    num_files = num_bytes = 0
    failures: dict[str, None] = {}
    silent: set[str] = set()
    for number, one in enumerate(wanted):
        target = cache / one.build_id / one.kind
        if target.exists():
            continue
        progress(f"downloading {Path(one.path).name}", number / len(wanted))
        for server in servers:
            if server in silent:
                continue
            try:
                size = _download(f"{server.rstrip('/')}/buildid/{one.build_id}/{one.kind}", target)
            except urllib.error.HTTPError as error:
                if error.code != 404:
                    failures[f"{server}: {error.code} {error.reason}"] = None
                continue
            except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
                # It is not asked again: each attempt may take as long.
                failures[f"{server}: {getattr(error, 'reason', error)}"] = None
                silent.add(server)
                continue
            except (OSError, ValueError) as error:
                failures[f"{one.path}: {error}"] = None
                continue
            num_files += 1
            num_bytes += size
            break
    return Fetched(num_files, num_bytes, tuple(failures))


def _download(address: str, target: Path) -> int:
    """Downloads a file, which appears under its name only when it is complete; returns its size.

    Raises:
        OSError: The server or the file system refuses.
        ValueError: The file is larger than allowed, or shorter than announced.
    """
    limit = int(os.environ.get("DEBUGINFOD_MAXSIZE") or MAX_BYTES)
    timeout = float(os.environ.get("DEBUGINFOD_TIMEOUT") or TIMEOUT_SECONDS)
    request = urllib.request.Request(address, headers={"User-Agent": "perfuse"})
    with _opener().open(request, timeout=timeout) as answer:
        announced = answer.headers.get("Content-Length")
        if announced is not None and int(announced) > limit:
            raise ValueError(f"{announced} bytes are more than the limit of {limit} (DEBUGINFOD_MAXSIZE)")
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".incomplete-")
        try:
            with os.fdopen(descriptor, "wb") as out:
                size = _copy(answer, out, limit)
            _require_whole(size, announced)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    return size


def _require_whole(size: int, announced: str | None) -> None:
    if announced is not None and size != int(announced):
        raise ValueError(f"the server sent {size} of {announced} bytes")


def _copy(answer: IO[bytes], out: IO[bytes], limit: int) -> int:
    size = 0
    while chunk := answer.read(_CHUNK_BYTES):
        size += len(chunk)
        if size > limit:
            raise ValueError(f"the file is larger than the limit of {limit} bytes (DEBUGINFOD_MAXSIZE)")
        out.write(chunk)
    return size


class _OtherServer(urllib.request.HTTPRedirectHandler):
    """Follows redirections to web addresses only."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise ValueError(f"the server redirects to {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_OtherServer)
