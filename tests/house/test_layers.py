"""The crate graph: bytes and tables below, formats and engine beside each other, Python on top."""

from pathlib import Path

BYTES = {"perfuse-wire", "perfuse-tables", "perfuse-recording"}
FORMATS = {f"perfuse-{name}" for name in ("jitdump", "mono", "perf-data", "sframe", "xray")}
OWN: dict[str, set[str]] = {
    "perfuse-wire": set(),
    "perfuse-tables": set(),
    "perfuse-recording": {"perfuse-wire", "perfuse-tables"},
    **dict.fromkeys(FORMATS, BYTES),
    "perfuse-formats": {"perfuse-wire", "perfuse-recording", *FORMATS},
    "perfuse-binaries": {"perfuse-tables"},
    "perfuse-engine": {"perfuse-tables", "perfuse-binaries"},
    "perfuse-writers": {"perfuse-tables", "perfuse-engine"},
    "perfuse-python": {
        "perfuse-wire",
        "perfuse-tables",
        "perfuse-formats",
        "perfuse-binaries",
        "perfuse-engine",
        "perfuse-writers",
    },
}


def test_crates_depend_downwards(crates: dict[str, set[str]]) -> None:
    assert {name: {d for d in needed if d in OWN} for name, needed in crates.items()} == OWN


def test_only_one_crate_names_python(crates: dict[str, set[str]]) -> None:
    assert [name for name, needed in crates.items() if "pyo3" in needed] == ["perfuse-python"]


def test_crates_that_see_file_content_deny_panics(root: Path) -> None:
    for crate in ("wire", "recording", *(f"formats/{name}" for name in ("jitdump", "mono", "perf_data", "sframe", "xray", "registry"))):
        text = (root / "crates" / crate / "src" / "lib.rs").read_text(encoding="utf-8")
        for lint in ("unwrap_used", "expect_used", "indexing_slicing", "arithmetic_side_effects", "panic"):
            assert f"clippy::{lint}" in text, f"{crate} does not deny {lint}"
