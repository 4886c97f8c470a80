//! Tests that the documented layouts describe the decoder.

use perfuse_wire::FieldType;

use crate::consts::EventByte;
use crate::dialect::LogDialect;
use crate::fields;
use crate::fields::FieldVisitor;
use crate::layout::events::EVENTS;
use crate::records::{CounterEntry, Event, EventBody};

/// Lists fields by name and encoding; one entry of each list.
struct EncodingLister {
    dialect: LogDialect,
    fields: Vec<(&'static str, FieldType)>,
}

impl EncodingLister {
    fn note(&mut self, field: &'static str, encoding: &'static str) {
        self.fields.push((field, FieldType::Encoded(encoding)));
    }
}

impl<'a> FieldVisitor<'a> for EncodingLister {
    fn dialect(&self) -> &LogDialect {
        &self.dialect
    }
    fn time(&mut self, _: &mut Option<u64>) {
        self.note("time", "time");
    }
    fn byte(&mut self, field: &'static str, _: &mut u64) {
        self.fields.push((field, FieldType::U8));
    }
    fn value(&mut self, field: &'static str, _: &mut u64) {
        self.note(field, "value");
    }
    fn signed(&mut self, field: &'static str, _: &mut i64) {
        self.note(field, "signed");
    }
    fn pointer(&mut self, field: &'static str, _: &mut u64) {
        self.note(field, "pointer");
    }
    fn absolute(&mut self, field: &'static str, _: &mut u64) {
        self.note(field, "absolute");
    }
    fn object(&mut self, field: &'static str, _: &mut u64) {
        self.note(field, "object");
    }
    fn method(&mut self, field: &'static str, _: &mut u64) {
        self.note(field, "method");
    }
    fn text(&mut self, field: &'static str, _: &mut &'a [u8]) {
        self.fields.push((field, FieldType::CString));
    }
    fn double(&mut self, field: &'static str, _: &mut u64) {
        self.note(field, "double");
    }
    fn increasing(&mut self, field: &'static str, _: &mut u64, _: &mut u64) {
        self.note(field, "value");
    }
    fn list<T: Default>(
        &mut self,
        field: &'static str,
        list: &mut Vec<T>,
        each: impl FnMut(&mut Self, &mut T),
    ) {
        self.entries(field, 1, list, each);
    }
    fn entries<T: Default>(
        &mut self,
        field: &'static str,
        _: u64,
        _: &mut Vec<T>,
        mut each: impl FnMut(&mut Self, &mut T),
    ) {
        self.fields.push((field, FieldType::Array));
        each(self, &mut T::default());
    }
    fn terminated_list(
        &mut self,
        field: &'static str,
        list: &mut Vec<CounterEntry<'a>>,
        each: impl FnMut(&mut Self, &mut CounterEntry<'a>),
    ) {
        self.entries(field, 1, list, each);
    }
    fn reject(&mut self, field: &'static str, value: u64, _: &'static str) {
        panic!("{field} {value} refused");
    }
}

#[test]
fn documented_layouts_match_the_decoder() {
    for version in 1..=17 {
        let mut dialect = LogDialect::released(version, 8);
        // The later of the two producers of data version 1 writes all events of that version.
        dialect.minor = dialect.minor.max(2);
        for table in EVENTS {
            for &byte in table.bytes {
                let mut event = Event::default();
                assert!(event.begin(EventByte(byte)));
                if let EventBody::Metadata(metadata) = &mut event.body {
                    metadata.mtype = table.mtype;
                }
                if let EventBody::Alloc { size, .. } = &mut event.body {
                    *size = 16;
                }
                let rows = table.layout.fields.iter().skip(1).zip(table.versions);
                let rows: Vec<_> = rows
                    .filter(|(_, versions)| versions.contains(&version))
                    .map(|(field, _)| (field.name, field.ty))
                    .collect();
                let thing = table.versions.iter().any(|versions| versions.contains(&version));
                if !fields::is_defined(event.byte, &dialect) || !thing {
                    // Unloads exist since 11 and failed loads until 10; their documented layout is that of loads, which
                    // always existed.
                    let others = [EventByte::METADATA_END_UNLOAD, EventByte::METADATA_LOAD_ERR];
                    assert!(
                        rows.is_empty() || others.contains(&event.byte),
                        "{} in {version}",
                        table.layout.name
                    );
                    continue;
                }
                let mut lister = EncodingLister { dialect, fields: Vec::new() };
                fields::visit_fields(&mut lister, &mut event);
                assert_eq!(
                    lister.fields, rows,
                    "{} {byte:#04x} in data version {version}",
                    table.layout.name
                );
            }
        }
    }
}

#[test]
fn every_event_has_a_table() {
    for byte in EventByte::ALL {
        assert!(EVENTS.iter().any(|table| table.bytes.contains(&byte.0)), "{byte}");
    }
}
