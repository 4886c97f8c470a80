"""Samples of perf.data whose address is not the first one of their chain; perf names a sample by its address."""

from __future__ import annotations

import re
import struct
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import perf_chains
import perf_crafting as crafting
import perfuse as pf
from perf_crafting import PerfFile, Record

RECORDED = Path(__file__).parents[1] / "truth" / "recorded" / "perf_machine" / "chains.perf.data"
KERNEL_MODE, USER_MODE, MODES = 1, 2, 7


@pytest.fixture(scope="module")
def original() -> PerfFile:
    return PerfFile.read(RECORDED)


def _with(record: Record, sample_type: int, *, ip: int, chain: list[int], mode: int) -> Record:
    _, head, _, rest = crafting.split_sample(record.body, sample_type)
    # Without an identifier, the address is the first field.
    assert sample_type & crafting.IDENTIFIER == 0
    head = ip.to_bytes(8, "little") + head[8:]
    return replace(record, misc=record.misc & ~MODES | mode, body=crafting.joined_sample(head, chain, rest))


def _precise(ip: int, chain: list[int], mode: int) -> tuple[int, list[int], int, list[int]]:
    """A precise event: the instruction before the interrupted one."""
    at = next(at for at, word in enumerate(chain) if word < crafting.CONTEXT_MAX)
    return ip - 3, chain, mode, [*chain[:at], ip - 3, *chain[at + 1 :]]


def _user_chain(ip: int, chain: list[int], mode: int) -> tuple[int, list[int], int, list[int]]:
    """`perf record --user-callchains`: chains without their part in the kernel."""
    user = chain[chain.index(crafting.CONTEXT_USER) :] if crafting.CONTEXT_USER in chain else []
    return ip, user, mode, [crafting.CONTEXT_KERNEL, ip, *user] if mode == KERNEL_MODE and user else user or [ip]


def _entering(ip: int, chain: list[int], mode: int) -> tuple[int, list[int], int, list[int]]:
    """A precise event at the instruction that entered the kernel."""
    if mode == USER_MODE or crafting.CONTEXT_USER not in chain:
        return ip, chain, mode, chain
    at = chain.index(crafting.CONTEXT_USER) + 1
    entry = chain[at] - 2
    return entry, chain, USER_MODE, [crafting.CONTEXT_USER, entry, *chain[at + 1 :]]


@pytest.mark.parametrize("change", [_precise, _user_chain, _entering])
def test_a_sample_is_where_its_address_is(tmp_path: Path, original: PerfFile, change) -> None:  # type: ignore[no-untyped-def]
    kind = original.attributes[0].sample_type
    records, expected, num_changed = [], {}, 0
    for record in original.records:
        if record.type != crafting.SAMPLE:
            records.append(record)
            continue
        fields, _, chain, _ = crafting.split_sample(record.body, kind)
        ip, recorded, mode, expected[fields[crafting.TIME]] = change(fields[crafting.IP], chain, record.misc & MODES)
        num_changed += expected[fields[crafting.TIME]] != recorded
        records.append(_with(record, kind, ip=ip, chain=recorded, mode=mode))
    assert num_changed > 5
    path = replace(original, records=records).write(tmp_path / "perf.data")
    found = dict(pf.fuse(path).sql("SELECT ts_ns, addresses FROM callchains").fetchall())
    assert found == expected
    # Without the chain, perf prints the address of a sample.
    script = ["perf", "script", "--ns", "-G", "-F", "time,ip", "-i", path]
    printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    of_perf = {int(s + f): int(ip, 16) for s, f, ip in re.findall(r"(\d+)\.(\d{9}):\s+([0-9a-f]+)", printed)}
    first = {ts: next(word for word in chain if word < crafting.CONTEXT_MAX) for ts, chain in found.items()}
    assert first == of_perf


def test_call_stacks_of_the_processor_are_those_of_perf(tmp_path: Path, original: PerfFile) -> None:
    """`perf record --call-graph lbr`: the user part is the processor's record of calls that have not returned."""
    attribute = original.attributes[0]
    attr = bytearray(attribute.attr)
    attr[24:32] = (attribute.sample_type | crafting.BRANCH_STACK).to_bytes(8, "little")
    attr[72:80] = (1 | 1 << 11).to_bytes(8, "little")  # PERF_SAMPLE_BRANCH_USER, PERF_SAMPLE_BRANCH_CALL_STACK
    records, in_kernel = [], {}
    for record in original.records:
        if record.type != crafting.SAMPLE:
            records.append(record)
            continue
        fields, head, chain, rest = crafting.split_sample(record.body, attribute.sample_type)
        assert rest == b""
        user = chain[chain.index(crafting.CONTEXT_USER) + 1 :] if crafting.CONTEXT_USER in chain else []
        # Frame pointers lost half of the callers.
        kept = chain[: len(chain) - len(user) // 2]
        branches = struct.pack("<Q", max(len(user) - 1, 0))
        for called, caller in pairwise(user):
            branches += struct.pack("<3Q", caller - 5, called - 4, 0)
        records.append(replace(record, body=crafting.joined_sample(head, kept, branches)))
        in_kernel[fields[crafting.TIME]] = record.misc & MODES == KERNEL_MODE
    path = replace(original, attributes=[replace(attribute, attr=bytes(attr))], records=records).write(
        tmp_path / "perf.data"
    )
    script = ["perf", "script", "--ns", "--no-inline", "-F", "comm,time,ip,sym,dso", "-i", path]
    printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    of_perf = perf_chains.read(printed)
    found = perf_chains.of(pf.fuse(path))
    assert found.keys() == of_perf.keys() == in_kernel.keys()
    for time, chain in of_perf.items():
        # In user mode perf begins with the target of the latest call, here with the address of the sample.
        assert found[time][1:] == chain[1:]
        assert found[time][0] == chain[0] or not in_kernel[time]
    assert max(map(len, of_perf.values())) > 8
