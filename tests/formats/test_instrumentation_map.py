"""Instrumentation maps in Python: the tables, and the report of a map alone."""

import json
import os
import re
from itertools import pairwise
from pathlib import Path

import pytest

import perfuse
from perfuse.diagnostics import rules
from perfuse.errors import UnreadableInput
from perfuse.programs.instrumentation_map import InstrumentationMap
from perfuse.reports.json_text import json_text
from perfuse.reports.text import Style, cell_width
from perfuse.reports.xray_map import sled_map_lines, sled_map_report

EXTRACTED = re.compile(
    r"- { id: (\d+), address: 0x(\w+), function: 0x(\w+), kind: ([\w-]+), .*name: '?(.*?)'?, version"
)


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The corpus' XRay folder."""
    beside = Path(__file__).parents[3] / "shared" / "corpus"
    folder = Path(os.environ.get("PERFUSE_CORPUS", beside)) / "xray"
    if not folder.is_dir():
        pytest.skip(f"no corpus at {folder}")
    return folder


@pytest.fixture(scope="session")
def small(corpus: Path) -> InstrumentationMap:
    """The map of a small program, whose sleds `llvm-xray extract` lists in `small22.instrmap.yaml`."""
    return InstrumentationMap.open(corpus / "bin" / "small22")


def extracted(corpus: Path) -> list[tuple[int, int, int, str, str]]:
    text = (corpus / "expected" / "small22.instrmap.yaml").read_text(encoding="utf-8")
    found = EXTRACTED.findall(text)
    return [(int(number), int(at, 16), int(of, 16), kind, name) for number, at, of, kind, name in found]


def test_the_tables_are_what_llvm_xray_extracts(small: InstrumentationMap, corpus: Path) -> None:
    expected = extracted(corpus)
    sleds = small.sleds
    columns = (sleds.column(name).to_pylist() for name in ("function_id", "address", "function_address", "kind"))
    assert list(zip(*columns, strict=True)) == [row[:4] for row in expected]
    names = dict(zip(small.functions.column("id").to_pylist(), small.functions.column("name").to_pylist(), strict=True))
    # LLVM's names of templates have the return type as well.
    assert all(name == names[number] or name.endswith(" " + names[number]) for number, *_, name in expected)
    assert len(small) == len(names)
    assert (small.architecture, small.pointer_bytes, small.version, small.versions) == ("x86_64", 8, 2, (2,))
    assert sum(small.kinds.values()) == sleds.num_rows == len(expected)
    assert small.findings == []
    assert "18 functions, x86_64" in repr(small)


def test_a_map_that_llvm_xray_extracted(small: InstrumentationMap, corpus: Path) -> None:
    """The same numbers as those of the program, and LLVM's names."""
    of_yaml = InstrumentationMap.open(corpus / "expected" / "small22.instrmap.yaml")
    for name in ("function_id", "address", "function_address", "kind", "always_instrument", "version"):
        assert of_yaml.sleds.column(name).to_pylist() == small.sleds.column(name).to_pylist()
    names = dict(zip(*(of_yaml.functions.column(one).to_pylist() for one in ("id", "name")), strict=True))
    assert names == {number: name for number, *_, name in extracted(corpus)}
    assert (of_yaml.architecture, of_yaml.versions, of_yaml.findings) == ("unknown", (2,), [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- { id: 1, kind: function-enter", "the file ends in a sled (offset 0x1f)"),
        ("---\n- { id: 2, kind: function-enter }\n", "ids of functions do not follow each other (offset 0x5)"),
        ("- { id: 1, kind: other }\n", "a value is not one of its key (offset 0x10)"),
        ("- { id: 1, kind: tail-exit }\nwords\n", "neither a sled nor the end of the list (offset 0x1d)"),
    ],
)
def test_yaml_that_is_no_map(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(text, encoding="ascii")
    with pytest.raises(UnreadableInput, match=re.escape(message)):
        InstrumentationMap.open(path)


def test_functions_of_a_log_have_the_names_of_an_extracted_map(corpus: Path) -> None:
    """As with the program itself, but for the return types that LLVM writes of templates."""
    log, program = corpus / "fdr" / "small-v5.xray", corpus / "bin" / "small22"
    sql = "SELECT native_id, name::VARCHAR FROM functions ORDER BY 1"
    of_program = perfuse.fuse(log, maps={0: program}).sql(sql).fetchall()
    of_yaml = perfuse.fuse(log, maps={0: corpus / "expected" / "small22.instrmap.yaml"}).sql(sql).fetchall()
    assert len(of_program) > 5
    assert [number for number, _ in of_yaml] == [number for number, _ in of_program]
    for (_, name), (_, of_llvm) in zip(of_program, of_yaml, strict=True):
        assert of_llvm == name or of_llvm.endswith(" " + name)


def test_debug_information_says_where_functions_are_declared(corpus: Path) -> None:
    path = corpus / "bin" / "sqmt22-g1"
    with_lines, without = InstrumentationMap.open(path), InstrumentationMap.open(path, debug_info=False)
    assert with_lines.functions.column("name").to_pylist() == without.functions.column("name").to_pylist()
    lines = with_lines.functions.column("line").to_pylist()
    assert sum(line is not None for line in lines) > len(lines) * 0.9
    assert set(without.functions.column("line").to_pylist()) == {None}


def test_the_report_as_text(small: InstrumentationMap) -> None:
    report = sled_map_report(small, limit=3)
    lines = list(sled_map_lines(report, Style()))
    assert (
        "  sleds      39: 16 function-enter, 16 function-exit, 3 tail-exit, 2 log-args-enter, 2 custom-event" in lines
    )
    assert "   1  0x24630  demo::Acc::add(long)      enter, exit  yes" in lines
    assert lines[-1] == "  … 15 more (--limit 0 shows all)"
    whole = list(sled_map_lines(sled_map_report(small), Style(width=60)))
    assert len(whole) == len(lines) + 14
    assert max(map(cell_width, whole[8:])) <= 60


def test_the_report_as_json(small: InstrumentationMap, corpus: Path) -> None:
    document = json.loads(json_text(sled_map_report(small).as_json()))
    assert (document["kind"], document["architecture"], document["versions"]) == ("instrumentation_map", "x86_64", [2])
    assert (document["num_functions"], document["num_sleds"], document["findings"]) == (18, 39, [])
    sleds = [
        (function["id"], int(sled["address"], 16), int(function["address"], 16), sled["kind"])
        for function in document["functions"]
        for sled in function["sleds"]
    ]
    assert sleds == [row[:4] for row in extracted(corpus)]
    assert all(one["id"] < other["id"] for one, other in pairwise(document["functions"]))


def test_damage_is_reported(corpus: Path, tmp_path: Path) -> None:
    whole = (corpus / "bin" / "small22").read_bytes()
    offset = InstrumentationMap.open(corpus / "bin" / "small22").sleds.column("offset")[0].as_py()
    damaged = tmp_path / "damaged"
    damaged.write_bytes(whole[: offset + 16] + b"\x09" + whole[offset + 17 :])
    sled_map = InstrumentationMap.open(damaged)
    [finding] = sled_map.findings
    assert (finding.code, finding.severity, finding.offset, finding.path) == (
        "XM004",
        "warning",
        offset + 16,
        str(damaged),
    )
    assert finding.message == "a sled has kind 9; 0 to 5 are known"
    assert sled_map.kinds["unknown-9"] == 1
    shown = list(sled_map_lines(sled_map_report(sled_map), Style()))
    assert shown[-1] == f"  XM004  warning  {offset + 16:#x}  {finding.message}"
    assert json.loads(json_text(sled_map_report(sled_map).as_json()))["findings"][0]["code"] == "XM004"


def test_files_without_a_map_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no program", encoding="utf-8")
    for path, words in (
        (text, "not a readable ELF or Mach-O file"),
        (tmp_path / "none", "cannot read"),
        (tmp_path, "cannot read"),
    ):
        with pytest.raises(UnreadableInput, match=words) as refused:
            InstrumentationMap.open(path)
        assert refused.value.path == str(path)


def test_a_program_without_sleds_is_refused() -> None:
    import perfuse._core

    with pytest.raises(UnreadableInput, match="no section xray_instr_map") as refused:
        InstrumentationMap.open(perfuse._core.__file__)
    assert refused.value.hint is not None
    assert "-fxray-instrument" in refused.value.hint


def test_every_finding_has_its_rule() -> None:
    codes = [code for code, rule in rules().items() if rule.format == "instrumentation_map"]
    assert codes == [f"XM{number:03}" for number in range(1, len(codes) + 1)]
