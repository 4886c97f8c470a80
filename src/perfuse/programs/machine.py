"""ELF machine numbers: JITDUMP and ELF identify architectures by them."""

import platform
from collections.abc import Iterable
from typing import TYPE_CHECKING

from perfuse.errors import UsageError

if TYPE_CHECKING:
    from perfuse.recording import Recording

E_MACHINES = {
    "x86_64": 62,
    "amd64": 62,
    "aarch64": 183,
    "arm64": 183,
    "armv7l": 40,
    "armv6l": 40,
    "i386": 3,
    "i686": 3,
    "riscv64": 243,
    "ppc64le": 21,
    "ppc64": 21,
    "s390x": 22,
    "loongarch64": 258,
}
"""ELF `e_machine` by the output of `uname -m`."""


def e_machine(arch: str | int | None) -> int:
    """The number of a machine: given as `uname -m` spells it, as the number, or None for this machine.

    Raises:
        UsageError: The name is unknown.
    """
    if isinstance(arch, int):
        return arch
    name = (arch or platform.machine()).lower()
    if name not in E_MACHINES:
        raise UsageError(f"unknown machine {name!r}; give one of {', '.join(E_MACHINES)}, or an ELF e_machine number")
    return E_MACHINES[name]


def machine_of_code(stated: str | None, recordings: Iterable["Recording"]) -> int:
    """The number of the machine that code is for; 0 where it is not known.

    Args:
        stated: What the dump of the code states.
        recordings: Those of the profile. Where the dump states none, that of the samples counts, else this machine.
    """
    if stated is not None:
        return E_MACHINES.get(stated, 0)
    archs = (one.summary.arch for one in recordings if one.format == "perf_data")
    return next((E_MACHINES[arch] for arch in archs if arch in E_MACHINES), None) or e_machine(None)
