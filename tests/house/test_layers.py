"""The crate graph: bytes and tables below, formats and engine beside each other, Python on top."""

from pathlib import Path

OWN = {
    "perfuse-wire": set[str](),
    "perfuse-tables": set[str](),
    "perfuse-formats": {"perfuse-wire", "perfuse-tables"},
    "perfuse-engine": {"perfuse-tables"},
    "perfuse-python": {"perfuse-wire", "perfuse-tables", "perfuse-formats", "perfuse-engine"},
}


def test_crates_depend_downwards(crates: dict[str, set[str]]) -> None:
    assert {name: {d for d in needed if d in OWN} for name, needed in crates.items()} == OWN


def test_only_one_crate_names_python(crates: dict[str, set[str]]) -> None:
    assert [name for name, needed in crates.items() if "pyo3" in needed] == ["perfuse-python"]


def test_bytes_and_formats_refuse_what_hostile_input_breaks(root: Path) -> None:
    for crate in ("wire", "formats"):
        text = (root / "crates" / crate / "src" / "lib.rs").read_text(encoding="utf-8")
        for lint in ("unwrap_used", "expect_used", "indexing_slicing", "arithmetic_side_effects", "panic"):
            assert f"clippy::{lint}" in text, f"{crate} does not deny {lint}"
