//! Tests that the named fields of events build equal events.

use perfuse_recording::Recording;

use crate::consts::{EventByte, NEWEST};
use crate::dialect::LogDialect;
use crate::named_fields;
use crate::named_fields::{FieldError, FieldValue};
use crate::records::Event;
use crate::tests::assemble::{fixtures, open};

#[test]
fn named_fields_build_an_equal_event() {
    let mut num = 0;
    for (name, bytes) in fixtures() {
        let log = open(bytes);
        let survey = log.survey();
        for buffer in &survey.buffers.list {
            let mut decoder = buffer.decoder(log.source(), survey.dialect);
            let mut event = Event::default();
            while let Some(Ok(())) = decoder.read(&mut event) {
                let view = named_fields::record_view(&survey.dialect, &mut event, 0, 1, &|_| true);
                // The first field is the thread of the buffer.
                let fields = named_fields::named_fields(&view.fields[1..]);
                let again =
                    named_fields::build_event(&survey.dialect, &view.name, view.timestamp, &fields).unwrap();
                let expected = Event { offset: 0, size: 0, ..event.clone() };
                assert_eq!(again, expected, "{name}");
                num += 1;
            }
        }
    }
    assert!(num > 3000);
}

#[test]
fn missing_fields_are_rejected() {
    for version in 1..=NEWEST {
        let dialect = LogDialect::released(version, 8);
        for byte in EventByte::ALL {
            let name = byte.name().unwrap();
            assert!(
                named_fields::build_event(&dialect, name, None, &[]).is_err(),
                "{name} has a time or fields"
            );
        }
    }
}

#[test]
fn invalid_fields_are_rejected() {
    let dialect = LogDialect::released(17, 4);
    let text = |text: &str| FieldValue::Text(text.to_owned());
    let fields = |value: FieldValue| vec![("object".to_owned(), value)];
    let make = |name: &str, fields: &[(String, FieldValue)]| {
        named_fields::build_event(&dialect, name, Some(1), fields).map(|_| ()).unwrap_err()
    };
    assert_eq!(make("NONE", &[]), FieldError::Event("NONE".to_owned()));
    assert_eq!(make("THROW", &[]), FieldError::Missing("object"));
    assert_eq!(make("THROW", &fields(text("x"))), FieldError::Type("object", "a number"));
    assert!(matches!(make("THROW", &fields(FieldValue::Number(1 << 40))), FieldError::Type("object", _)));
    let other = [fields(FieldValue::Number(8)), vec![("other".to_owned(), text(""))]].concat();
    assert_eq!(make("THROW", &other), FieldError::Unknown("other".to_owned()));
    assert!(matches!(make("SAMPLE_UBIN", &[]), FieldError::Refused("event", _)));
}
