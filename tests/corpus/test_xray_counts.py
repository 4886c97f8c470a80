"""Every record of every XRay log is counted under the specification's name, and the numbers are those of the corpus."""

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
"""Record kinds that the corpus' manifest spells differently from the specification."""

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
"""Kinds by number, which some lines of the manifest have instead of names; BufferExtents is not among them."""

FOLDERS = ["basic", "dso", "fdr", "fdr-old", "synthetic", "synthetic-be"]


def manifest(corpus: Path) -> dict[str, dict[str, int]]:
    """Number of records by kind, for every log whose manifest line has them."""
    counts: dict[str, dict[str, int]] = {}
    for line in (corpus / "MANIFEST.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) >= 6 and cells[0].partition("/")[0] in FOLDERS:
            name, counts_text = cells[0], cells[-1]
            counts[name] = counts[_source(name)] if counts_text == "as the source file" else _counts(counts_text)
    return counts


def _source(name: str) -> str:
    """The log that a log in the other byte order was made from."""
    file = name.removeprefix("synthetic-be/").replace("-be.xray", ".xray")
    folder = "basic" if file.startswith("basic") else "fdr" if file.endswith("v5.xray") else "fdr-old"
    return f"{folder}/{file}"


def _counts(counts_text: str) -> dict[str, int]:
    if counts_text.startswith("{"):
        found = ast.literal_eval(counts_text.removesuffix(" bad 0"))
        return {NUMBERS.get(kind) or NAMES.get(kind, kind): count for kind, count in found.items()}
    pairs = [pair.rsplit(" ", 1) for pair in counts_text.split(", ") if pair]
    # A record that the end of a buffer cuts is not counted.
    return {NAMES.get(kind, kind): int(count) for kind, count in pairs if kind != "TRUNC_func"}


def test_record_counts_match_the_manifest(xray_corpus: Path) -> None:
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
    # Some logs of the manifest are withheld from the folders, to be unseen inputs of a later check.
    assert len(absent) < 5, absent
