//! Fixed fields, declared once as in the specification's tables. Fields are not aligned.

use perfuse_wire::layout;

layout! {
    /// Begins every section; a section that a linker did not merge has several. The same in all versions.
    Header = "sframe_header", section "1.2" {
        /// 0xdee2 in the byte order of the target machine.
        sfp_magic: u16,
        /// 1, 2 or 3.
        sfp_version: u8,
        /// Bit 0: entries are sorted. Bit 1: frame pointers are preserved (versions 1 and 2). Bit 2: start addresses
        /// are relative to their own field.
        sfp_flags: u8,
        /// ABI and byte order: 1 aarch64 big, 2 aarch64 little, 3 amd64, 4 s390x.
        sfh_abi_arch: u8,
        /// Fixed offset of the frame pointer from the CFA; 0 where rows contain it.
        sfh_cfa_fixed_fp_offset: i8,
        /// Fixed offset of the return address from the CFA: -8 on amd64; 0 where rows contain it.
        sfh_cfa_fixed_ra_offset: i8,
        /// Size in bytes of the auxiliary header; 0 in practice.
        sfh_auxhdr_len: u8,
        /// Number of function entries.
        sfh_num_fdes: u32,
        /// Number of rows of all functions.
        sfh_num_fres: u32,
        /// Size in bytes of all rows; in version 3 including attributes.
        sfh_fre_len: u32,
        /// Offset of the first function entry from the end of this header.
        sfh_fdeoff: u32,
        /// Offset of the first row from the end of this header.
        sfh_freoff: u32,
    } then {
        /// `sfh_auxhdr_len` bytes.
        auxiliary_header: Bytes,
    }

    /// A function descriptor entry (FDE) of version 1.
    FuncDescV1 = "sframe_func_desc_entry (version 1)", section "1.3" {
        /// Start address; what it is relative to depends on the linker.
        sfde_func_start_address: i32,
        /// Size in bytes.
        sfde_func_size: u32,
        /// Offset of its first row from the start of the row sub-section.
        sfde_func_start_fre_off: u32,
        /// Number of rows.
        sfde_func_num_fres: u32,
        /// Bits 0-3: size of row starts (0, 1, 2 for 1, 2, 4 bytes). Bit 4: PCMASK. Bit 5: return addresses are signed with key B.
        sfde_func_info: u8,
    }

    /// A function descriptor entry (FDE) of version 2.
    FuncDescV2 = "sframe_func_desc_entry (version 2)", section "1.3" {
        /// Start address; relative to this field where the flag is set.
        sfde_func_start_address: i32,
        /// Size in bytes.
        sfde_func_size: u32,
        /// Offset of its first row from the start of the row sub-section.
        sfde_func_start_fre_off: u32,
        /// Number of rows.
        sfde_func_num_fres: u32,
        /// As in version 1.
        sfde_func_info: u8,
        /// PCMASK: size in bytes of the block of code that repeats.
        sfde_func_rep_size: u8,
        /// 0.
        sfde_func_padding2: u16,
    }

    /// A function descriptor entry (FDE) of version 3: the part that searches need.
    FuncDescIdxV3 = "sframe_func_desc_idx_v3", section "1.3" {
        /// Start address; relative to this field where the flag is set, as it always is.
        sfdi_func_start_offset: i64,
        /// Size in bytes.
        sfdi_func_size: u32,
        /// Offset of its attributes, which its rows follow, from the start of the row sub-section.
        sfdi_func_start_fre_off: u32,
    }

    /// The attributes of a function in version 3, which precede its rows.
    FuncDescAttrV3 = "sframe_func_desc_attr_v3", section "1.3" {
        /// Number of rows.
        sfda_func_num_fres: u16,
        /// As in version 1; bit 7: signal frame.
        sfda_func_info: u8,
        /// Bits 0-4: 0 DEFAULT, 1 FLEX.
        sfda_func_info2: u8,
        /// PCMASK: size in bytes of the block of code that repeats.
        sfda_func_rep_size: u8,
    }
}

/// A frame row entry (FRE). It has no fixed fields: their sizes follow from the function's entry and from its own
/// info byte.
pub const FRAME_ROW: perfuse_wire::Layout = perfuse_wire::Layout {
    name: "sframe_frame_row_entry",
    section: "1.4",
    doc: "How to unwind from its start up to the start of the next row.",
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
            doc: "Bit 0: the CFA is relative to the stack pointer, else to the frame pointer. Bits 1-4: number of words. \
                  Bits 5-6: their size (0, 1, 2 for 1, 2, 4 bytes). Bit 7: the return address is signed.",
        },
        perfuse_wire::Field {
            name: "sfre_words",
            ty: perfuse_wire::FieldType::Array,
            doc: "Signed offsets: CFA, then those of the saved return address and frame pointer. FLEX: control words and offsets in turn.",
        },
    ],
};

/// Name of a header in record lists.
pub(crate) const HEADER: &str = "sframe_header";
/// Name of a function entry of version 1 or 2 in record lists.
pub(crate) const ENTRY: &str = "sframe_func_desc_entry";
/// Name of a function entry of version 3 in record lists.
pub(crate) const INDEX: &str = "sframe_func_desc_idx_v3";
/// Name of the attributes of a function of version 3 in record lists.
pub(crate) const ATTRIBUTES: &str = "sframe_func_desc_attr_v3";
/// Name of a row in record lists.
pub(crate) const ROW: &str = "sframe_frame_row_entry";
