"""Generated recordings with known sums: collapsed stacks, whose samples the test wrote itself."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

FIRST_DAY = datetime(2026, 11, 1, 12, tzinfo=UTC)

PROGRAM = (
    "main;serve;parse",
    "main;serve;render;shade",
    "main;serve;render;shade;blend",
    "main;serve;render",
    "main;serve;query;scan",
    "main;serve;query;sort;compare",
    "main;gc;mark",
    "main;gc;sweep",
    "main;serve;encode",
    "main;serve;compress;deflate",
    "main;serve;compress",
    "main;log;write",
)
"""Stacks of a program."""


@dataclass
class Written:
    """Files that were written, and what is in them.

    Attributes:
        paths: The files.
        stacks: For each file, its samples by stack.
    """

    paths: list[Path] = field(default_factory=list)
    stacks: dict[str, Counter[str]] = field(default_factory=dict)

    def self_of(self, function: str) -> int:
        """Samples in a function, over all files."""
        return sum(n for one in self.stacks.values() for stack, n in one.items() if stack.split(";")[-1] == function)

    def total_of(self, function: str) -> int:
        """Samples with a function on their stack, over all files."""
        return sum(n for one in self.stacks.values() for stack, n in one.items() if function in stack.split(";"))

    @property
    def weight(self) -> int:
        """All samples."""
        return sum(sum(one.values()) for one in self.stacks.values())


def write_collapsed(path: Path, stacks: Mapping[str, int], day: int = 0) -> Path:
    """Writes collapsed stacks, last changed on a day."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{stack} {number}\n" for stack, number in stacks.items()), encoding="utf-8")
    at = FIRST_DAY.timestamp() + day * 86_400
    os.utime(path, (at, at))
    return path


def write_fleet(
    folder: Path,
    builds: Sequence[str],
    hosts: Sequence[str] = ("a", "b"),
    runs: int = 2,
    *,
    seed: int = 1,
    samples: int = 4000,
    noise: float = 0.03,
    planted: Mapping[str, tuple[str, float]] | None = None,
) -> Written:
    """Writes `folder/BUILD/HOST/N.collapsed` for each build, host and run.

    Args:
        folder: Where to.
        builds: Names of builds, a day each.
        hosts: Names of hosts.
        runs: Runs of each build on each host.
        seed: Of the random numbers.
        samples: Samples of a run, on average.
        noise: Relative standard deviation of a function between runs, beside that of sampling.
        planted: By the innermost function of stacks: the build from which on it costs more, and how many times.
    """
    random_numbers = random.Random(seed)
    mix = {stack: 1 + (7 * number) % 5 for number, stack in enumerate(PROGRAM)}
    whole = sum(mix.values())
    written = Written()
    for day, build in enumerate(builds):
        for host in hosts:
            for run in range(runs):
                found: Counter[str] = Counter()
                for stack, share in mix.items():
                    since, times = (planted or {}).get(stack.split(";")[-1], ("", 1.0))
                    factor = times if since in builds[: day + 1] else 1.0
                    mean = samples * share / whole * factor * random_numbers.lognormvariate(0, noise)
                    found[stack] = max(1, round(random_numbers.gauss(mean, mean**0.5)))
                path = folder / build / host / f"{run}.collapsed"
                written.paths.append(write_collapsed(path, found, day))
                written.stacks[str(path)] = found
    return written
