"""Deferred call chains of perf.data, joined with their samples as perf 7.2 does."""

from __future__ import annotations

from pathlib import Path

import pytest

import perf_chains
import perf_crafting as crafting
import perfuse as pf
from perf_crafting import PerfFile

RECORDED = Path(__file__).parents[1] / "truth" / "recorded" / "perf_machine"
Chains = dict[int, list[int]]


@pytest.fixture(scope="module")
def original() -> PerfFile:
    return PerfFile.read(RECORDED / "chains.perf.data")


def _recorded_chains(file: PerfFile) -> Chains:
    """Chains by time as the kernel recorded them."""
    kind = file.attributes[0].sample_type
    split = (crafting.split_sample(record.body, kind) for record in file.records if record.type == crafting.SAMPLE)
    return {fields[crafting.TIME]: chain for fields, _, chain, _ in split}


def _chains(path: Path) -> Chains:
    rows = pf.fuse(path).sql("SELECT ts_ns, addresses FROM callchains").fetchall()
    return dict(rows)


@pytest.mark.parametrize("samples_per_cookie", [1, 3])
@pytest.mark.parametrize("at_end", [False, True])
def test_chains_are_those_that_were_deferred(
    tmp_path: Path, original: PerfFile, samples_per_cookie: int, at_end: bool
) -> None:
    """A file whose user parts were moved to records of their own has the chains of the file that it was made of."""
    crafted = crafting.deferred(original, samples_per_cookie=samples_per_cookie, at_end=at_end)
    path = crafted.write(tmp_path / "perf.data")
    assert _chains(path) == _recorded_chains(original)
    assert [one.code for one in pf.open(path).check() if one.code == "PD021"] == []


def test_functions_are_those_of_the_original(tmp_path: Path, original: PerfFile) -> None:
    path = crafting.deferred(original).write(tmp_path / "perf.data")
    query = """SELECT ts_ns, depth, f.name, address FROM samples JOIN stacks USING (stack_id)
        JOIN frames USING (frame_id) LEFT JOIN functions f USING (function_id) ORDER BY 1"""
    whole = pf.fuse(RECORDED / "chains.perf.data")
    assert pf.fuse(path).sql(query).fetchall() == whole.sql(query).fetchall()


@pytest.mark.parametrize("name", ["llvm14-mcjit", "node20", "openjdk17-jvmti", "postgres15", "wasmtime50"])
def test_functions_of_dumps_are_found_in_deferred_chains(tmp_path: Path, jitdump_corpus: Path, name: str) -> None:
    """JIT code in user parts, some of them answers to several samples, has the names that it has in whole chains."""
    recording, dump = (jitdump_corpus / "produced" / f"{name}.{kind}" for kind in ("perf.data", "dump"))
    crafted = crafting.deferred(PerfFile.read(recording), samples_per_cookie=2).write(tmp_path / "perf.data")
    query = """SELECT ts_ns, depth, functions.name, code_object_id, address, frames.line FROM samples
        JOIN stacks USING (stack_id) JOIN frames USING (frame_id) LEFT JOIN functions USING (function_id)
        ORDER BY ALL"""
    found, expected = (pf.fuse(file, dump).sql(query).fetchall() for file in (crafted, recording))
    assert found == expected
    assert any(code is not None for *_, code, _, _ in found)


@pytest.fixture
def incomplete(tmp_path: Path, original: PerfFile) -> Path:
    """A third of the records that contain user parts is missing."""
    return crafting.deferred(original, samples_per_cookie=2, lost=range(0, 60, 3)).write(tmp_path / "lost.perf.data")


def _is_cookie(address: int) -> bool:
    return address & 0xFFFFFFFF == 1 and 0 < address >> 32 < 1000


def test_chains_without_their_user_part_are_perfs(incomplete: Path) -> None:
    """perf 7.2 shows the cookie as an address; the table has the marker, and the address where that is all."""
    of_perf = perf_chains.read((RECORDED / "lost.perf-7.2.txt").read_text())
    lost = {time for time, chain in of_perf.items() if any(map(_is_cookie, chain))}
    assert len(lost) == 18
    found = _chains(incomplete)
    assert found.keys() == of_perf.keys()
    for time, chain in of_perf.items():
        addresses = [address for address in found[time] if address < crafting.CONTEXT_MAX]
        known = [address for address in chain if not _is_cookie(address)]
        # A sample in user mode has nothing but its cookie: what was interrupted is still known.
        assert addresses[len(known) :] == [] or (time in lost and not known and len(addresses) == 1)
        assert addresses[: len(known)] == known
        assert (crafting.CONTEXT_USER_DEFERRED in found[time]) == (time in lost)
        assert (crafting.CONTEXT_USER in found[time]) <= (time not in lost)


def test_stacks_without_their_user_part_are_marked(incomplete: Path) -> None:
    [found] = [one for one in pf.open(incomplete).check() if one.code == "PD021"]
    assert found.message.startswith("18 samples")
    rows = (
        pf.fuse(incomplete)
        .sql("""
        WITH RECURSIVE up AS (
            SELECT sample_id, stack_id FROM samples
            UNION ALL SELECT sample_id, parent_stack_id FROM up JOIN stacks USING (stack_id)
            WHERE parent_stack_id IS NOT NULL)
        SELECT count(DISTINCT sample_id) FROM up JOIN stacks s USING (stack_id) JOIN frames USING (frame_id)
            JOIN functions f USING (function_id) WHERE f.name = '[deferred]' AND s.parent_stack_id IS NULL""")
        .fetchall()
    )
    assert rows == [(18,)]


def test_a_record_answers_what_waits_for_it_and_nothing_later(tmp_path: Path, original: PerfFile) -> None:
    """As in perf, another cookie of the thread ends the wait, and a record does not answer later samples."""
    attribute = original.attributes[0].with_flags(crafting.DEFER_CALLCHAIN | crafting.DEFER_OUTPUT)
    of_samples = [record for record in original.records if record.type == crafting.SAMPLE][:3]
    callers = [0x1234, 0x5678]
    records: list[crafting.Record] = []
    times, addresses = [], []
    for number, record in enumerate(of_samples):
        fields, head, _, rest = crafting.split_sample(record.body, attribute.sample_type)
        times.append(fields[crafting.TIME])
        addresses.append(fields[crafting.IP])
        chain = [crafting.CONTEXT_USER_DEFERRED, 7 << 32]
        records.append(crafting.Record(crafting.SAMPLE, 2, crafting.joined_sample(head, chain, rest)))
        if number < 2:
            # The first record has another cookie; the second one answers the second sample, and not the third.
            user = [fields[crafting.IP], *callers]
            words = (9 << 32 if number == 0 else 7 << 32, len(user), *user)
            body = b"".join(word.to_bytes(8, "little") for word in words)
            tid = fields[crafting.TID] >> 32
            body += attribute.sample_id(tid, tid, fields[crafting.TIME] + 1)
            records.append(crafting.Record(crafting.CALLCHAIN_DEFERRED, 2, body))
    path = PerfFile([attribute], records, original.features).write(tmp_path / "perf.data")
    found = _chains(path)
    assert found[times[1]] == [crafting.CONTEXT_USER, addresses[1], *callers]
    for time in (times[0], times[2]):
        assert crafting.CONTEXT_USER_DEFERRED in found[time]
        assert not set(callers) & set(found[time])


def test_records_are_listed_whole(tmp_path: Path, original: PerfFile) -> None:
    path = crafting.deferred(original).write(tmp_path / "perf.data")
    chains = _recorded_chains(original)
    expected = [
        chain[chain.index(crafting.CONTEXT_USER) + 1 :] for chain in chains.values() if crafting.CONTEXT_USER in chain
    ]
    records = pf.open(path).records(kinds=["PERF_RECORD_CALLCHAIN_DEFERRED"])
    assert [[int(entry["ip"]) for entry in record.ips] for record in records] == expected
