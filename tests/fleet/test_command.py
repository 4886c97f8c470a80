"""`perfuse fleet` on the command line: its examples, its errors, its exit codes, its JSON."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from fleet.generated import Written, write_collapsed, write_fleet
from needs import need
from perf_crafting import Attribute, PerfFile
from perfuse.cli import run
from perfuse.cli.app import context_of
from perfuse.fleet.questions import select_event
from perfuse.fleet.selecting import parse_recordings
from perfuse.fleet.stacks import collapsed_stacks

Call = Callable[..., tuple[int, str, str]]

EXAMPLES = context_of("fleet").command.examples


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
    assert (prepared / "bad.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "bad.html" in err
    code, out, _ = perfuse("fleet", "check", "profiles", "new.folded", "--against", where, "-o", "good.html")
    assert code == 0
    assert "no growth beyond the noise" in out


def test_what_was_added_before_it_is_checked_is_not_compared_with_itself(
    prepared: Path, perfuse: Call, written: Written
) -> None:
    """Eight new recordings with twice as much of a function are the last eight of the dataset, too."""
    new = []
    for number, path in enumerate(written.paths[:8]):
        stacks = {stack: n * (2 if stack.endswith("blend") else 1) for stack, n in written.stacks[str(path)].items()}
        new.append(str(write_collapsed(prepared / "tonight" / f"{number}.folded", stacks, day=30)))
    assert perfuse("fleet", "add", "profiles", *new)[0] == 0
    for against, num_base in (("last 8", 8), ("last 20", 20)):
        code, out, err = perfuse("fleet", "check", "profiles", *new, "--against", against, "--json")
        found = json.loads(out)
        assert (code, found["recordings"], found["new"]) == (1, num_base, 8), err
        assert "blend" in {one["name"] for one in found["grown"]}
        assert "8 new recordings in the dataset already" in err
    code, _, err = perfuse("fleet", "check", "profiles", *new, "--against", "since 2026-11-20")
    assert code == 2
    assert "no recording of profiles" in err


def test_a_new_log_is_named_by_its_program(xray_corpus: Path, tmp_path: Path, perfuse: Call) -> None:
    """Logs of one program: without its map the new one's functions would be numbers, and all of them new."""
    logs = [str(next(xray_corpus.glob(f"{name}-v*.xray"))) for name in ("fdr/threads4-rotate", "basic/basic-threads")]
    new, program = str(xray_corpus / "fdr" / "threads4-v5.xray"), str(xray_corpus / "bin" / "threads22")
    assert perfuse("fleet", "add", str(tmp_path / "d"), *logs, "--map", program)[0] == 0
    words = ("fleet", "check", str(tmp_path / "d"), new, "--json", "-o", str(tmp_path / "check.html"))
    code, out, err = perfuse(*words, "--map", program)
    assert (code, json.loads(out)["grown"]) == (0, []), err
    code, out, _ = perfuse(*words)
    assert code == 1
    assert all(one["name"].startswith("function ") for one in json.loads(out)["grown"])


def test_a_recording_from_a_pipe_is_checked(prepared: Path, written: Written) -> None:
    """As of a process substitution: `fleet check profiles <(zcat new.folded.gz)`."""
    words = ["fleet", "check", "profiles", "/dev/stdin", "--json"]
    content = written.paths[5].read_bytes()
    command = [sys.executable, "-m", "perfuse", *words]
    done = subprocess.run(command, check=True, cwd=prepared, input=content, stdout=subprocess.PIPE)
    assert json.loads(done.stdout)["new"] == 1


def test_a_new_function_has_no_relative_change(tmp_path: Path, perfuse: Call) -> None:
    for number in range(12):
        stacks = {"main;first": 500 + 5 * number, "main;second": 400, "main;new" if number > 5 else "main;old": 100}
        write_collapsed(tmp_path / "runs" / f"{number // 3}" / f"{number}.folded", stacks, day=number)
    labels = ("--labels-from", r"runs/(?P<build>\d)/")
    assert perfuse("fleet", "add", str(tmp_path / "d"), str(tmp_path / "runs"), *labels)[0] == 0
    _, out, _ = perfuse("fleet", "diff", str(tmp_path / "d"), "--since", "0", "--json")
    (step,) = (one for one in json.loads(out)["steps"] if one["name"] == "new")
    assert [step[name] for name in ("first", "before", "change", "low", "high")] == ["2", 0, None, None, None]
    _, out, _ = perfuse("fleet", "diff", str(tmp_path / "d"), "--since", "0")
    (line,) = (line.split() for line in out.splitlines() if line.split()[:1] == ["new"])
    assert line[1:2] + line[-3:-1] == ["2", "new", "-"]


def test_functions_of_one_name_are_named_with_their_files(tmp_path: Path, perfuse: Call) -> None:
    """Of two libraries with a function `helper` each, the first's takes three quarters."""
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
    records = [crafting.comm(attribute, 7, 7, "app")]
    for number, (library, num) in enumerate((("liba.so", 3), ("libb.so", 1)), 1):
        source, image, address = tmp_path / "x.c", tmp_path / library, 0x40_0000 * number
        source.write_text(f"int helper(int n) {{ return n * {number + 3}; }}", encoding="ascii")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(image), str(source)], check=True)
        symbols = subprocess.run(["nm", str(image)], check=True, capture_output=True, text=True).stdout
        (offset,) = (int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" T helper"))
        records.append(crafting.mmap2(attribute, 7, str(image), address, 0x4000))
        records += [crafting.sample(attribute, ip=address + offset, pid=7, tid=7, time=1000 + n) for n in range(num)]
    recording = PerfFile([attribute], records).write(tmp_path / "perf.data")
    assert perfuse("fleet", "add", str(tmp_path / "d"), str(recording), "--label", "build=1")[0] == 0
    _, out, _ = perfuse("fleet", "report", str(tmp_path / "d"), "--function", "helper", "--by", "build")
    lines = out.splitlines()
    for library, share in (("liba.so", "75.0%"), ("libb.so", "25.0%")):
        at = next(number for number, line in enumerate(lines) if line.startswith(f"helper ({library})"))
        assert lines[at + 2].split()[2] == share
    fleet, which = pf.fleet.open(tmp_path / "d"), parse_recordings("")
    stacks = collapsed_stacks(fleet, which, select_event(fleet, which, None)).decode().splitlines()
    assert sorted(stacks) == ["helper (liba.so) 3", "helper (libb.so) 1"]


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
    assert "--allow-files" not in err
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


def test_a_dataset_with_nothing_to_compare(tmp_path: Path, perfuse: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_collapsed(tmp_path / "only.folded", {"main;parse": 7})
    _, out, err = perfuse("fleet", "add", "profiles", "only.folded", "missing.data")
    assert out.startswith("profiles: 1 recording added, 1 in quarantine")
    assert err.splitlines()[:2] == [
        "perfuse: missing.data: No such file or directory",
        "perfuse: it is in quarantine",
    ]
    code, _, err = perfuse("fleet", "diff", "profiles")
    assert (code, err.splitlines()[0]) == (2, "perfuse: no recording with event 'samples' has a build")
    assert "--label build=NAME" in err
    code, _, err = perfuse("fleet", "check", "profiles", "only.folded")
    assert (code, err.splitlines()[0]) == (2, "perfuse: no recording of profiles is 'last 20', but for the new one")
    assert "`perfuse fleet add profiles FILE...`" in err
    write_collapsed(tmp_path / "new.folded", {"main;parse": 9})
    code, _, err = perfuse("fleet", "check", "profiles", "new.folded")
    assert (code, err.splitlines()[0].split(": ")[-1]) == (2, "the noise between recordings is not known")
    assert "`perfuse fleet add profiles FILE...`" in err


def test_recordings_of_other_events_are_stated(prepared: Path, perfuse: Call) -> None:
    """Five recordings have samples; one log has the times and numbers of its calls."""
    for number in range(5):
        (prepared / f"{number}.folded").write_text(f"main;work {number + 3}\n", encoding="utf-8")
    log = struct.pack("<HHIQ16x", 3, 0, 3, 1_000_000_000)
    log += b"".join(struct.pack("<HBBiQIIQ", 0, 0, kind, 7, 1000 + kind, 1, 1, 0) for kind in (0, 1))
    (prepared / "xray-log.a.AAAAAA").write_bytes(log)
    inputs = [*(f"{number}.folded" for number in range(5)), "xray-log.a.AAAAAA"]
    assert perfuse("fleet", "add", "mixed", *inputs[:5], "--label", "program=a")[0] == 0
    assert perfuse("fleet", "add", "mixed", inputs[5], "--label", "program=b")[0] == 0
    note = "1 recording without samples, which do not count here\n   hint: --event names another one: "
    for words in ("report mixed", "find mixed work", "flame mixed -o flame.svg", "diff mixed --by recording_id"):
        _, _, err = perfuse("fleet", *shlex.split(words))
        assert note in err, words
    assert "samples of 5 recordings" in (prepared / "flame.svg").read_text(encoding="utf-8")
    code, _, err = perfuse("fleet", "diff", "mixed", "program=a", "program=b")
    assert (code, "no recording of 'program=b' has event samples" in err) == (2, True)
    assert "without" not in perfuse("fleet", "report", "mixed", "--where", "program=a")[2]
