"""Hints of commands that cannot do what was asked: each leads to a command that can."""

import io
import json
import os
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from command_line import Perfuse

import perfuse as pf
from perfuse.errors import UnreadableInput
from perfuse.exporters import TARGETS


@pytest.mark.parametrize("words", [("--to", "nosuch", "-o", "x.json"), ("-o", "x.nosuch")])
def test_an_unknown_target_lists_the_targets_once(perfuse: Perfuse, words: tuple[str, ...]) -> None:
    done = perfuse("convert", "perf.data", *words)
    assert done.code == 2
    listed = done.err.replace(",", " ").split()
    assert [listed.count(target.name) for target in TARGETS] == [1] * len(TARGETS)


def test_a_perf_data_without_samples_does_not_ask_for_a_perf_data(perfuse: Perfuse, recordings: Path) -> None:
    """perf's event `dummy` never occurs."""
    empty = recordings / "empty.perf.data"
    subprocess.run(["perf", "record", "-q", "-e", "dummy", "-o", empty, "true"], check=True, capture_output=True)
    done = perfuse("flame", str(empty), "-o", "flame.html")
    assert done.code == 2
    assert "no sample was taken" in done.err
    assert "open the perf.data" not in done.err
    dump = perfuse("flame", "jit-2345.dump", "-o", "flame.html")
    assert "open the perf.data that goes with the dump as well" in dump.err


@pytest.mark.parametrize("name", ["x.png", "x.pdf", "x", "x.folded"])
def test_a_flame_graph_is_not_written_under_another_suffix(perfuse: Perfuse, recordings: Path, name: str) -> None:
    """A picture viewer could not open a page that is called `.png`."""
    done = perfuse("flame", "perf.data", "-o", name)
    assert done.code == 2
    assert f".html or .svg, not as '{name}'" in done.err
    assert "--to" in done.err
    assert not (recordings / name).exists()
    assert perfuse("flame", "perf.data", "-o", name, "--to", "svg").code == 0
    assert (recordings / name).read_text(encoding="utf-8").startswith("<svg ")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory and a PATH with nothing in them."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PYENV_ROOT", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def program(path: Path, prints: str) -> None:
    """A program that prints a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{prints}'\n", encoding="ascii")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def producer(perfuse: Perfuse, name: str) -> dict[str, str]:
    """What `doctor` reports of a producer."""
    found = json.loads(perfuse("doctor", "--json").out)["producers"]
    return next(one for one in found if one["name"] == name)


def test_doctor_looks_for_the_agent_of_java(perfuse: Perfuse, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(machine / "bin" / "java", 'openjdk version "17.0.15"')
    monkeypatch.setattr("perfuse.capture.installed.LIBRARY_DIRECTORIES", ("~/lib",))
    without = producer(perfuse, "java")
    assert without["state"] == "limited"
    assert "no libperf-jvmti.so" in without["detail"]
    (machine / "lib").mkdir()
    agent = machine / "lib" / "libperf-jvmti.so"
    agent.touch()
    found = producer(perfuse, "java")
    assert (found["state"], found["advice"]) == ("good", f"java -agentpath:{agent} CLASS")
    (machine / "other").mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{machine / 'other'}{os.pathsep}/nowhere")
    (machine / "other" / "libperf-jvmti.so").touch()
    assert str(machine / "other") in producer(perfuse, "java")["advice"]


@pytest.mark.parametrize("root", [".pyenv", "elsewhere"])
def test_doctor_finds_the_pythons_of_pyenv(
    perfuse: Perfuse, machine: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    if root != ".pyenv":
        monkeypatch.setenv("PYENV_ROOT", str(machine / root))
    program(machine / "bin" / "python3", "Python 3.11.2")
    assert producer(perfuse, "python")["state"] == "limited"
    versions = machine / root / "versions"
    for version in ("3.12.1", "3.13.0", "3.13.11"):
        program(versions / version / "bin" / f"python{version.rpartition('.')[0]}", f"Python {version}")
    found = producer(perfuse, "python")
    newest = versions / "3.13.11" / "bin" / "python3.13"
    assert (found["state"], found["detail"]) == ("good", "python3.13 3.13.11")
    assert found["advice"] == f"{newest} -X perf_jit SCRIPT"


@pytest.mark.parametrize("verb", ["report", "info", "check", "records"])
def test_an_empty_file_is_reported_as_empty(perfuse: Perfuse, recordings: Path, verb: str) -> None:
    (recordings / "new.data").write_bytes(b"")
    done = perfuse(verb, "new.data")
    assert (done.code, done.out) == (3, "")
    assert "new.data: the file is empty" in done.err
    assert "it may still be written" in done.err
    (recordings / "zeros.data").write_bytes(bytes(8))
    assert "unknown magic" in perfuse(verb, "zeros.data").err
    (recordings / "begun.data").write_bytes(b"PE")
    assert "short data in magic: need 4, have 2" in perfuse(verb, "begun.data").err


def test_an_empty_stream_is_reported_as_empty() -> None:
    with pytest.raises(UnreadableInput, match="nothing was written"):
        pf.open(io.BytesIO())
    with pytest.raises(UnreadableInput, match="empty"):
        pf.open(b"")


SHOP = Path(__file__).parents[2] / "examples" / "mono_shop" / "output.mlpd.zst"
"""A log with samples and allocations."""


@pytest.mark.parametrize("name", ["x.html", "x.svg"])
def test_a_flame_graph_of_one_of_several_events_names_the_option_for_others(perfuse: Perfuse, name: str) -> None:
    done = perfuse("flame", str(SHOP), "-o", name)
    assert "only event sample is written" in done.err
    assert "hint: --event NAME writes another event" in done.err
    for event in ("allocations", "sample"):
        assert perfuse("flame", str(SHOP), "-o", name, "--event", event).err == f"perfuse: wrote {name}\n"
    converted = perfuse("convert", str(SHOP), "-o", "x.folded")
    assert "hint: -O event=NAME writes another event" in converted.err


def test_a_flame_graph_shows_the_event_that_is_named(perfuse: Perfuse, recordings: Path) -> None:
    for words in (("--event", "allocated-bytes"), ("--weight", "bytes")):
        assert perfuse("flame", str(SHOP), "-o", f"{words[0]}.svg", *words).code == 0
    assert (recordings / "--event.svg").read_bytes() == (recordings / "--weight.svg").read_bytes()
    unknown = perfuse("flame", str(SHOP), "-o", "x.svg", "--event", "cycles")
    assert (unknown.code, "there are sample, allocated-bytes" in unknown.err) == (2, True)
    both = perfuse("flame", str(SHOP), "-o", "x.svg", "--event", "sample", "--weight", "bytes")
    assert (both.code, "give one of them" in both.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("report dangling", "cannot read dangling", "it is a link to nowhere.data, which does not exist"),
        ("report cut.data", "short data in", "it was cut short, or is still written"),
        ("report perf.data --between", "'--between' requires an argument", "`perfuse report --help`"),
        ("report perf.data --only /(/", "not a valid regular expression", "without the slashes"),
        ("report perf.data --hide * --tree", "--hide '*' leaves no sample", "recorded were"),
        ("report perf.data --hide *", "nothing to report: --hide '*' selects", "without it"),
        ("records perf.data --style readelf-2.47", "not SFrame", "`perfuse records --help`"),
        ("query perf.data DELETE\\ FROM\\ samples", "Can only delete from base table", "`perfuse query --help`"),
        ("record --what heap -- true", "add --with mono", "`perfuse record --help`"),
        ("mcp perf.data", "perf.data is not a directory", "name the directory that contains the recordings"),
        (
            "annotate xray-log.server.uocuES --map server run",
            "these files contain no code",
            "samples (perf.data) and dumps",
        ),
        ("records perf.data --range 99999999..", "no record is in that range", "the whole file is --range 0.."),
    ],
)
def test_a_command_that_cannot_do_its_work_states_the_next_step(
    perfuse: Perfuse, recordings: Path, words: str, message: str, hint: str
) -> None:
    (recordings / "dangling").symlink_to("nowhere.data")
    (recordings / "cut.data").write_bytes((recordings / "perf.data").read_bytes()[:50])
    unreadable = ("report dangling", "report cut.data", "mcp perf.data")
    done = perfuse(*shlex.split(words))
    assert (done.code, done.out) == (3 if words in unreadable else 2, "")
    assert message in done.err
    assert f"hint: {hint}" in done.err.replace("the file ends inside its header: ", "")


def test_what_looks_at_files_takes_all_recordings_of_a_directory(perfuse: Perfuse, recordings: Path) -> None:
    """A dump under any name, a recording under any name, one in a folder of it; not the other files."""
    run = recordings / "run"
    (run / "more").mkdir(parents=True)
    shutil.copy(recordings / "jit-2345.dump", run / "renamed")
    shutil.copy(recordings / "perf.data", run / "perf.data")
    shutil.copy(recordings / "perf.data", run / "more" / "other")
    (run / "record.json").write_text("{}")
    expected = ["run/more/other", "run/perf.data", "run/renamed"]
    for verb in ("info", "check"):
        entries = json.loads(perfuse(verb, "run", "--json").out)["recordings"]
        assert [one["path"] for one in entries] == expected
    assert perfuse("info", "run/perf.data", "run/more").out.count("perf.data version") == 2
    (recordings / "none").mkdir()
    nothing = perfuse("check", "none")
    assert (nothing.code, nothing.out) == (2, "")
    assert "no recording in none" in nothing.err
