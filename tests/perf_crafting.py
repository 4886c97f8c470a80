"""Makes and changes perf.data files, independently of the readers and writers under test.

Layouts are those of the kernel's `perf_event.h` and of perf's `event.h`; everything is little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

MMAP, LOST, COMM, EXIT, FORK, SAMPLE, MMAP2, AUX, LOST_SAMPLES = 1, 2, 3, 4, 7, 9, 10, 11, 13
SWITCH, SWITCH_CPU_WIDE, NAMESPACES, CGROUP, TEXT_POKE, CALLCHAIN_DEFERRED = 14, 15, 16, 19, 20, 22
AUXTRACE_ERROR, COMPRESSED2 = 72, 83

IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD = (1 << bit for bit in range(9))
STREAM_ID, RAW, BRANCH_STACK, REGS_USER, STACK_USER, WEIGHT, DATA_SRC, IDENTIFIER = (1 << bit for bit in range(9, 17))
PHYS_ADDR, CGROUP_ID, DATA_PAGE_SIZE, WEIGHT_STRUCT = 1 << 19, 1 << 21, 1 << 22, 1 << 24

CONTEXT_KERNEL, CONTEXT_USER, CONTEXT_USER_DEFERRED = 2**64 - 128, 2**64 - 512, 2**64 - 640
CONTEXT_MAX = 2**64 - 4095

SAMPLE_ID_ALL = 1 << 18
DEFER_CALLCHAIN, DEFER_OUTPUT = 1 << 38, 1 << 39


@dataclass(frozen=True, slots=True)
class Record:
    """A record: type, misc, and the bytes after its header."""

    type: int
    misc: int
    body: bytes

    def encoded(self) -> bytes:
        body = self.body + bytes(-len(self.body) % 8)
        return struct.pack("<IHH", self.type, self.misc, 8 + len(body)) + body


@dataclass(slots=True)
class Attribute:
    """An event: its `perf_event_attr` and its ids."""

    attr: bytes
    ids: list[int] = field(default_factory=list)

    @staticmethod
    def of(
        event: tuple[int, int],
        sample_type: int,
        *,
        ids: Iterable[int] = (),
        period: int = 1,
        read_format: int = 0,
        branch_sample_type: int = 0,
        flags: int = 0,
    ) -> Attribute:
        """An event of a type and a configuration."""
        words = struct.pack("<II7Q", event[0], 136, event[1], period, sample_type, read_format, 0, 0, 0)
        attr = bytearray(words.ljust(136, b"\0"))
        # mmap, comm, task, sample_id_all, use_clockid
        struct.pack_into("<Q", attr, 40, 1 << 8 | 1 << 9 | 1 << 13 | SAMPLE_ID_ALL | 1 << 25 | flags)
        struct.pack_into("<Q", attr, 72, branch_sample_type)
        struct.pack_into("<i", attr, 92, 1)
        return Attribute(bytes(attr), list(ids))

    @property
    def sample_type(self) -> int:
        return int.from_bytes(self.attr[24:32], "little")

    @property
    def flags(self) -> int:
        return int.from_bytes(self.attr[40:48], "little")

    def with_flags(self, flags: int) -> Attribute:
        attr = bytearray(self.attr)
        struct.pack_into("<Q", attr, 40, self.flags | flags)
        return replace(self, attr=bytes(attr))

    def with_size(self, size: int) -> Attribute:
        """The event with a structure of a shorter size, such as 72 bytes of Linux 2.6.39, or 128 of 6.1."""
        return replace(self, attr=self.attr[:4] + struct.pack("<I", size) + self.attr[8:size])

    def sample_id(self, pid: int = 0, tid: int = 0, time: int = 0, cpu: int = 0) -> bytes:
        """The fields at the end of records other than samples, for the first id."""
        own = self.ids[0] if self.ids else 0
        values = (
            (TID, struct.pack("<II", pid, tid)),
            (TIME, struct.pack("<Q", time)),
            (ID, struct.pack("<Q", own)),
            (STREAM_ID, struct.pack("<Q", own)),
            (CPU, struct.pack("<II", cpu, 0)),
            (IDENTIFIER, struct.pack("<Q", own)),
        )
        return b"".join(packed for bit, packed in values if self.sample_type & bit)


@dataclass(slots=True)
class PerfFile:
    """A file in parts: events, records, features by bit."""

    attributes: list[Attribute]
    records: list[Record]
    features: dict[int, bytes] = field(default_factory=dict)

    @staticmethod
    def read(path: Path) -> PerfFile:
        data = path.read_bytes()
        _, size, entry, attrs, attrs_size, start, data_size, _, _, *bits = struct.unpack_from("<8s8Q4Q", data)
        assert size == 104
        attributes = []
        for at in range(attrs, attrs + attrs_size, entry):
            offset, length = struct.unpack_from("<QQ", data, at + entry - 16)
            ids = list(struct.unpack_from(f"<{length // 8}Q", data, offset))
            attributes.append(Attribute(data[at : at + entry - 16], ids))
        features, table = {}, start + data_size
        for bit in (bit for bit in range(256) if bits[bit // 64] >> bit % 64 & 1):
            offset, length = struct.unpack_from("<QQ", data, table)
            features[bit] = data[offset : offset + length]
            table += 16
        return PerfFile(attributes, list(records_of(data[start : start + data_size])), features)

    def encoded(self) -> bytes:
        out = bytearray(104)
        sections = []
        for attribute in self.attributes:
            sections.append((len(out), 8 * len(attribute.ids)))
            out += struct.pack(f"<{len(attribute.ids)}Q", *attribute.ids)
        attrs = len(out)
        for attribute, section in zip(self.attributes, sections, strict=True):
            out += attribute.attr + struct.pack("<QQ", *section)
        start = len(out)
        out += b"".join(record.encoded() for record in self.records)
        end = len(out)
        offset = end + 16 * len(self.features)
        bits = [0, 0, 0, 0]
        for bit, content in sorted(self.features.items()):
            bits[bit // 64] |= 1 << bit % 64
            out += struct.pack("<QQ", offset, len(content))
            offset += len(content)
        out += b"".join(content for _, content in sorted(self.features.items()))
        entry = len(self.attributes[0].attr) + 16
        sizes = (104, entry, attrs, start - attrs, start, end - start, 0, 0)
        struct.pack_into("<8s8Q4Q", out, 0, b"PERFILE2", *sizes, *bits)
        return bytes(out)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.encoded())
        return path


def records_of(data: bytes) -> Iterator[Record]:
    """The records in bytes."""
    at = 0
    while at < len(data):
        kind, misc, size = struct.unpack_from("<IHH", data, at)
        yield Record(kind, misc, data[at + 8 : at + size])
        at += size


_HEAD = (IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD)


def split_sample(body: bytes, sample_type: int) -> tuple[dict[int, int], bytes, list[int], bytes]:
    """A sample without counter values: words up to the chain by bit, their bytes, the chain, what follows it."""
    assert not sample_type & READ
    fields, at = {}, 0
    for bit in _HEAD:
        if sample_type & bit:
            fields[bit] = int.from_bytes(body[at : at + 8], "little")
            at += 8
    (nr,) = struct.unpack_from("<Q", body, at)
    chain = list(struct.unpack_from(f"<{nr}Q", body, at + 8))
    return fields, body[:at], chain, body[at + 8 + 8 * nr :]


def joined_sample(head: bytes, chain: list[int], rest: bytes) -> bytes:
    """The body of a sample; the inverse of `split_sample`."""
    return head + struct.pack(f"<Q{len(chain)}Q", len(chain), *chain) + rest


def deferred(
    original: PerfFile, *, samples_per_cookie: int = 1, lost: Iterable[int] = (), at_end: bool = False
) -> PerfFile:
    """A file whose user chains are deferred: `perf record --call-graph fp,defer` on Linux 6.19.

    Args:
        original: A file of one event with frame-pointer chains.
        samples_per_cookie: Samples of a thread that one record answers, where their user parts are equal.
        lost: Numbers of records, in order, that are left out.
        at_end: Whether the records follow all others in the file: their times then give them their order.
    """
    attribute = original.attributes[0].with_flags(DEFER_CALLCHAIN | DEFER_OUTPUT)
    kind = attribute.sample_type
    out: list[Record] = []
    late: list[Record] = []
    open_parts: dict[int, tuple[int, list[int], int, int]] = {}
    missing, number, count = set(lost), 0, 0

    def close(tid: int, pid: int, time: int) -> None:
        nonlocal number
        cookie, user, _, _ = open_parts.pop(tid)
        body = struct.pack(f"<QQ{len(user)}Q", cookie, len(user), *user)
        record = Record(CALLCHAIN_DEFERRED, 2, body + attribute.sample_id(pid, tid, time))
        if number not in missing:
            (late if at_end else out).append(record)
        number += 1

    for record in original.records:
        if record.type != SAMPLE:
            out.append(record)
            continue
        fields, head, chain, rest = split_sample(record.body, kind)
        pid, tid = fields[TID] & 0xFFFFFFFF, fields[TID] >> 32
        at = chain.index(CONTEXT_USER) if CONTEXT_USER in chain else len(chain)
        before, user = chain[:at], chain[at + 1 :]
        if tid in open_parts and (open_parts[tid][1] != user or open_parts[tid][2] >= samples_per_cookie):
            close(tid, pid, open_parts[tid][3] + 1)
        if at == len(chain):
            out.append(record)
            continue
        if tid not in open_parts:
            count += 1
            open_parts[tid] = ((2 * count + 1) << 32 | 1, user, 0, 0)
        cookie, _, used, _ = open_parts[tid]
        open_parts[tid] = (cookie, user, used + 1, fields[TIME])
        body = joined_sample(head, [*before, CONTEXT_USER_DEFERRED, cookie], rest)
        out.append(replace(record, body=body))
        if used + 1 >= samples_per_cookie:
            close(tid, pid, fields[TIME] + 1)
    for tid, (_, _, _, time) in list(open_parts.items()):
        close(tid, tid, time + 1)
    return PerfFile([attribute], out + late, original.features)


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a branch stack."""

    start: int
    target: int
    flags: int
    counters: int = 0


def sample(
    attribute: Attribute,
    *,
    ip: int = 0,
    pid: int = 0,
    tid: int = 0,
    time: int = 0,
    address: int = 0,
    cpu: int = 0,
    period: int = 1,
    counts: Iterable[int] = (),
    chain: Iterable[int] = (),
    raw: bytes = b"",
    branches: Iterable[Branch] = (),
    hw_index: int | None = None,
    with_counters: bool = False,
    weight: int = 0,
    data_source: int = 0,
    physical: int = 0,
    cgroup: int = 0,
    page_size: int = 0,
    misc: int = 2,
) -> Record:
    """A sample with the fields that its event has."""
    own = attribute.ids[0] if attribute.ids else 0
    chain, branches, counts = list(chain), list(branches), list(counts)
    stack = struct.pack("<Q", len(branches))
    stack += b"" if hw_index is None else struct.pack("<Q", hw_index)
    stack += b"".join(struct.pack("<QQQ", one.start, one.target, one.flags) for one in branches)
    stack += b"".join(struct.pack("<Q", one.counters) for one in branches) if with_counters else b""
    raw += bytes((4 - len(raw)) % 8)
    parts = (
        (IDENTIFIER, struct.pack("<Q", own)),
        (IP, struct.pack("<Q", ip)),
        (TID, struct.pack("<II", pid, tid)),
        (TIME, struct.pack("<Q", time)),
        (ADDR, struct.pack("<Q", address)),
        (ID, struct.pack("<Q", own)),
        (STREAM_ID, struct.pack("<Q", own)),
        (CPU, struct.pack("<II", cpu, 0)),
        (PERIOD, struct.pack("<Q", period)),
        (READ, struct.pack(f"<{len(counts)}Q", *counts)),
        (CALLCHAIN, struct.pack(f"<Q{len(chain)}Q", len(chain), *chain)),
        (RAW, struct.pack("<I", len(raw)) + raw),
        (BRANCH_STACK, stack),
        (WEIGHT | WEIGHT_STRUCT, struct.pack("<Q", weight)),
        (DATA_SRC, struct.pack("<Q", data_source)),
        (PHYS_ADDR, struct.pack("<Q", physical)),
        (CGROUP_ID, struct.pack("<Q", cgroup)),
        (DATA_PAGE_SIZE, struct.pack("<Q", page_size)),
    )
    return Record(SAMPLE, misc, b"".join(packed for bit, packed in parts if attribute.sample_type & bit))


def text(value: str) -> bytes:
    """A NUL-terminated text, padded to eight bytes."""
    encoded = value.encode() + b"\0"
    return encoded + bytes(-len(encoded) % 8)


def mmap2(
    attribute: Attribute,
    pid: int,
    path: str,
    start: int,
    size: int,
    offset: int = 0,
    *,
    prot: int = 5,
    build_id: bytes = b"",
) -> Record:
    """A mapping of a file from before the recording."""
    identity = struct.pack("<B3x20s", len(build_id), build_id) if build_id else bytes(24)
    body = struct.pack("<IIQQQ", pid, pid, start, size, offset) + identity
    body += struct.pack("<II", prot, 2) + text(path)
    return Record(MMAP2, 2 | (1 << 14 if build_id else 0), body + attribute.sample_id(pid, pid))


def task(attribute: Attribute, kind: int, pid: int, ppid: int, tid: int, time: int) -> Record:
    """A FORK or EXIT record."""
    body = struct.pack("<IIIIQ", pid, ppid, tid, ppid, time)
    return Record(kind, 0, body + attribute.sample_id(pid, tid, time))


def comm(attribute: Attribute, pid: int, tid: int, name: str, time: int = 0) -> Record:
    """The name of a thread, from before the recording where it has no time."""
    return Record(COMM, 0, struct.pack("<II", pid, tid) + text(name) + attribute.sample_id(pid, tid, time))


def event_desc(attributes: Iterable[tuple[Attribute, str]]) -> bytes:
    """The content of HEADER_EVENT_DESC: the names of events."""
    listed = list(attributes)
    out = struct.pack("<II", len(listed), len(listed[0][0].attr))
    for attribute, name in listed:
        encoded = text(name).ljust(64, b"\0")
        out += attribute.attr + struct.pack("<II", len(attribute.ids), len(encoded)) + encoded
        out += struct.pack(f"<{len(attribute.ids)}Q", *attribute.ids)
    return out


EVENT_DESC = 12
OFF_CPU_SUMS = 0xFFFFFFFF00000000
"""perf's number in place of the time of the first sum of time off the processor."""


def off_cpu_sample(attribute: Attribute, time: int, pid: int, tid: int, ns: int, user: Iterable[int]) -> Record:
    """A sample of `perf record --off-cpu`: what it is about is in its raw data."""
    ips = [CONTEXT_USER, *user]
    raw = struct.pack(f"<IIQQ{len(ips)}QQ", pid, tid, ns, len(ips), *ips, 0)
    return sample(attribute, time=time, period=0, raw=raw)
