//! Call frame information: `.eh_frame` and `.debug_frame`, of files and of JIT code.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EndianSlice, FrameDescriptionEntry, RegisterRule,
    RunTimeEndian, UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection, UnwindTableRow,
    Vendor,
};

use super::memory::number;
use super::registers::Machine;
use super::step::{DwarfExpression, FrameOrigin, UnwindBase, UnwindRule, UnwindStep};

type Reader<'a> = EndianSlice<'a, RunTimeEndian>;
type CfiEntry<'a> = FrameDescriptionEntry<Reader<'a>>;

/// Storage of rows and saved states without a fixed limit; the size of the section limits them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unlimited;

impl UnwindContextStorage<usize> for Unlimited {
    type Rules = Vec<(gimli::Register, RegisterRule<usize>)>;
    type Stack = Vec<UnwindTableRow<usize, Self>>;
}

/// A section with call frame information, and its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct CfiSection<'a> {
    /// Its bytes.
    pub(super) bytes: &'a [u8],
    /// Its address; pointers in it may be relative to it.
    pub(super) address: u64,
    /// `.eh_frame_hdr` and its address. An entry it leads to is used only where it covers the address.
    pub(super) header: Option<(&'a [u8], u64)>,
    /// Address of code; pointers may also be relative to it.
    pub(super) text: u64,
    /// Whether it is `.eh_frame` rather than `.debug_frame`.
    pub(super) is_eh: bool,
    /// Whether numbers are big-endian.
    pub(super) big_endian: bool,
    /// The machine.
    pub(super) machine: Machine,
    /// Origin of its steps.
    pub(super) origin: FrameOrigin,
}

/// Replaces the `L` of augmentation `zLR` by `R` where its pointer encoding is "omit". V8 writes this, and gimli refuses it;
/// with two `R` the second one counts.
pub(super) fn without_omitted_pointers(eh_frame: &mut [u8]) {
    if let [_, _, _, _, 0, 0, 0, 0, _, b'z', letter @ b'L', b'R', 0, _, _, _, _, 0xff, ..] = eh_frame {
        *letter = b'R';
    }
}

/// Offset of each function's entry, by address; built when first needed.
pub(super) type CfiIndex = OnceLock<Vec<(Range<u64>, usize)>>;

impl CfiSection<'_> {
    /// The step of the function at an address.
    pub(super) fn step(&self, address: u64, index: &CfiIndex) -> Option<UnwindStep> {
        self.row(address, index).map(|(_, step)| step)
    }

    /// The same, and the addresses it is valid for.
    pub(super) fn row(&self, address: u64, index: &CfiIndex) -> Option<(Range<u64>, UnwindStep)> {
        if self.is_eh {
            self.search(&self.eh_frame(), address, index)
        } else {
            self.search(&self.debug_frame(), address, index)
        }
    }

    /// The same for the code of one function, whose start is given: JIT compilers write entries
    /// for spaces where the code will not be.
    pub(super) fn step_of_only_function(&self, code_offset: u64) -> Option<UnwindStep> {
        let (section, bases) = (self.eh_frame(), self.bases());
        let mut entries = section.entries(&bases);
        let mut only = None;
        while let Ok(Some(entry)) = entries.next() {
            perfuse_stopping::checkpoint();
            if let CieOrFde::Fde(partial) = entry {
                let entry = partial.parse(UnwindSection::cie_from_offset).ok()?;
                if only.replace(entry).is_some() {
                    return None;
                }
            }
        }
        let entry = only.filter(|entry| code_offset < entry.len())?;
        let address = entry.initial_address().wrapping_add(code_offset);
        self.row_in(&section, &entry, address).map(|(_, step)| step)
    }

    fn search<'a, S>(&self, section: &S, address: u64, index: &CfiIndex) -> Option<(Range<u64>, UnwindStep)>
    where
        S: UnwindSection<Reader<'a>>,
        S::Offset: gimli::UnwindOffset<usize>,
    {
        if let Some((header, loaded_at)) = self.header
            && let Some(entry) = find_in_header(header, loaded_at, self.big_endian, address)
            && let Some(at) = entry.checked_sub(self.address).and_then(|at| usize::try_from(at).ok())
            && at < self.bytes.len()
            && let Ok(entry) = section.fde_from_offset(&self.bases(), at.into(), S::cie_from_offset)
            && entry.contains(address)
        {
            return self.row_in(section, &entry, address);
        }
        let all = index.get_or_init(|| self.entries(section));
        let (range, at) =
            all.get(all.partition_point(|(range, _)| range.start <= address).checked_sub(1)?)?;
        let entry = range
            .contains(&address)
            .then(|| section.fde_from_offset(&self.bases(), (*at).into(), S::cie_from_offset).ok())??;
        self.row_in(section, &entry, address)
    }

    /// All entries, by address, up to the first malformed one.
    fn entries<'a, S>(&self, section: &S) -> Vec<(Range<u64>, usize)>
    where
        S: UnwindSection<Reader<'a>>,
    {
        let bases = self.bases();
        let mut entries = section.entries(&bases);
        let mut all = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            if let CieOrFde::Fde(partial) = entry
                && let Ok(entry) = partial.parse(S::cie_from_offset)
                && entry.len() != 0
            {
                let start = entry.initial_address();
                all.push((start..start.saturating_add(entry.len()), entry.offset()));
            }
        }
        all.sort_unstable_by_key(|(range, at)| (range.start, *at));
        all
    }

    fn row_in<'a, S>(
        &self,
        section: &S,
        entry: &CfiEntry<'a>,
        address: u64,
    ) -> Option<(Range<u64>, UnwindStep)>
    where
        S: UnwindSection<Reader<'a>>,
    {
        let mut context = UnwindContext::<usize, Unlimited>::new_in();
        let row = entry.unwind_info_for_address(section, &self.bases(), &mut context, address).ok()?;
        let encoding = entry.cie().encoding();
        let expression = |it: &UnwindExpression<usize>| {
            let bytes = it.get(section).ok()?.0;
            Some(UnwindBase::Expression(DwarfExpression { bytes: Arc::from(bytes.slice()), encoding }))
        };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                UnwindRule::Value(UnwindBase::Register(self.machine.register_number(*register)?), *offset)
            }
            CfaRule::Expression(it) => UnwindRule::Value(expression(it)?, 0),
        };
        let ra = self.machine.ra();
        let ra_column = self.machine.register_number(entry.cie().return_address_register())?;
        let mut rules = Vec::new();
        for (register, rule) in row.registers() {
            let Some(register) = self.machine.register_number(*register) else { continue };
            let rule = match rule {
                RegisterRule::Undefined => UnwindRule::Undefined,
                RegisterRule::SameValue => continue,
                RegisterRule::Offset(offset) => UnwindRule::Memory(UnwindBase::Cfa, *offset),
                RegisterRule::ValOffset(offset) => UnwindRule::Value(UnwindBase::Cfa, *offset),
                RegisterRule::Register(other) => {
                    UnwindRule::Value(UnwindBase::Register(self.machine.register_number(*other)?), 0)
                }
                RegisterRule::Expression(it) => UnwindRule::Memory(expression(it)?, 0),
                RegisterRule::ValExpression(it) => UnwindRule::Value(expression(it)?, 0),
                _ => continue,
            };
            rules.push((if register == ra_column { ra } else { register }, rule));
        }
        // Where the return address column is not the usual register, the return address is in that column.
        if ra_column != ra && !rules.iter().any(|(register, _)| *register == ra) {
            rules.push((ra, UnwindRule::Value(UnwindBase::Register(ra_column), 0)));
        }
        let unchanged = if self.machine.has_link_register() { !0 } else { !(1 << ra) };
        let is_signal = entry.is_signal_trampoline();
        let step = UnwindStep { origin: self.origin, cfa, rules: rules.into(), unchanged, is_signal };
        Some((row.start_address()..row.end_address(), step))
    }

    fn bases(&self) -> BaseAddresses {
        BaseAddresses::default().set_eh_frame(self.address).set_text(self.text)
    }

    fn endian(&self) -> RunTimeEndian {
        if self.big_endian { RunTimeEndian::Big } else { RunTimeEndian::Little }
    }

    fn vendor(&self) -> Vendor {
        if self.machine == Machine::Aarch64 { Vendor::AArch64 } else { Vendor::Default }
    }

    fn eh_frame(&self) -> EhFrame<Reader<'_>> {
        let mut section = EhFrame::new(self.bytes, self.endian());
        section.set_address_size(8);
        section.set_vendor(self.vendor());
        section
    }

    fn debug_frame(&self) -> DebugFrame<Reader<'_>> {
        let mut section = DebugFrame::new(self.bytes, self.endian());
        section.set_address_size(8);
        section.set_vendor(self.vendor());
        section
    }
}

/// Version 1; the pointer to `.eh_frame` relative to itself; a four-byte count; a table of four-byte differences to the
/// header's own address. Every linker writes these.
const USUAL_ENCODINGS: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// Looks an address up in the table of an `.eh_frame_hdr` that is loaded at an address. Returns the address of the entry of
/// the last function that starts at or before it; `None` also for a table of another layout.
fn find_in_header(header: &[u8], loaded_at: u64, big_endian: bool, address: u64) -> Option<u64> {
    let rest = header.strip_prefix(&USUAL_ENCODINGS)?;
    let num_rows = usize::try_from(number(rest.get(4..8)?, big_endian)?).ok()?;
    let rows = rest.get(8..8usize.checked_add(num_rows.checked_mul(8)?)?)?.as_chunks::<8>().0;
    let target = |bytes: &[u8]| {
        let difference = number(bytes, big_endian).unwrap_or(0) as u32;
        loaded_at.wrapping_add_signed(difference.cast_signed().into())
    };
    // A row is the difference to a function and the difference to its entry.
    let num_before = rows.partition_point(|row| target(row.split_at(4).0) <= address);
    Some(target(rows.get(num_before.checked_sub(1)?)?.split_at(4).1))
}
