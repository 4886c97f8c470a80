//! Events as lists of named fields, as `perfuse records` shows them, and events built from named fields. The names
//! are those of [`fields`](crate::fields).

use std::borrow::Cow;
use std::fmt;

use perfuse_wire::{RecordView, Value};

use crate::consts::EventByte;
use crate::dialect::LogDialect;
use crate::fields;
use crate::fields::FieldVisitor;
use crate::records::{CounterEntry, Event};

type NamedValues<'a> = Vec<(&'static str, Value<'a>)>;

/// The record view of an event, with its fields where its name is wanted. `thread` is that of its buffer.
pub fn record_view<'a>(
    dialect: &LogDialect,
    event: &mut Event<'a>,
    index: u64,
    thread: u64,
    wanted: &dyn Fn(&str) -> bool,
) -> RecordView<'a> {
    let mut lister = FieldLister { dialect: *dialect, fields: Vec::new() };
    let name = name(event.byte);
    if wanted(&name) {
        lister.fields.push(("thread_id", Value::Hex(thread)));
        fields::visit_fields(&mut lister, event);
    }
    RecordView {
        index,
        offset: event.offset,
        size: event.size,
        name,
        timestamp: event.time,
        fields: lister.fields,
    }
}

/// Name of an event, or its number if unknown.
fn name(byte: EventByte) -> Cow<'static, str> {
    byte.name().map_or_else(|| Cow::Owned(byte.to_string()), Cow::Borrowed)
}

/// Collects the fields of an event by name.
struct FieldLister<'a> {
    dialect: LogDialect,
    fields: NamedValues<'a>,
}

impl<'a> FieldVisitor<'a> for FieldLister<'a> {
    fn dialect(&self) -> &LogDialect {
        &self.dialect
    }

    fn time(&mut self, _: &mut Option<u64>) {}

    fn byte(&mut self, field: &'static str, value: &mut u64) {
        self.fields.push((field, Value::Unsigned(*value)));
    }

    fn value(&mut self, field: &'static str, value: &mut u64) {
        // The list itself shows the number of roots.
        if field != "num_roots" {
            self.fields.push((field, Value::Unsigned(*value)));
        }
    }

    fn signed(&mut self, field: &'static str, value: &mut i64) {
        self.fields.push((field, Value::Signed(*value)));
    }

    fn pointer(&mut self, field: &'static str, value: &mut u64) {
        self.fields.push((field, Value::Hex(*value)));
    }

    fn absolute(&mut self, field: &'static str, value: &mut u64) {
        self.fields.push((field, Value::Hex(*value)));
    }

    fn object(&mut self, field: &'static str, value: &mut u64) {
        self.fields.push((field, Value::Hex(*value)));
    }

    fn method(&mut self, field: &'static str, value: &mut u64) {
        self.fields.push((field, Value::Hex(*value)));
    }

    fn text(&mut self, field: &'static str, value: &mut &'a [u8]) {
        self.fields.push((field, Value::Text(String::from_utf8_lossy(value))));
    }

    fn double(&mut self, field: &'static str, bits: &mut u64) {
        self.fields.push((field, Value::Text(f64::from_bits(*bits).to_string().into())));
    }

    fn increasing(&mut self, field: &'static str, last: &mut u64, value: &mut u64) {
        *last = *value;
        self.fields.push((field, Value::Unsigned(*value)));
    }

    fn list<T: Default>(
        &mut self,
        field: &'static str,
        list: &mut Vec<T>,
        each: impl FnMut(&mut Self, &mut T),
    ) {
        self.entries(field, list.len() as u64, list, each);
    }

    fn entries<T: Default>(
        &mut self,
        field: &'static str,
        _: u64,
        list: &mut Vec<T>,
        mut each: impl FnMut(&mut Self, &mut T),
    ) {
        let outer = std::mem::take(&mut self.fields);
        let mut entries = Vec::new();
        for entry in list {
            each(self, entry);
            entries.push(std::mem::take(&mut self.fields));
        }
        self.fields = outer;
        self.fields.push((field, Value::Entries(entries)));
    }

    fn terminated_list(
        &mut self,
        field: &'static str,
        list: &mut Vec<CounterEntry<'a>>,
        mut each: impl FnMut(&mut Self, &mut CounterEntry<'a>),
    ) {
        self.entries(field, 0, list, |lister, entry| {
            lister.fields.push(("index", Value::Unsigned(entry.index)));
            each(lister, entry);
        });
    }

    fn reject(&mut self, _: &'static str, _: u64, _: &'static str) {}
}

/// A field: name and value.
pub type NamedField = (String, FieldValue);

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// A number.
    Number(i128),
    /// Text.
    Text(String),
    /// A list of entries, each a list of fields.
    Entries(Vec<Vec<NamedField>>),
}

/// Why fields are not a valid event of the data version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// No data version has an event of that name.
    Event(String),
    /// A field is missing.
    Missing(&'static str),
    /// A field has another type than expected.
    Type(&'static str, &'static str),
    /// The event has no field of that name.
    Unknown(String),
    /// The data version cannot represent a value.
    Refused(&'static str, &'static str),
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(name) => write!(f, "no data version has an event {name}"),
            Self::Missing(field) => write!(f, "the field {field} is missing"),
            Self::Type(field, expected) => write!(f, "{field} is not {expected}"),
            Self::Unknown(field) => write!(f, "the event has no field {field}"),
            Self::Refused("event", expected) => write!(f, "this is not {expected}"),
            Self::Refused(field, expected) => write!(f, "{field} is not {expected}"),
        }
    }
}

impl std::error::Error for FieldError {}

/// Builds an event from its name, time and fields, as `perfuse records` shows them in that data version.
///
/// # Errors
/// When a field is missing, unknown, or of another type.
pub fn build_event<'a>(
    dialect: &LogDialect,
    name: &str,
    time: Option<u64>,
    fields: &'a [NamedField],
) -> Result<Event<'a>, FieldError> {
    let byte = EventByte::ALL.iter().find(|byte| byte.name() == Some(name));
    let byte = byte.ok_or_else(|| FieldError::Event(name.to_owned()))?;
    let mut event = Event::default();
    event.begin(*byte);
    let mut reader = FieldReader { dialect: *dialect, time, fields, used: Vec::new(), error: None };
    fields::visit_fields(&mut reader, &mut event);
    reader.finish()?;
    Ok(event)
}

/// Fills the fields of an event from named values.
struct FieldReader<'a> {
    dialect: LogDialect,
    time: Option<u64>,
    fields: &'a [NamedField],
    /// Names of the fields that were used.
    used: Vec<&'static str>,
    /// The first error.
    error: Option<FieldError>,
}

impl<'a> FieldReader<'a> {
    /// Stores an error unless there is one already.
    fn fail(&mut self, error: FieldError) {
        self.error.get_or_insert(error);
    }

    /// The first error, including fields that were not used.
    fn finish(self) -> Result<(), FieldError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut names = self.fields.iter().map(|(name, _)| name);
        match names.find(|name| !self.used.contains(&name.as_str())) {
            Some(name) => Err(FieldError::Unknown(name.clone())),
            None => Ok(()),
        }
    }

    /// The value of a field.
    fn find(&mut self, field: &'static str) -> Option<&'a FieldValue> {
        self.used.push(field);
        self.fields.iter().find(|(name, _)| name == field).map(|(_, value)| value)
    }

    /// The value of a numeric field.
    fn number(&mut self, field: &'static str) -> i128 {
        match self.find(field) {
            Some(FieldValue::Number(number)) => *number,
            Some(_) => {
                self.fail(FieldError::Type(field, "a number"));
                0
            }
            // Names and backtraces have flags that are always 0.
            None if field == "flags" => 0,
            None => {
                self.fail(FieldError::Missing(field));
                0
            }
        }
    }

    /// Sets an unsigned value.
    fn unsigned(&mut self, field: &'static str, value: &mut u64) {
        let number = self.number(field);
        match u64::try_from(number) {
            Ok(number) => *value = number,
            Err(_) => self.fail(FieldError::Type(field, "an unsigned 64-bit number")),
        }
    }

    /// Sets an address, which must fit the pointer size.
    fn address(&mut self, field: &'static str, value: &mut u64) {
        self.unsigned(field, value);
        if *value & !self.dialect.pointer_mask() != 0 {
            self.fail(FieldError::Type(field, "an address that fits the pointer size of the log"));
        }
    }
}

impl<'a> FieldVisitor<'a> for FieldReader<'a> {
    fn dialect(&self) -> &LogDialect {
        &self.dialect
    }

    fn time(&mut self, time: &mut Option<u64>) {
        *time = self.time;
        if time.is_none() {
            self.fail(FieldError::Missing("timestamp"));
        }
    }

    fn byte(&mut self, field: &'static str, value: &mut u64) {
        // The presence of the text states the flag.
        if field == "present" && self.fields.iter().all(|(name, _)| name != field) {
            *value = self.fields.iter().any(|(name, _)| name == "value").into();
            return;
        }
        self.unsigned(field, value);
    }

    fn value(&mut self, field: &'static str, value: &mut u64) {
        if field == "num_roots" {
            let roots = self.fields.iter().find(|(name, _)| name == "roots");
            *value = match roots {
                Some((_, FieldValue::Entries(list))) => list.len() as u64,
                _ => 0,
            };
            return;
        }
        self.unsigned(field, value);
    }

    fn signed(&mut self, field: &'static str, value: &mut i64) {
        let number = self.number(field);
        match i64::try_from(number) {
            Ok(number) => *value = number,
            Err(_) => self.fail(FieldError::Type(field, "a signed 64-bit number")),
        }
    }

    fn pointer(&mut self, field: &'static str, value: &mut u64) {
        self.address(field, value);
    }

    fn absolute(&mut self, field: &'static str, value: &mut u64) {
        self.address(field, value);
    }

    fn object(&mut self, field: &'static str, value: &mut u64) {
        self.address(field, value);
    }

    fn method(&mut self, field: &'static str, value: &mut u64) {
        self.address(field, value);
    }

    fn has_name(&self, _: &[u8]) -> bool {
        self.fields.iter().any(|(field, _)| field == "name")
    }

    fn text(&mut self, field: &'static str, value: &mut &'a [u8]) {
        match self.find(field) {
            Some(FieldValue::Text(text)) => *value = text.as_bytes(),
            Some(_) => self.fail(FieldError::Type(field, "text")),
            None => self.fail(FieldError::Missing(field)),
        }
    }

    fn double(&mut self, field: &'static str, bits: &mut u64) {
        match self.find(field) {
            Some(FieldValue::Text(text)) if text.parse::<f64>().is_ok() => {
                *bits = text.parse::<f64>().unwrap_or(0.0).to_bits();
            }
            Some(FieldValue::Number(number)) => *bits = (*number as f64).to_bits(),
            Some(_) => self.fail(FieldError::Type(field, "a number")),
            None => self.fail(FieldError::Missing(field)),
        }
    }

    fn increasing(&mut self, field: &'static str, last: &mut u64, value: &mut u64) {
        self.unsigned(field, value);
        *last = *value;
    }

    fn list<T: Default>(
        &mut self,
        field: &'static str,
        list: &mut Vec<T>,
        each: impl FnMut(&mut Self, &mut T),
    ) {
        self.entries(field, 0, list, each);
    }

    fn entries<T: Default>(
        &mut self,
        field: &'static str,
        _: u64,
        list: &mut Vec<T>,
        mut each: impl FnMut(&mut Self, &mut T),
    ) {
        let entries = match self.find(field) {
            Some(FieldValue::Entries(entries)) => entries,
            Some(_) => return self.fail(FieldError::Type(field, "a list")),
            None => return self.fail(FieldError::Missing(field)),
        };
        for fields in entries {
            let mut inner = Self { dialect: self.dialect, time: None, fields, used: Vec::new(), error: None };
            let mut entry = T::default();
            each(&mut inner, &mut entry);
            if let Err(error) = inner.finish() {
                return self.fail(error);
            }
            list.push(entry);
        }
    }

    fn terminated_list(
        &mut self,
        field: &'static str,
        list: &mut Vec<CounterEntry<'a>>,
        mut each: impl FnMut(&mut Self, &mut CounterEntry<'a>),
    ) {
        self.entries(field, 0, list, |inner, entry: &mut CounterEntry<'a>| {
            inner.unsigned("index", &mut entry.index);
            each(inner, entry);
        });
    }

    fn reject(&mut self, field: &'static str, _: u64, expected: &'static str) {
        self.fail(FieldError::Refused(field, expected));
    }
}

impl From<&Value<'_>> for FieldValue {
    fn from(value: &Value<'_>) -> Self {
        match value {
            Value::Unsigned(number) | Value::Hex(number) => Self::Number((*number).into()),
            Value::Signed(number) => Self::Number((*number).into()),
            Value::Text(text) => Self::Text(text.clone().into_owned()),
            Value::Bytes(bytes) => Self::Text(String::from_utf8_lossy(bytes).into_owned()),
            Value::Entries(entries) => {
                Self::Entries(entries.iter().map(|entry| named_fields(entry)).collect())
            }
        }
    }
}

/// Converts the fields of a record view.
#[must_use]
pub fn named_fields(fields: &[(&'static str, Value<'_>)]) -> Vec<NamedField> {
    fields.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect()
}
