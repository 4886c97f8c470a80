//! Layouts: the fixed fields of headers, records and entries, declared once as the specification's tables.

/// Type of a field in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Text that ends at a NUL, which is part of the field.
    CString,
    /// Bytes; another field contains their number.
    Bytes,
    /// Entries; another field contains their number.
    Array,
    /// An encoding that only this format has, by the name its documentation page gives it.
    Encoded(&'static str),
}

impl FieldType {
    /// C-like spelling, as specifications write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::CString => "char[] NUL",
            Self::Bytes => "u8[]",
            Self::Array => "entry[]",
            Self::Encoded(name) => name,
        }
    }
}

/// One field of a layout: one row of a table in the documentation.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name in the specification.
    pub name: &'static str,
    /// Type.
    pub ty: FieldType,
    /// Meaning and unit.
    pub doc: &'static str,
}

/// Description of a header, record or entry.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Name in the specification.
    pub name: &'static str,
    /// Section of the specification that defines it.
    pub section: &'static str,
    /// Purpose.
    pub doc: &'static str,
    /// Size in bytes of the fixed fields.
    pub fixed_bytes: u64,
    /// Fixed fields in file order, then the fields of variable size.
    pub fields: &'static [Field],
}

/// Declares fixed fields once; derives the struct, its decoder, its encoder, its list of values and its [`Layout`].
///
/// `as Hex` after a type makes a field an address, flag word or magic: `values` shows it in hexadecimal. Fields of
/// variable size that follow the fixed ones are described after `then`; code by hand decodes them.
#[macro_export]
macro_rules! layout {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident = $spec:literal, section $section:literal {
            $($(#[doc = $fdoc:literal])+ $field:ident: $ty:ident $(as $display:ident)?,)*
        } $(then { $($(#[doc = $vdoc:literal])+ $var:ident: $vty:ident,)* })?
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $fdoc])+ pub $field: $ty,)*
        }

        impl $name {
            /// Size in bytes of these fields in a file.
            pub const SIZE: u64 = 0 $(+ size_of::<$ty>() as u64)*;

            /// Description of these fields, for the documentation.
            pub const LAYOUT: $crate::Layout = $crate::Layout {
                name: $spec,
                section: $section,
                doc: concat!($($doc),+),
                fixed_bytes: Self::SIZE,
                fields: &[
                    $($crate::Field { name: stringify!($field), ty: $crate::layout!(@type $ty), doc: concat!($($fdoc),+) },)*
                    $($($crate::Field { name: stringify!($var), ty: $crate::FieldType::$vty, doc: concat!($($vdoc),+) },)*)?
                ],
            };

            /// Reads the fields in order.
            ///
            /// # Errors
            /// [`ParseError`](crate::ParseError) with the first field that the bytes do not contain whole.
            #[inline]
            pub fn read(cursor: &mut $crate::Cursor<'_>) -> Result<Self, $crate::ParseError> {
                // One bounds check for all fields where all are present, so that each costs one load.
                if let Some(mut fields) = cursor.fixed_fields::<{ Self::SIZE as usize }>() {
                    return Ok(Self { $($field: fields.take($ty::from_le_bytes, $ty::from_be_bytes),)* });
                }
                Ok(Self { $($field: cursor.$ty(stringify!($field))?,)* })
            }

            /// Names and values of the fields, in file order.
            #[must_use]
            pub fn values(&self) -> Vec<(&'static str, $crate::Value<'static>)> {
                vec![$((stringify!($field), $crate::layout!(@value [$($display)?] $ty, self.$field)),)*]
            }

            /// Appends the fields in order.
            pub fn write(&self, out: &mut Vec<u8>, endian: $crate::Endian) {
                $($crate::layout!(@put $ty, out, self.$field, endian);)*
            }
        }
    )+};
    (@type u8) => { $crate::FieldType::U8 };
    (@type i8) => { $crate::FieldType::I8 };
    (@type u16) => { $crate::FieldType::U16 };
    (@type u32) => { $crate::FieldType::U32 };
    (@type u64) => { $crate::FieldType::U64 };
    (@type i32) => { $crate::FieldType::I32 };
    (@type i64) => { $crate::FieldType::I64 };
    (@value [Hex] u64, $value:expr) => { $crate::Value::Hex($value) };
    (@value [Hex] $ty:ident, $value:expr) => { $crate::Value::Hex(u64::from($value)) };
    (@value [] u64, $value:expr) => { $crate::Value::Unsigned($value) };
    (@value [] i64, $value:expr) => { $crate::Value::Signed($value) };
    (@value [] i8, $value:expr) => { $crate::Value::Signed(i64::from($value)) };
    (@value [] i32, $value:expr) => { $crate::Value::Signed(i64::from($value)) };
    (@value [] $ty:ident, $value:expr) => { $crate::Value::Unsigned(u64::from($value)) };
    (@put u8, $out:expr, $value:expr, $endian:expr) => { $out.push($value) };
    (@put i8, $out:expr, $value:expr, $endian:expr) => { $out.push($value.cast_unsigned()) };
    (@put u16, $out:expr, $value:expr, $endian:expr) => { $crate::Put::put_u16($out, $value, $endian) };
    (@put u32, $out:expr, $value:expr, $endian:expr) => { $crate::Put::put_u32($out, $value, $endian) };
    (@put u64, $out:expr, $value:expr, $endian:expr) => { $crate::Put::put_u64($out, $value, $endian) };
    (@put i32, $out:expr, $value:expr, $endian:expr) => { $crate::Put::put_i32($out, $value, $endian) };
    (@put i64, $out:expr, $value:expr, $endian:expr) => { $crate::Put::put_i64($out, $value, $endian) };
}

#[cfg(test)]
mod tests {
    use crate::{Cursor, Endian, FieldType, Value};

    layout! {
        /// A point.
        Point = "POINT", section "I" {
            /// Horizontal.
            x: u32,
            /// Vertical.
            y: u64 as Hex,
        } then {
            /// Label.
            name: CString,
        }
    }

    #[test]
    fn one_declaration_reads_writes_and_describes() {
        let mut out = Vec::new();
        Point { x: 1, y: 2 }.write(&mut out, Endian::Big);
        assert_eq!(out, [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(Point::read(&mut Cursor::new(&out, 0, Endian::Big)).unwrap(), Point { x: 1, y: 2 });
        assert_eq!(Point::SIZE, 12);
        assert_eq!(Point { x: 1, y: 2 }.values(), [("x", Value::Unsigned(1)), ("y", Value::Hex(2))]);
        assert_eq!(Point::LAYOUT.fields[2].ty, FieldType::CString);
        let short = Point::read(&mut Cursor::new(&out[..6], 64, Endian::Big)).unwrap_err();
        assert_eq!((short.field, short.offset), ("y", 68));
    }
}
