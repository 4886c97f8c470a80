//! How the tables of events are declared.

use std::ops::RangeInclusive;

use perfuse_wire::Layout;

/// An event and the data versions of its fields.
#[derive(Debug)]
pub struct EventLayout {
    /// The table of the documentation.
    pub layout: Layout,
    /// First bytes it is for.
    pub bytes: &'static [u8],
    /// What kind of METADATA; 0 for everything else.
    pub mtype: u64,
    /// Data versions of each field behind the first byte, in the order of the table.
    pub versions: &'static [RangeInclusive<u8>],
}

/// How a field is encoded, as the documentation names it.
macro_rules! encoded {
    (byte) => {
        FieldType::U8
    };
    (text) => {
        FieldType::CString
    };
    (list) => {
        FieldType::Array
    };
    ($kind:ident) => {
        FieldType::Encoded(stringify!($kind))
    };
}

macro_rules! events {
    ($(
        $spec:literal [$($byte:literal)+] $(mtype $mtype:literal)? $doc:literal {
            $($field:ident: $kind:ident $first:literal to $last:literal $fdoc:literal;)*
        }
    )+) => {
        /// Every event.
        pub static EVENTS: &[EventLayout] = &[$(EventLayout {
            layout: events!(@layout $spec, $doc, $($byte)+, $($field $kind $first $last $fdoc)*),
            bytes: &[$($byte),+],
            mtype: 0 $(+ $mtype)?,
            versions: &[$($first..=$last),*],
        }),+];

        /// The tables of the file header, the buffer header and every event.
        pub static LAYOUTS: &[&Layout] = &[
            &$crate::layout::FileHeader::LAYOUT,
            &$crate::layout::BufferHeader::LAYOUT,
            $(&events!(@layout $spec, $doc, $($byte)+, $($field $kind $first $last $fdoc)*)),+
        ];
    };
    (@layout $spec:literal, $doc:literal, $($byte:literal)+, $($field:ident $kind:ident $first:literal $last:literal $fdoc:literal)*) => {
        Layout {
            name: $spec,
            section: "event format",
            doc: $doc,
            fixed_bytes: 1,
            fields: &[Field { name: "event", ty: FieldType::U8, doc: concat!($(stringify!($byte), " "),+) }, $(Field {
                name: stringify!($field),
                ty: encoded!($kind),
                doc: concat!("(", $first, "-", $last, ") ", $fdoc),
            }),*],
        }
    };
}

pub(super) use {encoded, events};
