//! Numbers and text for a terminal: printable characters, widths, cutting.

use unicode_width::UnicodeWidthChar;

const ELLIPSIS: char = '…';

const DIGITS: [u8; 16] = *b"0123456789abcdef";

/// Appends a number in decimal digits.
#[inline]
pub fn append_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(Digits::decimal(number).text());
}

/// The digits of a number.
pub struct Digits {
    /// The digits are at the end.
    bytes: [u8; MAX_DIGITS],
    start: usize,
}

/// Number of characters of the longest number: 20 decimal digits, and a sign.
const MAX_DIGITS: usize = 21;

impl Digits {
    /// In decimal.
    #[inline]
    pub fn decimal(mut number: u64) -> Self {
        let mut digits = Self { bytes: [b'0'; MAX_DIGITS], start: MAX_DIGITS };
        loop {
            digits.push_front(b'0' | (number % 10) as u8);
            number /= 10;
            if number == 0 {
                return digits;
            }
        }
    }

    /// In decimal, with a minus sign where it is negative.
    pub fn signed(number: i64) -> Self {
        let mut digits = Self::decimal(number.unsigned_abs());
        if number < 0 {
            digits.push_front(b'-');
        }
        digits
    }

    /// In hexadecimal, with the prefix `0x`.
    #[inline]
    pub fn hexadecimal(mut number: u64) -> Self {
        let mut digits = Self { bytes: [b'0'; MAX_DIGITS], start: MAX_DIGITS };
        loop {
            let [_, digit] = hex_digits(number as u8);
            digits.push_front(digit);
            number >>= 4;
            if number == 0 {
                break;
            }
        }
        digits.push_front(b'x');
        digits.push_front(b'0');
        digits
    }

    #[inline]
    fn push_front(&mut self, character: u8) {
        self.start = self.start.saturating_sub(1);
        if let Some(first) = self.bytes.get_mut(self.start) {
            *first = character;
        }
    }

    /// The digits as text.
    #[inline]
    pub fn text(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

/// Appends a number in decimal digits with commas: `1,234,567`.
pub fn append_count(out: &mut Vec<u8>, count: u64) {
    let digits = Digits::decimal(count);
    let len = digits.text().len();
    for (digit, left) in digits.text().iter().zip((0..len).rev()) {
        out.push(*digit);
        if left > 0 && left.is_multiple_of(3) {
            out.push(b',');
        }
    }
}

/// Appends a number in hexadecimal digits, with the prefix `0x`.
#[inline]
pub fn append_hexadecimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(Digits::hexadecimal(number).text());
}

/// The two hexadecimal digits of a byte.
#[inline]
pub fn hex_digits(byte: u8) -> [u8; 2] {
    let digit = |value: u8| DIGITS.get(usize::from(value & 15)).copied().unwrap_or(b'0');
    [digit(byte >> 4), digit(byte)]
}

/// Whether a character can be shown: no control or format character, no separator but the space, no unassigned one.
fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    // The standard library escapes those characters, and nothing else that is not ASCII, unless they begin the text.
    let mut bytes = [b'x'; 5];
    let [_, rest @ ..] = &mut bytes;
    let len = character.encode_utf8(rest).len();
    let text = bytes.get(..=len).and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.is_some_and(|text| text.escape_debug().nth(1) == Some(character))
}

/// Whether text consists of printable ASCII characters.
#[inline]
pub fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Appends text; what cannot be shown as `\x1b`, `\u202e` and the like, since names come from untrusted files.
pub fn push_printable(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
        return;
    }
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if is_printable(character) => out.push(character),
            _ => {
                let code = u32::from(character);
                match code {
                    0..0x100 => out.push_str(&format!("\\x{code:02x}")),
                    0x100..0x1_0000 => out.push_str(&format!("\\u{code:04x}")),
                    _ => out.push_str(&format!("\\U{code:08x}")),
                }
            }
        }
    }
}

/// Width of printable text in columns of a terminal.
pub fn cell_width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.chars().fold(0, |sum: usize, character| sum.saturating_add(char_width(character)))
}

fn char_width(character: char) -> usize {
    character.width().unwrap_or(0)
}

/// Shortens the text from `start` on to at most `width` columns; an ellipsis replaces its end.
pub fn cut(text: &mut String, start: usize, width: usize) {
    let part = text.get(start..).unwrap_or_default();
    if cell_width(part) <= width {
        return;
    }
    let head = head_len(part.chars(), width.saturating_sub(1));
    text.truncate(start.saturating_add(head));
    if width > 0 {
        text.push(ELLIPSIS);
    }
}

/// Shortens the text from `start` on to at most `width` columns; an ellipsis replaces its middle, as for paths.
pub fn cut_middle(text: &mut String, start: usize, width: usize) {
    let part = text.get(start..).unwrap_or_default();
    if cell_width(part) <= width {
        return;
    }
    if width < 8 {
        return cut(text, start, width);
    }
    let available = width.saturating_sub(1);
    let tail_width = available.saturating_mul(2) / 3;
    let head = head_len(part.chars(), available.saturating_sub(tail_width));
    let tail = head_len(part.chars().rev(), tail_width);
    let (from, to) = (start.saturating_add(head), text.len().saturating_sub(tail));
    if from <= to && text.is_char_boundary(from) && text.is_char_boundary(to) {
        text.replace_range(from..to, "…");
    }
}

/// Number of bytes of the first characters that fit in `width` columns.
fn head_len(characters: impl Iterator<Item = char>, width: usize) -> usize {
    let (mut taken, mut len) = (0usize, 0usize);
    for character in characters {
        taken = taken.saturating_add(char_width(character));
        if taken > width {
            break;
        }
        len = len.saturating_add(character.len_utf8());
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appended(append: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        append(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        for shift in 0..64 {
            for number in [1u64 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                assert_eq!(appended(|out| append_number(out, number)), number.to_string());
                assert_eq!(appended(|out| append_hexadecimal(out, number)), format!("{number:#x}"));
            }
        }
        assert_eq!(Digits::signed(i64::MIN).text(), i64::MIN.to_string().as_bytes());
        assert_eq!(Digits::signed(-1).text(), b"-1");
        assert_eq!(appended(|out| append_count(out, 0)), "0");
        assert_eq!(appended(|out| append_count(out, 999)), "999");
        assert_eq!(appended(|out| append_count(out, 1_234_567)), "1,234,567");
        assert_eq!(appended(|out| append_count(out, u64::MAX)), "18,446,744,073,709,551,615");
    }

    #[test]
    fn characters_that_cannot_be_shown_are_escaped() {
        let mut text = String::new();
        push_printable(&mut text, "a\\b\t\u{1b}[é\u{85}\u{301}\u{202e}\u{2028}\u{e000}日\u{10fffd}");
        assert_eq!(text, "a\\b\\t\\x1b[é\\x85\u{301}\\u202e\\u2028\\ue000日\\U0010fffd");
    }

    #[test]
    fn text_is_cut_to_columns() {
        let cut_to = |text: &str, width| {
            let mut text = format!("> {text}");
            cut(&mut text, 2, width);
            text
        };
        assert_eq!(cut_to("abcdef", 6), "> abcdef");
        assert_eq!(cut_to("abcdef", 5), "> abcd…");
        assert_eq!(cut_to("abcdef", 0), "> ");
        assert_eq!(cut_to("日本語", 5), "> 日本…");
        let mut path = "/usr/lib/x86_64-linux-gnu/libc.so.6".to_owned();
        cut_middle(&mut path, 0, 20);
        assert_eq!(path, "/usr/li…nu/libc.so.6");
    }
}
