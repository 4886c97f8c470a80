"""Every record of every XRay log is counted under the specification's name, as often as the corpus says."""

import ast
from pathlib import Path

import perfuse

NAMES = {
    "Func:Enter": "Entry",
    "Func:Exit": "Exit",
    "Func:TailExit": "Tail_Exit",
    "Func:EnterArg": "Entry_Args",
    "CallArg": "CallArgument",
    "CustomEvent": "CustomEventMarker",
    "TypedEvent": "TypedEventMarker",
    "WallTime": "WallTimeMarker",
    "basic:Enter": "Entry",
    "basic:Exit": "Exit",
    "basic:TailExit": "Tail_Exit",
    "basic:EnterArg": "Entry_Args",
    "basic:ArgPayload": "ArgPayload",
}
"""What the corpus' manifest calls otherwise than the specification."""

NUMBERS: dict[str | int, str] = {
    "f0": "Entry",
    "f1": "Exit",
    "f2": "Tail_Exit",
    0: "NewBuffer",
    2: "NewCPUId",
    3: "TSCWrap",
    4: "WallTimeMarker",
    5: "CustomEventMarker",
    6: "CallArgument",
    9: "Pid",
}
"""Some of its lines have numbers for kinds; BufferExtents is not in those."""

FOLDERS = ["basic", "dso", "fdr", "fdr-old", "synthetic", "synthetic-be"]


def manifest(corpus: Path) -> dict[str, dict[str, int]]:
    """Records by kind of every log that has them in the manifest."""
    counts: dict[str, dict[str, int]] = {}
    for line in (corpus / "MANIFEST.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) >= 6 and cells[0].partition("/")[0] in FOLDERS:
            name, told = cells[0], cells[-1]
            counts[name] = counts[_source(name)] if told == "as the source file" else _counts(told)
    return counts


def _source(name: str) -> str:
    """What a log in the other byte order was written anew from."""
    file = name.removeprefix("synthetic-be/").replace("-be.xray", ".xray")
    folder = "basic" if file.startswith("basic") else "fdr" if file.endswith("v5.xray") else "fdr-old"
    return f"{folder}/{file}"


def _counts(told: str) -> dict[str, int]:
    if told.startswith("{"):
        found = ast.literal_eval(told.removesuffix(" bad 0"))
        return {NUMBERS.get(kind) or NAMES.get(kind, kind): count for kind, count in found.items()}
    pairs = [pair.rsplit(" ", 1) for pair in told.split(", ") if pair]
    # What the end of a buffer cuts is no record.
    return {NAMES.get(kind, kind): int(count) for kind, count in pairs if kind != "TRUNC_func"}


def test_every_log_has_the_records_the_corpus_says(xray_corpus: Path) -> None:
    expected = manifest(xray_corpus)
    logs = [path for folder in FOLDERS for path in sorted((xray_corpus / folder).glob("*.xray"))]
    assert len(logs) >= 42
    for path in logs:
        name = str(path.relative_to(xray_corpus))
        found = dict(perfuse.open(path).summary.records)
        if name in ("fdr-old/threads_custom-v2.xray", "fdr-old/threads_custom-v3.xray"):
            assert found.pop("BufferExtents") == 10, name
        assert found == expected[name], name


def test_every_line_of_the_manifest_is_a_log(xray_corpus: Path) -> None:
    absent = [name for name in manifest(xray_corpus) if not (xray_corpus / name).is_file()]
    # Some logs are kept back, to try what was never seen; their lines are in the manifest all the same.
    assert len(absent) < 5, absent
