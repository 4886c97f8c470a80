"""`perfuse info --json` counts every record of every dump, under the specification's names."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

NAMES = {
    "LOAD": "JIT_CODE_LOAD",
    "DEBUG": "JIT_CODE_DEBUG_INFO",
    "CLOSE": "JIT_CODE_CLOSE",
    "UNWIND": "JIT_CODE_UNWINDING_INFO",
}

COUNTS: dict[str, dict[str, int]] = {
    "produced/node20.dump": {"LOAD": 2213, "UNWIND": 2213, "DEBUG": 30},
    "produced/node24.dump": {"LOAD": 2431, "UNWIND": 2431, "DEBUG": 36},
    "produced/node24-5k.dump.gz": {"LOAD": 7482, "UNWIND": 7482, "DEBUG": 5098},
    "produced/node20-nsz.dump": {"LOAD": 2213, "UNWIND": 2213, "DEBUG": 30},
    "produced/node20-noclock.dump": {"LOAD": 2212, "UNWIND": 2212, "DEBUG": 29},
    "produced/node20-killed.dump": {"LOAD": 2201, "UNWIND": 2202, "DEBUG": 20},
    "produced/cpython313.dump": {"LOAD": 390, "UNWIND": 390},
    "produced/cpython315-dwarf.dump": {"LOAD": 380, "UNWIND": 380},
    "produced/erlang27.dump": {"LOAD": 17386, "DEBUG": 6757},
    "produced/llvm14-mcjit.dump": {"LOAD": 3, "DEBUG": 3},
    "produced/llvm19-orc.dump": {"LOAD": 4, "UNWIND": 1, "DEBUG": 4, "CLOSE": 1},
    "produced/postgres15.dump": {"LOAD": 11},
    "produced/openjdk17-jvmti.dump": {"LOAD": 690, "DEBUG": 171, "CLOSE": 1},
    "produced/qemu10-aarch64.dump": {"LOAD": 956, "DEBUG": 956},
    "produced/wasmtime50.dump": {"LOAD": 8},
    "produced/jsc2.52.dump": {"LOAD": 165},
    "produced/jsc2.54-source.dump": {"LOAD": 183, "DEBUG": 17},
    "fetched/ddprof_jit-dotnet-partial.dump": {"LOAD": 8424},
    "fetched/ddprof_jit-simple-julia.dump": {"LOAD": 13, "DEBUG": 8},
    "fetched/ddprof_jit-1560413.dump": {"LOAD": 20, "DEBUG": 13},
    "fetched/parca_dotnet.dump": {"LOAD": 1106},
    "fetched/parca_jitlink.dump": {"LOAD": 3, "UNWIND": 1, "DEBUG": 3, "CLOSE": 1},
    "fetched/parca_julia.dump": {"LOAD": 21, "DEBUG": 13},
    "fetched/parca_nodejs.dump": {"LOAD": 1740, "UNWIND": 1740, "DEBUG": 16},
    "fetched/parca_php.dump": {"LOAD": 39},
    "fetched/parca_wasmtime.dump": {"LOAD": 246},
}
"""Whole records, counted by the sizes in record headers alone. A record that the end of the file cuts is left out."""


@pytest.mark.truth(recording="jitdump", path="info", source="a walk of the record headers")
@pytest.mark.parametrize("dump", COUNTS)
def test_record_counts(dump: str, jitdump_corpus: Path) -> None:
    perfuse = Path(sys.executable).with_name("perfuse")
    done = subprocess.run(
        [perfuse, "info", "--json", jitdump_corpus / dump], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    (recording,) = json.loads(done.stdout)["recordings"]
    assert recording["format"] == "jitdump"
    assert recording["records"] == {NAMES[name]: count for name, count in COUNTS[dump].items()}


def test_every_real_dump_is_counted(jitdump_corpus: Path) -> None:
    real = {
        f"{path.parent.name}/{path.name}"
        for folder in ("produced", "fetched")
        for path in (jitdump_corpus / folder).glob("*.dump*")
    }
    assert real - set(COUNTS) == {"fetched/ddprof_jit-julia-partial.dump"}, "the one left out has no readable record"
