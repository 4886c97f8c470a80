//! The running kernel: its build id, symbols, modules and vdso. They serve a recording only when both are the same build.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use super::image::{ElfBuildId, Image};
use super::kallsyms::Kallsyms;

const NT_GNU_BUILD_ID: u32 = 3;
const KALLSYMS: &str = "/proc/kallsyms";
/// The vdso is two pages; a much larger mapping is something else.
const MAX_VDSO_BYTES: u64 = 1 << 20;

/// The build id of the running kernel.
pub(crate) fn build_id() -> Option<ElfBuildId> {
    build_id_of_notes(&fs::read("/sys/kernel/notes").ok()?)
}

/// Whether this is the machine of that name, and that release of the kernel runs on it.
pub(crate) fn is_this_machine(host: &str, release: &str) -> bool {
    let setting = |name| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    setting("hostname").trim_end() == host && setting("osrelease").trim_end() == release
}

/// All symbols of the running kernel.
///
/// # Errors
/// The reason why there are none.
pub(crate) fn symbols(reference: Option<(&str, u64)>) -> Result<Kallsyms, &'static str> {
    Kallsyms::kernel(kallsyms()?, reference)
}

/// Symbols of a loaded module, where its build id is `id`.
///
/// # Errors
/// The reason why there are none.
pub(crate) fn module_symbols(name: &str, id: &ElfBuildId) -> Result<Kallsyms, &'static str> {
    if name.contains(['/', '.']) {
        return Err("not the name of a kernel module");
    }
    // The kernel writes `-` as `_`.
    let name = name.replace('-', "_");
    let notes = fs::read(format!("/sys/module/{name}/notes/.note.gnu.build-id"));
    let loaded = notes
        .ok()
        .and_then(|notes| build_id_of_notes(&notes))
        .ok_or("the kernel module is not loaded here")?;
    if !loaded.matches(id) {
        return Err("build id differs: another build of the kernel module is loaded here");
    }
    let modules =
        fs::read_to_string("/proc/modules").map_err(|_| "the list of kernel modules cannot be read")?;
    let base =
        modules.lines().find_map(|line| base_in_line(line, &name)).ok_or("the kernel hides its addresses")?;
    Kallsyms::module(kallsyms()?, &name, base)
}

/// The running kernel's vdso, as it is mapped into this process.
pub(crate) fn vdso() -> Option<Image> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let len = end.checked_sub(start).filter(|&len| len <= MAX_VDSO_BYTES)?;
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
    Some(Image::owned("[vdso]", bytes))
}

fn kallsyms() -> Result<Vec<u8>, &'static str> {
    fs::read(KALLSYMS).map_err(|_| "the kernel's symbol list cannot be read")
}

/// Base address in a line of `/proc/modules`: `nf_tables 311296 0 - Live 0xffffffffc0a00000 (O)`.
pub(crate) fn base_in_line(line: &str, name: &str) -> Option<u64> {
    let mut words = line.split(' ');
    if words.next()? != name {
        return None;
    }
    let base = words.nth(4)?.strip_prefix("0x")?;
    u64::from_str_radix(base, 16).ok().filter(|&base| base != 0)
}

/// The build id among ELF notes in this machine's byte order.
fn build_id_of_notes(notes: &[u8]) -> Option<ElfBuildId> {
    let mut rest = notes;
    loop {
        let word = |at: usize| rest.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        let (len_name, len_desc, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let name_end = len_name.checked_add(12)?;
        let desc_start = name_end.checked_next_multiple_of(4)?;
        let desc_end = desc_start.checked_add(len_desc)?;
        if kind == NT_GNU_BUILD_ID && rest.get(12..name_end)? == b"GNU\0" {
            return ElfBuildId::new(rest.get(desc_start..desc_end)?);
        }
        rest = rest.get(desc_end.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::{base_in_line, build_id_of_notes};

    #[test]
    fn a_build_id_is_found_after_other_notes() {
        let mut notes = Vec::new();
        for (kind, name, desc) in [(6u32, &b"Linux\0"[..], &[1u8][..]), (3, b"GNU\0", &[0xab, 0xcd, 0xef])] {
            notes.extend((name.len() as u32).to_ne_bytes());
            notes.extend((desc.len() as u32).to_ne_bytes());
            notes.extend(kind.to_ne_bytes());
            for part in [name, desc] {
                notes.extend(part);
                notes.resize(notes.len().next_multiple_of(4), 0);
            }
        }
        assert_eq!(build_id_of_notes(&notes).map(|id| id.to_string()), Some("abcdef".to_owned()));
        for len in 0..notes.len() - 1 {
            assert_eq!(build_id_of_notes(&notes[..len]), None, "{len}");
        }
        assert_eq!(build_id_of_notes(&[0xff; 64]), None);
    }

    #[test]
    fn hidden_and_other_modules_have_no_base() {
        let line = "nf_tables 311296 5 nft_ct,nft_chain_nat, Live 0xffffffffc0a00000 (O)";
        assert_eq!(base_in_line(line, "nf_tables"), Some(0xffff_ffff_c0a0_0000));
        assert_eq!(base_in_line(line, "nf"), None);
        assert_eq!(base_in_line("a 1 0 - Live 0x0000000000000000", "a"), None);
    }
}
