"""A saved profile where the recorded program, its source, the recording and the caches of this machine are gone."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from needs import need

PROGRAM = """
#include <stdint.h>
volatile uint64_t sink;

__attribute__((noinline)) void shade(uint64_t rounds) {
    for (uint64_t n = 0; n < rounds; n++) sink += n * n;
}

__attribute__((noinline)) void render(void) {
    for (int n = 0; n < 300; n++) shade(200000);
}

int main(void) {
    render();
    return 0;
}
"""

NAMES = """SELECT f.name, r.path, r.line, count(*) FROM frames AS r JOIN functions AS f USING (function_id)
GROUP BY ALL ORDER BY ALL"""

Answer = Callable[..., tuple[int, str, str]]


def test_names_lines_and_code_survive(tmp_path: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    need("cc", "perf")
    here = tmp_path / "here"
    here.mkdir()
    source, program, data = here / "shade.c", here / "shade", here / "perf.data"
    source.write_text(PROGRAM, encoding="utf-8")
    subprocess.run(["cc", "-g", "-O1", "-fno-omit-frame-pointer", "-o", program, source], check=True)
    record = ["perf", "--buildid-dir", str(here / "cache"), "record", "-q", "-e", "cpu-clock:u", "-F", "1999", "-g"]
    subprocess.run(
        [*record, "-o", str(data), "--", str(program)], check=True, stdin=subprocess.DEVNULL, capture_output=True
    )
    pack = tmp_path / "app.perfuse"
    questions = (
        ("report", "--json", "--limit", "0"),
        ("report", "--tree"),
        ("annotate", "shade", "--json"),
        ("query", NAMES, "--format", "csv"),
        ("convert", "--to", "collapsed", "-o", "-"),
        ("convert", "--to", "pprof", "-o", "-"),
    )

    def answers(file: Path) -> list[tuple[int, str, str]]:
        return [answer(verb, file, *rest) for verb, *rest in questions]

    expected = answers(data)
    assert answer("pack", data, "-o", pack, "--code", "sampled", "--sources", "used")[0] == 0
    shutil.rmtree(here)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("PERFUSE_CACHE_DIR", str(tmp_path / "nothing"))
    found = answers(pack)
    for (verb, *_), before, after in zip(questions, expected, found, strict=True):
        assert after == before, verb
    assert "shade.c" in found[3][1]
    assert "sink += n * n" in found[2][1]
