"""Measures the peak memory of each verb on each kind of file, also as a multiple of the file.

The files are those of the corpus; each command runs in a process of its own that a small launcher starts. Pages of a
mapped file count where they are resident: the kernel takes them back when it needs memory.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import measure

PERFUSE = Path(sys.executable).with_name("perfuse")
ROOT = Path(__file__).parents[1]
CORPUS = Path(os.environ.get("PERFUSE_CORPUS", ROOT.parent / "shared" / "corpus"))
ENDED = (0, 1)
"""Exit codes of a command that did its work: without and with findings."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of file: its name in the table, and files of it in the corpus.

    Attributes:
        name: Its name in the table.
        paths: The files, which a command reads together.
        made_by: The command that makes the file that is measured from them, without its output; its suffix.
    """

    name: str
    paths: tuple[str, ...]
    made_by: tuple[tuple[str, ...], str] | None = None


NODE = ("jitdump/produced/node20.perf.data", "jitdump/produced/node20.dump")

SUBJECTS = (
    Subject("perf.data", NODE[:1]),
    Subject("perf.data with JITDUMP", NODE),
    Subject("JITDUMP", ("jitdump/produced/erlang27.dump",)),
    Subject("saved profile", NODE, (("pack",), ".perfuse")),
    Subject("collapsed stacks", NODE, (("convert", "--to", "collapsed"), ".collapsed")),
    Subject("XRay, packed", ("xray/big/lua-161mb.xray.zst",)),
    Subject("XRay", ("xray/big/lua-161mb.xray.zst",), (("unpack",), ".xray")),
    Subject("Mono, calls", ("mono/v17/calls.mlpd",)),
    Subject("Mono, heap", ("mono/v17/heapshot.mlpd",)),
    Subject("SFrame, packed", ("sframe/large/syn120k_v3.sframe.xz",)),
)

VERBS: dict[str, list[str]] = {
    "info": ["info", "FILES"],
    "check": ["check", "FILES"],
    "records": ["records", "FILES", "--limit", "0"],
    "tables": ["tables", "FILES"],
    "query": ["query", "FILES", "SELECT count(*) FROM records"],
    "report": ["report", "FILES"],
    "annotate": ["annotate", "FILES", "FUNCTION"],
    "diff": ["diff", "FILES", "--", "FILES"],
    "flame": ["flame", "FILES", "-o", "OUT/flame.html"],
    "convert": ["convert", "FILES", "-o", "OUT/pprof.pb.gz", "--to", "pprof"],
    "pack": ["pack", "FILES", "-o", "OUT/saved.perfuse"],
    "repair": ["repair", "FILES", "-o", "OUT/repaired"],
}
LARGEST = "SELECT start_address FROM code_objects ORDER BY size_bytes DESC, start_address LIMIT 1"
"""The code that is annotated where a recording has machine code."""


def command_of(verb: str, files: list[Path], out: Path, function: str) -> list[str | Path]:
    """The command line of a verb."""
    words: list[str | Path] = [PERFUSE]
    for word in VERBS[verb]:
        words += files if word == "FILES" else [word.replace("OUT", str(out)).replace("FUNCTION", function)]
    return words


def peak(verb: str, files: list[Path], function: str) -> int | None:
    """Peak memory of a verb in bytes; None where it does not apply to the files."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory)
        command = command_of(verb, files, out, function)
        try:
            return measure.run(command, out / "stdout", out, accept=ENDED).rss_bytes
        except measure.CommandError:
            return None


def function_in(files: list[Path]) -> str:
    """Address of the largest piece of code; where there is none, of nothing."""
    command = [PERFUSE, "query", *files, LARGEST, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = json.loads(done.stdout) if done.returncode in ENDED else []
    return str(rows[0]["start_address"]) if rows else "0x0"


def made(subject: Subject, folder: Path) -> list[Path]:
    """The files of a subject, made where they have to be."""
    files = [CORPUS / path for path in subject.paths]
    if subject.made_by is None:
        return files
    words, suffix = subject.made_by
    out = folder / f"made{suffix}"
    if words == ("unpack",):
        out.write_bytes(subprocess.run(["zstd", "-dcq", *files], capture_output=True, check=True).stdout)
    else:
        verb, *options = words
        subprocess.run([PERFUSE, verb, *files, "-o", out, *options], capture_output=True, check=False)
    return [out]


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
    print(f"| kind | size | {' | '.join(VERBS)} |")
    print(f"|---|---|{'---|' * len(VERBS)}")
    with tempfile.TemporaryDirectory() as directory:
        subjects = [(path.name, [path]) for path in options.files]
        if not subjects:
            there = [one for one in SUBJECTS if all((CORPUS / path).exists() for path in one.paths)]
            subjects = [(one.name, made(one, Path(directory))) for one in there]
        for name, files in subjects:
            size = sum(path.stat().st_size for path in files)
            function = function_in(files)
            cells = [cell(peak(verb, files, function), size) for verb in VERBS]
            print(f"| {name} | {size / 1e6:,.1f} MB | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
