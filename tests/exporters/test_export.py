"""Choice of the target, and atomic writing."""

import gzip
import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile

from perfuse.errors import ExportError, PerfuseError, UsageError
from perfuse.exporters import TARGETS, export, option_named, options_of, target_for, target_named


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_entry_is_true(target: Any) -> None:
    exporter = target.load()
    assert ("file" in target.outputs) == hasattr(exporter, "write")
    assert ("directory" in target.outputs) == hasattr(exporter, "write_directory")
    assert ("files" in target.outputs) == hasattr(exporter, "write_files")
    for output in target.outputs:
        target.options(output)
    assert target_named(target.name) is target
    for suffix in target.suffixes:
        assert target_for(f"a{suffix}") is target


def test_the_longest_suffix_wins_and_gz_is_ignored() -> None:
    assert target_for("p.json").name == "firefox"
    assert target_for("P.SPEEDSCOPE.JSON.gz").name == "speedscope"
    assert target_for("P.SPEEDSCOPE.JSON.zst").name == "speedscope"
    assert target_for("perf-12.map").name == "perf-map"


def test_unknown_targets_name_the_known_ones(small: FakeProfile, tmp_path: Path) -> None:
    """Once: in the hint, which follows the message."""
    names = ", ".join(target.name for target in TARGETS)
    for name, hint in (("firefx", "did you mean firefox?"), ("zzzz", f"known: {names}")):
        with pytest.raises(UsageError) as error:
            export(small, tmp_path / "x", to=name)
        assert (str(error.value), error.value.hint) == (f"there is no export target {name!r}", hint)
    with pytest.raises(UsageError, match=r"not of a known format$") as error:
        export(small, tmp_path / "x.bin")
    assert all((error.value.hint or "").count(f" {target.name} ({target.suffixes[0]}") == 1 for target in TARGETS)
    with pytest.raises(UsageError, match="the format of a stream must be given"):
        export(small, io.BytesIO())


def test_unknown_options_name_the_known_ones(small: FakeProfile, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"collapsed has no option 'roots'$") as error:
        export(small, tmp_path / "x.collapsed", roots="process")
    assert error.value.hint == "it takes root, annotate, weight, event"
    assert list(tmp_path.iterdir()) == []


def test_gz_is_packed_the_same_each_time(small: FakeProfile, tmp_path: Path) -> None:
    export(small, tmp_path / "a.json.gz")
    export(small, tmp_path / "b.json.gz")
    packed = (tmp_path / "a.json.gz").read_bytes()
    assert packed == (tmp_path / "b.json.gz").read_bytes()
    assert json.loads(gzip.decompress(packed))["meta"]["product"] == "app --jit; demo"


def test_standard_output(small: FakeProfile, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    export(small, "-", to="collapsed", root="none")
    assert capfdbinary.readouterr().out.startswith(b"Entry 1\n")


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text("before")
    with pytest.raises(ExportError):
        export(FakeProfile(), path)
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["p.json"]


def test_a_link_and_a_mode_stay(small: FakeProfile, tmp_path: Path) -> None:
    path, link = tmp_path / "real.collapsed", tmp_path / "link.collapsed"
    path.write_text("before")
    path.chmod(0o600)
    link.symlink_to(path)
    export(small, link)
    assert link.is_symlink()
    assert path.read_text().startswith("app 1\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_device_is_written_to(small: FakeProfile) -> None:
    export(small, "/dev/null", to="firefox")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_missing_directory_is_reported(small: FakeProfile, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="No such file or directory") as error:
        export(small, tmp_path / "none" / "p.json")
    assert error.value.path == str(tmp_path / "none" / "p.json")


def test_a_file_target_refuses_a_directory(small: FakeProfile, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written to directory"):
        export(small, tmp_path, to="firefox")


def test_a_target_of_several_files_needs_a_file_name(small: FakeProfile, tmp_path: Path) -> None:
    for place in (io.BytesIO(), "-", tmp_path, "/dev/null"):
        with pytest.raises(UsageError, match="perf-data cannot be written to") as error:
            export(small, place, to="perf-data")
        assert error.value.hint == "give a file name: others go beside it"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_option_can_be_given_as_text(target: Any) -> None:
    options = options_of(target)
    assert {option.name for option in options} == {name for out in target.outputs for name in target.options(out)}
    for option in options:
        assert option.description, f"{target.name}: {option.name} is not explained in Args"
        assert option.values
        if option.default is not None:
            assert option.parse(option.default_text) == option.default


def test_options_as_text() -> None:
    collapsed, perf_map = target_named("collapsed"), target_named("perf-map")
    assert option_named(collapsed, "root").parse("thread") == "thread"
    assert option_named(collapsed, "annotate").parse("yes") is True
    assert option_named(perf_map, "at").parse("0.5") == 0.5
    assert option_named(perf_map, "pid").parse("12") == 12
    svg = target_named("svg")
    assert option_named(svg, "threads").parse("3,4,5") == (3, 4, 5)
    assert option_named(svg, "time_ns").parse("3,4") == (3, 4)
    with pytest.raises(UsageError, match="time_ns is not '3'") as error:
        option_named(svg, "time_ns").parse("3")
    assert error.value.hint == "time_ns is N,N"
    with pytest.raises(UsageError, match="root is not 'x'") as error:
        option_named(collapsed, "root").parse("x")
    assert error.value.hint == "root is process, thread, none"
    for name, hint in (("rot", "did you mean root?"), ("zzzz", "it takes root, annotate, weight, event")):
        with pytest.raises(UsageError, match=f"collapsed has no option '{name}'$") as error:
            option_named(collapsed, name)
        assert error.value.hint == hint


def test_errors_carry_their_facts() -> None:
    error = PerfuseError("no", path="a", offset=7, record_index=1, field="f", hint="h")
    assert (error.path, error.offset, error.record_index, error.field, error.hint) == ("a", 7, 1, "f", "h")
    assert str(error) == "no"
