"""SQL over names that look like SQL, end texts or have no printable character: they come back as they were recorded."""

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import perfuse as pf

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=24)
HOSTILE = [
    "'; DROP TABLE functions; --",
    '"); SELECT * FROM read_text(\'/etc/passwd\'); --',
    "$$", "${name}", "?", "$1", "%s", "\\", "''", '""', "\x1b[2J", "\u202e", "\ufeff", "NULL", "-- ", "/*",
]  # fmt: skip


def code(names: list[str]) -> pf.Profile:
    """A profile of code with these names."""
    out = io.BytesIO()
    with pf.jitdump.Writer(out, pid=1, timestamps=iter(range(1, 1000)).__next__) as writer:
        for number, name in enumerate(names):
            writer.code_load(name, 0x1000 * (number + 1), b"\xc3")
    return pf.fuse(out.getvalue())


@settings(max_examples=40)
@example(HOSTILE)
@given(st.lists(NAMES, min_size=1, max_size=8, unique=True))
def test_names_come_back_as_they_are(names: list[str]) -> None:
    profile = code(names)
    rows = profile.sql("SELECT linkage_name::VARCHAR FROM functions").fetchall()
    assert sorted(name for (name,) in rows) == sorted(names)
    for name in names:
        query = "SELECT count(*) FROM functions WHERE linkage_name = $name"
        assert profile.sql(query, {"name": name}).fetchall() == [(1,)]
    listed = "SELECT count(DISTINCT linkage_name) FROM functions WHERE list_contains(?, linkage_name::VARCHAR)"
    assert profile.sql(listed, [names]).fetchall() == [(len(names),)]


@settings(max_examples=40)
@example("functions; DROP TABLE functions")
@example('a"b')
@given(NAMES)
def test_a_name_of_a_users_table_is_a_name_or_refused(name: str) -> None:
    profile = code(["f"])
    quoted = '"' + name.replace('"', '""') + '"'
    try:
        rows = profile.sql(f"SELECT * FROM {quoted}", frames={name: profile.sql("SELECT 7 AS seven")}).fetchall()
    except pf.PerfuseError:
        rows = [(7,)]
    assert rows == [(7,)]
    assert profile.sql("SELECT count(*) FROM functions").fetchall() == [(1,)]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_query_that_is_a_name_is_an_error(name: str) -> None:
    profile = code(["f"])
    with pytest.raises(pf.PerfuseError):
        profile.sql(f"SELECT {name}\x01 FROM functions WHERE").fetchall()
    assert profile.sql("SELECT count(*) FROM functions").fetchall() == [(1,)]
