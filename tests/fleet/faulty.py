"""What workers and drivers of the tests of faults run: reading that ends its process, at most so often."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from perfuse.fleet import work


def process_and_die(folder: str, share: float, options: work.WorkOptions, inputs: Any) -> list[work.Outcome]:
    """Reads a batch, and kills its process with a probability: before it, or between writing and answering."""
    chance = random.Random(os.urandom(8))
    if chance.random() < share / 2:
        Path(folder, f"before-{time.time_ns()}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    found = work.process_batch(options, inputs)
    if chance.random() < share / 2:
        Path(folder, f"after-{time.time_ns()}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return found


def main() -> None:
    """A driver: `python -m fleet.faulty DATASET INPUT...`."""
    from perfuse.fleet import Fleet, Pool

    dataset, *inputs = sys.argv[1:]
    pool = Pool(2)
    try:
        print(Fleet(dataset).add(inputs, engine=pool).num_added, flush=True)
    finally:
        pool.close()


if __name__ == "__main__":
    main()
