"""Compares perfuse with readelf on SFrame sections: text dumps, decoding, a long function, lookups.

The sections are from the corpus (120,002 functions, 665,800 rows, 4.5 MB; ten times that; one function of 60,001
rows) and are stored in $PERFUSE_BENCH_DIR (build/bench if not set), in the version that the installed readelf
supports. A newer one is measured too where PATH has it under the name `readelf-2.47`.
"""

import argparse
import json
import lzma
import os
import platform
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import measure
from measure import Goal

PERFUSE = Path(sys.executable).with_name("perfuse")
CORPUS = Path(os.environ.get("PERFUSE_CORPUS", Path(__file__).parents[2] / "shared" / "corpus")) / "sframe" / "large"
LIBSFRAME_PER_S = {1: 2.5e6, 2: 2.5e6, 3: 4.8e6}
"""The highest measured lookups a second of libsframe 2.46 on such a section, by version, with two processors. It does
not read version 1; the number for version 2 is used."""
NEWER = "readelf-2.47"
HAS_FINDINGS = 1
"""Exit code of a dump of a section with errors: copies of a section are not sorted throughout."""
COPIES = 10
SPAN = 1 << 26
"""Bytes of code between two copies of a section."""
HEADER_BYTES = 28
ENTRIES = {1: "<iIIIB", 2: "<iIIIBBH", 3: "<qII"}
"""Layout of a function entry by version; each begins with start, size and offset of rows."""

LOOK_UP = """
import json, random, sys, time
from array import array
from perfuse import sframe
opened = sframe.open(sys.argv[1])
functions = opened.recording.tables["unwind_functions"].to_arrow()
starts, sizes = functions["start_address"].to_pylist(), functions["size_bytes"].to_pylist()
random.seed(0)
picked = random.choices(range(len(starts)), k=1_000_000)
addresses = array("Q", (starts[at] + random.randrange(max(sizes[at], 1)) for at in picked))
opened.find(addresses[:10]).to_arrow()
started = time.perf_counter()
found = opened.find(addresses).to_arrow()
print(json.dumps({"seconds": time.perf_counter() - started, "num": len(found)}))
"""


def main() -> int:
    """Runs the benchmark and prints the results; returns 1 if a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of each; the best counts")
    options = parser.parse_args()
    measure.compile_perfuse()
    cache = Path(os.environ.get("PERFUSE_BENCH_DIR", "build/bench")).resolve() / "sframe"
    cache.mkdir(parents=True, exist_ok=True)
    if not all(map(shutil.which, ("readelf", "objcopy", "as"))):
        print("binutils is not installed")
        return 1
    print(f"{measure.output_of(PERFUSE, '--version')}, {platform.platform()}, {os.cpu_count()} processors")
    goals = [goal for readelf in measure.installed("readelf", NEWER) for goal in _compare(readelf, cache, options.runs)]
    print(*goals, sep="\n")
    return 0 if all(goal.is_met for goal in goals) else 1


def _compare(readelf: str, cache: Path, runs: int) -> list[Goal]:
    """Measures sections of the version that a readelf supports, with both programs."""
    readelf_version = measure.output_of(readelf, "--version").splitlines()[0]
    minor = int(readelf_version.rsplit(" ", 1)[1].split(".")[1])
    version, style = (1, "2.40") if minor == 40 else (2, "2.44") if minor < 45 else (3, "2.47")
    print(f"\n{readelf_version}: sections of version {version}\n")
    large = _in_elf(cache, "syn120k", version, lambda section: section)
    largest = _in_elf(cache, "syn120k", version, lambda section: _copies(section, version), "x10")
    long = _in_elf(cache, "quad60000", version, lambda section: section)
    costs = {}
    for file in (large, largest, long):
        measure.warm(file)
        dump = [PERFUSE, "records", "--style", f"readelf-{style}", file]
        ours = measure.best([measure.run(dump, cache / "perfuse.txt", cache, (0, HAS_FINDINGS)) for _ in range(runs)])
        peer = [readelf, "--sframe", file]
        peer_runs = 1 if file is long else runs
        theirs = measure.best([measure.run(peer, cache / "readelf.txt", cache) for _ in range(peer_runs)])
        equal = _text(cache / "perfuse.txt") == _text(cache / "readelf.txt")
        print(f"{file.name}: {file.stat().st_size:,} bytes; texts are {'equal' if equal else 'NOT EQUAL'}")
        measure.print_costs({"perfuse records --style": ours, f"{readelf} --sframe": theirs})
        print()
        costs[file] = (ours, theirs, equal)

    seconds, num_rows = min(measure.decode(large, "unwind_rows") for _ in range(runs))
    print(f"every row decoded: {num_rows:,} in {seconds:.4f} s, {num_rows / seconds / 1e6:.0f} million a second")
    command: list[str | Path] = [sys.executable, "-c", LOOK_UP, large]
    answers = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(runs)]
    lookups_per_s = max(row["num"] / row["seconds"] for row in (json.loads(answer.stdout) for answer in answers))
    print(f"lookups at random: {lookups_per_s / 1e6:.1f} million a second, all processors\n")

    def faster(file: Path) -> float:
        ours, theirs, _ = costs[file]
        return theirs.wall_s / ours.wall_s

    decoding = costs[large][1].wall_s / seconds
    return [
        Goal(f"{readelf}: texts are equal", all(equal for *_, equal in costs.values())),
        Goal(f"dump of {large.name} {faster(large):.1f} times faster than {readelf}, at least 2", faster(large) >= 2),
        Goal(f"dump of {largest.name} {faster(largest):.1f} times faster, at least 5", faster(largest) >= 5),
        Goal(f"a function of 60,001 rows {faster(long):.0f} times faster, at least 50", faster(long) >= 50),
        Goal(f"rows decoded in 1/{decoding:.0f} of {readelf}'s time, at most 1/20", decoding >= 20),
        Goal(
            f"{lookups_per_s / 1e6:.1f} million lookups a second, as libsframe {LIBSFRAME_PER_S[version] / 1e6}",
            lookups_per_s >= LIBSFRAME_PER_S[version],
        ),
    ]


def _in_elf(cache: Path, name: str, version: int, change: Callable[[bytes], bytes], suffix: str = "") -> Path:
    """An object file with a section of the corpus, made if missing."""
    made = cache / f"{name}{suffix}_v{version}.o"
    if not made.exists():
        section, empty = made.with_suffix(".sframe"), cache / "empty.o"
        section.write_bytes(change(lzma.decompress((CORPUS / f"{name}_v{version}.sframe.xz").read_bytes())))
        subprocess.run(["as", "-o", empty, "/dev/null"], check=True)
        added = [f"--add-section=.sframe={section}", "--set-section-flags=.sframe=alloc,readonly"]
        part = made.with_suffix(".part")
        subprocess.run(["objcopy", *added, empty, part], check=True)
        part.rename(made)
        section.unlink()
    return made


def _copies(section: bytes, version: int) -> bytes:
    """The section repeated ten times, each copy for code after that of the previous one."""
    entry = struct.Struct(ENTRIES[version])
    header = struct.Struct("<20xII")
    num, num_rows, rows_bytes = struct.unpack_from("<III", section, 8)
    _, rows_at = header.unpack_from(section)
    entries = section[HEADER_BYTES : HEADER_BYTES + num * entry.size]
    rows = section[HEADER_BYTES + rows_at : HEADER_BYTES + rows_at + rows_bytes]
    out = bytearray(section[:HEADER_BYTES])
    struct.pack_into(
        "<IIIII", out, 8, num * COPIES, num_rows * COPIES, rows_bytes * COPIES, 0, num * COPIES * entry.size
    )
    for copy in range(COPIES):
        # Starts relative to their own field also shift by the size of the entries in between.
        for start, size, offset, *rest in entry.iter_unpack(entries):
            moved = SPAN * copy - (entry.size * num * copy if section[3] & 4 else 0)
            out += entry.pack(start + moved, size, offset + rows_bytes * copy, *rest)
    return bytes(out + rows * COPIES)


def _text(path: Path) -> bytes:
    return path.read_bytes().strip()


if __name__ == "__main__":
    sys.exit(main())
