//! Executes the call frame instructions of each function of an `.eh_frame` and collects the rows they make.

use gimli::{
    BaseAddresses, CallFrameInstruction, CieOrFde, CommonInformationEntry, EhFrame, Encoding, EndianSlice,
    Format, RunTimeEndian, UnwindContext, UnwindSection, Vendor,
};
use rustc_hash::FxHashMap;

use super::augmentation::KeyBEntries;
use super::rules::{DwarfRegisters, RuleReader, Slice};
use super::table::{UnwindFunction, UnwindRow, UnwindTable};

type Cie<'a> = CommonInformationEntry<Slice<'a>>;

/// The bytes of an `.eh_frame`, with the machine they are for.
#[derive(Clone, Copy, Debug)]
pub struct SectionBytes<'a> {
    /// Its content, from the first entry.
    pub data: &'a [u8],
    /// Its link-time address.
    pub address: u64,
    /// Byte order.
    pub endian: RunTimeEndian,
    /// Registers of the machine.
    pub registers: DwarfRegisters,
}

/// An entry of the section that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadEntry {
    /// Offset of the entry in the section.
    pub entry_offset: u64,
    /// First address and size of the function, where they could be read.
    pub function: Option<(u64, u64)>,
    /// Why it could not be read, as text.
    pub why: String,
}

/// Limit on the bytes of common entries that are executed, per byte of the section: they are executed for each function anew.
const MAX_RERUNS: u64 = 64;

/// Reads every function of a section with its rows, sorted, and lists the entries that could not be read.
#[must_use]
pub fn read(bytes: SectionBytes<'_>) -> (UnwindTable, Vec<UnreadEntry>) {
    let (data, key_b) = KeyBEntries::take_out(bytes.data, bytes.endian);
    let (section, bases) = section(&bytes, &data);
    let mut reader = EntryReader {
        data: &data,
        rules: RuleReader {
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
    reader.run();
    reader.table.sort();
    (reader.table, reader.unread)
}

fn section<'a>(bytes: &SectionBytes<'_>, data: &'a [u8]) -> (EhFrame<Slice<'a>>, BaseAddresses) {
    let mut section = EhFrame::from(EndianSlice::new(data, bytes.endian));
    section.set_address_size(8);
    section.set_vendor(if bytes.registers.signs { Vendor::AArch64 } else { Vendor::Default });
    (section, BaseAddresses::default().set_eh_frame(bytes.address))
}

struct EntryReader<'a> {
    data: &'a [u8],
    rules: RuleReader<'a>,
    bases: &'a BaseAddresses,
    key_b: KeyBEntries,
    context: UnwindContext<usize>,
    cies: FxHashMap<usize, Cie<'a>>,
    reruns_left: u64,
    table: UnwindTable,
    unread: Vec<UnreadEntry>,
}

impl<'a> EntryReader<'a> {
    /// Reads all entries, until one that cannot be passed over.
    fn run(&mut self) {
        let mut entries = self.rules.section.entries(self.bases);
        loop {
            perfuse_stopping::checkpoint();
            let partial = match entries.next() {
                Ok(None) => return,
                Ok(Some(CieOrFde::Cie(_))) => continue,
                Ok(Some(CieOrFde::Fde(partial))) => partial,
                Err(error) => return self.report(0, None, &error.to_string()),
            };
            let offset = partial.offset() as u64;
            let cies = &mut self.cies;
            let parsed = partial.parse(|section, bases, at| match cies.get(&at.0) {
                Some(cie) => Ok(cie.clone()),
                None => {
                    let cie = section.cie_from_offset(bases, at)?;
                    cies.insert(at.0, cie.clone());
                    Ok(cie)
                }
            });
            let fde = match parsed {
                Ok(fde) => fde,
                Err(error) => {
                    self.report(offset, None, &error.to_string());
                    continue;
                }
            };
            let function = Some((fde.initial_address(), fde.len()));
            let Some(reruns_left) = self.reruns_left.checked_sub(fde.cie().entry_len() as u64) else {
                return self.report(offset, function, "common entries too long to be run for each function");
            };
            self.reruns_left = reruns_left;
            if let Err(why) = self.function(&fde) {
                self.report(offset, function, &why);
            }
        }
    }

    fn report(&mut self, entry_offset: u64, function: Option<(u64, u64)>, why: &str) {
        self.unread.push(UnreadEntry { entry_offset, function, why: why.to_owned() });
    }

    /// Adds the function of an entry with its rows.
    fn function(&mut self, fde: &gimli::FrameDescriptionEntry<Slice<'a>>) -> Result<(), String> {
        let size = u32::try_from(fde.len()).map_err(|_| "a function of more than 4 GiB")?;
        let start = fde.initial_address();
        let cie = fde.cie();
        let (is_key_b, is_signal) = self.key_b.flags(cie.offset(), cie.is_signal_trampoline());
        let first = self.table.rows.len();
        if let Err(error) = self.rows(fde, size) {
            self.table.rows.truncate(first);
            return Err(error.to_string());
        }
        let function = UnwindFunction {
            start,
            size,
            repeat_bytes: 0,
            is_signal,
            is_key_b,
            nests_states: nests_states(self.data, self.rules.section, self.bases, fde),
            entry_offset: fde.offset() as u64,
            first_row: first as u32,
            num_rows: self.table.rows.len().saturating_sub(first) as u32,
        };
        self.table.functions.push(function);
        Ok(())
    }

    /// Adds the rows of an entry: one for each change of a rule.
    fn rows(&mut self, fde: &gimli::FrameDescriptionEntry<Slice<'a>>, size: u32) -> gimli::Result<()> {
        let first = self.table.rows.len();
        let column = fde.cie().return_address_register();
        let mut rows = fde.rows(self.rules.section, self.bases, &mut self.context)?;
        while let Some(row) = rows.next_row()? {
            // Rows without bytes: where instructions advance by 0, and after the end of the function.
            let offset = row.start_address().wrapping_sub(fde.initial_address());
            let is_empty = row.end_address() <= row.start_address() && size != 0;
            if offset >= u64::from(size.max(1)) || is_empty {
                continue;
            }
            let rule = self.rules.rule(row, column);
            let last = self.table.rows.get(first..).and_then(<[UnwindRow]>::last);
            if last.is_none_or(|last| last.rule != rule) {
                self.table.rows.push(UnwindRow { start: offset as u32, rule });
            }
        }
        Ok(())
    }
}

/// Whether an entry remembers a state while another is remembered. Few entries contain the opcode's byte twice, and only
/// those are decoded.
fn nests_states<'a>(
    data: &[u8],
    section: &EhFrame<Slice<'a>>,
    bases: &BaseAddresses,
    fde: &gimli::FrameDescriptionEntry<Slice<'a>>,
) -> bool {
    let entry = fde.offset()..fde.offset().saturating_add(fde.entry_len()).saturating_add(4).min(data.len());
    let bytes = data.get(entry).unwrap_or_default();
    if memchr::memchr_iter(gimli::DW_CFA_remember_state.0, bytes).nth(1).is_none() {
        return false;
    }
    let mut instructions = fde.instructions(section, bases);
    let mut depth = 0u32;
    while let Ok(Some(instruction)) = instructions.next() {
        match instruction {
            CallFrameInstruction::RememberState if depth > 0 => return true,
            CallFrameInstruction::RememberState => depth = depth.saturating_add(1),
            CallFrameInstruction::RestoreState => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}
