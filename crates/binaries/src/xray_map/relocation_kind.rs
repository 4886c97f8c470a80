use object::elf::{self, Machine, RelocationType};

/// What a relocation does to a field that holds an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelocationKind {
    /// Adds where the program is loaded: at link time, the addend alone.
    Relative,
    /// Address of a symbol.
    Absolute,
    /// Distance of a symbol from the field.
    PcRelative,
    /// Adds the address of a symbol; with the next one, a distance.
    Add,
    /// Subtracts the address of a symbol.
    Subtract,
}

/// What `object` has no names for.
const R_MIPS_PC32: RelocationType = RelocationType(248);
const R_HEX_32_PCREL: RelocationType = RelocationType(31);
const R_HEX_RELATIVE: RelocationType = RelocationType(35);

/// The kind of a relocation, for machines that XRay is made for; `None` for those it has no use for.
pub(super) fn relocation_kind(machine: Machine, r_type: RelocationType) -> Option<RelocationKind> {
    use RelocationKind as Kind;
    let kind = match machine {
        elf::EM_X86_64 => match r_type {
            elf::R_X86_64_RELATIVE | elf::R_X86_64_RELATIVE64 => Kind::Relative,
            elf::R_X86_64_64 | elf::R_X86_64_32 => Kind::Absolute,
            elf::R_X86_64_PC64 | elf::R_X86_64_PC32 => Kind::PcRelative,
            _ => return None,
        },
        elf::EM_386 => match r_type {
            elf::R_386_RELATIVE => Kind::Relative,
            elf::R_386_32 => Kind::Absolute,
            elf::R_386_PC32 => Kind::PcRelative,
            _ => return None,
        },
        elf::EM_AARCH64 => match r_type {
            elf::R_AARCH64_RELATIVE | elf::R_AARCH64_P32_RELATIVE => Kind::Relative,
            elf::R_AARCH64_ABS64 | elf::R_AARCH64_P32_ABS32 => Kind::Absolute,
            elf::R_AARCH64_PREL64 => Kind::PcRelative,
            _ => return None,
        },
        elf::EM_ARM => match r_type {
            elf::R_ARM_RELATIVE => Kind::Relative,
            elf::R_ARM_ABS32 => Kind::Absolute,
            elf::R_ARM_REL32 => Kind::PcRelative,
            _ => return None,
        },
        elf::EM_PPC64 => match r_type {
            elf::R_PPC64_RELATIVE => Kind::Relative,
            elf::R_PPC64_ADDR64 => Kind::Absolute,
            elf::R_PPC64_REL64 => Kind::PcRelative,
            _ => return None,
        },
        elf::EM_RISCV => match r_type {
            elf::R_RISCV_RELATIVE => Kind::Relative,
            elf::R_RISCV_32 | elf::R_RISCV_64 => Kind::Absolute,
            elf::R_RISCV_32_PCREL => Kind::PcRelative,
            elf::R_RISCV_ADD32 | elf::R_RISCV_ADD64 => Kind::Add,
            elf::R_RISCV_SUB32 | elf::R_RISCV_SUB64 => Kind::Subtract,
            _ => return None,
        },
        elf::EM_LOONGARCH => match r_type {
            elf::R_LARCH_RELATIVE => Kind::Relative,
            elf::R_LARCH_32 | elf::R_LARCH_64 => Kind::Absolute,
            elf::R_LARCH_32_PCREL | elf::R_LARCH_64_PCREL => Kind::PcRelative,
            elf::R_LARCH_ADD32 | elf::R_LARCH_ADD64 => Kind::Add,
            elf::R_LARCH_SUB32 | elf::R_LARCH_SUB64 => Kind::Subtract,
            _ => return None,
        },
        elf::EM_S390 => match r_type {
            elf::R_390_RELATIVE => Kind::Relative,
            elf::R_390_64 => Kind::Absolute,
            elf::R_390_PC64 => Kind::PcRelative,
            _ => return None,
        },
        // 64-bit ones are up to three in one, the first in the lowest byte.
        elf::EM_MIPS => match RelocationType(r_type.0 & 0xff) {
            // A relative one where it has no symbol.
            elf::R_MIPS_REL32 | elf::R_MIPS_32 | elf::R_MIPS_64 => Kind::Absolute,
            R_MIPS_PC32 => Kind::PcRelative,
            _ => return None,
        },
        elf::EM_HEXAGON => match r_type {
            R_HEX_RELATIVE => Kind::Relative,
            elf::R_HEX_32 => Kind::Absolute,
            R_HEX_32_PCREL => Kind::PcRelative,
            _ => return None,
        },
        _ => return None,
    };
    Some(kind)
}

/// What a machine is called.
pub(super) fn architecture(machine: Machine, is_64: bool) -> &'static str {
    match (machine, is_64) {
        (elf::EM_386, _) => "i386",
        (elf::EM_X86_64, _) => "x86_64",
        (elf::EM_ARM, _) => "arm",
        (elf::EM_AARCH64, _) => "aarch64",
        (elf::EM_PPC64, _) => "ppc64",
        (elf::EM_RISCV, true) => "riscv64",
        (elf::EM_RISCV, false) => "riscv32",
        (elf::EM_LOONGARCH, true) => "loongarch64",
        (elf::EM_LOONGARCH, false) => "loongarch32",
        (elf::EM_S390, _) => "s390x",
        (elf::EM_MIPS, true) => "mips64",
        (elf::EM_MIPS, false) => "mips",
        (elf::EM_HEXAGON, _) => "hexagon",
        _ => "unknown",
    }
}
