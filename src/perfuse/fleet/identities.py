"""Identities that do not depend on a recording: of functions, of stacks, of inputs."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from perfuse.analysis.function_matching import FunctionIdentity, normal_name

HASH_BYTES = 16
_CHUNK_BYTES = 1 << 20


@lru_cache(1 << 16)
def function_hash(name: str, module: str | None, path: str | None, kind: str) -> bytes:
    """The identity of a function: what it is called in every build, without addresses, lines and process numbers.

    Args:
        name: Its name.
        module: File that contains it.
        path: Source file; it counts for JIT-compiled code, whose modules are not files. For native code, where it is
            given if the module has several functions of the name, the name of the file counts.
        kind: Kind of code.
    """
    file = FunctionIdentity("", module).module_name
    if kind != "jit":
        path = path.rsplit("/", 1)[-1] if path and kind == "native" else None
    return _hashed(b"f1", normal_name(name), file, path)


def stack_hash(parent: bytes | None, function: bytes) -> bytes:
    """The identity of a stack: a function on top of its caller's stack."""
    return hashlib.blake2b(b"s1" + (parent or b"") + function, digest_size=HASH_BYTES).digest()


def recording_id(sha256s: Iterable[str]) -> str:
    """The identity of a recording: that of the content of its files, whatever they are called."""
    return _hashed(b"r1", *sorted(set(sha256s))).hex()


def attempt_id(now_ns: int | None = None) -> str:
    """A new identity of an attempt to read a recording: its time, and random digits."""
    now = datetime.fromtimestamp((now_ns or time.time_ns()) / 1e9, UTC)
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(8)}"


def file_sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _hashed(version: bytes, *parts: str | None) -> bytes:
    digest = hashlib.blake2b(version, digest_size=HASH_BYTES)
    for part in parts:
        data = b"" if part is None else part.encode("utf-8", "surrogateescape")
        digest.update((-1 if part is None else len(data)).to_bytes(8, "little", signed=True))
        digest.update(data)
    return digest.digest()
