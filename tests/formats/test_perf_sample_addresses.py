"""Samples of perf.data whose address is not the first one of their chain; perf names a sample by its address."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import CONTEXT_KERNEL, CONTEXT_USER, IP, SAMPLE, TIME, PerfFile, Record

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
    user = chain[chain.index(CONTEXT_USER) :] if CONTEXT_USER in chain else []
    return ip, user, mode, [CONTEXT_KERNEL, ip, *user] if mode == KERNEL_MODE and user else user or [ip]


def _entering(ip: int, chain: list[int], mode: int) -> tuple[int, list[int], int, list[int]]:
    """A precise event at the instruction that entered the kernel."""
    if mode == USER_MODE or CONTEXT_USER not in chain:
        return ip, chain, mode, chain
    at = chain.index(CONTEXT_USER) + 1
    entry = chain[at] - 2
    return entry, chain, USER_MODE, [CONTEXT_USER, entry, *chain[at + 1 :]]


@pytest.mark.parametrize("change", [_precise, _user_chain, _entering])
def test_a_sample_is_where_its_address_is(tmp_path: Path, original: PerfFile, change) -> None:  # type: ignore[no-untyped-def]
    kind = original.attributes[0].sample_type
    records, expected, num_changed = [], {}, 0
    for record in original.records:
        if record.type != SAMPLE:
            records.append(record)
            continue
        fields, _, chain, _ = crafting.split_sample(record.body, kind)
        ip, recorded, mode, expected[fields[TIME]] = change(fields[IP], chain, record.misc & MODES)
        num_changed += expected[fields[TIME]] != recorded
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
