//! Writing JSON values.

/// The digits of 0 to 99, two each.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Appends a number.
#[inline]
pub fn number(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    while value >= 100 {
        start -= 2;
        digits[start..start + 2].copy_from_slice(&PAIRS[(value % 100) as usize]);
        value /= 100;
    }
    if value >= 10 {
        start -= 2;
        digits[start..start + 2].copy_from_slice(&PAIRS[value as usize]);
    } else {
        start -= 1;
        digits[start] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends nanoseconds as microseconds with as many decimals as needed.
#[inline]
pub fn micros(out: &mut Vec<u8>, ns: i64) {
    if ns < 0 {
        out.push(b'-');
    }
    let ns = ns.unsigned_abs();
    number(out, ns / 1000);
    let decimals = (ns % 1000) as usize;
    if decimals > 0 {
        let [tens, ones] = PAIRS[decimals % 100];
        let text = [b'.', b'0' + (decimals / 100) as u8, tens, ones];
        let len = if ones != b'0' {
            4
        } else if tens != b'0' {
            3
        } else {
            2
        };
        out.extend_from_slice(&text[..len]);
    }
}

/// A value of 64 bits. Viewers store numbers as doubles: larger values are written as strings.
pub fn value(out: &mut Vec<u8>, value: u64) {
    if value <= 1 << f64::MANTISSA_DIGITS {
        number(out, value);
    } else {
        out.extend_from_slice(format!("\"{value:#x}\"").as_bytes());
    }
}

/// A string, with its quotes.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escaped(out, text);
    out.push(b'"');
}

/// What stands between the quotes of a string.
pub fn escaped(out: &mut Vec<u8>, text: &str) {
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0..0x20 | 0x7f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                assert_eq!(text(|out| number(out, value)), value.to_string());
            }
        }
    }

    #[test]
    fn microseconds_have_the_decimals_they_need() {
        let cases =
            [(0, "0"), (1, "0.001"), (10, "0.01"), (100, "0.1"), (999, "0.999"), (1000, "1"), (1050, "1.05")];
        for (ns, expected) in cases {
            assert_eq!(text(|out| micros(out, ns)), expected);
        }
        assert_eq!(text(|out| micros(out, -1_234_567)), "-1234.567");
        assert_eq!(text(|out| micros(out, i64::MIN)), "-9223372036854775.808");
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(
            text(|out| string(out, "operator\"\"_x\\\n\u{1}é\u{7f}")),
            "\"operator\\\"\\\"_x\\\\\\n\\u0001é\\u007f\""
        );
    }

    #[test]
    fn what_a_double_cannot_hold_is_text() {
        assert_eq!(text(|out| value(out, 1 << 53)), "9007199254740992");
        assert_eq!(text(|out| value(out, u64::MAX)), "\"0xffffffffffffffff\"");
    }
}
