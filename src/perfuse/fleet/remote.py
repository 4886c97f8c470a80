"""Inputs and data files in object stores and at web addresses."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from perfuse.errors import UnreadableInput
from perfuse.fleet.extra import required

_DOWNLOADS = 16
"""Files that are copied at the same time."""


def download(url: str, target: Path, options: Mapping[str, str]) -> None:
    """Copies an object to a file.

    Raises:
        UnreadableInput: It does not exist, or the store does not answer.
    """
    obstore = required("obstore")
    store, path = _store_of(url, options)
    try:
        found = obstore.get(store, path)
        with target.open("wb") as file:
            for chunk in found.stream():
                file.write(chunk)
    except (obstore.exceptions.BaseError, OSError) as error:
        raise UnreadableInput(f"cannot read {url}: {str(error).splitlines()[0]}", path=url) from error


def upload(path: Path, url: str, options: Mapping[str, str]) -> None:
    """Copies a file to an object, which appears when it is whole.

    Raises:
        OSError: The store does not take it.
    """
    obstore = required("obstore")
    store, name = _store_of(url, options)
    try:
        obstore.put(store, name, path)
    except obstore.exceptions.BaseError as error:
        raise OSError(f"cannot write {url}: {str(error).splitlines()[0]}") from error


def names_below(url: str, options: Mapping[str, str]) -> list[str]:
    """The objects whose names begin with a prefix, by the rest of their names."""
    obstore = required("obstore")
    store, prefix = _store_of(url, options)
    found = [one["path"] for batch in obstore.list(store, prefix) for one in batch]
    return sorted(name.removeprefix(f"{prefix}/") for name in found)


def delete(urls: Sequence[str], options: Mapping[str, str]) -> None:
    """Deletes objects."""
    obstore = required("obstore")
    for url in urls:
        store, name = _store_of(url, options)
        obstore.delete(store, name)


def cached(files: Mapping[str, list[str]], options: Mapping[str, str]) -> dict[str, list[str]]:
    """Data files as files of this machine, by table: they never change, so each is copied once for this process.

    Raises:
        UnreadableInput: The store does not answer.
    """
    from concurrent.futures import ThreadPoolExecutor

    from perfuse.output.temporary import process_directory

    folder = process_directory() / "fleet"
    folder.mkdir(mode=0o700, exist_ok=True)

    def local(url: str) -> str:
        target = folder / hashlib.sha256(url.encode()).hexdigest()
        if not target.exists():
            partial = target.with_suffix(f".{threading.get_ident()}")
            download(url, partial, options)
            partial.rename(target)
        return str(target)

    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        return {name: list(pool.map(local, urls)) for name, urls in files.items()}


def _store_of(url: str, options: Mapping[str, str]) -> tuple[Any, str]:
    from obstore.store import from_url

    parts = urlsplit(url)
    base = f"{parts.scheme}://{parts.netloc}"
    # Stores take the same names as Delta, in lower case; those about the client are options of its own.
    names = {name.lower(): value for name, value in options.items()}
    allowed = names.pop("aws_allow_http", names.pop("allow_http", "")) or parts.scheme == "http"
    client: Any = {"allow_http": True} if allowed else {}
    for name in ("aws_s3_allow_unsafe_rename", "aws_conditional_put", "aws_copy_if_not_exists"):
        names.pop(name, None)
    of_store: Any = names if parts.scheme in ("s3", "s3a", "gs", "az", "abfs", "abfss", "adl", "azure") else {}
    return from_url(base, client_options=client or None, **of_store), parts.path.lstrip("/")
