"""Saved profiles that earlier releases wrote give the answers that these gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import pytest

import perfuse
from packs.writing import EXAMPLES, HERE, report_of, rows_of
from perfuse.archive.saved_contents import SavedContents

FILES = sorted(HERE.glob("*/*.perfuse"))


def test_there_are_some() -> None:
    assert {one.stem for one in FILES} == set(EXAMPLES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_answers_are_those_of_the_release(path: Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert perfuse.check(path) == []
    # Keys may be added to a report and its parts; what a release stated stays.
    assert _of_keys(report_of(path), expected["report"]) == expected["report"]
    with perfuse.fuse(path) as profile:
        saved = profile._opened
        assert isinstance(saved, SavedContents)
        assert saved.manifest.tool == path.parent.name
        for name, rows in expected["tables"].items():
            assert rows_of(profile, name, rows["columns"]) == rows, name


def _of_keys(found: Any, stated: Any) -> Any:
    """What was found with the keys that were stated, in objects of objects too."""
    if isinstance(found, dict) and isinstance(stated, dict):
        return {key: _of_keys(found[key], stated[key]) for key in stated if key in found}
    return found


def test_a_manifest_and_tables_of_a_later_minor_version_are_read(tmp_path: Path) -> None:
    """Unknown keys, unknown members and unknown columns are ignored; values of a column may become more."""
    path = HERE / "0.1.0" / "perf-jitdump.perfuse"
    later = tmp_path / "later.perfuse"
    with ZipFile(path) as old, ZipFile(later, "w", ZIP_STORED) as new:
        for info in old.infolist():
            content = old.read(info.filename)
            if info.filename == "manifest.json":
                document = json.loads(content)
                document["version"]["minor"] += 1
                document["later"] = {"anything": 1}
                for one in document["inputs"]:
                    one["later"] = "x"
                content = json.dumps(document).encode()
            new.writestr(ZipInfo(info.filename), content)
        new.writestr(ZipInfo("later/unknown.bin"), b"anything")
    assert report_of(later) == report_of(path)
