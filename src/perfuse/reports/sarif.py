"""What `check` found as SARIF 2.1.0, the form of findings that code hosts and editors read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

from perfuse.diagnostics import Diagnostic, Rule
from perfuse.reports.checked_files import CheckedFile, located_message

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION = "2.1.0"
INFORMATION_URI = "https://github.com/perfuse/perfuse"
FINGERPRINT = "primaryLocationLineHash"
"""The fingerprint by which GitHub recognizes a finding of an earlier run. Equal ones in a file are numbered."""
LEVELS = {"info": "note", "warning": "warning", "data_loss": "error", "error": "error"}
"""SARIF's level of each severity (section 3.27.10); it has none for lost data."""


def sarif_log(files: Sequence[CheckedFile], *, version: str, exit_code: int) -> dict[str, Any]:
    """A SARIF log with one run of `perfuse check`."""
    from perfuse.diagnostics import explain

    codes = sorted({found.code for file in files for found in (*file.others, *file.accepted)})
    rules = [explain(code) for code in codes]
    places = {code: index for index, code in enumerate(codes)}
    results = [result for index, file in enumerate(files) for result in _results(index, file, places)]
    invocation: dict[str, Any] = {
        "executionSuccessful": not any(file.unreadable for file in files),
        "exitCode": exit_code,
    }
    if unreadable := [_notification(index, file) for index, file in enumerate(files) if file.unreadable]:
        invocation["toolExecutionNotifications"] = unreadable
    driver = {
        "name": "perfuse",
        "version": version,
        "informationUri": INFORMATION_URI,
        "rules": [_rule(rule) for rule in rules],
    }
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "artifacts": [
            {"location": _location(file.path), "roles": ["analysisTarget"], "mimeType": "application/octet-stream"}
            for file in files
        ],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": _sentence(rule.title)},
        "fullDescription": {"text": _sentence(rule.meaning)},
        "help": {"text": _sentence(rule.action)},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"severity": rule.severity, "format": rule.format, "section": rule.section},
    }


def _results(file_index: int, file: CheckedFile, rule_indexes: dict[str, int]) -> Iterable[dict[str, Any]]:
    suppression = {"kind": "external", "status": "accepted", "justification": "named by --accept or --accept-file"}
    numbers: Counter[str] = Counter()
    for suppressions, diagnostics in (([], file.others), ([suppression], file.accepted)):
        for found in diagnostics:
            result = _result(found, file_index, file.path, rule_indexes)
            if suppressions:
                result["suppressions"] = suppressions
            hashed = _place_hash(found)
            numbers[hashed] += 1
            result["partialFingerprints"] = {FINGERPRINT: f"{hashed}:{numbers[hashed]}"}
            yield result


def _place_hash(found: Diagnostic) -> str:
    """A hash that is the same in the next recording, where offsets and numbers of records are others."""
    return sha256("\0".join((found.code, found.code_section, found.field or "")).encode()).hexdigest()[:16]


def _result(found: Diagnostic, file_index: int, path: str, rule_indexes: dict[str, int]) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {**_location(path), "index": file_index}}
    if found.offset is not None:
        physical["region"] = {"byteOffset": found.offset}
    location: dict[str, Any] = {"physicalLocation": physical}
    if logical := _logical(found):
        location["logicalLocations"] = [logical]
    section = f" (section {found.section} of the specification)" if found.section else ""
    known = {
        "severity": found.severity,
        "section": found.section,
        "record_index": found.record_index,
        "field": found.field,
        "code_section": found.code_section,
    }
    return {
        "ruleId": found.code,
        "ruleIndex": rule_indexes[found.code],
        "level": LEVELS[found.severity],
        "message": {"text": _sentence(located_message(found) + section)},
        "locations": [location],
        "occurrenceCount": found.count,
        "properties": {key: value for key, value in known.items() if value not in (None, "")},
    }


def _logical(found: Diagnostic) -> dict[str, Any] | None:
    """The record, and the field in it."""
    if found.record_index is None:
        return {"name": found.field, "kind": "member"} if found.field else None
    record = f"record {found.record_index}"
    if not found.field:
        return {"name": record, "kind": "object"}
    return {"name": found.field, "fullyQualifiedName": f"{record}.{found.field}", "kind": "member"}


def _notification(index: int, file: CheckedFile) -> dict[str, Any]:
    place = {"physicalLocation": {"artifactLocation": {**_location(file.path), "index": index}}}
    return {"level": "error", "message": {"text": _sentence(file.unreadable)}, "locations": [place]}


def _location(path: str) -> dict[str, str]:
    """A relative path stays one, which readers look up in the repository; the bytes of a name are percent-encoded."""
    if path == "-":
        return {"uri": "stdin:"}
    if Path(path).is_absolute():
        return {"uri": "file://" + quote_from_bytes(os.fsencode(path))}
    normal = os.path.normpath(path)
    if normal.startswith(".."):
        return {"uri": "file://" + quote_from_bytes(os.fsencode(os.path.abspath(path)))}  # noqa: PTH100 - no links
    return {"uri": quote_from_bytes(os.fsencode(normal))}


def _sentence(text: str) -> str:
    """A text as SARIF's messages are: a sentence that ends with a full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
