"""Objects that were closed are shown as such, in notebooks, too; an error is not its own cause."""

from pathlib import Path
from typing import Any

import pytest

import perfuse as pf
from perfuse.table import Table

STACKS = "main;work 3\nmain;rest 1\n"


def test_a_closed_profile_is_shown_as_closed(tmp_path: Path) -> None:
    (tmp_path / "a.folded").write_text(STACKS)
    with pf.fuse(tmp_path / "a.folded") as profile:
        built, other = profile.tables["samples"], profile.tables["stacks"]
        assert built.num_rows == 2
        assert "a.folded" in repr(profile)
        assert all(shown._repr_html_() for shown in (profile, built, other))
    with pf.fuse(tmp_path / "a.folded") as profile:
        built, other = profile.tables["samples"], profile.tables["stacks"]
        assert built.num_rows == 2
    assert repr(profile).endswith(": closed>")
    assert profile._repr_html_() is None
    assert built._repr_html_()
    assert "2 rows" in repr(built)
    assert "closed" in repr(other)
    assert other._repr_html_() is None


class Broken:
    """A stream that cannot be read."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise RuntimeError("of this test")


def test_an_error_of_a_table_is_not_its_own_cause() -> None:
    """Programs that follow `__cause__` come to an end."""
    build: Any = Broken
    with pytest.raises(RuntimeError, match="of this test") as raised:
        Table("samples", build).to_arrow()
    assert raised.value.__cause__ is not raised.value
