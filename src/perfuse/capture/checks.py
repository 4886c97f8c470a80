"""What would spoil a recording, and the one line that cures each: before a program runs, and for `perfuse doctor`."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from perfuse.capture.finding import Finding
from perfuse.capture.perf import FIRST_WITH_CONTROL, Perf
from perfuse.capture.request import Request
from perfuse.capture.sampling import Sampling, probe
from perfuse.capture.versions import text_of

LEAST_FREE_BYTES = 64 << 20
AMPLE_FREE_BYTES = 1 << 30
_INSTALL = "apt install linux-perf, dnf install perf, or apt install linux-tools-$(uname -r)"
_PARANOID = "sudo sysctl kernel.perf_event_paranoid=1"
_KPTR = "sudo sysctl kernel.kptr_restrict=0"


def kernel_settings() -> list[Finding]:
    """What the kernel permits this user to record, and which kernel symbols it can read."""
    if sys.platform != "linux":
        return [Finding("kernel", "limited", f"{platform.system()}: perf records on Linux only", None)]
    found = [Finding("kernel", "good", f"Linux {platform.release()} {platform.machine()}", None)]
    root = os.geteuid() == 0
    paranoid = _number("/proc/sys/kernel/perf_event_paranoid")
    if paranoid is not None:
        good = root or paranoid <= 1
        detail = f"{paranoid}{', and you are root' if root and paranoid > 1 else ''}"
        found.append(Finding("perf_event_paranoid", "good" if good else "limited", detail, None if good else _PARANOID))
    found.append(_event(probe()))
    restrict = _number("/proc/sys/kernel/kptr_restrict")
    if restrict is not None:
        good = restrict == 0 or (root and restrict == 1)
        found.append(Finding("kptr_restrict", "good" if good else "limited", str(restrict), None if good else _KPTR))
    found.append(_kallsyms())
    return found


def checks_of(request: Request, directory: Path, perf: Perf | None, *, probe_events: bool) -> Iterator[Finding]:
    """What limits or prevents a recording on this machine; good conditions are not listed."""
    if probe_events or perf is not None:
        yield from _of_perf(request, perf)
        if probe_events:
            found = _event(probe())
            if found.state != "good":
                yield found
        yield from _of_kernel_names()
    yield from _of_disk(directory)
    for pid in request.pids:
        yield from _of_process(pid)


def _of_perf(request: Request, perf: Perf | None) -> Iterator[Finding]:
    if perf is None:
        detail = f"{request.perf} does not run" if request.perf else "not found"
        yield Finding("perf", "missing", detail, _INSTALL)
        return
    if perf.version and perf.version < FIRST_WITH_CONTROL:
        needed = text_of(FIRST_WITH_CONTROL)
        detail = f"perf {text_of(perf.version)}: `perfuse record` needs {needed}, for --control"
        yield Finding("perf", "missing", detail, f"{_INSTALL}: a newer perf works with any kernel")
    if request.off_cpu and not perf.features & {"bpf_skeletons", "HAVE_BPF_SKEL"}:
        detail = f"perf {text_of(perf.version)} was built without BPF programs: it cannot record waiting time"
        cure = (
            "--perf-option=--switch-events instead records when threads wait, without their stacks;"
            " for these give a perf built with BUILD_BPF_SKEL=1 with --perf"
        )
        yield Finding("--off-cpu", "missing", detail, cure)


def _event(sampling: Sampling) -> Finding:
    """The state of perf_event_open."""
    if sampling.event is None:
        cures = {
            errno.EPERM: (
                "perf_event_open is denied, as containers do",
                "docker run --cap-add PERFMON …, or record on the host with --pid",
            ),
            errno.EACCES: ("perf_event_open is denied to this user", _PARANOID),
            errno.ENOSYS: ("this kernel has no perf_event_open", "record on a Linux with CONFIG_PERF_EVENTS"),
        }
        failed = f"perf_event_open fails: {os.strerror(sampling.error)}"
        detail, cure = cures.get(sampling.error, (failed, _PARANOID))
        return Finding("samples", "missing", detail, cure)
    if not sampling.has_kernel:
        return Finding("samples", "limited", f"{sampling.event}: without functions of the kernel", _PARANOID)
    return Finding("samples", "good", f"{sampling.event} can be sampled", None)


def _of_kernel_names() -> Iterator[Finding]:
    if probe().has_kernel:
        found = _kallsyms()
        if found.state != "good":
            yield found


def _of_disk(directory: Path) -> Iterator[Finding]:
    parent = next((path for path in (directory, *directory.absolute().parents) if path.is_dir()), Path("/"))
    if not os.access(parent, os.W_OK):
        yield Finding("directory", "missing", f"{parent} may not be written", "give another one with -o DIR")
        return
    free = shutil.disk_usage(parent).free
    if free < AMPLE_FREE_BYTES:
        state = "missing" if free < LEAST_FREE_BYTES else "limited"
        detail = f"{free >> 20:,} MiB are free in {parent}"
        yield Finding("disk", state, detail, "give a directory on another disk with -o DIR")  # type: ignore[arg-type]


def _of_process(pid: int) -> Iterator[Finding]:
    if not Path(f"/proc/{pid}").is_dir():
        yield Finding(f"pid {pid}", "missing", "there is no process of that id", "ps -e lists processes")
        return
    owner = Path(f"/proc/{pid}").stat().st_uid
    if os.geteuid() not in (0, owner):
        yield Finding(f"pid {pid}", "missing", "it is of another user", f"sudo perfuse record --pid {pid}")


def _kallsyms() -> Finding:
    advice = f"{_KPTR}, or read recordings as root"
    try:
        with Path("/proc/kallsyms").open(encoding="ascii", errors="replace") as symbols:
            address = symbols.readline().split(" ", 1)[0]
    except OSError as error:
        return Finding("/proc/kallsyms", "limited", error.strerror or "not readable", advice)
    if address.strip("0"):
        return Finding("/proc/kallsyms", "good", "kernel functions can be named", None)
    return Finding("/proc/kallsyms", "limited", "addresses are hidden: kernel functions have no names", advice)


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
