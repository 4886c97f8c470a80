"""Names of functions that simpleperf stores in a recording, in both of its lists.

The lists are made here by the layouts in simpleperf's `record_file_format.h` and `record_file.proto`; each sample has
an address whose function is known by its place in the list.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile, Record

KERNEL, KERNEL_MODULE, ELF, DEX, SYMBOL_MAP = range(5)
FILE, FILE2 = 128, 132
EXCLUDE_CALLCHAIN_USER = 1 << 22
FIELDS = crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD | crafting.CALLCHAIN

Symbols = list[tuple[int, int, str]]
Listed = tuple[str, int, int, int | None, Symbols]
"""Path, kind, address of the first executable byte, its offset, symbols."""


def first_list(path: str, kind: int, min_vaddr: int, offset: int | None, symbols: Symbols) -> bytes:
    body = path.encode() + b"\0" + struct.pack("<IQI", kind, min_vaddr, len(symbols))
    for start, size, name in symbols:
        body += struct.pack("<QI", start, size) + name.encode() + b"\0"
    if kind == DEX:
        body += struct.pack("<IQ", 1, 0x40)
    if offset is not None:
        body += struct.pack("<Q", offset)
    return struct.pack("<I", len(body)) + body


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def scalar(number: int, value: int) -> bytes:
    # proto3 writes no fields of 0.
    return varint(number << 3) + varint(value) if value else b""


def message(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def second_list(path: str, kind: int, min_vaddr: int, offset: int | None, symbols: Symbols) -> bytes:
    body = message(1, path.encode()) + scalar(2, kind) + scalar(3, min_vaddr)
    for start, size, name in symbols:
        body += message(4, scalar(1, start) + scalar(2, size) + message(3, name.encode()))
    if kind == DEX:
        body += message(5, message(1, varint(0x40)))
    elif kind in (ELF, KERNEL_MODULE):
        body += message(6 if kind == ELF else 7, scalar(1, offset or 0))
    return struct.pack("<I", len(body)) + body


LIBRARY, DEX_FILE, JIT_FILE = (
    "/system/lib64/libx.so",
    "/data/app/base.vdex",
    "/data/user/0/app/perf_jit_app_cache:784-1640",
)
MODULE = "/vendor/lib/modules/net.ko"


def named(tmp_path: Path, features: dict[int, bytes], maps: list[Record], chains: list[list[int]]) -> list[list[str]]:
    """The names of each stack, innermost first."""
    records = [crafting.comm(EVENT, 7, 7, "app"), *maps]
    for time, chain in enumerate(chains, 10):
        ip = next(word for word in chain if word < 2**64 - 4095)
        misc = 1 if chain[0] == crafting.CONTEXT_KERNEL else 2
        records.append(crafting.sample(EVENT, ip=ip, pid=7, tid=7, time=time, chain=chain, misc=misc))
    path = PerfFile([EVENT], records, features).write(tmp_path / "perf.data")
    with pf.fuse(path) as profile:
        rows = profile.sql("""
            WITH RECURSIVE up AS (
                SELECT sample_id, stack_id, 0 AS level FROM samples
                UNION ALL SELECT sample_id, parent_stack_id, level + 1 FROM up JOIN stacks USING (stack_id)
                WHERE parent_stack_id IS NOT NULL)
            SELECT sample_id, coalesce(functions.name, '?') FROM up JOIN stacks USING (stack_id)
            JOIN frames USING (frame_id) LEFT JOIN functions USING (function_id) ORDER BY sample_id, level
        """).fetchall()
    return [[name for number, name in rows if number == one] for one in sorted({number for number, _ in rows})]


EVENT = Attribute.of((1, 0), FIELDS, ids=[1])


def mapping(start: int, size: int, offset: int, path: str, prot: int = 5) -> Record:
    return crafting.mmap2(EVENT, 7, path, start, size, offset, prot=prot)


def kernel_mapping(start: int, size: int, path: str) -> Record:
    body = struct.pack("<iiQQQ", -1, 0, start, size, 0) + crafting.text(path)
    return Record(crafting.MMAP, 1, body + EVENT.sample_id())


@pytest.mark.parametrize(("feature", "encode"), [(FILE, first_list), (FILE2, second_list)])
def test_functions_of_files(tmp_path: Path, feature: int, encode: Callable[..., bytes]) -> None:
    """Of a library in two segments, a dex file, JIT code that simpleperf copied, the kernel and a module."""
    listed: list[Listed] = [
        (LIBRARY, ELF, 0x12000, 0x1000, [(0x12340, 0x20, "_ZN3app3runEi"), (0x13000, 0x10, "late")]),
        (DEX_FILE, DEX, 0, None, [(0x500, 0x10, "before.it"), (0x510, 0x20, "java.lang.Thread.run")]),
        (JIT_FILE, ELF, 0, 0, [(0x7100, 0x100, "com.app.Main.loop")]),
        ("[kernel.kallsyms]", KERNEL, 0, None, [(0xFFFFFFC000081000, 0x40, "el0_svc")]),
        (MODULE, KERNEL_MODULE, 0x40, 0x200, [(0x50, 0x10, "net_poll")]),
    ]
    maps = [
        mapping(0x70000000, 0x1000, 0x1000, LIBRARY),
        mapping(0x70008000, 0x1000, 0x2000, LIBRARY),
        mapping(0x71000000, 0x1000, 0, DEX_FILE, 1),
        mapping(0x7000, 0x1000, 784, JIT_FILE, 0x4000),
    ]
    maps += [
        kernel_mapping(0xFFFFFFC000080000, 0x100000, "[kernel.kallsyms]"),
        kernel_mapping(0xFFFFFFBFFC000000, 0x1000, MODULE),
    ]
    chains = [
        # 0x340 from a segment at offset 0x1000 of the file, whose first byte has the address 0x12000.
        [crafting.CONTEXT_USER, 0x70000344],
        # The first byte of the second segment is at offset 0x2000 of the file.
        [crafting.CONTEXT_USER, 0x70008004],
        # A method whose first instruction is the call: the address of the frame is that of the method.
        [crafting.CONTEXT_USER, 0x70000350, 0x71000510],
        [crafting.CONTEXT_USER, 0x7100],
        [crafting.CONTEXT_KERNEL, 0xFFFFFFC000081010, crafting.CONTEXT_USER, 0x70000359],
        [crafting.CONTEXT_KERNEL, 0xFFFFFFBFFC000214],
        # No symbol is at the byte after the last one of the function.
        [crafting.CONTEXT_USER, 0x70000360],
    ]
    stacks = named(tmp_path, {feature: b"".join(encode(*one) for one in listed)}, maps, chains)
    assert stacks == [
        ["app::run(int)"],
        ["late"],
        ["app::run(int)", "java.lang.Thread.run"],
        ["com.app.Main.loop"],
        ["el0_svc", "app::run(int)"],
        ["net_poll"],
        ["?"],
    ]
    with pf.open(tmp_path / "perf.data") as recording:
        header = dict(recording.summary.header)
    name = "HEADER_SIMPLEPERF_FILE" if feature == FILE else "HEADER_SIMPLEPERF_FILE2"
    assert header[name] == "5 files, 7 symbols"


def test_functions_of_the_linker_are_marked(tmp_path: Path) -> None:
    """As in simpleperf's own reports; c++filt demangles the rest."""
    symbols = [(0x40, 8, "__dl__ZN15BionicAllocator10alloc_mmapEmm"), (0x48, 8, "__dl_memcpy")]
    features = {FILE2: second_list(LIBRARY, ELF, 0, 0, symbols)}
    chains = [[crafting.CONTEXT_USER, 0x1044], [crafting.CONTEXT_USER, 0x1048]]
    names = named(tmp_path, features, [mapping(0x1000, 0x1000, 0, LIBRARY)], chains)
    assert names == [["[linker]BionicAllocator::alloc_mmap(unsigned long, unsigned long)"], ["[linker]memcpy"]]


def test_files_of_older_versions_state_no_offset(tmp_path: Path) -> None:
    """Their symbols are relative to the mapping, wherever in the file that is."""
    features = {FILE: first_list(LIBRARY, ELF, 0x400, None, [(0x440, 8, "old")])}
    assert named(tmp_path, features, [mapping(0x1000, 0x1000, 0x3000, LIBRARY)], [[crafting.CONTEXT_USER, 0x1044]]) == [
        ["old"]
    ]


def test_symbols_of_a_process_name_memory_without_files(tmp_path: Path) -> None:
    features = {FILE2: second_list("perf-7.map", SYMBOL_MAP, 0, None, [(0x9000, 0x20, "generated")])}
    features[FILE2] += second_list("perf-8.map", SYMBOL_MAP, 0, None, [(0x9000, 0x20, "of another process")])
    assert named(tmp_path, features, [], [[crafting.CONTEXT_USER, 0x9010]]) == [["generated"]]


KALLSYMS = b"""ffffffc000080000 T _text
ffffffc000081000 t el0_sync
ffffffc000081040 T el0_svc
ffffffc000081040 T el0_svc_alias
ffffffc000081080 D jiffies
ffffffc000082000 t last_function
ffffffbffc000010 t of_a_module\t[net]
""" + b"".join(b"%016x d variable_%d\n" % (0xFFFFFFC001000000 + 8 * number, number) for number in range(4000))
"""More than the 64 KiB that the size of other records can state."""

KERNEL_SYMBOL, DSO, SYMBOL, SPLIT, SPLIT_END = 32769, 32770, 32771, 32772, 32773


@dataclass(frozen=True, slots=True)
class WideRecord(Record):
    """A record of simpleperf: its size has its upper half before the lower one."""

    def encoded(self) -> bytes:
        size = 8 + len(self.body)
        return struct.pack("<IHH", self.type, size >> 16, size & 0xFFFF) + self.body


def dso_record(kind: int, number: int, min_vaddr: int, path: str) -> WideRecord:
    return WideRecord(DSO, 0, struct.pack("<QQQ", kind, number, min_vaddr) + crafting.text(path))


def symbol_record(start: int, size: int, of: int, name: str) -> WideRecord:
    return WideRecord(SYMBOL, 0, struct.pack("<QQQ", start, size, of) + crafting.text(name))


def test_files_and_functions_in_records(tmp_path: Path) -> None:
    """Versions of 2016 write them as they meet them; addresses are relative to the start of the mapping."""
    records = [
        dso_record(ELF, 5, 0x400, LIBRARY),
        symbol_record(0x440, 0x10, 5, "_ZN3app3runEi"),
        dso_record(KERNEL, 6, 0, "[kernel.kallsyms]"),
        symbol_record(0xFFFFFFC000081000, 0x40, 6, "el0_svc"),
        symbol_record(0x460, 0x10, 5, "late"),
        dso_record(KERNEL_MODULE, 7, 0, MODULE),
        symbol_record(0x50, 0x10, 7, "net_poll"),
        symbol_record(0x50, 0x10, 99, "of no file"),
    ]
    maps = [
        kernel_mapping(0xFFFFFFBFFC000000, 0x1000, MODULE),
        kernel_mapping(0xFFFFFFC000080000, 0x100000, "[kernel.kallsyms]"),
        mapping(0x70000000, 0x1000, 0x3000, LIBRARY),
    ]
    chains = [
        [crafting.CONTEXT_USER, 0x70000044],
        [crafting.CONTEXT_KERNEL, 0xFFFFFFC000081010, crafting.CONTEXT_USER, 0x70000065],
        [crafting.CONTEXT_KERNEL, 0xFFFFFFBFFC000054],
        [crafting.CONTEXT_USER, 0x70000050],
    ]
    stacks = named(tmp_path, {}, [*records, *maps], chains)
    assert stacks == [["app::run(int)"], ["el0_svc", "late"], ["net_poll"], ["?"]]
    with pf.open(tmp_path / "perf.data") as recording:
        listed = [record.fields for record in recording.records() if record.name == "SIMPLE_PERF_RECORD_SYMBOL"]
        assert listed[0]["name"] == "_ZN3app3runEi"
        assert (listed[0]["addr"], listed[0]["len"], listed[0]["dso_id"]) == (0x440, 0x10, 5)
        assert [one.code for one in recording.check() if one.severity != "info"] == []


def split(record: WideRecord) -> list[Record]:
    whole, limit = record.encoded(), 65535 - 8
    parts = [whole[at : at + limit] for at in range(0, len(whole), limit)]
    return [*(WideRecord(SPLIT, 0, part) for part in parts), WideRecord(SPLIT_END, 0, b"")]


@pytest.mark.parametrize("is_split", [False, True])
def test_symbols_of_the_kernel(tmp_path: Path, is_split: bool) -> None:
    """Older versions store the text of `/proc/kallsyms`, in one record or in parts."""
    padded = KALLSYMS + bytes(-len(KALLSYMS) % 8)
    record = WideRecord(KERNEL_SYMBOL, 0, struct.pack("<I", len(KALLSYMS)) + padded)
    records: list[Record] = split(record) if is_split else [record]
    maps = [
        kernel_mapping(0xFFFFFFBFFC000000, 0x1000, MODULE),
        kernel_mapping(0xFFFFFFC000080000, 0x9000000, "[kernel.kallsyms]"),
    ]
    addresses = [0xFFFFFFC000081004, 0xFFFFFFC00008107F, 0xFFFFFFC000081090, 0xFFFFFFC000082010]
    stacks = named(tmp_path, {}, [*records, *maps], [[crafting.CONTEXT_KERNEL, address] for address in addresses])
    assert stacks == [["el0_sync"], ["el0_svc_alias"], ["?"], ["last_function"]]
    with pf.open(tmp_path / "perf.data") as recording:
        assert [one.code for one in recording.check() if one.severity != "info"] == []
        counts = recording.summary.records
    assert (
        counts["SIMPLE_PERF_RECORD_SPLIT" if is_split else "SIMPLE_PERF_RECORD_KERNEL_SYMBOL"]
        == len(records) - is_split
    )


def test_stacks_that_simpleperf_unwound_have_no_copies(tmp_path: Path) -> None:
    """Their samples have the fields of copies, which are empty: the chain has the user part."""
    event = Attribute.of(
        (1, 0), FIELDS | crafting.REGS_USER | crafting.STACK_USER, ids=[1], flags=EXCLUDE_CALLCHAIN_USER
    )
    made = crafting.sample(event, ip=0x1044, pid=7, tid=7, time=9, chain=[crafting.CONTEXT_USER, 0x1044, 0x1080])
    nothing = struct.pack("<QQ", 0, 0)
    records = [mapping(0x1000, 0x1000, 0, LIBRARY), Record(made.type, made.misc, made.body + nothing)]
    path = PerfFile([event], records).write(tmp_path / "perf.data")
    with pf.fuse(path) as profile:
        (found,) = profile.sql("SELECT addresses, user_stack FROM callchains").fetchall()
        assert found == ([crafting.CONTEXT_USER, 0x1044, 0x1080], None)
    with pf.open(path) as recording:
        assert "PD009" not in {one.code for one in recording.check()}


def test_the_span_is_that_of_the_recording(tmp_path: Path) -> None:
    """Mappings of JIT code have the time at which the runtime made it."""
    made = mapping(0x1000, 0x1000, 0, JIT_FILE, 0x4000)
    old = Record(made.type, made.misc, made.body[:-16] + EVENT.sample_id(7, 7, 1000))
    records = [old, *(crafting.sample(EVENT, ip=0x1044, pid=7, tid=7, time=time) for time in (5_000_000, 5_000_100))]
    path = PerfFile([EVENT], records, {129: b"simpleperf_version\x001\0"}).write(tmp_path / "perf.data")
    with pf.open(path) as recording:
        assert recording.summary.span == (5_000_000, 5_000_100)
    with pf.fuse(path) as profile:
        assert profile.sql("SELECT start_ns FROM mappings").fetchall() == [(1000,)]


def test_a_cut_list_names_what_is_in_it(tmp_path: Path) -> None:
    whole = first_list(LIBRARY, ELF, 0, 0, [(0x40, 8, "first")])
    cut = first_list(DEX_FILE, DEX, 0, None, [(0x40, 8, "second")])[:-20]
    maps = [mapping(0x1000, 0x1000, 0, LIBRARY), mapping(0x5000, 0x1000, 0, DEX_FILE)]
    stacks = named(
        tmp_path, {FILE: whole + cut}, maps, [[crafting.CONTEXT_USER, 0x1044], [crafting.CONTEXT_USER, 0x5044]]
    )
    assert stacks == [["first"], ["?"]]
    with pf.open(tmp_path / "perf.data") as recording:
        assert "cannot be decoded" in str(dict(recording.summary.header)["HEADER_SIMPLEPERF_FILE"])


@pytest.mark.parametrize("is_noted", [True, False])
def test_time_off_the_processor_ends_with_the_next_sample(tmp_path: Path, is_noted: bool) -> None:
    """`simpleperf record --trace-offcpu` of 2018: samples of `sched_switch`, and no record of switches."""
    clock = Attribute.of((1, 0), FIELDS | crafting.ID, ids=[1])
    switch = Attribute.of((2, 91), FIELDS | crafting.ID, ids=[2])
    planted = [(7, 10, 400), (8, 30, 2_000), (7, 900, 5_000)]
    """Thread, time at which it leaves the processor, and for how long."""
    events = [(5, clock, 7), (6, clock, 8), (950_000, switch, 8)]
    for tid, time, length in planted:
        events += [(time, switch, tid), (time + length, clock, tid), (time + length + 1, clock, tid)]
    records = [mapping(0x1000, 0x1000, 0, LIBRARY)]
    records += [
        crafting.sample(
            event, ip=0x1044, pid=7, tid=tid, time=time, chain=[crafting.CONTEXT_USER, 0x1044, 0x1080 + time]
        )
        for time, event, tid in sorted(events, key=lambda one: one[0])
    ]
    facts = b"trace_offcpu\0true\0" if is_noted else b"app_package_name\0app\0"
    features = {129: facts + b"event_type_info\0cpu-clock,1,0\nsched:sched_switch,2,91\0"}
    path = PerfFile([clock, switch], records, features).write(tmp_path / "perf.data")
    with pf.fuse(path) as profile:
        rows = profile.sql(
            "SELECT tid, ts_ns, weight FROM samples JOIN threads USING (thread_id) "
            "WHERE event::VARCHAR = 'off-cpu' ORDER BY ts_ns"
        ).fetchall()
        chains = profile.sql(
            "SELECT addresses FROM callchains WHERE event::VARCHAR = 'off-cpu' ORDER BY ts_ns"
        ).fetchall()
    assert rows == (planted if is_noted else [])
    assert chains == ([([crafting.CONTEXT_USER, 0x1044, 0x1080 + time],) for _, time, _ in planted] if is_noted else [])
