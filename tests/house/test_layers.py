"""The crate graph: bytes and tables below, formats and engine beside each other, Python on top."""

import re
from collections import defaultdict
from pathlib import Path

ASSOCIATED = {"Item", "Error", "Output", "Target", "Builder"}
"""Names of associated types, which traits prescribe."""

BYTES = {
    "perfuse-addresses",
    "perfuse-wire",
    "perfuse-tables",
    "perfuse-recording",
    "perfuse-stopping",
    "perfuse-workers",
}
FOLDERS = sorted(path.parent.name for path in Path(__file__).parents[2].glob("crates/formats/*/Cargo.toml"))
FORMATS = {f"perfuse-{name.replace('_', '-')}" for name in FOLDERS if name != "registry"}
OWN: dict[str, set[str]] = {
    "perfuse-corpus": set(),  # for tests only
    "perfuse-stopping": set(),
    "perfuse-addresses": set(),
    "perfuse-allocator": {"perfuse-stopping"},
    "perfuse-workers": {"perfuse-stopping"},
    "perfuse-mapped": set(),
    "perfuse-wire": {"perfuse-stopping"},
    "perfuse-tables": {"perfuse-addresses", "perfuse-stopping"},
    "perfuse-recording": {
        "perfuse-wire",
        "perfuse-addresses",
        "perfuse-tables",
        "perfuse-mapped",
        "perfuse-stopping",
    },
    **dict.fromkeys(FORMATS, BYTES),
    "perfuse-formats": {"perfuse-wire", "perfuse-recording", *FORMATS},
    "perfuse-binaries": {"perfuse-addresses", "perfuse-tables", "perfuse-mapped", "perfuse-stopping"},
    "perfuse-disassembly": set(),
    "perfuse-engine": {
        "perfuse-addresses",
        "perfuse-tables",
        "perfuse-binaries",
        "perfuse-stopping",
        "perfuse-workers",
    },
    "perfuse-writers": {"perfuse-tables", "perfuse-engine", "perfuse-stopping"},
    "perfuse-symbolizer": {
        "perfuse-addresses",
        "perfuse-jitdump",
        "perfuse-mapped",
        "perfuse-sframe",
        "perfuse-wire",
    },
    "perfuse-symbolizer-c": {"perfuse-symbolizer"},
    "perfuse-example-embed": {"perfuse-symbolizer"},
    "perfuse-profile": {
        "perfuse-wire",
        "perfuse-tables",
        "perfuse-formats",
        "perfuse-binaries",
        "perfuse-disassembly",
        "perfuse-engine",
        "perfuse-stopping",
        "perfuse-workers",
        "perfuse-writers",
    },
    "perfuse-fuzzing": {
        "perfuse-symbolizer",
        "perfuse-wire",
        "perfuse-tables",
        "perfuse-formats",
        "perfuse-binaries",
        "perfuse-disassembly",
        "perfuse-engine",
        "perfuse-writers",
        "perfuse-profile",
    },
    "perfuse-python": {
        "perfuse-allocator",
        "perfuse-wire",
        "perfuse-tables",
        "perfuse-formats",
        "perfuse-binaries",
        "perfuse-disassembly",
        "perfuse-engine",
        "perfuse-stopping",
        "perfuse-workers",
        "perfuse-writers",
        "perfuse-profile",
    },
}


def test_crates_depend_downwards(crates: dict[str, set[str]]) -> None:
    """A format may do without one of the crates below it; every other crate has exactly its dependencies."""
    found = {name: {d for d in needed if d in OWN} for name, needed in crates.items()}
    assert {name: needed for name, needed in found.items() if name not in FORMATS} == {
        name: needed for name, needed in OWN.items() if name not in FORMATS
    }
    assert all(found[name] <= OWN[name] for name in FORMATS), {name: found[name] for name in FORMATS}


def test_only_one_crate_names_python(crates: dict[str, set[str]]) -> None:
    assert [name for name, needed in crates.items() if "pyo3" in needed] == ["perfuse-python"]


def test_crates_that_see_file_content_deny_panics(root: Path) -> None:
    for crate in (
        "addresses",
        "symbolizer",
        "wire",
        "recording",
        "binaries",
        "disassembly",
        "engine",
        "profile",
        *(f"formats/{name}" for name in FOLDERS),
    ):
        text = (root / "crates" / crate / "src" / "lib.rs").read_text(encoding="utf-8")
        for lint in ("unwrap_used", "expect_used", "indexing_slicing", "arithmetic_side_effects", "panic"):
            assert f"clippy::{lint}" in text, f"{crate} does not deny {lint}"


def test_bindings_stay_thin(root: Path) -> None:
    """Joining recordings is the profile crate's work: the bindings convert arguments and results."""
    sources = (root / "crates" / "python" / "src").rglob("*.rs")
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in sources) < 4900


def test_no_crate_is_large(root: Path) -> None:
    for manifest in (root / "crates").rglob("Cargo.toml"):
        sources = list((manifest.parent / "src").rglob("*.rs"))
        num_lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in sources)
        assert num_lines < 25_000, manifest.parent


def test_type_names_are_specific(root: Path) -> None:
    """Few type names are defined more than once over all crates: a name states which of them is meant."""
    defined = re.compile(r"^\s*(?:pub(?:\([a-z: ]+\))? )?(?:struct|enum|trait|type|union) ([A-Z]\w*)", re.MULTILINE)
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted((root / "crates").rglob("*.rs")):
        relative = path.relative_to(root)
        if not {"tests", "benches"} & set(relative.parts) and path.stem != "tests":
            for name in defined.findall(path.read_text(encoding="utf-8")):
                places[name].append(str(relative))
    repeated = {name: where for name, where in places.items() if len(where) > 1 and name not in ASSOCIATED}
    assert len(repeated) < 25, repeated


def test_parallel_work_runs_on_threads_that_a_forked_process_has(root: Path) -> None:
    """`rayon` outside a pool of ours uses its global pool, which a forked process waits for forever."""
    for source in (root / "crates").rglob("*.rs"):
        text = source.read_text(encoding="utf-8")
        if (
            "workers" in source.parts
            or "target" in source.parts
            or not re.search(r"par_iter|par_sort|par_chunks", text)
        ):
            continue
        assert "perfuse_workers::" in text, f"{source.name} works in parallel outside of perfuse_workers::install"
