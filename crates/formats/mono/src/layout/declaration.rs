//! Declaration of the documented event layouts.

use std::ops::RangeInclusive;

use perfuse_wire::Layout;

/// An event and the data versions of its fields.
#[derive(Debug)]
pub struct EventLayout {
    /// The documented layout.
    pub layout: Layout,
    /// The event bytes it describes.
    pub bytes: &'static [u8],
    /// The `mtype` of METADATA events; 0 for other events.
    pub mtype: u64,
    /// Data versions of each field after the event byte, in the order of the layout.
    pub versions: &'static [RangeInclusive<u8>],
}

/// The encoding of a field, as the documentation names it.
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

        /// The layouts of the file header, the buffer header and every event.
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
