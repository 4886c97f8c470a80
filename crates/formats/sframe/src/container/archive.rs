//! Archives (`ar`): object files one behind the other.

use std::ops::Range;

const MAGIC: &[u8] = b"!<arch>\n";
const THIN_MAGIC: &[u8] = b"!<thin>\n";
const HEADER_BYTES: usize = 60;

/// Whether bytes begin as an archive does; thin ones hold only the names of their members.
#[must_use]
pub fn sniff(head: &[u8]) -> bool {
    head.starts_with(MAGIC) || is_thin(head)
}

/// Whether it is an archive whose members are elsewhere.
#[must_use]
pub fn is_thin(head: &[u8]) -> bool {
    head.starts_with(THIN_MAGIC)
}

/// Name and place of each member, in file order; ends where a header makes no sense.
#[must_use]
pub fn members(data: &[u8]) -> Vec<(String, Range<usize>)> {
    let mut members = Vec::new();
    let mut long_names: &[u8] = &[];
    let mut at = MAGIC.len();
    while let Some(header) = at.checked_add(HEADER_BYTES).and_then(|end| data.get(at..end)) {
        let Some(size) = number(header.get(48..58).unwrap_or_default()) else { break };
        let start = at.saturating_add(HEADER_BYTES);
        let end = start.saturating_add(size).min(data.len());
        let Some(content) = data.get(start..end) else { break };
        let name = header.get(..16).unwrap_or_default().trim_ascii_end();
        match name {
            b"/" | b"/SYM64/" => {}
            b"//" => long_names = content,
            _ => members.push((member_name(name, long_names), start..end)),
        }
        // Members begin at even offsets.
        at = end.saturating_add(end & 1);
    }
    members
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.trim().parse().ok()
}

fn member_name(name: &[u8], long_names: &[u8]) -> String {
    let long = name.strip_prefix(b"/").and_then(number).and_then(|at| long_names.get(at..));
    let name = match long {
        Some(rest) => rest.split(|byte| *byte == b'\n').next().unwrap_or_default(),
        None => name,
    };
    String::from_utf8_lossy(name.strip_suffix(b"/").unwrap_or(name)).into_owned()
}
