//! Symbol lists of kernels.

use memchr::memchr;

/// The kernel's own symbol list, as `/proc/kallsyms` prints it: `ffffffff81000000 T _text`, modules' with a tab and
/// `[name]` after it.
#[derive(Debug)]
pub(crate) struct Kallsyms {
    text: Vec<u8>,
    /// By address; of several at one address the last is the one that perf shows.
    lines: Vec<KernelSymbol>,
    /// Subtracted from a position for an address of this list.
    slide: u64,
    is_module: bool,
}

/// A line of the list.
#[derive(Clone, Copy, Debug)]
struct KernelSymbol {
    address: u64,
    /// Offset in the text.
    name: u32,
    len_name: u16,
    is_text: bool,
}

/// Lines have at least this many bytes on average: 16 digits, the kind, and the names of real kernels.
const LEAST_LINE_BYTES: usize = 40;

/// The list has no sizes. A symbol extends to the next one, but no further than this: the last before a gap in the
/// address space would cover the gap.
const MAX_SYMBOL_BYTES: u64 = 1 << 20;

impl Kallsyms {
    /// The whole kernel, whose `reference` symbol (`_text`) was recorded at another address where the machine was rebooted
    /// since.
    ///
    /// # Errors
    /// The reason why the list cannot be used.
    pub(crate) fn kernel(text: Vec<u8>, reference: Option<(&str, u64)>) -> Result<Self, &'static str> {
        let mut list = Self::parse(text, None)?;
        if let Some((name, recorded)) = reference {
            let here =
                list.lines.iter().find(|line| list.name(line) == name.as_bytes()).map(|line| line.address);
            list.slide =
                recorded.wrapping_sub(here.ok_or("the kernel's symbol list lacks its reference symbol")?);
        }
        Ok(list)
    }

    /// One module, loaded at `base`; positions are relative to that.
    ///
    /// # Errors
    /// The reason why the list cannot be used.
    pub(crate) fn module(text: Vec<u8>, name: &str, base: u64) -> Result<Self, &'static str> {
        let list = Self::parse(text, Some(name))?;
        Ok(Self { slide: base.wrapping_neg(), is_module: true, ..list })
    }

    /// Whether its symbols are at the addresses that it states.
    pub(crate) fn is_unslid(&self) -> bool {
        self.slide == 0
    }

    pub(crate) fn is_absolute(&self) -> bool {
        !self.is_module
    }

    /// The function at a position: where it starts, in the same terms, and its name.
    pub(crate) fn find(&self, position: u64) -> Option<(u64, &[u8])> {
        let address = position.wrapping_sub(self.slide);
        let after = self.lines.partition_point(|line| line.address <= address);
        let line = self.lines.get(after.checked_sub(1)?)?;
        let is_covered = line.is_text && address.wrapping_sub(line.address) < MAX_SYMBOL_BYTES;
        is_covered.then(|| (line.address.wrapping_add(self.slide), self.name(line)))
    }

    fn parse(text: Vec<u8>, module: Option<&str>) -> Result<Self, &'static str> {
        let mut lines = Vec::with_capacity(text.len() / LEAST_LINE_BYTES);
        let mut rest = 0;
        while rest < text.len() {
            perfuse_stopping::checkpoint();
            let line = text.get(rest..).unwrap_or_default();
            let len = memchr(b'\n', line).unwrap_or(line.len());
            lines.extend(KernelSymbol::parse(line.get(..len).unwrap_or_default(), rest, module));
            rest = rest.saturating_add(len).saturating_add(1);
        }
        if lines.is_empty() {
            return Err("the kernel's symbol list has no symbols of it");
        }
        if lines.iter().all(|line| line.address == 0) {
            return Err("the kernel hides its addresses (kernel.kptr_restrict)");
        }
        // Of several functions at one address perf shows the last in the list: `__x64_sys_getpid`, not `__ia32_sys_getpid`. A
        // stable sort merges what is sorted already: the kernel's own symbols, and those of each module.
        lines.sort_by_key(|line| (line.address, line.is_text));
        Ok(Self { text, lines, slide: 0, is_module: false })
    }

    fn name(&self, line: &KernelSymbol) -> &[u8] {
        name_of(&self.text, line)
    }
}

fn name_of<'a>(text: &'a [u8], line: &KernelSymbol) -> &'a [u8] {
    let tail = text.get(line.name as usize..).unwrap_or_default();
    tail.get(..line.len_name as usize).unwrap_or_default()
}

/// The number at the start of a line, and what follows it: 16 digits, of 32-bit kernels 8.
#[inline(always)]
fn hexadecimal(line: &[u8]) -> Option<(u64, &[u8])> {
    if let Some((digits, rest)) = line.split_first_chunk::<16>()
        && digits.iter().fold(true, |all, byte| all & byte.is_ascii_hexdigit())
    {
        let [high, low] = [digits.first_chunk()?, digits.last_chunk()?].map(|half| eight_digits(*half));
        return Some((u64::from(high) << 32 | u64::from(low), rest));
    }
    let len = line.iter().take(16).take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digits, rest) = line.split_at_checked(len)?;
    let number = str::from_utf8(digits).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok())?;
    Some((number, rest))
}

/// The number that eight hexadecimal digits are. All are converted at once, then two, four and eight joined.
#[inline(always)]
fn eight_digits(digits: [u8; 8]) -> u32 {
    let digits = u64::from_be_bytes(digits);
    // Letters are above 0x40, and their low four bits are 1 to 6.
    let values =
        (digits & 0x0f0f_0f0f_0f0f_0f0f).wrapping_add((digits >> 6 & 0x0101_0101_0101_0101).wrapping_mul(9));
    let twos = (values | values >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos | twos >> 8) & 0x0000_ffff_0000_ffff;
    (fours | fours >> 16) as u32
}

impl KernelSymbol {
    /// Parses a line that starts at an offset of the text.
    #[inline(always)]
    fn parse(line: &[u8], offset: usize, module: Option<&str>) -> Option<Self> {
        let (address, rest) = hexadecimal(line)?;
        let [b' ', kind, b' ', tail @ ..] = rest else { return None };
        // Only symbols of modules have anything after their name.
        let tab = if tail.last() == Some(&b']') { memchr(b'\t', tail) } else { None };
        let len_name = tab.unwrap_or(tail.len());
        if let Some(module) = module {
            let tag = tail.get(len_name.checked_add(1)?..)?.strip_prefix(b"[")?.strip_suffix(b"]")?;
            if tag != module.as_bytes() {
                return None;
            }
        }
        Some(Self {
            address,
            name: u32::try_from(offset.checked_add(line.len().checked_sub(tail.len())?)?).ok()?,
            len_name: u16::try_from(len_name).ok()?,
            is_text: matches!(kind, b't' | b'T' | b'w' | b'W'),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Kallsyms;

    const LIST: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81000100 t __do_it
ffffffff81000100 T do_it
ffffffff81000180 t __do_sys_getpid
ffffffff81000180 T __ia32_sys_getpid
ffffffff81000180 T __x64_sys_getpid
ffffffff81000200 D data
garbage
ffffffffc0000000 t nft_init\t[nf_tables]
ffffffffc0000040 t other\t[other]
ffffffffc0000080 t nft_exit\t[nf_tables]
";

    fn name(list: &Kallsyms, position: u64) -> Option<&str> {
        list.find(position).map(|(_, name)| std::str::from_utf8(name).expect("text"))
    }

    #[test]
    fn functions_end_at_the_next_symbol() {
        let list = Kallsyms::kernel(LIST.into(), Some(("_text", 0xffff_ffff_8100_0000))).expect("a list");
        assert_eq!(name(&list, 0xffff_ffff_8100_00ff), Some("startup_64"));
        assert_eq!(name(&list, 0xffff_ffff_8100_0100), Some("do_it"));
        assert_eq!(name(&list, 0xffff_ffff_8100_0190), Some("__x64_sys_getpid"));
        assert_eq!(name(&list, 0xffff_ffff_8100_0200), None, "data");
        assert_eq!(name(&list, 0xffff_ffff_c000_0050), Some("other"));
        assert_eq!(name(&list, 0xffff_ffff_c200_0000), None, "beyond the last");
        assert_eq!(name(&list, 8), None);
    }

    #[test]
    fn a_rebooted_kernel_has_other_addresses() {
        let list = Kallsyms::kernel(LIST.into(), Some(("_text", 0xffff_ffff_9a00_0000))).expect("a list");
        assert_eq!(list.find(0xffff_ffff_9a00_0110), Some((0xffff_ffff_9a00_0100, &b"do_it"[..])));
        assert!(Kallsyms::kernel(LIST.into(), Some(("_nothing", 1))).is_err());
    }

    #[test]
    fn a_module_is_relative_to_its_base() {
        let list = Kallsyms::module(LIST.into(), "nf_tables", 0xffff_ffff_c000_0000).expect("a list");
        assert_eq!(list.find(0x50), Some((0, &b"nft_init"[..])), "other modules' symbols are not its own");
        assert_eq!(list.find(0x90), Some((0x80, &b"nft_exit"[..])));
        assert!(Kallsyms::module(LIST.into(), "absent", 0).is_err());
    }

    #[test]
    fn addresses_of_32_bit_kernels_have_8_digits() {
        let list = "c0008000 T _text\nC00080F0 t do_it\nc0008100 T end\n";
        let list = Kallsyms::kernel(list.into(), Some(("_text", 0xc000_8000))).expect("a list");
        assert_eq!(list.find(0xc000_80f4), Some((0xc000_80f0, &b"do_it"[..])));
    }

    #[test]
    fn hidden_addresses_are_reported() {
        let hidden = "0000000000000000 T _text\n0000000000000000 T do_it\n";
        assert_eq!(
            Kallsyms::kernel(hidden.into(), None).err(),
            Some("the kernel hides its addresses (kernel.kptr_restrict)")
        );
    }
}
