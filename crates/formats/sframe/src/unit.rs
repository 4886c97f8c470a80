//! What the start of a function counts from. The format says it by a flag since errata 1 of version 2; before that it is
//! one thing in a section GNU ld merged, and another wherever the assembler's relocation was applied as it stands.

use super::container::{Holder, Section};
use super::reader::{Piece, View};

/// What start fields count from, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    /// From the start of the section.
    FromSection(&'static str),
    /// Each from its own field.
    FromField(&'static str),
}

impl Starts {
    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FromSection(_) => "section",
            Self::FromField(_) => "field",
        }
    }

    /// How it is known.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::FromSection(reason) | Self::FromField(reason) => reason,
        }
    }
}

/// Functions looked at where only the code's place can tell.
const LOOKED_AT: usize = 4096;

/// Decides for each piece of a section.
pub(super) fn decide(section: &Section, data: &[u8], pieces: &mut [Piece]) {
    let several = pieces.len() > 1;
    for piece in pieces {
        piece.starts = of(section, data, piece, several);
    }
}

fn of(section: &Section, data: &[u8], piece: &Piece, several: bool) -> Starts {
    if piece.is_pcrel() {
        return Starts::FromField("the flag SFRAME_F_FDE_FUNC_START_PCREL is set");
    }
    if section.holder == Holder::Object {
        return Starts::FromField("relocations of object files count from where they are applied");
    }
    if piece.version() >= 3 {
        return Starts::FromSection("version 3 without the flag SFRAME_F_FDE_FUNC_START_PCREL");
    }
    let inside = |starts| {
        let piece = Piece { starts, ..piece.clone() };
        let view = View { piece: &piece, data, file_offset: 0, address: section.address };
        let functions = view.functions().take(LOOKED_AT);
        functions.filter(|function| in_code(section, function.start)).count()
    };
    let from_section = inside(Starts::FromSection(""));
    let from_field = inside(Starts::FromField(""));
    match from_section.cmp(&from_field) {
        _ if several => Starts::FromField("the linker put sections together without merging them"),
        std::cmp::Ordering::Less => Starts::FromField("only so do functions lie in code"),
        std::cmp::Ordering::Greater => Starts::FromSection("only so do functions lie in code"),
        std::cmp::Ordering::Equal if piece.is_sorted() => {
            Starts::FromSection("sorted entries are GNU ld's, which counts from the section")
        }
        std::cmp::Ordering::Equal => {
            Starts::FromField("unsorted entries are the assembler's, relocated as they stood")
        }
    }
}

fn in_code(section: &Section, address: u64) -> bool {
    let code = &section.code;
    let before = code.partition_point(|range| range.start <= address);
    before.checked_sub(1).and_then(|at| code.get(at)).is_some_and(|range| address < range.end)
}
