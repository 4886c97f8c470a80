"""A panic of the core is an exception of one call: with its place, while other threads and later calls work."""

import os
import subprocess
import sys

CODE = """
import threading
import perfuse as pf
from perfuse import _core
from perfuse.table import Table

going, counts = True, []

def count():
    while going:
        counts.append(pf.open(b"main;work 12\\nmain;rest 3\\n").profile().tables["samples"].num_rows)

thread = threading.Thread(target=count)
thread.start()
for panic in (
    _core.panic_for_test,
    lambda: _core.panic_for_test(in_worker=True),
    lambda: Table("samples", lambda: _core.panic_for_test(in_stream=True)).to_arrow(),
    lambda: pf.fuse(b"main;work 12\\n", progress=lambda step, share: _core.panic_for_test()),
):
    for _ in range(3):
        try:
            panic()
        except pf.InternalError as error:
            print(str(error).split(": ", 1)[1].split(" (")[0], error.location is not None)
before = len(counts)
while len(counts) < before + 3:
    pass
going = False
thread.join()
print(set(counts))
"""


def test_other_threads_and_later_calls_work() -> None:
    """In the thread that calls, in a thread of the pool, in a stream that a library pulls, in a progress callback."""
    environment = {name: value for name, value in os.environ.items() if name != "RUST_BACKTRACE"}
    environment["PERFUSE_PANIC_FOR_TEST"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False, env=environment, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
    places = ["panic for a test", "panic in a worker thread for a test", "panic in a stream for a test"]
    expected = [f"{place} True" for place in (*places, places[0]) for _ in range(3)]
    assert done.stdout.splitlines() == [*expected, "{2}"]
