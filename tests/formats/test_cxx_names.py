"""Names of C++ functions of real programs, compared with c++filt: their qualifiers follow the whole name of a type."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import perfuse as pf
from perf_crafting import IP, TID, TIME, Attribute, PerfFile, mmap2, sample

NAMES = [
    # LLVM 14: a class, and then a type in it.
    "_ZN4llvm15ScalarEvolution14splitBinaryAddEPKNS_4SCEVERS3_S4_RNS1_11NoWrapFlagsE",
    # Node.js 24: a class in a function type, and then a type in it.
    "_ZN4node17IntervalHistogramC2EPNS_11EnvironmentEN2v85LocalINS3_6ObjectEEENS_9AsyncWrap12ProviderTypeEi"
    "RNS_9HistogramERKNS8_7OptionsE",
    "_ZN1aplERKNS_1bEPNS0_1cE",
    "_ZN1amlERKNS_1bEPKNS0_1cE",
    "_ZNK1a1bcvPKS_Ev",
    "_Z1fM1aFviEPKS_RKNS_1bIiE1cE",
    # LLVM 22 by ThinLTO: hashes of more and of less than 63 bits.
    "_ZN12_GLOBAL__N_18EarlyCSE3runEv.llvm.9502427608756745089",
    "_ZN12_GLOBAL__N_18EarlyCSE3runEv.llvm.1247440061051763732",
    "_ZN12_GLOBAL__N_18EarlyCSE3runEv.part.0.llvm.12474400610517637329.cold.1",
]
"""No return types, which names do not have here."""


def test_qualifiers_follow_names(tmp_path: Path) -> None:
    if not shutil.which("c++filt"):
        pytest.skip("c++filt is not installed")
    path, event = "/system/lib64/libx.so", Attribute.of((1, 0), IP | TID | TIME)
    body = path.encode() + b"\0" + struct.pack("<IQI", 2, 0, len(NAMES))
    for number, name in enumerate(NAMES):
        body += struct.pack("<QI", 16 * number, 16) + name.encode() + b"\0"
    listed = struct.pack("<I", len(body) + 8) + body + struct.pack("<Q", 0)
    records = [mmap2(event, 7, path, 0x1000, 0x1000)]
    records += [sample(event, ip=0x1004 + 16 * number, pid=7, tid=7, time=number + 1) for number in range(len(NAMES))]
    file = PerfFile([event], records, {128: listed}).write(tmp_path / "perf.data")
    with pf.fuse(file) as profile:
        ours = dict(profile.sql("SELECT linkage_name, name FROM functions").fetchall())
    printed = subprocess.run(["c++filt"], input="\n".join(NAMES), capture_output=True, text=True, check=True).stdout
    assert [ours[name] for name in NAMES] == printed.splitlines()
