use CallEvent::{Enter, Exit};

use super::*;

fn made() -> Made {
    let steps = [(0, 5, Enter, 0), (0, 6, Enter, 1), (1, 6, Enter, 1), (1, 7, Exit, 1), (0, 9, Exit, 0)];
    Made::of(vec![events(&steps)])
}

#[test]
fn speedscope_has_a_profile_a_thread() {
    let written = made().write(|trace, out| speedscope::write(trace, out, &mut |_| true));
    let expected = concat!(
        r#""activeProfileIndex":0,"profiles":["#,
        r#"{"type":"evented","name":"app \"1\" 10/10","unit":"nanoseconds","startValue":0,"endValue":4000,"events":["#,
        r#"{"type":"O","frame":0,"at":0},"#,
        "\n",
        r#"{"type":"O","frame":1,"at":1000},"#,
        "\n",
        r#"{"type":"C","frame":1,"at":4000},"#,
        "\n",
        r#"{"type":"C","frame":0,"at":4000}]},"#,
        "\n",
        r#"{"type":"evented","name":"app \"1\" 10/11","unit":"nanoseconds","startValue":1000,"endValue":2000,"events":["#,
        r#"{"type":"O","frame":1,"at":1000},"#,
        "\n",
        r#"{"type":"C","frame":1,"at":2000}]}],"shared":{"frames":[{"name":"main"},"#,
        "\n",
        r#"{"name":"operator\"\"_x"}]}"#,
    );
    assert_eq!(String::from_utf8(written).unwrap(), expected);
}

/// Top-level fields of a message: number and bytes, or the number's value.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (&byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = varint(&mut bytes);
        let len = if tag & 7 == 2 { value as usize } else { 0 };
        found.push((tag >> 3, value, &bytes[..len]));
        bytes = &bytes[len..];
    }
    found
}

#[test]
fn perfetto_begins_and_ends_calls_in_order() {
    let written = made().write(|trace, out| {
        perfetto::write(
            trace,
            Some(perfetto::TraceClock { number: 3, realtime_offset_ns: None }),
            out,
            &mut |_| true,
        )
    });
    let mut described = Vec::new();
    for (number, _, packet) in fields(&written) {
        assert_eq!(number, 1);
        let packet = fields(packet);
        let get = |number| packet.iter().find(|field| field.0 == number);
        if let Some((_, _, event)) = get(11) {
            let event = fields(event);
            let value = |number| event.iter().find(|field| field.0 == number).map(|field| field.1);
            described.push((get(8).unwrap().1, value(11).unwrap(), value(9).unwrap(), value(10)));
        }
    }
    let expected = [
        (5000, 1, 1, Some(1)),
        (6000, 1, 1, Some(2)),
        (6000, 2, 1, Some(2)),
        (7000, 2, 2, None),
        (9000, 1, 2, None),
        (9000, 1, 2, None),
    ];
    assert_eq!(described, expected);
}
