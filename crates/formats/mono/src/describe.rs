//! Events as lists of named fields, for `perfuse records`. The names are those of [`shape`](super::records::shape).

use std::borrow::Cow;

use perfuse_wire::{RecordView, Value};

use super::consts::EventByte;
use super::dialect::LogDialect;
use super::records::CounterValue;
use super::records::Event;
use super::records::shape::{self, FieldVisitor};

type NamedValues<'a> = Vec<(&'static str, Value<'a>)>;

/// The record view of an event. `thread` is that of its buffer.
pub fn record_view<'a>(
    dialect: &LogDialect,
    event: &mut Event<'a>,
    index: u64,
    thread: u64,
) -> RecordView<'a> {
    let mut lister = FieldLister { dialect: *dialect, fields: vec![("thread_id", Value::Hex(thread))] };
    shape::visit_fields(&mut lister, event);
    RecordView {
        index,
        offset: event.offset,
        size: event.size,
        name: name(event.byte),
        timestamp: event.time,
        fields: lister.fields,
    }
}

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
        list: &mut Vec<CounterValue<'a>>,
        mut each: impl FnMut(&mut Self, &mut CounterValue<'a>),
    ) {
        self.entries(field, 0, list, |lister, entry| {
            lister.fields.push(("index", Value::Unsigned(entry.index)));
            each(lister, entry);
        });
    }

    fn reject(&mut self, _: &'static str, _: u64, _: &'static str) {}
}
