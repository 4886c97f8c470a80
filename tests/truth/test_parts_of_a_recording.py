"""Parts that `perf record --switch-output` writes, compared with `perf script` of each."""

import subprocess
from pathlib import Path

from needs import need
from truth.command import json_of

SOURCE = """
#include <time.h>
static volatile long sum;
__attribute__((noinline)) void busy(long n) { while (n--) sum += n; }
int main(void) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do { busy(100000); clock_gettime(CLOCK_MONOTONIC, &now); } while (now.tv_sec < start.tv_sec + 3);
}
"""


def test_parts_are_one_recording(tmp_path: Path) -> None:
    """Later parts do not repeat the mappings of a process that began in an earlier one: perf has no names there."""
    need("perf")
    need("cc")
    (tmp_path / "busy.c").write_text(SOURCE, encoding="ascii")
    program = tmp_path / "busy"
    subprocess.run(["cc", "-O1", tmp_path / "busy.c", "-o", program], check=True)
    command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "--switch-output=1s", "-o", tmp_path / "part"]
    subprocess.run([*command, "--", program], check=True, capture_output=True)
    parts = sorted(tmp_path.glob("part.*"))
    assert len(parts) > 1
    num_samples = 0
    for part in parts:
        script = ["perf", "script", "-f", "-i", part, "-F", "time"]
        num_samples += len(subprocess.run(script, capture_output=True, text=True, check=True).stdout.split())
    report = json_of("report", *parts, "--limit", "0")
    assert [one["samples"] for one in report["events"]] == [num_samples]
    assert sum(one["samples"] for one in report["top_self"] if one["name"] == "busy") > 0.9 * num_samples
