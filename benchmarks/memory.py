"""Measures the peak memory of each verb on each kind of file, also as a multiple of the file.

The files are those of the corpus; each command runs in a process of its own that a small launcher starts. Pages of a
mapped file count where they are resident: the kernel takes them back when it needs memory.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import measure

PERFUSE = Path(sys.executable).with_name("perfuse")
CORPUS = Path(os.environ.get("PERFUSE_CORPUS", Path(__file__).parents[2] / "shared" / "corpus"))
ENDED = (0, 1)
"""Exit codes of a command that did its work: without and with findings."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of file: its name in the table, and a file of it in the corpus."""

    name: str
    path: str


SUBJECTS = (
    Subject("perf.data", "jitdump/produced/node20.perf.data"),
    Subject("JITDUMP", "jitdump/produced/erlang27.dump"),
    Subject("XRay, packed", "xray/big/lua-161mb.xray.zst"),
    Subject("Mono, calls", "mono/v17/calls.mlpd"),
    Subject("Mono, heap", "mono/v17/heapshot.mlpd"),
)

VERBS: dict[str, list[str]] = {
    "info": ["info"],
    "check": ["check"],
    "records": ["records", "--limit", "0"],
    "tables": ["tables"],
    "query": ["query"],
    "report": ["report"],
    "flame": ["flame", "-o", "OUT/flame.html"],
    "convert": ["convert", "-o", "OUT/pprof.pb.gz", "--to", "pprof"],
    "repair": ["repair", "-o", "OUT/repaired"],
}


def command_of(verb: str, file: Path, out: Path) -> list[str | Path]:
    """The command line of a verb."""
    name, *options = VERBS[verb]
    options = [option.replace("OUT", str(out)) for option in options]
    words: list[str | Path] = [PERFUSE, name, file, *options]
    return [*words, "SELECT count(*) FROM records"] if verb == "query" else words


def peak(verb: str, file: Path) -> int | None:
    """Peak memory of a verb in bytes; None where it does not apply to the file."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory)
        command = command_of(verb, file, out)
        try:
            return measure.run(command, out / "stdout", out, accept=ENDED).rss_bytes
        except measure.CommandError:
            return None


def cell(memory: int | None, size: int) -> str:
    """Memory in MB, and as a multiple of the file where the file is what it depends on."""
    if memory is None:
        return "-"
    megabytes = f"{memory / 1e6:,.0f} MB"
    return f"{megabytes}, {memory / size:.1f} of the file" if size >= LARGE_BYTES else megabytes


LARGE_BYTES = 20_000_000
"""Of smaller files the multiple says nothing: most of the memory is Python's."""


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="these files in place of those of the corpus")
    options = parser.parse_args()
    measure.compile_perfuse()
    subjects = [(path.name, path) for path in options.files]
    subjects = subjects or [(one.name, CORPUS / one.path) for one in SUBJECTS if (CORPUS / one.path).exists()]
    print(f"| kind | size | {' | '.join(VERBS)} |")
    print(f"|---|---|{'---|' * len(VERBS)}")
    for name, path in subjects:
        size = path.stat().st_size
        cells = [cell(peak(verb, path), size) for verb in VERBS]
        print(f"| {name} | {size / 1e6:,.1f} MB | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
