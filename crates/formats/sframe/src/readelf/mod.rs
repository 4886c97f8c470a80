//! The text of `readelf --sframe`, as three of its versions write it, made in linear time.
//!
//! What those versions get wrong is kept, so that the texts can be compared: see [`Style`].

mod cells;
mod line;

use std::sync::{Arc, Mutex, PoisonError};

use super::SFrame;
use super::ahead::Ahead;
use super::consts::SFRAME_F_FDE_FUNC_START_PCREL;
use super::reader::Piece;
use super::records::Function;
use super::starts::Starts;
use line::Lines;

/// A version of readelf. All show the first header of a section only, and 2.40 and 2.44 nothing of relocations: functions of an
/// object file lie at address 0 with them. Starts that no flag says to count from their fields count from the section, which
/// is wrong where a linker did not merge sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Version 1; `u` for return addresses at a fixed place; of several flags only the last.
    Readelf240,
    /// Version 2 without PCREL; of version 1 the header.
    Readelf244,
    /// Versions 2 and 3, relocated.
    Readelf247,
}

/// Why a readelf shows nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What it prints, behind `readelf: Error: `.
    pub message: &'static str,
    /// The style that shows this section; none does where `None`.
    pub shown_by: Option<&'static str>,
}

impl Style {
    /// By their names on the command line.
    pub const ALL: [(&'static str, Self); 3] = [
        ("readelf-2.40", Self::Readelf240),
        ("readelf-2.44", Self::Readelf244),
        ("readelf-2.47", Self::Readelf247),
    ];

    /// The style of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, style)| style)
    }

    /// The first style that shows a version with these flags.
    #[must_use]
    pub fn for_section(version: u8, flags: u8) -> Option<&'static str> {
        let shows = |style: Self| matches!(style.shows(version, flags), Ok(Shown::All));
        Self::ALL.into_iter().find(|(_, style)| shows(*style)).map(|(name, _)| name)
    }

    fn shows(self, version: u8, flags: u8) -> Result<Shown, &'static str> {
        const OUT_OF_MEMORY: &str = "SFrame decode failure: Out of Memory.";
        let unknown = flags & !self.known_flags() != 0;
        match (self, version) {
            (Self::Readelf247, 2 | 3) if !unknown => Ok(Shown::All),
            (Self::Readelf247, _) => Err("SFrame decode failure: Buffer does not contain SFrame data."),
            (Self::Readelf240, 1) | (Self::Readelf244, 2) if !unknown => Ok(Shown::All),
            (Self::Readelf244, 1) if !unknown => Ok(Shown::Header),
            _ => Err(OUT_OF_MEMORY),
        }
    }

    fn known_flags(self) -> u8 {
        match self {
            Self::Readelf240 | Self::Readelf244 => 0x3,
            Self::Readelf247 => 0x3 | SFRAME_F_FDE_FUNC_START_PCREL,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Header,
    All,
}

/// Functions written at a time by one thread.
const GROUP: u32 = 1024;

/// The text of a file's first section, in blocks, made as they are pulled.
pub struct Dump {
    head: Option<Vec<u8>>,
    blocks: Ahead<u32, Vec<u8>>,
    spare: Spare,
}

/// Blocks that were used, to be filled again: memory that is new to the process costs as much as the text.
type Spare = Arc<Mutex<Vec<Vec<u8>>>>;

impl Dump {
    /// Begins a text.
    ///
    /// # Errors
    /// When that readelf shows nothing of the section.
    pub fn of(file: &SFrame, style: Style) -> Result<Self, Refused> {
        let first = file.pieces().iter().find(|piece| piece.section == 0 && piece.at == 0);
        let Some(piece) = first.cloned() else {
            let message = "SFrame decode failure: Buffer does not contain SFrame data.";
            return Err(Refused { message, shown_by: None });
        };
        let (version, flags) = (piece.version(), piece.header.sfp_flags);
        let shown = style.shows(version, flags);
        let shown =
            shown.map_err(|message| Refused { message, shown_by: Style::for_section(version, flags) })?;
        let mut head = line::header(&piece, style);
        let num = match shown {
            Shown::All => piece.num_functions,
            Shown::Header => {
                head.extend_from_slice(
                    b"\n No further information can be displayed.  SFrame version not supported\n",
                );
                0
            }
        };
        if shown == Shown::All {
            head.extend_from_slice(b"\n  Function Index :\n");
        }
        let starts = if piece.is_pcrel() { Starts::FromField("") } else { Starts::FromSection("") };
        let (file, piece) = (file.clone(), Piece { starts, ..piece });
        let spare = Spare::default();
        let empty = Arc::clone(&spare);
        let blocks = Ahead::new((0..num).step_by(GROUP as usize).collect(), move |first| {
            let block = empty.lock().unwrap_or_else(PoisonError::into_inner).pop();
            group(&file, &piece, style, first, block.unwrap_or_default())
        });
        Ok(Self { head: Some(head), blocks, spare })
    }

    /// Takes a block back that was used, to fill it again.
    pub fn reuse(&self, mut block: Vec<u8>) {
        block.clear();
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(block);
    }
}

fn group(file: &SFrame, piece: &Piece, style: Style, first: u32, block: Vec<u8>) -> Vec<u8> {
    let view = match style {
        Style::Readelf247 => file.view(piece),
        Style::Readelf240 | Style::Readelf244 => file.raw_view(piece),
    };
    let mut lines = Lines::new(style, view, block);
    let functions = (first..first.saturating_add(GROUP)).map_while(|index| view.function(index));
    functions.for_each(|function: Function| lines.function(&function));
    lines.finish()
}

impl Iterator for Dump {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(head) = self.head.take() {
            return Some(head);
        }
        self.blocks.next()
    }
}
