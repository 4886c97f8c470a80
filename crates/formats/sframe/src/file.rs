//! An open file: its sections, their pieces.

use std::sync::{Arc, OnceLock};

use perfuse_wire::ParseError;

use super::container::{self, Section};
use super::lookup::Lookup;
use super::reader::{self, View};
use super::records::Function;
use super::recovery::{Meaningless, Recovery};
use super::row::Row;
use super::survey::Survey;
use super::unit::Piece;
use perfuse_recording::Source;

/// Addresses that are looked up together.
const TOGETHER: usize = 32;

/// What is known of an address.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Number of the piece.
    pub piece: usize,
    /// The function.
    pub function: Function,
    /// Its row; `None` where it has none that holds there.
    pub row: Option<Row<'a>>,
    /// What the row says.
    pub recovery: Option<Result<Recovery, Meaningless>>,
}

/// An open file with SFrame sections.
#[derive(Clone, Debug)]
pub struct SFrame {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    source: Arc<Source>,
    sections: Vec<Section>,
    pieces: Vec<Piece>,
    unread: Vec<(usize, ParseError)>,
    trailing: Vec<usize>,
    survey: OnceLock<Survey>,
    lookup: OnceLock<Lookup>,
}

impl SFrame {
    /// Finds the sections of a file and reads their headers.
    ///
    /// # Errors
    /// When there is no section, or none that begins with a header.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        Self::open_at(source, None)
    }

    /// The same; a section without an ELF file around it is loaded to an address.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_at(source: Arc<Source>, address: Option<u64>) -> Result<Self, ParseError> {
        let mut sections = container::sections(&source)?;
        let mut shared = Shared {
            sections: Vec::new(),
            pieces: Vec::new(),
            unread: Vec::new(),
            trailing: Vec::new(),
            survey: OnceLock::new(),
            lookup: OnceLock::new(),
            source,
        };
        for (index, section) in sections.iter_mut().enumerate() {
            section.address = address.unwrap_or(section.address);
            let data = section.data(&shared.source);
            match reader::pieces(section, index, data) {
                Ok((pieces, trailing)) => {
                    shared.pieces.extend(pieces);
                    shared.trailing.push(trailing);
                }
                Err(error) => {
                    shared.unread.push((index, error));
                    shared.trailing.push(0);
                }
            }
        }
        if let (true, Some((_, error))) = (shared.pieces.is_empty(), shared.unread.first()) {
            return Err(*error);
        }
        shared.sections = sections;
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The bytes of the file.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.shared.source
    }

    /// Its sections.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.shared.sections
    }

    /// Its pieces, of all sections, in file order.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.shared.pieces
    }

    /// Sections that do not begin with a header, and why not.
    #[must_use]
    pub fn unread(&self) -> &[(usize, ParseError)] {
        &self.shared.unread
    }

    /// Bytes of a section behind its last piece.
    #[must_use]
    pub fn trailing(&self, section: usize) -> usize {
        self.shared.trailing.get(section).copied().unwrap_or(0)
    }

    /// A piece with its bytes.
    #[must_use]
    pub fn view<'a>(&'a self, piece: &'a Piece) -> View<'a> {
        self.view_of(piece, Section::data)
    }

    /// A piece with its bytes as they are in the file, before relocation.
    #[must_use]
    pub fn raw_view<'a>(&'a self, piece: &'a Piece) -> View<'a> {
        self.view_of(piece, Section::raw)
    }

    /// The unit with the bytes that `data` selects.
    fn view_of<'a>(&'a self, piece: &'a Piece, data: fn(&'a Section, &'a [u8]) -> &'a [u8]) -> View<'a> {
        match self.shared.sections.get(piece.section) {
            Some(section) => View {
                piece,
                data: data(section, &self.shared.source),
                file_offset: section.place.start as u64,
                address: section.address,
            },
            None => View { piece, data: &[], file_offset: 0, address: 0 },
        }
    }

    /// Every piece with its bytes.
    pub fn views(&self) -> impl Iterator<Item = View<'_>> {
        self.pieces().iter().map(|piece| self.view(piece))
    }

    /// What one pass over all rows finds; made once.
    pub(super) fn survey(&self) -> &Survey {
        self.shared.survey.get_or_init(|| Survey::of(self.views()))
    }

    /// Functions by address; made once.
    #[must_use]
    pub fn lookup(&self) -> &Lookup {
        self.shared.lookup.get_or_init(|| Lookup::of(self.views()))
    }
}

impl SFrame {
    /// The function an address is in, and its row there.
    #[must_use]
    pub fn find(&self, pc: u64) -> Option<Found<'_>> {
        let place = self.lookup().at_or_before(pc)?;
        self.found(pc, self.function_at(pc, place)?)
    }

    /// Finds many addresses, in their order: what one of them waits for in memory is asked for with that of others.
    pub fn find_all<'a>(&'a self, addresses: &[u64], mut each: impl FnMut(u64, Option<Found<'a>>)) {
        for some in addresses.chunks(TOGETHER) {
            let mut places = [None; TOGETHER];
            for (place, pc) in places.iter_mut().zip(some) {
                *place = self.lookup().at_or_before(*pc);
            }
            let mut functions = [None; TOGETHER];
            for ((function, place), pc) in functions.iter_mut().zip(places).zip(some) {
                *function = place.and_then(|place| self.function_at(*pc, place));
                // Looked at, so that it is there when the row is searched.
                let row = function.and_then(|(piece, function)| self.first_byte(piece, &function));
                std::hint::black_box(row);
            }
            for (function, pc) in functions.into_iter().zip(some) {
                each(*pc, function.and_then(|function| self.found(*pc, function)));
            }
        }
    }

    /// The function of a place, with the number of its piece, if an address is in it.
    #[inline]
    fn function_at(&self, pc: u64, (number, index): (u32, u32)) -> Option<(usize, Function)> {
        let piece = self.pieces().get(number as usize)?;
        let function = self.view(piece).function(index).filter(|function| pc < function.end())?;
        Some((number as usize, function))
    }

    fn first_byte(&self, number: usize, function: &Function) -> Option<u8> {
        self.view(self.pieces().get(number)?).data.get(function.rows_at?).copied()
    }

    #[inline]
    fn found(&self, pc: u64, (number, function): (usize, Function)) -> Option<Found<'_>> {
        let piece = self.pieces().get(number)?;
        let row = function.row_offset(pc.wrapping_sub(function.start));
        let row = row.and_then(|offset| self.row_at(number, &function, offset));
        let recovery = row.map(|row| piece.context(&function).meaning(&row));
        Some(Found { piece: number, function, row, recovery })
    }

    /// The last row of a function that starts at or before an offset.
    fn row_at(&self, number: usize, function: &Function, offset: u64) -> Option<Row<'_>> {
        let view = self.view(self.pieces().get(number)?);
        let begins_before = |at: &usize| {
            let row = view.row_behind(function, *at);
            row.is_some_and(|row| u64::from(row.start) <= offset)
        };
        let strides = self.survey().strides(number, function);
        let skipped = strides.partition_point(begins_before);
        let rows = self.survey().rows_from_stride(number, view, function, skipped);
        rows.map_while(Result::ok).take_while(|row| u64::from(row.start) <= offset).last()
    }
}
