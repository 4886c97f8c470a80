//! Tests that the named fields of events build equal events.

use super::assemble::{fixtures, open};
use crate::consts::{EventByte, NEWEST};
use crate::describe;
use crate::dialect::Dialect;
use crate::fill::{self, FillError, Given};
use crate::records::Event;
use perfuse_recording::Recording;

#[test]
fn what_is_shown_makes_the_event_again() {
    let mut num = 0;
    for (name, bytes) in fixtures() {
        let log = open(bytes);
        let survey = log.survey();
        for buffer in &survey.buffers.list {
            let mut decoder = buffer.decoder(log.source(), survey.dialect);
            let mut event = Event::default();
            while let Some(Ok(())) = decoder.read(&mut event) {
                let view = describe::view(&survey.dialect, &mut event, 0, 1);
                // The first field is the thread of the buffer.
                let fields = fill::given(&view.fields[1..]);
                let again = fill::event(&survey.dialect, &view.name, view.timestamp, &fields).unwrap();
                let expected = Event { offset: 0, size: 0, ..event.clone() };
                assert_eq!(again, expected, "{name}");
                num += 1;
            }
        }
    }
    assert!(num > 3000);
}

#[test]
fn every_event_says_what_it_lacks() {
    for version in 1..=NEWEST {
        let dialect = Dialect::released(version, 8);
        for byte in EventByte::ALL {
            let name = byte.name().unwrap();
            assert!(fill::event(&dialect, name, None, &[]).is_err(), "{name} has a time or fields");
        }
    }
}

#[test]
fn refusals() {
    let dialect = Dialect::released(17, 4);
    let text = |text: &str| Given::Text(text.to_owned());
    let fields = |value: Given| vec![("object".to_owned(), value)];
    let make = |name: &str, fields: &[(String, Given)]| {
        fill::event(&dialect, name, Some(1), fields).map(|_| ()).unwrap_err()
    };
    assert_eq!(make("NONE", &[]), FillError::Event("NONE".to_owned()));
    assert_eq!(make("THROW", &[]), FillError::Missing("object"));
    assert_eq!(make("THROW", &fields(text("x"))), FillError::Type("object", "a number"));
    assert!(matches!(make("THROW", &fields(Given::Number(1 << 40))), FillError::Type("object", _)));
    let other = [fields(Given::Number(8)), vec![("other".to_owned(), text(""))]].concat();
    assert_eq!(make("THROW", &other), FillError::Unknown("other".to_owned()));
    assert!(matches!(make("SAMPLE_UBIN", &[]), FillError::Refused("event", _)));
}
