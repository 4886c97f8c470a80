//! Debug records: which code they are about, and the habits of their entries.

use super::*;
use crate::lines;
use crate::producer::Producer;

impl Check<'_> {
    pub(super) fn pairing(&mut self) {
        let index = self.index;
        for about in &index.abouts {
            let (rule, message): (&'static Rule, &'static str) = match about.pairing {
                Pairing::Next => continue,
                Pairing::Address => (&BATCHED, "other records stand between it and its code"),
                Pairing::OrderOnly => (&BATCHED, "its address is not the next code's, which it was given to"),
                Pairing::Before => (&DEBUG_AFTER, "its code came before"),
                Pairing::Orphan => (&DEBUG_ORPHAN, "no code has its address"),
                Pairing::Replaced => (&DEBUG_REPLACED, "another one for its address follows"),
            };
            self.sink.push(rule, about.offset, Some(about.index), "code_addr", || {
                format!("{message} ({:#x})", about.code_addr).into()
            });
        }
        let unwinds = self.count(RecordTag::JIT_CODE_UNWINDING_INFO);
        if unwinds > 0 && unwinds < index.codes.len() as u64 && index.producer == Producer::Llvm {
            self.sink.push(&UNWIND_SHARED, index.first_record, None, "", || {
                format!("{unwinds} records for {} functions", index.codes.len()).into()
            });
        }
        for code in index.codes.iter().filter(|code| code.retired != u64::MAX) {
            self.sink.push(&REUSED, code.offset, Some(code.index), "code_addr", || {
                format!("other code came to {:#x} later", code.start).into()
            });
        }
    }

    pub(super) fn lines(&mut self) {
        let index = self.index;
        let mut rows = Vec::new();
        let mut released = 0u64;
        for code in index.codes.iter().filter(|code| code.debug != NONE) {
            let Some((about, info)) = index.debug_info(self.data, code) else { continue };
            let habits = lines::decode(&info, &index.target(code), &mut rows);
            self.habits(about.offset, about.index, code, &info, &habits);
            if about.offset.saturating_sub(released) > crate::index::RELEASE {
                self.data.release(released as usize..about.offset as usize);
                released = about.offset;
            }
        }
    }

    pub(super) fn skew(&mut self) {
        let index = self.index;
        let first = index.abouts.iter().find(|about| !about.inline);
        if let (Some(first), 1..) = (first, index.skew) {
            let skew = index.skew;
            self.sink.push(&SKEW, first.offset, None, "code_addr", || {
                format!("every entry is {skew:#x} too high in this file; taken off").into()
            });
        }
    }

    fn habits(&mut self, offset: u64, record: u64, code: &Code, info: &DebugInfo<'_>, habits: &Habits) {
        let promised = info.fixed.nr_entry;
        let told: [(bool, &'static Rule, &'static str, String); 11] = [
            (
                habits.missing > 0,
                &ENTRIES_MISSING,
                "nr_entry",
                format!("{promised} entries, {} could be read", habits.entries),
            ),
            (
                habits.restored > 0,
                &CORRUPT_NAMES,
                "name",
                format!("{} of {promised} names restored", habits.restored),
            ),
            (
                habits.unrestored > 0,
                &LOST_NAMES,
                "name",
                format!("{} of {promised} names", habits.unrestored),
            ),
            (
                habits.padding > 7,
                &DEBUG_PADDING,
                "total_size",
                format!("{} bytes follow the entries", habits.padding),
            ),
            (habits.repeated > 0, &REPEATED_NAME, "name", format!("{} of {promised} names", habits.repeated)),
            (habits.line_zero > 0, &LINE_ZERO, "line", format!("{} of {promised} entries", habits.line_zero)),
            (habits.terminator, &TERMINATOR, "code_addr", format!("at offset {:#x}", code.size)),
            (habits.unsorted, &UNSORTED, "code_addr", "sorted by address".to_owned()),
            (
                habits.duplicates > 0,
                &DUPLICATE_ADDRESS,
                "code_addr",
                format!("{} entries", habits.duplicates),
            ),
            (habits.before > 0, &BEFORE_CODE, "code_addr", format!("{} entries", habits.before)),
            (
                habits.past > 0,
                &PAST_CODE,
                "code_addr",
                format!("{} entries past {:#x} bytes", habits.past, code.size),
            ),
        ];
        for (applies, rule, field, message) in told {
            if applies {
                let at = if std::ptr::eq(rule, &ENTRIES_MISSING) {
                    habits.failed_at.unwrap_or(offset)
                } else {
                    offset
                };
                self.sink.push(rule, at, Some(record), field, || message.into());
            }
        }
    }
}
