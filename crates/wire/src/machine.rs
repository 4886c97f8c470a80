//! ELF machine numbers, which JITDUMP and others use for the architecture.

/// Name of an ELF `e_machine` value, as `uname -m` prints it.
#[must_use]
pub fn machine_name(e_machine: u32) -> Option<&'static str> {
    Some(match e_machine {
        3 => "i386",
        8 | 10 => "mips",
        20 => "ppc",
        21 => "ppc64",
        22 => "s390x",
        40 => "arm",
        62 => "x86_64",
        183 => "aarch64",
        243 => "riscv64",
        258 => "loongarch64",
        _ => return None,
    })
}

/// Size of a pointer in bytes on a machine.
#[must_use]
pub fn machine_pointer_bytes(e_machine: u32) -> Option<u8> {
    Some(match e_machine {
        3 | 8 | 10 | 20 | 40 => 4,
        21 | 22 | 62 | 183 | 243 | 258 => 8,
        _ => return None,
    })
}
