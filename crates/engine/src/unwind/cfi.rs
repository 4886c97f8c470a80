//! Call frame information: `.eh_frame` and `.debug_frame`, of files and of JIT code.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EndianSlice, FrameDescriptionEntry, RegisterRule,
    RunTimeEndian, UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection, UnwindTableRow,
    Vendor,
};

use super::eh_frame_hdr;
use super::machine::Machine;
use super::step::{Base, Expression, Origin, Rule, Step};

type Reader<'a> = EndianSlice<'a, RunTimeEndian>;
type Entry<'a> = FrameDescriptionEntry<Reader<'a>>;

/// Rows and saved states without a limit of their own: the section's size is one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unlimited;

impl UnwindContextStorage<usize> for Unlimited {
    type Rules = Vec<(gimli::Register, RegisterRule<usize>)>;
    type Stack = Vec<UnwindTableRow<usize, Self>>;
}

/// A section with call frame information, and where it is in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section<'a> {
    /// Its bytes.
    pub(super) bytes: &'a [u8],
    /// Its address, which pointers in it may be relative to.
    pub(super) address: u64,
    /// `.eh_frame_hdr` and its address. It is believed as far as its entries cover what is looked up.
    pub(super) header: Option<(&'a [u8], u64)>,
    /// Address of code, which pointers may also be relative to.
    pub(super) text: u64,
    /// Whether it is `.eh_frame`; else it is `.debug_frame`.
    pub(super) is_eh: bool,
    /// Whether numbers are big-endian.
    pub(super) big_endian: bool,
    /// The machine.
    pub(super) machine: Machine,
    /// What steps from it are said to be from.
    pub(super) origin: Origin,
}

/// Takes back that V8 says of data for exception handlers that it has none, in a way that the reader of entries refuses:
/// augmentation `zLR` with an `L` of "omit". As a second `R` it is read, and the one behind it holds.
pub(super) fn without_omitted_pointers(eh_frame: &mut [u8]) {
    if let [_, _, _, _, 0, 0, 0, 0, _, b'z', letter @ b'L', b'R', 0, _, _, _, _, 0xff, ..] = eh_frame {
        *letter = b'R';
    }
}

/// Where the entry of each function is; made when first needed.
pub(super) type Index = OnceLock<Vec<(Range<u64>, usize)>>;

impl Section<'_> {
    /// How to get out of the function at an address.
    pub(super) fn step(&self, address: u64, index: &Index) -> Option<Step> {
        self.row(address, index).map(|(_, step)| step)
    }

    /// The same, and for which addresses it holds.
    pub(super) fn row(&self, address: u64, index: &Index) -> Option<(Range<u64>, Step)> {
        if self.is_eh {
            self.search(&self.eh_frame(), address, index)
        } else {
            self.search(&self.debug_frame(), address, index)
        }
    }

    /// The same for the code of one function, whose start is known better than the entry tells: JIT compilers write entries
    /// for places where the code will not be.
    pub(super) fn step_of_only_function(&self, code_offset: u64) -> Option<Step> {
        let (section, bases) = (self.eh_frame(), self.bases());
        let mut entries = section.entries(&bases);
        let mut only = None;
        while let Ok(Some(entry)) = entries.next() {
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

    fn search<'a, S>(&self, section: &S, address: u64, index: &Index) -> Option<(Range<u64>, Step)>
    where
        S: UnwindSection<Reader<'a>>,
        S::Offset: gimli::UnwindOffset<usize>,
    {
        if let Some((header, loaded_at)) = self.header
            && let Some(entry) = eh_frame_hdr::find(header, loaded_at, self.big_endian, address)
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

    /// All entries, by address. Reading ends at the first that makes no sense.
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

    fn row_in<'a, S>(&self, section: &S, entry: &Entry<'a>, address: u64) -> Option<(Range<u64>, Step)>
    where
        S: UnwindSection<Reader<'a>>,
    {
        let mut context = UnwindContext::<usize, Unlimited>::new_in();
        let row = entry.unwind_info_for_address(section, &self.bases(), &mut context, address).ok()?;
        let encoding = entry.cie().encoding();
        let expression = |it: &UnwindExpression<usize>| {
            let bytes = it.get(section).ok()?.0;
            Some(Base::Expression(Expression { bytes: Arc::from(bytes.slice()), encoding }))
        };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                Rule::Is(Base::Register(self.machine.counted(*register)?), *offset)
            }
            CfaRule::Expression(it) => Rule::Is(expression(it)?, 0),
        };
        let ra = self.machine.ra();
        let ra_column = self.machine.counted(entry.cie().return_address_register())?;
        let mut rules = Vec::new();
        for (register, rule) in row.registers() {
            let Some(register) = self.machine.counted(*register) else { continue };
            let rule = match rule {
                RegisterRule::Undefined => Rule::Lost,
                RegisterRule::SameValue => continue,
                RegisterRule::Offset(offset) => Rule::At(Base::Cfa, *offset),
                RegisterRule::ValOffset(offset) => Rule::Is(Base::Cfa, *offset),
                RegisterRule::Register(other) => Rule::Is(Base::Register(self.machine.counted(*other)?), 0),
                RegisterRule::Expression(it) => Rule::At(expression(it)?, 0),
                RegisterRule::ValExpression(it) => Rule::Is(expression(it)?, 0),
                _ => continue,
            };
            rules.push((if register == ra_column { ra } else { register }, rule));
        }
        // Where the return address is in another register than usual, it is there and not in the usual one.
        if ra_column != ra && !rules.iter().any(|(register, _)| *register == ra) {
            rules.push((ra, Rule::Is(Base::Register(ra_column), 0)));
        }
        let kept = if self.machine.has_link_register() { !0 } else { !(1 << ra) };
        let is_signal = entry.is_signal_trampoline();
        let step = Step { origin: self.origin, cfa, rules: rules.into(), kept, is_signal };
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
