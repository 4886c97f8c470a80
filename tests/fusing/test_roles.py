"""A recording contributes to a profile what its format declares, independent of the tables it fills."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import perfuse as pf
from fusing import mono_bytes

HALF_SECOND = 500_000_000
SUM = "SELECT count(*), sum(duration_ns) FROM slices WHERE kind = 'call'"
NODE20_PID, NODE20_START = 29793, 1_089_665_656_653
NOCLOCK_PID = 18494


def report(*arguments: str | Path) -> dict[str, object]:
    """The JSON of `perfuse report`."""
    command = ["perfuse", "report", "--json", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(("name", "pid"), [("node20", NODE20_PID), ("node20-noclock", NOCLOCK_PID), ("node20", 4)])
def test_durations_of_a_runtime_log_survive(jitdump_corpus: Path, tmp_path: Path, name: str, pid: int) -> None:
    """Five calls of half a second are 2.5 s, whether or not the samples have the process, on one clock or on two."""
    log = tmp_path / "m.mlpd"
    log.write_bytes(mono_bytes.log(pid, [HALF_SECOND] * 5, start_ns=NODE20_START))
    assert pf.fuse(log).sql(SUM).fetchall() == [(5, 5 * HALF_SECOND)]
    perf = jitdump_corpus / "produced" / f"{name}.perf.data"
    profile = pf.fuse(perf, log)
    assert profile.sql(SUM).fetchall() == [(5, 5 * HALF_SECOND)]
    assert [r.role for r in profile.recordings] == ["samples", "runtime_log"]


def test_a_runtime_log_with_the_pid_of_a_marker_is_reported(jitdump_corpus: Path, tmp_path: Path) -> None:
    log = tmp_path / "m.mlpd"
    log.write_bytes(mono_bytes.log(NODE20_PID, [HALF_SECOND] * 5, start_ns=NODE20_START))
    perf = jitdump_corpus / "produced" / "node20.perf.data"
    assert report(perf, log)["kind"]
    profile = pf.fuse(perf, log)
    (join,) = profile.joins
    assert (join.pid, join.found_by, join.alignment, join.offset_ns) == (NODE20_PID, "header_pid", "same_clock", 0)
    assert "FU002" in {d.code for d in profile.diagnostics}, "the log is not the dump that the process announced"


def test_a_runtime_log_is_aligned_by_the_first_use_of_its_code(jitdump_corpus: Path, tmp_path: Path) -> None:
    """The log's clock began 1,000 s before that of the samples; its code was compiled 1 ms before it was sampled."""
    perf = jitdump_corpus / "produced" / "node20-noclock.perf.data"
    (address, first_ns), *_ = (
        pf.fuse(perf)
        .sql(
            "SELECT ip, min(ts_ns) FROM (SELECT ts_ns, unnest(addresses) ip FROM callchains) "
            "GROUP BY 1 ORDER BY count(*) DESC"
        )
        .fetchall()
    )
    made_ns = first_ns - 1_000_000 + 1_000_000_000_000
    log = tmp_path / "m.mlpd"
    log.write_bytes(mono_bytes.log(NOCLOCK_PID, [HALF_SECOND], start_ns=made_ns, code=[(address, 1, 0)]))
    profile = pf.fuse(perf, log)
    offset = -1_000_000_000_000 + 1_000_000
    clocks = "SELECT alignment, offset_ns FROM clocks JOIN sources USING (source_id) WHERE format = 'mono'"
    assert profile.sql(clocks).fetchall() == [("first_use", offset)]
    assert profile.sql(SUM).fetchall() == [(1, HALF_SECOND)]


def test_a_log_of_a_process_that_perf_attached_to_is_not_shifted(jitdump_corpus: Path, tmp_path: Path) -> None:
    """Its code was compiled 2 s before perf began to sample it, on clocks that both began with the system."""
    perf = jitdump_corpus / "produced" / "node20-noclock.perf.data"
    chains = "SELECT ts_ns, unnest(addresses) ip FROM callchains"
    (address, first_ns), *_ = (
        pf.fuse(perf)
        .sql(f"""
        SELECT ip, min(ts_ns) FROM ({chains}) GROUP BY 1 ORDER BY count(*) DESC
    """)
        .fetchall()
    )
    log = tmp_path / "m.mlpd"
    compiled = first_ns - 2_000_000_000
    log.write_bytes(mono_bytes.log(NOCLOCK_PID, [HALF_SECOND], start_ns=compiled, code=[(address, 1, 0)]))
    (join,) = pf.fuse(perf, log).joins
    assert (join.alignment, join.offset_ns, join.uncertainty_ns) == ("first_use", 0, 2_000_000_000)


def test_a_directory_of_mono_logs_opens(tmp_path: Path) -> None:
    for index in range(3):
        data = mono_bytes.log(100 + index, [HALF_SECOND] * 5, start_ns=NODE20_START)
        (tmp_path / f"output{index}.mlpd").write_bytes(data)
    (tmp_path / "notes.txt").write_text("not a recording\n", encoding="utf-8")
    profile = pf.fuse(tmp_path)
    assert len(profile.recordings) == 3
    assert profile.sql(SUM).fetchall() == [(15, 15 * HALF_SECOND)]


def test_a_directory_has_the_files_of_every_format(
    jitdump_corpus: Path, xray_corpus: Path, sframe_corpus: Path, tmp_path: Path
) -> None:
    produced = jitdump_corpus / "produced"
    shutil.copy(produced / "node20.perf.data", tmp_path / "perf.data")
    shutil.copy(produced / "node20.dump", tmp_path / "jit-29793.dump")
    shutil.copy(next((xray_corpus / "fdr").glob("*.xray")), tmp_path / "xray-log.server.uocuES")
    shutil.copy(next(sframe_corpus.rglob("*.sframe")), tmp_path / "server.sframe")
    (tmp_path / "deeper").mkdir()
    log = mono_bytes.log(5, [HALF_SECOND], start_ns=NODE20_START)
    (tmp_path / "deeper" / "output.mlpd").write_bytes(log)
    profile = pf.fuse(tmp_path)
    assert sorted(r.format for r in profile.recordings) == ["jitdump", "mono", "perf_data", "sframe", "xray"]
    assert [join.pid for join in profile.joins] == [NODE20_PID]


def test_an_empty_directory_names_what_is_found(tmp_path: Path) -> None:
    with pytest.raises(pf.UsageError) as caught:
        pf.fuse(tmp_path)
    assert "*.mlpd" in str(caught.value.hint)


def test_a_recording_of_another_name_is_not_left_out_beside_its_dump(jitdump_corpus: Path, tmp_path: Path) -> None:
    produced = jitdump_corpus / "produced"
    shutil.copy(produced / "node20.dump", tmp_path / "jit-29793.dump")
    shutil.copy(produced / "node20.perf.data", tmp_path / "run1.data")
    samples = "SELECT count(*), sum(weight) FROM samples"
    expected = pf.fuse(produced / "node20.perf.data").sql(samples).fetchall()
    profile = pf.fuse(tmp_path)
    assert profile.sql(samples).fetchall() == expected
    assert [join.pid for join in profile.joins] == [NODE20_PID]
    shutil.copy(tmp_path / "run1.data", tmp_path / "perf.data")
    assert [Path(one.path).name for one in pf.fuse(tmp_path).recordings] == ["perf.data", "jit-29793.dump"]
    (tmp_path / "perf.data").rename(tmp_path / "run2.data")
    with pytest.raises(pf.UsageError, match=r"several recordings in .*: run1\.data, run2\.data"):
        pf.fuse(tmp_path)


def test_a_file_counts_once(jitdump_corpus: Path, tmp_path: Path) -> None:
    log = tmp_path / "m.mlpd"
    log.write_bytes(mono_bytes.log(NODE20_PID, [HALF_SECOND] * 5, start_ns=NODE20_START))
    link = tmp_path / "other.mlpd"
    link.symlink_to(log)
    opened = pf.open(log)
    for inputs in ((log, log), (tmp_path, log), (log, link), (opened, opened), (opened, str(log))):
        profile = pf.fuse(*inputs)
        assert profile.sql(SUM).fetchall() == [(5, 5 * HALF_SECOND)], inputs
        notes = [d for d in profile.diagnostics if d.code == "FU011"]
        assert notes, inputs
        assert not any(d.is_finding for d in notes), inputs
    perf = jitdump_corpus / "produced" / "node20.perf.data"
    once = pf.fuse(perf).sql("SELECT count(*), count(DISTINCT sample_id) FROM samples").fetchall()
    assert pf.fuse(perf, perf).sql("SELECT count(*), count(DISTINCT sample_id) FROM samples").fetchall() == once


def test_a_dump_that_is_named_and_in_a_directory_counts_as_named(jitdump_corpus: Path, tmp_path: Path) -> None:
    produced = jitdump_corpus / "produced"
    dump = tmp_path / "jit-29793.dump"
    shutil.copy(produced / "node20.dump", dump)
    perf = produced / "node20.perf.data"
    codes = "SELECT count(*) FROM code_objects"
    assert pf.fuse(perf, tmp_path, dump).sql(codes).fetchall() == pf.fuse(perf, dump).sql(codes).fetchall()


def test_modules_have_keys_of_their_own(jitdump_corpus: Path, xray_corpus: Path) -> None:
    """Modules of samples and those named by an instrumentation map: functions of the program are not in ld-linux."""
    log, program = xray_corpus / "fdr" / "small-v5.xray", xray_corpus / "bin" / "small22"
    perf = jitdump_corpus / "produced" / "node20.perf.data"
    profile = pf.fuse(perf, log, maps={0: program})
    for table, key in (("modules", "module_id"), ("functions", "function_id"), ("frames", "frame_id")):
        ((rows, keys),) = profile.sql(f"SELECT count(*), count(DISTINCT {key}) FROM {table}").fetchall()
        assert rows == keys, table
    traced = """SELECT DISTINCT m.name FROM call_events JOIN functions USING (function_id)
        JOIN modules m USING (module_id)"""
    paths = [path for (path,) in profile.sql(traced).fetchall()]
    assert {Path(path).name for path in paths} == {program.name}
