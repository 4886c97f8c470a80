//! The abbreviation table, one for all units (DWARF 5, section 7.5.3).

use gimli::constants::*;

use super::section::{Encoding, SectionBuffer};

pub(super) const UNIT: u8 = 1;
const SUBPROGRAM: u8 = 2;
const ABSTRACT: u8 = 10;
const INLINED: u8 = 12;

type AttributeForm = (DwAt, DwForm);

const UNIT_ATTRIBUTES: &[AttributeForm] = &[
    (DW_AT_name, DW_FORM_strp),
    (DW_AT_producer, DW_FORM_strp),
    (DW_AT_comp_dir, DW_FORM_line_strp),
    (DW_AT_stmt_list, DW_FORM_sec_offset),
    (DW_AT_low_pc, DW_FORM_addr),
    (DW_AT_high_pc, DW_FORM_data8),
];
const NAME: &[AttributeForm] = &[(DW_AT_name, DW_FORM_strp)];
const LINKAGE_NAME: &[AttributeForm] = &[(DW_AT_linkage_name, DW_FORM_strp)];
const RANGE: &[AttributeForm] = &[(DW_AT_low_pc, DW_FORM_addr), (DW_AT_high_pc, DW_FORM_udata)];
const DESCRIPTION: &[AttributeForm] = &[(DW_AT_description, DW_FORM_string)];
const ORIGIN: &[AttributeForm] = &[(DW_AT_abstract_origin, DW_FORM_ref4)];
const DECLARATION: &[AttributeForm] =
    &[(DW_AT_decl_file, DW_FORM_udata), (DW_AT_decl_line, DW_FORM_udata), (DW_AT_decl_column, DW_FORM_udata)];
const ABSTRACT_DECLARATION: &[AttributeForm] =
    &[(DW_AT_decl_file, DW_FORM_udata), (DW_AT_decl_line, DW_FORM_udata)];
const INLINE: &[AttributeForm] = &[(DW_AT_inline, DW_FORM_data1)];
const CALL: &[AttributeForm] =
    &[(DW_AT_call_file, DW_FORM_udata), (DW_AT_call_line, DW_FORM_udata), (DW_AT_call_column, DW_FORM_udata)];

/// A function with code.
pub(super) fn subprogram(children: bool, linkage_name: bool, declared: bool) -> u8 {
    SUBPROGRAM.wrapping_add(u8::from(children) | u8::from(linkage_name) << 1 | u8::from(declared) << 2)
}

/// A function as inlined calls refer to it, without code.
pub(super) fn abstract_function(declared: bool) -> u8 {
    ABSTRACT.wrapping_add(u8::from(declared))
}

/// An inlined call.
pub(super) fn inlined(children: bool, called_from: bool) -> u8 {
    INLINED.wrapping_add(u8::from(children) | u8::from(called_from) << 1)
}

/// The section `.debug_abbrev`.
pub(super) fn section(encoding: Encoding) -> SectionBuffer {
    let mut out = SectionBuffer::new(encoding);
    declare(&mut out, UNIT, DW_TAG_compile_unit, true, &[UNIT_ATTRIBUTES]);
    let given = |present: bool, attributes| if present { attributes } else { &[] as &[AttributeForm] };
    for declared in [false, true] {
        for linkage in [false, true] {
            for children in [false, true] {
                let attributes =
                    [NAME, given(linkage, LINKAGE_NAME), given(declared, DECLARATION), RANGE, DESCRIPTION];
                let code = subprogram(children, linkage, declared);
                declare(&mut out, code, DW_TAG_subprogram, children, &attributes);
            }
        }
        let attributes = [NAME, LINKAGE_NAME, given(declared, ABSTRACT_DECLARATION), INLINE];
        declare(&mut out, abstract_function(declared), DW_TAG_subprogram, false, &attributes);
    }
    for called_from in [false, true] {
        for children in [false, true] {
            let attributes = [ORIGIN, RANGE, given(called_from, CALL)];
            let code = inlined(children, called_from);
            declare(&mut out, code, DW_TAG_inlined_subroutine, children, &attributes);
        }
    }
    out.u8(0);
    out
}

fn declare(out: &mut SectionBuffer, code: u8, tag: DwTag, children: bool, attributes: &[&[AttributeForm]]) {
    out.uleb(code.into());
    out.uleb(tag.0.into());
    out.u8(if children { DW_CHILDREN_yes.0 } else { DW_CHILDREN_no.0 });
    for (name, form) in attributes.iter().copied().flatten() {
        out.uleb(name.0.into());
        out.uleb(form.0.into());
    }
    out.append(&[0, 0]);
}
