"""The process of one call: `python -P -m perfuse.agents.child SECONDS ARGUMENTS` is `perfuse ARGUMENTS` with limits.

It ends with the server: by the kernel where that was killed.
"""

import contextlib
import resource
import runpy
import signal
import sys

MAX_WRITTEN_BYTES = 4 << 30
"""The largest temporary file."""
_PR_SET_PDEATHSIG = 1


def _limit(which: int, value: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(which)
        resource.setrlimit(which, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def main() -> None:
    """Sets the limits and runs the command line."""
    _limit(resource.RLIMIT_CPU, int(sys.argv[1]))
    _limit(resource.RLIMIT_FSIZE, MAX_WRITTEN_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, ImportError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.argv[1:] = sys.argv[2:]
    runpy.run_module("perfuse", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
