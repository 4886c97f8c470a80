"""Tables of code with the rows that frames refer to: each of them, and of dumps no others but the last."""

from pathlib import Path

import pytest

import perfuse as pf
from perfuse.table import OF_DUMPS, Columns


@pytest.mark.parametrize("stem", ["node20", "openjdk17-jvmti", "jsc2.54-source", "cpython313"])
@pytest.mark.parametrize("table", OF_DUMPS)
def test_rows_of_code_are_those_that_frames_refer_to(jitdump_corpus: Path, stem: str, table: str) -> None:
    produced = jitdump_corpus / "produced"
    with pf.fuse(produced / f"{stem}.perf.data", produced / f"{stem}.dump") as profile:
        key = {"functions": "function_id", "code_objects": "code_object_id"}[table]
        names = [name for name in profile.tables[table].of_stacks.to_arrow().schema.names if name != "code"]
        found = dict(_rows(profile.tables[table].of_stacks, key, names))
        # Read again from the whole table, which SQL sees.
        whole = dict(_rows(profile.tables[table], key, names))
        referred = {number for number in Columns(profile.tables["frames"])[key] if number is not None}
        dumped = {number for (number,) in profile.sql("SELECT DISTINCT function_id FROM code_objects").fetchall()}
    assert found.items() <= whole.items()
    assert referred <= found.keys()
    of_dumps = found.keys() & (dumped if table == "functions" else whole.keys())
    # The last function is there for its key, which is the greatest.
    assert of_dumps <= (referred | {max(whole)} if table == "functions" else referred)
    assert table != "functions" or max(found) == max(whole)
    assert len(found) < len(whole)


def _rows(table: object, key: str, names: list[str]) -> list[tuple[int, tuple[object, ...]]]:
    columns = Columns(table)
    return list(zip(columns[key], columns.tuples(*names), strict=True))
