//! Types of columns in table declarations, with their Rust values and Arrow arrays.

use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder, PrimitiveBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use rustc_hash::{FxHashMap, FxHasher};

/// A column type.
pub trait Column {
    /// Type of a value.
    type Item<'a>;
    /// Type of the builder.
    type Builder: Default + std::fmt::Debug;
    /// Whether null may occur.
    const NULLABLE: bool;
    /// The Arrow type.
    fn data_type() -> DataType;
    /// The values of a [`Choice`] column, each with its meaning; empty for other columns.
    fn words() -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
    /// Appends one value.
    fn push(builder: &mut Self::Builder, item: Self::Item<'_>);
    /// Returns the values as Arrow and empties the builder.
    fn finish(builder: &mut Self::Builder) -> ArrayRef;
}

macro_rules! primitive {
    ($($ty:ty => $arrow:ty),+) => {$(
        impl Column for $ty {
            type Item<'a> = $ty;
            type Builder = PrimitiveBuilder<$arrow>;
            const NULLABLE: bool = false;
            fn data_type() -> DataType {
                <$arrow>::DATA_TYPE
            }
            #[inline]
            fn push(builder: &mut Self::Builder, item: $ty) {
                builder.append_value(item);
            }
            fn finish(builder: &mut Self::Builder) -> ArrayRef {
                Arc::new(builder.finish())
            }
        }
        impl Nullable for $ty {
            #[inline]
            fn push_null(builder: &mut Self::Builder) {
                builder.append_null();
            }
        }
    )+};
}
primitive!(u8 => UInt8Type, u16 => UInt16Type, u32 => UInt32Type, u64 => UInt64Type, i32 => Int32Type, i64 => Int64Type, f64 => Float64Type);

/// A column type that supports null.
pub trait Nullable: Column {
    /// Appends null.
    fn push_null(builder: &mut Self::Builder);
}

/// A nullable column.
#[derive(Debug)]
pub struct Opt<T>(PhantomData<T>);

impl<T: Nullable> Column for Opt<T> {
    type Item<'a> = Option<T::Item<'a>>;
    type Builder = T::Builder;
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        T::data_type()
    }
    #[inline]
    fn push(builder: &mut Self::Builder, item: Self::Item<'_>) {
        match item {
            Some(item) => T::push(builder, item),
            None => T::push_null(builder),
        }
    }
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        T::finish(builder)
    }
}

impl Column for bool {
    type Item<'a> = bool;
    type Builder = Vec<Option<bool>>;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        DataType::Boolean
    }
    fn push(builder: &mut Self::Builder, item: bool) {
        builder.push(Some(item));
    }
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        Arc::new(BooleanArray::from(std::mem::take(builder)))
    }
}

impl Nullable for bool {
    fn push_null(builder: &mut Self::Builder) {
        builder.push(None);
    }
}

/// A dictionary-encoded string column.
#[derive(Debug)]
pub struct Str;

/// Builder of a dictionary-encoded column. A value that equals the previous one needs only a comparison.
#[derive(Debug, Default)]
pub struct StrBuilder {
    /// Key by hash of the text. Of two texts with the same hash only the first is found again; the other is added to the
    /// dictionary each time.
    ids: FxHashMap<u64, i32>,
    text: String,
    /// End of each value in the text.
    ends: Vec<i32>,
    keys: PrimitiveBuilder<Int32Type>,
    last: Option<i32>,
}

impl StrBuilder {
    /// The text with a key.
    fn value(&self, id: i32) -> &str {
        let id = id as usize;
        let start = id.checked_sub(1).map_or(0, |previous| self.ends[previous]);
        &self.text[start as usize..self.ends[id] as usize]
    }

    /// The key of a text; adds it to the dictionary where it is new.
    #[inline]
    fn intern(&mut self, text: &str) -> i32 {
        if let Some(last) = self.last
            && self.value(last) == text
        {
            return last;
        }
        let mut hasher = FxHasher::default();
        text.hash(&mut hasher);
        let next = i32::try_from(self.ends.len()).unwrap_or(i32::MAX);
        let found = *self.ids.entry(hasher.finish()).or_insert(next);
        let id = if found < next && self.value(found) == text { found } else { next };
        if id == next {
            self.text.push_str(text);
            let end = i32::try_from(self.text.len());
            self.ends.push(end.unwrap_or_else(|_| panic!("a batch has more than 2 GB of text")));
        }
        self.last = Some(id);
        id
    }
}

impl Column for Str {
    type Item<'a> = &'a str;
    type Builder = StrBuilder;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }
    #[inline]
    fn push(builder: &mut StrBuilder, item: &str) {
        let id = builder.intern(item);
        builder.keys.append_value(id);
    }
    fn finish(builder: &mut StrBuilder) -> ArrayRef {
        let StrBuilder { text, ends, mut keys, .. } = std::mem::take(builder);
        let offsets = OffsetBuffer::new(std::iter::once(0).chain(ends).collect());
        let values = StringArray::try_new(offsets, Buffer::from_vec(text.into_bytes()), None);
        match values.and_then(|values| DictionaryArray::try_new(keys.finish(), Arc::new(values))) {
            Ok(array) => Arc::new(array),
            Err(error) => unreachable!("`intern` returns keys of the dictionary: {error}"),
        }
    }
}

impl Nullable for Str {
    #[inline]
    fn push_null(builder: &mut StrBuilder) {
        builder.keys.append_null();
    }
}

/// The values of a column of one of several texts; `choices!` implements it.
pub trait Choices: Copy + Eq + std::fmt::Debug + Send + Sync + 'static {
    /// All values, in order of their keys.
    const ALL: &'static [Self];

    /// Meanings of the values, in the same order.
    const MEANINGS: &'static [&'static str];

    /// Text in the table.
    fn name(self) -> &'static str;

    /// Key in the dictionary.
    fn key(self) -> i32;

    /// A column from keys that [`key`](Self::key) returned.
    #[must_use]
    fn array(keys: Vec<i32>) -> ArrayRef {
        let values = StringArray::from_iter_values(Self::ALL.iter().map(|choice| choice.name()));
        match DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), Arc::new(values)) {
            Ok(array) => Arc::new(array),
            Err(error) => unreachable!("`key` returns keys of the dictionary: {error}"),
        }
    }
}

/// A column with a fixed set of values: an enumeration in Rust, a dictionary of texts in Arrow.
#[derive(Debug)]
pub struct Choice<C>(PhantomData<C>);

impl<C: Choices> Column for Choice<C> {
    type Item<'a> = C;
    type Builder = Vec<i32>;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        Str::data_type()
    }
    fn words() -> Vec<(&'static str, &'static str)> {
        C::ALL.iter().zip(C::MEANINGS).map(|(word, meaning)| (word.name(), meaning.trim())).collect()
    }
    #[inline]
    fn push(builder: &mut Vec<i32>, item: C) {
        builder.push(item.key());
    }
    fn finish(builder: &mut Vec<i32>) -> ArrayRef {
        C::array(std::mem::take(builder))
    }
}

/// Declares the values of a [`Choice`] column.
macro_rules! choices {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $wdoc:literal])+ $word:ident = $text:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[doc = $wdoc])+ $word,)+
        }

        impl crate::Choices for $name {
            const ALL: &'static [Self] = &[$(Self::$word),+];
            const MEANINGS: &'static [&'static str] = &[$(concat!($($wdoc),+)),+];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)+
                }
            }

            #[inline]
            fn key(self) -> i32 {
                self as i32
            }
        }
    };
}
pub(crate) use choices;

/// A column of byte strings.
#[derive(Debug)]
pub struct Binary;

impl Column for Binary {
    type Item<'a> = &'a [u8];
    type Builder = BinaryBuilder;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        DataType::Binary
    }
    fn push(builder: &mut BinaryBuilder, item: &[u8]) {
        builder.append_value(item);
    }
    fn finish(builder: &mut BinaryBuilder) -> ArrayRef {
        Arc::new(builder.finish())
    }
}

impl Nullable for Binary {
    fn push_null(builder: &mut BinaryBuilder) {
        builder.append_null();
    }
}

/// A column of lists of unsigned 64-bit numbers.
#[derive(Debug)]
pub struct List;

impl Column for List {
    type Item<'a> = &'a [u64];
    type Builder = ListBuilder<PrimitiveBuilder<UInt64Type>>;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        DataType::List(Arc::new(Field::new("item", DataType::UInt64, true)))
    }
    fn push(builder: &mut Self::Builder, item: &[u64]) {
        builder.values().append_slice(item);
        builder.append(true);
    }
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        Arc::new(builder.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;

    #[test]
    fn equal_strings_have_one_dictionary_entry() {
        let mut builder = StrBuilder::default();
        for text in ["a", "bc", "a", "", "bc"] {
            Str::push(&mut builder, text);
        }
        Str::push_null(&mut builder);
        let array = Str::finish(&mut builder);
        let keys = array.as_dictionary::<Int32Type>();
        let values = keys.values().as_string::<i32>();
        assert_eq!(values.iter().flatten().collect::<Vec<_>>(), ["a", "bc", ""]);
        assert_eq!(
            keys.keys().iter().collect::<Vec<_>>(),
            [Some(0), Some(1), Some(0), Some(2), Some(1), None]
        );
    }
}
