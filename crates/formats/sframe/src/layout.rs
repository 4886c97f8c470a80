//! Fixed fields, declared once as the specification's tables. Nothing is aligned.

use perfuse_wire::layout;

layout! {
    /// Begins every section, and every piece of one that a linker put together without merging. The same in all versions.
    Header = "sframe_header", section "1.2" {
        /// 0xdee2 in the byte order of the machine the section is for.
        sfp_magic: u16,
        /// 1, 2 or 3.
        sfp_version: u8,
        /// Bit 0: entries are sorted. Bit 1: frame pointers are kept (versions 1 and 2). Bit 2: starts count from their own field.
        sfp_flags: u8,
        /// ABI and byte order: 1 aarch64 big, 2 aarch64 little, 3 amd64, 4 s390x.
        sfh_abi_arch: u8,
        /// Where the frame pointer always is, from the CFA; 0 where rows tell.
        sfh_cfa_fixed_fp_offset: i8,
        /// Where the return address always is, from the CFA: -8 on amd64; 0 where rows tell.
        sfh_cfa_fixed_ra_offset: i8,
        /// Size in bytes of what follows this header; 0 in practice.
        sfh_auxhdr_len: u8,
        /// Function entries.
        sfh_num_fdes: u32,
        /// Rows, summed over all functions.
        sfh_num_fres: u32,
        /// Size in bytes of all rows; in version 3 attributes included.
        sfh_fre_len: u32,
        /// First function entry, from the end of this header.
        sfh_fdeoff: u32,
        /// First row, from the end of this header.
        sfh_freoff: u32,
    } then {
        /// `sfh_auxhdr_len` bytes.
        auxiliary_header: Bytes,
    }

    /// A function, in version 1.
    FuncDescV1 = "sframe_func_desc_entry (version 1)", section "1.3" {
        /// Where it starts; from where that is counted depends on who linked the section.
        sfde_func_start_address: i32,
        /// Size in bytes.
        sfde_func_size: u32,
        /// Its first row, from the first row of all.
        sfde_func_start_fre_off: u32,
        /// Rows it has.
        sfde_func_num_fres: u32,
        /// Bits 0-3: size of row starts (0, 1, 2 for 1, 2, 4 bytes). Bit 4: PCMASK. Bit 5: return addresses are signed with key B.
        sfde_func_info: u8,
    }

    /// A function, in version 2.
    FuncDescV2 = "sframe_func_desc_entry (version 2)", section "1.3" {
        /// Where it starts; from its own field where the flag says so.
        sfde_func_start_address: i32,
        /// Size in bytes.
        sfde_func_size: u32,
        /// Its first row, from the first row of all.
        sfde_func_start_fre_off: u32,
        /// Rows it has.
        sfde_func_num_fres: u32,
        /// As in version 1.
        sfde_func_info: u8,
        /// PCMASK: size in bytes of the block of code that repeats.
        sfde_func_rep_size: u8,
        /// 0.
        sfde_func_padding2: u16,
    }

    /// A function, in version 3: what a search needs.
    FuncDescIdxV3 = "sframe_func_desc_idx_v3", section "1.3" {
        /// Where it starts, from its own field where the flag says so, as it always does.
        sfdi_func_start_offset: i64,
        /// Size in bytes.
        sfdi_func_size: u32,
        /// Its attributes, which its rows follow; from the first of all.
        sfdi_func_start_fre_off: u32,
    }

    /// A function, in version 3: the rest, just before its rows.
    FuncDescAttrV3 = "sframe_func_desc_attr_v3", section "1.3" {
        /// Rows it has.
        sfda_func_num_fres: u16,
        /// As in version 1; bit 7: the kernel entered it for a signal.
        sfda_func_info: u8,
        /// Bits 0-4: 0 DEFAULT, 1 FLEX.
        sfda_func_info2: u8,
        /// PCMASK: size in bytes of the block of code that repeats.
        sfda_func_rep_size: u8,
    }
}

/// A row, which has no fixed fields: their sizes are in its function's entry and in its own info byte.
pub const FRAME_ROW: perfuse_wire::Layout = perfuse_wire::Layout {
    name: "sframe_frame_row_entry",
    section: "1.4",
    doc: "How to unwind from here on, up to the next row's start.",
    fixed_bytes: 0,
    fields: &[
        perfuse_wire::Field {
            name: "sfre_start_address",
            ty: perfuse_wire::FieldType::Bytes,
            doc: "Offset from the function's start, or in the block that repeats: 1, 2 or 4 bytes, unsigned.",
        },
        perfuse_wire::Field {
            name: "sfre_info",
            ty: perfuse_wire::FieldType::U8,
            doc: "Bit 0: the CFA is counted from the stack pointer, else the frame pointer. Bits 1-4: number of words. \
                  Bits 5-6: their size (0, 1, 2 for 1, 2, 4 bytes). Bit 7: the return address is signed.",
        },
        perfuse_wire::Field {
            name: "sfre_words",
            ty: perfuse_wire::FieldType::Array,
            doc: "Signed offsets: CFA, then where return address and frame pointer are saved. FLEX: control words and offsets in turn.",
        },
    ],
};

/// A header, as the record list names it.
pub(crate) const HEADER: &str = "sframe_header";
/// A function entry of versions 1 and 2.
pub(crate) const ENTRY: &str = "sframe_func_desc_entry";
/// The index entry of a function of version 3.
pub(crate) const INDEX: &str = "sframe_func_desc_idx_v3";
/// The attributes of a function of version 3.
pub(crate) const ATTRIBUTES: &str = "sframe_func_desc_attr_v3";
/// A row.
pub(crate) const ROW: &str = "sframe_frame_row_entry";
