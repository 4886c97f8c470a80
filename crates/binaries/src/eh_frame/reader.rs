use gimli::{
    BaseAddresses, CallFrameInstruction, CieOrFde, CommonInformationEntry, EhFrame, Encoding, EndianSlice,
    Format, RunTimeEndian, UnwindContext, UnwindSection, Vendor,
};
use rustc_hash::FxHashMap;

use super::augmentation::KeyB;
use super::registers::Registers;
use super::rules::Rules;
use super::table::{Function, Row, UnwindTable};

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
type Cie<'a> = CommonInformationEntry<Slice<'a>>;

/// The bytes of an `.eh_frame`, and what reading them takes.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    /// The section.
    pub data: &'a [u8],
    /// Where it is loaded to.
    pub address: u64,
    /// Byte order.
    pub endian: RunTimeEndian,
    /// Registers of the machine.
    pub registers: Registers,
}

/// A part of the section that was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Offset of the entry in the section.
    pub entry_offset: u64,
    /// First address of the function and its size, where they are known.
    pub function: Option<(u64, u64)>,
    /// Why.
    pub why: String,
}

/// What instructions of common entries may cost in all, a byte of the section: they are run for each function anew.
const MAX_RERUNS: u64 = 64;

/// Every function of a section with its rows, sorted, and what could not be read.
#[must_use]
pub fn read(bytes: Bytes<'_>) -> (UnwindTable, Vec<Unread>) {
    let (data, key_b) = KeyB::take_out(bytes.data, bytes.endian);
    let (section, bases) = section(&bytes, &data);
    let mut walk = Walk {
        data: &data,
        rules: Rules {
            section: &section,
            encoding: Encoding { address_size: 8, format: Format::Dwarf32, version: 4 },
            registers: bytes.registers,
        },
        bases: &bases,
        key_b,
        context: UnwindContext::new(),
        cies: FxHashMap::default(),
        reruns_left: (bytes.data.len() as u64).saturating_mul(MAX_RERUNS).max(1 << 16),
        table: UnwindTable::default(),
        unread: Vec::new(),
    };
    walk.run();
    walk.table.sort();
    (walk.table, walk.unread)
}

fn section<'a>(bytes: &Bytes<'_>, data: &'a [u8]) -> (EhFrame<Slice<'a>>, BaseAddresses) {
    let mut section = EhFrame::from(EndianSlice::new(data, bytes.endian));
    section.set_address_size(8);
    section.set_vendor(if bytes.registers.signs { Vendor::AArch64 } else { Vendor::Default });
    (section, BaseAddresses::default().set_eh_frame(bytes.address))
}

struct Walk<'a> {
    data: &'a [u8],
    rules: Rules<'a>,
    bases: &'a BaseAddresses,
    key_b: KeyB,
    context: UnwindContext<usize>,
    cies: FxHashMap<usize, Cie<'a>>,
    reruns_left: u64,
    table: UnwindTable,
    unread: Vec<Unread>,
}

impl<'a> Walk<'a> {
    fn run(&mut self) {
        let mut entries = self.rules.section.entries(self.bases);
        loop {
            let partial = match entries.next() {
                Ok(None) => return,
                Ok(Some(CieOrFde::Cie(_))) => continue,
                Ok(Some(CieOrFde::Fde(partial))) => partial,
                Err(error) => return self.skip(0, None, &error.to_string()),
            };
            let offset = partial.offset() as u64;
            let cies = &mut self.cies;
            let parsed = partial.parse(|section, bases, at| match cies.get(&at.0) {
                Some(known) => Ok(known.clone()),
                None => {
                    let cie = section.cie_from_offset(bases, at)?;
                    cies.insert(at.0, cie.clone());
                    Ok(cie)
                }
            });
            let fde = match parsed {
                Ok(fde) => fde,
                Err(error) => {
                    self.skip(offset, None, &error.to_string());
                    continue;
                }
            };
            let place = Some((fde.initial_address(), fde.len()));
            let Some(left) = self.reruns_left.checked_sub(fde.cie().entry_len() as u64) else {
                return self.skip(offset, place, "common entries too long to be run for each function");
            };
            self.reruns_left = left;
            if let Err(why) = self.function(&fde) {
                self.skip(offset, place, &why);
            }
        }
    }

    fn skip(&mut self, entry_offset: u64, function: Option<(u64, u64)>, why: &str) {
        self.unread.push(Unread { entry_offset, function, why: why.to_owned() });
    }

    fn function(&mut self, fde: &gimli::FrameDescriptionEntry<Slice<'a>>) -> Result<(), String> {
        let size = u32::try_from(fde.len()).map_err(|_| "a function of more than 4 GiB")?;
        let start = fde.initial_address();
        let cie = fde.cie();
        let (is_key_b, is_signal) = self.key_b.of(cie.offset(), cie.is_signal_trampoline());
        let first = self.table.rows.len();
        if let Err(error) = self.rows(fde, size) {
            self.table.rows.truncate(first);
            return Err(error.to_string());
        }
        let function = Function {
            start,
            size,
            repeat_bytes: 0,
            is_signal,
            is_key_b,
            nests_states: nests_states(self.data, self.rules.section, self.bases, fde),
            entry_offset: fde.offset() as u64,
            first_row: first as u32,
            num_rows: (self.table.rows.len() - first) as u32,
        };
        self.table.functions.push(function);
        Ok(())
    }

    fn rows(&mut self, fde: &gimli::FrameDescriptionEntry<Slice<'a>>, size: u32) -> gimli::Result<()> {
        let first = self.table.rows.len();
        let column = fde.cie().return_address_register();
        let mut rows = fde.rows(self.rules.section, self.bases, &mut self.context)?;
        while let Some(row) = rows.next_row()? {
            // Rows of no length stand where instructions advance by nothing, and behind the function's end.
            let offset = row.start_address().wrapping_sub(fde.initial_address());
            let is_empty = row.end_address() <= row.start_address() && size != 0;
            if offset >= u64::from(size.max(1)) || is_empty {
                continue;
            }
            let says = self.rules.of(row, column);
            let last = self.table.rows[first..].last();
            if last.is_none_or(|last| last.says != says) {
                self.table.rows.push(Row { start: offset as u32, says });
            }
        }
        Ok(())
    }
}

/// Whether an entry remembers a state within another that is remembered. Few entries have the byte twice, and only those
/// are looked through.
fn nests_states<'a>(
    data: &[u8],
    section: &EhFrame<Slice<'a>>,
    bases: &BaseAddresses,
    fde: &gimli::FrameDescriptionEntry<Slice<'a>>,
) -> bool {
    let entry = fde.offset()..fde.offset().saturating_add(fde.entry_len()).saturating_add(4).min(data.len());
    let remembers = data.get(entry).unwrap_or_default();
    if memchr::memchr_iter(gimli::DW_CFA_remember_state.0, remembers).nth(1).is_none() {
        return false;
    }
    let mut instructions = fde.instructions(section, bases);
    let mut depth = 0u32;
    while let Ok(Some(instruction)) = instructions.next() {
        match instruction {
            CallFrameInstruction::RememberState if depth > 0 => return true,
            CallFrameInstruction::RememberState => depth += 1,
            CallFrameInstruction::RestoreState => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}
