//! The grammar of a buffer as one table: which record may follow which, in which versions.

use std::fmt;

use perfuse_wire::Rule;

use crate::consts::{Action, MetadataKind};
use crate::rules::{CARRIED, NO_CPU, NO_EXTENTS, NO_NEW_BUFFER, NO_PID, NO_WALL_TIME, ORDER};

/// The class of a record in the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordClass {
    /// The start of the buffer.
    Start,
    /// BufferExtents.
    Extents,
    /// NewBuffer.
    NewBuffer,
    /// WallTimeMarker.
    WallTime,
    /// Pid.
    Pid,
    /// NewCPUId.
    Cpu,
    /// TSCWrap.
    Wrap,
    /// CustomEventMarker.
    Custom,
    /// TypedEventMarker.
    Typed,
    /// Entry, Entry_Args.
    Entry,
    /// Exit, Tail_Exit.
    Exit,
    /// CallArgument.
    Argument,
    /// EndOfBuffer.
    End,
}

/// A set of record classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordClasses(u16);

const fn classes(all: &[RecordClass]) -> RecordClasses {
    let (mut bits, mut rest) = (0u16, all);
    while let [first, others @ ..] = rest {
        bits |= 1 << *first as u8;
        rest = others;
    }
    RecordClasses(bits)
}

const BODY: RecordClasses = classes(&[
    RecordClass::Cpu,
    RecordClass::Wrap,
    RecordClass::Custom,
    RecordClass::Typed,
    RecordClass::Entry,
    RecordClass::Exit,
    RecordClass::End,
]);
const WITH_ARGUMENTS: RecordClasses = RecordClasses(BODY.0 | classes(&[RecordClass::Argument]).0);

/// After which record, in which versions, what may follow; and the rule that is violated otherwise.
struct GrammarRule(RecordClass, std::ops::RangeInclusive<u16>, RecordClasses, &'static Rule);

#[rustfmt::skip]
static GRAMMAR: &[GrammarRule] = &[
    GrammarRule(RecordClass::Start,     1..=1, classes(&[RecordClass::NewBuffer]), &NO_NEW_BUFFER),
    GrammarRule(RecordClass::Start,     2..=5, classes(&[RecordClass::Extents]),   &NO_EXTENTS),
    GrammarRule(RecordClass::Extents,   2..=5, classes(&[RecordClass::NewBuffer]), &NO_NEW_BUFFER),
    GrammarRule(RecordClass::NewBuffer, 1..=5, classes(&[RecordClass::WallTime]),  &NO_WALL_TIME),
    GrammarRule(RecordClass::WallTime,  1..=2, classes(&[RecordClass::Cpu]),       &NO_CPU),
    GrammarRule(RecordClass::WallTime,  3..=5, classes(&[RecordClass::Pid]),       &NO_PID),
    GrammarRule(RecordClass::Pid,       3..=5, classes(&[RecordClass::Cpu]),       &NO_CPU),
    GrammarRule(RecordClass::Cpu,       1..=5, BODY,                              &ORDER),
    GrammarRule(RecordClass::Wrap,      1..=5, BODY,                              &ORDER),
    GrammarRule(RecordClass::Custom,    1..=5, BODY,                              &ORDER),
    GrammarRule(RecordClass::Typed,     3..=5, BODY,                              &ORDER),
    GrammarRule(RecordClass::Exit,      1..=5, BODY,                              &ORDER),
    GrammarRule(RecordClass::Entry,     1..=5, WITH_ARGUMENTS,                    &ORDER),
    GrammarRule(RecordClass::Argument,  1..=5, WITH_ARGUMENTS,                    &ORDER),
];

/// Records after which a buffer may end.
const ENDS: RecordClasses = WITH_ARGUMENTS;

impl RecordClass {
    const ALL: [Self; 13] = [
        Self::Start,
        Self::Extents,
        Self::NewBuffer,
        Self::WallTime,
        Self::Pid,
        Self::Cpu,
        Self::Wrap,
        Self::Custom,
        Self::Typed,
        Self::Entry,
        Self::Exit,
        Self::Argument,
        Self::End,
    ];

    /// The class of a metadata record; `None` for an unknown kind.
    pub fn of_kind(kind: MetadataKind) -> Option<Self> {
        Some(match kind {
            MetadataKind::NEW_BUFFER => Self::NewBuffer,
            MetadataKind::END_OF_BUFFER => Self::End,
            MetadataKind::NEW_CPU_ID => Self::Cpu,
            MetadataKind::TSC_WRAP => Self::Wrap,
            MetadataKind::WALL_TIME_MARKER => Self::WallTime,
            MetadataKind::CUSTOM_EVENT_MARKER => Self::Custom,
            MetadataKind::CALL_ARGUMENT => Self::Argument,
            MetadataKind::BUFFER_EXTENTS => Self::Extents,
            MetadataKind::TYPED_EVENT_MARKER => Self::Typed,
            MetadataKind::PID => Self::Pid,
            _ => return None,
        })
    }

    /// The class of a function record. An undefined action counts as an exit.
    pub fn of_action(action: Action) -> Self {
        match action {
            Action::ENTRY | Action::ENTRY_ARGS => Self::Entry,
            _ => Self::Exit,
        }
    }

    /// The name in the specification.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "the beginning",
            Self::Extents => "BufferExtents",
            Self::NewBuffer => "NewBuffer",
            Self::WallTime => "WallTimeMarker",
            Self::Pid => "Pid",
            Self::Cpu => "NewCPUId",
            Self::Wrap => "TSCWrap",
            Self::Custom => "CustomEventMarker",
            Self::Typed => "TypedEventMarker",
            Self::Entry => "a function entry",
            Self::Exit => "a function exit",
            Self::Argument => "CallArgument",
            Self::End => "EndOfBuffer",
        }
    }
}

impl fmt::Display for RecordClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl RecordClasses {
    fn contains(self, class: RecordClass) -> bool {
        self.0 & classes(&[class]).0 != 0
    }
}

impl fmt::Display for RecordClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 & BODY.0 == BODY.0 {
            return f.write_str("a function, an event or a metadata record of the body");
        }
        let mut names = RecordClass::ALL.into_iter().filter(|class| self.contains(*class));
        names.try_for_each(|class| class.fmt(f))
    }
}

/// A violation: the rule, and the expected classes.
pub type GrammarError = (&'static Rule, RecordClasses);

/// The position in the grammar while reading a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Grammar {
    version: u16,
    /// The class of the previous record.
    pub before: RecordClass,
}

impl Grammar {
    /// At the start of a buffer.
    pub fn new(version: u16) -> Self {
        Self { version, before: RecordClass::Start }
    }

    /// The row of the table for the previous record.
    fn rule_for_current(&self) -> Option<&'static GrammarRule> {
        GRAMMAR.iter().find(|GrammarRule(after, versions, ..)| {
            *after == self.before && versions.contains(&self.version)
        })
    }

    /// Moves to the next record.
    ///
    /// # Errors
    /// The violation, where the record may not stand here.
    pub fn step(&mut self, class: RecordClass) -> Result<(), GrammarError> {
        match self.rule_for_current() {
            Some(GrammarRule(_, _, expected, rule)) if !expected.contains(class) => {
                // Where a record is missing, reading continues after it; a record that is only misplaced is skipped.
                if !self.passes_over(class) {
                    self.before = class;
                }
                Err((rule, *expected))
            }
            _ => {
                self.before = class;
                Ok(())
            }
        }
    }

    /// Whether a record may not stand here and is skipped.
    pub fn is_passed_over(&self, class: RecordClass) -> bool {
        self.rule_for_current().is_some_and(|GrammarRule(_, _, expected, _)| !expected.contains(class))
            && self.passes_over(class)
    }

    /// Whether a record that may not stand here is skipped, rather than a previous one missing.
    fn passes_over(&self, class: RecordClass) -> bool {
        let in_body = self.before as u8 >= RecordClass::Cpu as u8;
        in_body || class == RecordClass::Argument || class as u8 <= self.before as u8
    }

    /// Whether the buffer may end here.
    ///
    /// # Errors
    /// The violation, with what should follow.
    pub fn end(&self) -> Result<(), GrammarError> {
        match self.rule_for_current() {
            Some(GrammarRule(_, _, expected, rule)) if !ENDS.contains(self.before) => Err((rule, *expected)),
            _ => Ok(()),
        }
    }
}

/// Replaces the rule for a missing NewCPUId where the thread's previous buffer provides the counter.
pub fn carried_rule((rule, expected): GrammarError, is_carried: bool) -> GrammarError {
    if is_carried && *rule == NO_CPU { (&CARRIED, expected) } else { (rule, expected) }
}
