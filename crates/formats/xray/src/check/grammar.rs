//! What may follow what in a buffer: the specification's grammar, and what later versions made of it, as one table.

use std::fmt;

use perfuse_wire::Rule;

use crate::consts::{Action, Kind};
use crate::rules::{CARRIED, NO_CPU, NO_EXTENTS, NO_NEW_BUFFER, NO_PID, NO_WALL_TIME, ORDER};

/// What a record is to the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Place {
    /// Before the first record.
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

/// A set of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places(u16);

const fn places(all: &[Place]) -> Places {
    let (mut bits, mut rest) = (0u16, all);
    while let [first, others @ ..] = rest {
        bits |= 1 << *first as u8;
        rest = others;
    }
    Places(bits)
}

const BODY: &[Place] =
    &[Place::Cpu, Place::Wrap, Place::Custom, Place::Typed, Place::Entry, Place::Exit, Place::End];
const WITH_ARGUMENTS: &[Place] = &[
    Place::Cpu,
    Place::Wrap,
    Place::Custom,
    Place::Typed,
    Place::Entry,
    Place::Exit,
    Place::End,
    Place::Argument,
];

/// Behind which record, in which versions, what may follow, and what is broken otherwise.
struct Row(Place, std::ops::RangeInclusive<u16>, Places, &'static Rule);

#[rustfmt::skip]
static GRAMMAR: &[Row] = &[
    Row(Place::Start,     1..=1, places(&[Place::NewBuffer]), &NO_NEW_BUFFER),
    Row(Place::Start,     2..=5, places(&[Place::Extents]),   &NO_EXTENTS),
    Row(Place::Extents,   2..=5, places(&[Place::NewBuffer]), &NO_NEW_BUFFER),
    Row(Place::NewBuffer, 1..=5, places(&[Place::WallTime]),  &NO_WALL_TIME),
    Row(Place::WallTime,  1..=2, places(&[Place::Cpu]),       &NO_CPU),
    Row(Place::WallTime,  3..=5, places(&[Place::Pid]),       &NO_PID),
    Row(Place::Pid,       3..=5, places(&[Place::Cpu]),       &NO_CPU),
    Row(Place::Cpu,       1..=5, places(BODY),                &ORDER),
    Row(Place::Wrap,      1..=5, places(BODY),                &ORDER),
    Row(Place::Custom,    1..=5, places(BODY),                &ORDER),
    Row(Place::Typed,     3..=5, places(BODY),                &ORDER),
    Row(Place::Exit,      1..=5, places(BODY),                &ORDER),
    Row(Place::Entry,     1..=5, places(WITH_ARGUMENTS),      &ORDER),
    Row(Place::Argument,  1..=5, places(WITH_ARGUMENTS),      &ORDER),
];

/// Where a buffer may end.
const ENDS: Places = places(WITH_ARGUMENTS);

impl Place {
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

    /// The place of a metadata record; none where its kind is not known.
    pub fn of_kind(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::NEW_BUFFER => Self::NewBuffer,
            Kind::END_OF_BUFFER => Self::End,
            Kind::NEW_CPU_ID => Self::Cpu,
            Kind::TSC_WRAP => Self::Wrap,
            Kind::WALL_TIME_MARKER => Self::WallTime,
            Kind::CUSTOM_EVENT_MARKER => Self::Custom,
            Kind::CALL_ARGUMENT => Self::Argument,
            Kind::BUFFER_EXTENTS => Self::Extents,
            Kind::TYPED_EVENT_MARKER => Self::Typed,
            Kind::PID => Self::Pid,
            _ => return None,
        })
    }

    /// The place of a function record; those of unknown action stand where an exit may.
    pub fn of_action(action: Action) -> Self {
        match action {
            Action::ENTRY | Action::ENTRY_ARGS => Self::Entry,
            _ => Self::Exit,
        }
    }

    /// As the specification calls it.
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

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Places {
    fn has(self, place: Place) -> bool {
        self.0 & places(&[place]).0 != 0
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 & places(BODY).0 == places(BODY).0 {
            return f.write_str("a function, an event or a metadata record of the body");
        }
        let mut names = Place::ALL.into_iter().filter(|place| self.has(*place));
        names.try_for_each(|place| place.fmt(f))
    }
}

/// A departure: the rule, and what was expected.
pub type Broken = (&'static Rule, Places);

/// Where a walk through a buffer stands.
#[derive(Clone, Copy, Debug)]
pub struct Grammar {
    version: u16,
    /// The record before.
    pub before: Place,
}

impl Grammar {
    /// Before the first record of a buffer.
    pub fn new(version: u16) -> Self {
        Self { version, before: Place::Start }
    }

    fn row(&self) -> Option<&'static Row> {
        GRAMMAR
            .iter()
            .find(|Row(after, versions, ..)| *after == self.before && versions.contains(&self.version))
    }

    /// Takes a record: what is broken where it may not stand here.
    pub fn step(&mut self, place: Place) -> Result<(), Broken> {
        match self.row() {
            Some(Row(_, _, expected, rule)) if !expected.has(place) => {
                // Where something is missing it goes on behind it; what is only out of its place is passed over.
                if !self.passes_over(place) {
                    self.before = place;
                }
                Err((rule, *expected))
            }
            _ => {
                self.before = place;
                Ok(())
            }
        }
    }

    /// Whether a record may not stand here, and is to be left out.
    pub fn is_passed_over(&self, place: Place) -> bool {
        self.row().is_some_and(|Row(_, _, expected, _)| !expected.has(place)) && self.passes_over(place)
    }

    /// Whether a record that may not stand here is left out, rather than something before it missing.
    fn passes_over(&self, place: Place) -> bool {
        let in_body = self.before as u8 >= Place::Cpu as u8;
        in_body || place == Place::Argument || place as u8 <= self.before as u8
    }

    /// Whether the buffer may end here; else what should follow.
    pub fn end(&self) -> Result<(), Broken> {
        match self.row() {
            Some(Row(_, _, expected, rule)) if !ENDS.has(self.before) => Err((rule, *expected)),
            _ => Ok(()),
        }
    }
}

/// The rule that holds where a buffer has no NewCPUId, but the one before it of its thread tells the counter.
pub fn carried((rule, expected): Broken, is_carried: bool) -> Broken {
    if is_carried && *rule == NO_CPU { (&CARRIED, expected) } else { (rule, expected) }
}
