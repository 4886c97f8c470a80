"""ELF machine numbers: JITDUMP and ELF identify architectures by them."""

import platform

from perfuse.errors import UsageError

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
