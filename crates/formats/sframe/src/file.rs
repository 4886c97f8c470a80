//! An open file: its sections, their pieces.

use std::any::Any;
use std::fs::File;
use std::io;
use std::sync::{Arc, OnceLock};

use perfuse_tables::Offsets;
use perfuse_wire::{Diagnostics, Endian, ParseError, RecordView, Value};

use super::container::{self, Section};
use super::lookup::Lookup;
use super::reader::{self, Piece, View};
use super::survey::Survey;
use super::{FORMAT, check, describe, ingest, repair};
use perfuse_recording::{
    BatchStream, Clock, Format, Placement, Position, Rate, Recording, Repaired, Source, Summary, TableRequest,
};

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
        self.shared.survey.get_or_init(|| Survey::of(self))
    }

    /// Functions by address; made once.
    #[must_use]
    pub fn lookup(&self) -> &Lookup {
        self.shared.lookup.get_or_init(|| Lookup::of(self))
    }
}

impl Recording for SFrame {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn source(&self) -> &Arc<Source> {
        &self.shared.source
    }

    fn summary(&self) -> Summary {
        let first = self.pieces().first();
        let mut versions: Vec<_> = self.pieces().iter().map(Piece::version).collect();
        versions.sort_unstable();
        versions.dedup();
        let versions: Vec<_> = versions.iter().map(ToString::to_string).collect();
        Summary {
            version: (!versions.is_empty()).then(|| versions.join(", ")),
            endian: first.map_or(Endian::Little, |piece| piece.endian),
            pointer_bytes: Some(8),
            arch: first.and_then(|piece| piece.abi().arch()),
            producer: None,
            clock: "unknown",
            span: None,
            counts: self.survey().counts(),
            header: first.map(|piece| self.header_fields(piece)).unwrap_or_default(),
        }
    }

    /// There are no time stamps, so nothing has to be looked over.
    fn clock(&self, _rate: Rate) -> Clock {
        Clock::nanoseconds("unknown")
    }

    fn span(&self) -> Option<(u64, u64)> {
        None
    }

    fn next_record<'a>(&'a self, at: &mut Position) -> Option<RecordView<'a>> {
        describe::next_record(self, at)
    }

    fn check(&self, sink: &mut Diagnostics) {
        check::check(self, sink);
    }

    fn repair(&self, out: &mut File) -> io::Result<Repaired> {
        repair::repair(self, out)
    }

    fn extent(&self) -> Offsets {
        let functions = self.pieces().iter().map(|piece| piece.num_functions);
        Offsets { source: 1, unwind_function: functions.fold(0, u32::saturating_add), ..Offsets::default() }
    }

    fn table(&self, name: &str, placement: &Placement, _request: &TableRequest) -> Option<BatchStream> {
        ingest::table(self, name, placement)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl SFrame {
    fn header_fields(&self, piece: &Piece) -> Vec<(&'static str, Value<'static>)> {
        let mut fields = describe::header(piece);
        let section = self.sections().get(piece.section);
        fields.push(("section_address", Value::Hex(section.map_or(0, |section| section.address))));
        fields.push(("starts_count_from", Value::Text(piece.starts.name().into())));
        fields.push(("because", Value::Text(piece.starts.reason().into())));
        if self.pieces().len() > 1 {
            fields.push(("num_headers", Value::Unsigned(self.pieces().len() as u64)));
        }
        fields
    }
}
