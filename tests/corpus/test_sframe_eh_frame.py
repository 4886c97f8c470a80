"""SFrame sections of real producers: compared with the .eh_frame of the same file, and made again from it."""

import os
from pathlib import Path

import pytest

import perfuse as pf
from perfuse import sframe

BESIDE = Path(__file__).parents[3] / "shared" / "corpus"
CORPUS = Path(os.environ.get("PERFUSE_CORPUS", BESIDE)) / "sframe"
FILES = sorted(
    path
    for folder in ("v1", "v2", "v3", "concat", "perf")
    for path in (CORPUS / folder).rglob("*")
    if path.is_file() and (path.suffix in {".so", ".o", ".elf"} or path.name.startswith("deep_"))
)
LINKED = [path for path in FILES if path.suffix != ".o" and "concat" not in path.parts]

DEFECTS = {
    # `.cfi_remember_state` is nested; `.cfi_undefined` is not representable in versions 1 and 2.
    "v1/x86_64/nest.so": {"SF073": {0x1008}, "SF074": {0x1005}, "SF078": {0x100B}},
    "v2/x86_64/nest.so": {"SF071": {0x102A}, "SF073": {0x1008}, "SF074": {0x1005}, "SF078": {0x100B}},
    "v3/x86_64/nest.so": {"SF074": {0x1006}},
    "v2/x86_64/nest_llvm22.o": {"SF071": {0x2A}, "SF072": {0x2E}, "SF073": {0x8}, "SF078": {0xB}},
    # PLTs of `-z ibtplt` have the rows of another kind of PLT.
    "v1/x86_64/small_ibt.elf": {"SF075": {0x1039, 0x1080, 0x1086}},
}


def name_of(path: Path) -> str:
    return path.relative_to(CORPUS).as_posix()


def expected(path: Path) -> dict[str, set[int]]:
    """Addresses of its producer's defects, by diagnostic code."""
    name = name_of(path)
    if name in DEFECTS:
        return DEFECTS[name]
    has_plt = path.suffix != ".o" and "concat" not in path.parts and ("x86_64" in name or "deep" in name)
    if has_plt and "v1" not in name:
        # Every stub of .plt.got has the rows of a stub of .plt.
        got = next(one for one in sframe.open(path).coverage[0].code if one.name == ".plt.got")
        return {"SF075": {got.address}}
    return {}


def found(path: Path) -> dict[str, set[int]]:
    differing: dict[str, set[int]] = {}
    for one in pf.check(path):
        if one.code.startswith("SF07"):
            address = int(one.message.split(" at ")[1].split()[0], 16)
            differing.setdefault(one.code, set()).add(address)
    return differing


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_defects_of_producers_are_found_and_no_others(path: Path) -> None:
    assert found(path) == expected(path)


Shape = tuple[int, int, int | None, bool, bool]


def rows(path: Path) -> dict[Shape, list[tuple[object, ...]]]:
    """Functions with their rows; a row equal to the row before it is left out."""
    tables = pf.open(path).tables
    functions = tables["unwind_functions"].to_arrow().to_struct_array().to_pylist()
    columns = ("start_address", "size_bytes", "repeat_bytes", "is_signal", "is_key_b")
    shapes = {one["unwind_function_id"]: tuple(one[name] for name in columns) for one in functions}
    by_function: dict[Shape, list[tuple[object, ...]]] = {shape: [] for shape in shapes.values()}
    for row in tables["unwind_rows"].to_arrow().to_struct_array().to_pylist():
        rules = tuple(row[name] for name in row if name.startswith(("cfa", "fp", "ra", "outermost")))
        before = by_function[shapes[row["unwind_function_id"]]]
        if not before or before[-1][1] != rules:
            before.append((row["start_offset"], rules))
    return by_function


@pytest.mark.parametrize("path", LINKED, ids=name_of)
def test_sections_made_again_equal_the_assemblers_except_for_defects(path: Path, tmp_path: Path) -> None:
    version = sframe.open(path).headers[0].version
    made = sframe.from_eh_frame(path, version=version)
    made.section.write_into(path, tmp_path / "rewritten")
    assert found(tmp_path / "rewritten") in ({}, {"SF078": {0x100B}})
    code = {one.name: range(one.address, one.address + one.size_bytes) for one in sframe.open(path).coverage[0].code}
    wrong = {address for addresses in expected(path).values() for address in addresses}
    ours, theirs = rows(tmp_path / "rewritten"), rows(path)
    for shape, function in theirs.items():
        start, size, *_ = shape
        # Linkers divide PLTs differently; their rows are compared above.
        is_plt = any(start in within for name, within in code.items() if name.startswith(".plt"))
        if size and not is_plt and not any(start <= address < start + size for address in wrong):
            assert ours[shape] == function, hex(start)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_compiled_library_is_representable_in_every_version(version: int) -> None:
    path = CORPUS / f"v{version}" / "x86_64" / "libsqlite.so"
    if not path.exists():
        pytest.skip("no corpus")
    coverage = sframe.open(path).coverage[0]
    assert coverage.agreement.num_functions >= 1608
    assert coverage.agreement.num_stretches >= 18_000
    assert coverage.agreement.is_complete
    assert sframe.from_eh_frame(path, version=version).unsupported == []
