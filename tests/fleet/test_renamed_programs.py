"""Programs whose file names have their version: their functions are the same in every build."""

import subprocess
from pathlib import Path
from statistics import mean

import pytest

from needs import need
from perfuse.fleet.comparing import steps_since
from perfuse.fleet.dataset import Fleet
from perfuse.fleet.selecting import parse_recordings
from truth.producers import run_tool

SOURCE = """
static volatile unsigned long sum;
#define LOOP(name, times) __attribute__((noinline)) void name(void) \\
    { for (unsigned long n = 0; n < 2000000 * times; n++) sum += n; }
LOOP(parse, 1) LOOP(shade, 1) LOOP(scan, 1) LOOP(grown, GROWTH)
int main(void) { for (int k = 0; k < 40; k++) { parse(); shade(); scan(); grown(); } return 0; }
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Five recordings of each of two builds, `app-1` and `app-2`; the second one's `grown` has three times the work."""
    need("gcc", "perf")
    directory = tmp_path_factory.mktemp("renamed")
    (directory / "app.c").write_text(SOURCE, encoding="ascii")
    fleet = Fleet(directory / "dataset")
    for build, growth in (("1", 1), ("2", 3)):
        run_tool(["gcc", "-O1", f"-DGROWTH={growth}", "app.c", "-o", f"app-{build}"], directory)
        paths = []
        for number in range(5):
            out = f"{build}-{number}.data"
            how = ["record", "-q", "-N", "-e", "cpu-clock:u", "-F", "999", "-o", out]
            run_tool(["perf", *how, f"./app-{build}"], directory)
            paths.append(directory / out)
        fleet.add(paths, labels={"build": build})
    return fleet


def share_in(recording: Path) -> float:
    """The share of the samples that perf finds in `grown`."""
    command = ["perf", "script", "-F", "ip,sym", "-i", recording]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[1::2]
    return names.count("grown") / len(names)


def test_the_function_that_grew_is_named(recorded: Fleet) -> None:
    """Each function of both programs is one, also where a busy machine makes another one differ."""
    found = steps_since(recorded, parse_recordings(""), "1")
    names = [one.name for one in found.steps]
    assert len(set(names)) == len(names)
    assert names[0] == "grown"
    step = found.steps[0]
    files = Path(recorded.uri).parent
    before, after = (mean(share_in(one) for one in files.glob(f"{build}-*.data")) for build in "12")
    assert after > 1.5 * before
    assert (step.before, step.after) == (pytest.approx(before, abs=0.01), pytest.approx(after, abs=0.01))
