"""`perfuse fleet` on the command line: its examples, its errors, its exit codes, its JSON."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fleet.generated import Written, write_collapsed, write_fleet
from needs import need
from perfuse.cli import run
from perfuse.cli.app import command_named

Call = Callable[..., tuple[int, str, str]]

EXAMPLES = command_named("fleet").examples


@pytest.fixture
def perfuse(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command line; its exit code, output and messages."""
    monkeypatch.setenv("COLUMNS", "120")

    def call(*words: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = run(words)
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def prepared(tmp_path: Path, dataset: Path, written: Written, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory of the examples: a dataset, recordings of a night, of builds, and a new one."""
    shutil.copytree(dataset, tmp_path / "profiles")
    write_fleet(tmp_path / "nightly", ["x"], hosts=["n"], runs=2, seed=5, samples=500)
    write_fleet(tmp_path / "runs", ["50", "51"], hosts=["n"], runs=5, seed=6, samples=500)
    shutil.copy(written.paths[5], tmp_path / "new.folded")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(prepared: Path, perfuse: Call, example: str) -> None:
    _, *words = shlex.split(example)
    if "7d" in example:
        # The recordings are of the days that they state, whenever the test runs.
        words = [word.replace("since 7d", "since 2026-11-02") for word in words]
    if "open" in words:
        _, out, _ = perfuse("fleet", "query", "profiles", "SELECT recording_id FROM recordings LIMIT 1", "--json")
        words[-1] = json.loads(out)[0]["recording_id"][:8]
    code, out, err = perfuse(*words)
    assert code in {0, 1}, err
    assert out or "wrote" in err
    assert prepared.is_dir()


def test_add_reports_what_it_did(tmp_path: Path, perfuse: Call) -> None:
    good = write_collapsed(tmp_path / "a.folded", {"main;f": 3})
    bad = tmp_path / "b.data"
    bad.write_bytes(b"PERFILE2")
    code, out, err = perfuse("fleet", "add", str(tmp_path / "d"), str(good), str(bad), "--json")
    found = json.loads(out)
    assert code == 1, err
    assert (found["added"], found["kept"], [one["input"] for one in found["failed"]]) == (1, 0, [str(bad)])
    code, out, _ = perfuse("fleet", "add", str(tmp_path / "d"), str(good))
    assert code == 0
    assert "0 recordings added, 1 known" in out
    code, out, _ = perfuse("fleet", "status", str(tmp_path / "d"), "--json")
    found = json.loads(out)
    assert (found["num_recordings"], found["num_failed"], found["quarantine"][0]["files"]) == (1, 1, [str(bad)])


def test_check_fails_only_beyond_the_noise(prepared: Path, perfuse: Call, written: Written) -> None:
    bad = prepared / "bad.folded"
    stacks = {
        stack: n * (2 if stack.endswith("blend") else 1) for stack, n in written.stacks[str(written.paths[9])].items()
    }
    write_collapsed(bad, stacks)
    where = "until 2026-11-03T13:00"
    code, out, err = perfuse("fleet", "check", "profiles", str(bad), "--against", where, "-o", "bad.html", "--json")
    assert code == 1, err
    found = json.loads(out)
    assert [one["name"] for one in found["grown"]] == ["blend"]
    assert found["grown"][0]["low"] < 1.0 < found["grown"][0]["high"]
    assert (prepared / "bad.html").read_text(encoding="utf-8").count("blend") >= 1 or (
        prepared / "bad.html"
    ).stat().st_size
    assert "bad.html" in err
    code, out, _ = perfuse("fleet", "check", "profiles", "new.folded", "--against", where, "-o", "good.html")
    assert code == 0
    assert "no growth beyond the noise" in out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fleet report none", "no dataset in none"),
        ("fleet gc none", "no dataset in none"),
        ("fleet report profiles --where buidl=41", "has a label 'buidl'"),
        ("fleet report profiles --where buidl!=41", "did you mean build?"),
        ("fleet report profiles --by buidl", "has a label 'buidl'"),
        ("fleet diff profiles buidl=41 build=42", "has a label 'buidl'"),
        ("fleet diff profiles --since 41 --within servise", "did you mean service?"),
        ("fleet query profiles 'FROM recordings' --where buidl!=41", "has a label 'buidl'"),
        ("fleet report profiles --where build=nine", "no recording of profiles is 'build=nine'"),
        ("fleet report profiles --where nine", "'nine' does not select recordings"),
        ("fleet report profiles --event cycles", "no recording has event 'cycles'"),
        ("fleet report profiles --function nothing", "no function matches 'nothing'"),
        ("fleet report profiles --calls", "none of these recordings has calls"),
        ("fleet report profiles --heap", "none of these recordings has heap snapshots"),
        ("fleet report profiles --since 41", "--since is for diff, not for report"),
        ("fleet find profiles", "find needs one argument"),
        ("fleet diff profiles build=41", "diff takes two selections"),
        ("fleet diff profiles --since 9", "no recording has build '9'"),
        ("fleet query profiles 'SELECT nothing FROM recordings'", "nothing"),
        ("fleet query profiles \"SELECT * FROM read_csv('/etc/passwd')\"", "disabled"),
        ("fleet query profiles 'SELECT 1; SELECT 2'", "one statement is expected, not 2"),
        ("fleet flame profiles", "flame needs a file"),
        ("fleet open profiles zz", "no recording begins with 'zz'"),
        ("fleet add profiles", "nothing to add"),
        ("fleet add profiles nightly --label build", "write NAME=VALUE"),
        ("fleet add profiles nightly --label 'sp ace=1'", "'sp ace' is not a name of a label"),
        ("fleet add profiles nightly --labels-from '(?P<größe>.)' --label ärger=1", "'ärger' is not a name of a label"),
        ("fleet add profiles nightly --label day=monday", "'day' is a column of `recordings`"),
        ("fleet add profiles nightly --label build=1 --label build=2", "--label build has two values: '1' and '2'"),
        ("fleet add profiles nightly --engine inline --workers 3", "--engine pool has --workers"),
        ("fleet add profiles nightly --engine pool --scheduler tcp://127.0.0.1:1", "--scheduler is for --engine dask"),
    ],
)
def test_errors_state_what_is_wrong(prepared: Path, perfuse: Call, line: str, message: str) -> None:
    code, out, err = perfuse(*shlex.split(line))
    assert (code, out) == (2, ""), err
    assert message in err
    assert prepared.is_dir()
    assert not (prepared / "none").exists()


def test_without_the_extra_it_is_named(prepared: Path, perfuse: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "deltalake", None)
    code, _, err = perfuse("fleet", "status", "profiles")
    assert code == 2
    assert "pip install 'perfuse[fleet]'" in err
    assert prepared.is_dir()


def test_a_label_with_one_value_may_be_repeated(prepared: Path, perfuse: Call) -> None:
    assert prepared.is_dir()
    code, _, err = perfuse("fleet", "add", "again", "new.folded", "--label", "build=1", "--label", "build=1")
    assert code == 0, err
    assert perfuse("fleet", "report", "again", "--where", "build=1")[0] == 0


def test_the_command_for_names_that_are_not_utf8_can_be_pasted(tmp_path: Path, perfuse: Call) -> None:
    """bash renames the files, and both are read."""
    need("bash")
    inputs = tmp_path / "in"
    inputs.mkdir()
    for name, count in ((b"plain.collapsed", 1), (b"bad\xffname.collapsed", 2), (b"it's \\x \xfe.collapsed", 3)):
        Path(os.fsdecode(os.fsencode(inputs) + b"/" + name)).write_text(f"a;b {count}\n")
    assert perfuse("fleet", "add", str(tmp_path / "ds"), str(inputs))[0] == 1
    _, out, _ = perfuse("fleet", "status", str(tmp_path / "ds"))
    (line,) = [one for one in out.splitlines() if "read them again: " in one]
    command = line.split("read them again: ")[1].replace(
        "perfuse fleet", f"{shlex.quote(sys.executable)} -m perfuse fleet"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(perfuse("fleet", "status", str(tmp_path / "ds"), "--json")[1])
    assert found["num_recordings"] == 3
