use std::env::consts::ARCH;
use std::ops::Range;

use object::read::macho::{FatArch, MachOFatFile32, MachOFatFile64};
use object::{Endianness, FileKind, elf, macho};

use super::error::Error;
use super::findings::{Findings, SEVERAL_SLICES, UNREADABLE_SLICE};
use super::map::InstrumentationMap;
use super::{elf as elf_file, mach_o};

/// Architectures a universal file has at most; real ones have two or three.
const MAX_SLICES: usize = 32;

impl InstrumentationMap {
    /// The map in the bytes of a file. Of a universal file: that for `architecture`, else for this machine, else the first.
    ///
    /// # Errors
    /// When the file is no object file, or has no map (for that architecture).
    pub fn read(bytes: &[u8], architecture: Option<&str>) -> Result<Self, Error> {
        let slices = match FileKind::parse(bytes)? {
            FileKind::MachOFat32 => ranges(MachOFatFile32::parse(bytes)?.arches()),
            FileKind::MachOFat64 => ranges(MachOFatFile64::parse(bytes)?.arches()),
            kind => return Self::of_kind(kind, bytes, 0..bytes.len(), Findings::default()),
        };
        let mut findings = Findings::default();
        let mut maps = Vec::new();
        for slice in slices {
            let at = slice.start as u64;
            let part = bytes
                .get(slice.clone())
                .ok_or_else(|| Error::NotAnObject("it is not all in the file".into()));
            let kind = part.and_then(|part| Ok((FileKind::parse(part)?, part)));
            match kind.and_then(|(kind, part)| Self::of_kind(kind, part, slice, Findings::default())) {
                Ok(map) => maps.push(map),
                Err(Error::NoMap(_)) => {}
                Err(error) => {
                    findings.at(UNREADABLE_SLICE, at, || format!("a part of the universal file: {error}"))
                }
            }
        }
        let mut map = chosen(maps, architecture, &mut findings)?;
        map.findings.splice(0..0, findings.into_vec());
        Ok(map)
    }

    fn of_kind(
        kind: FileKind,
        data: &[u8],
        slice: Range<usize>,
        mut findings: Findings,
    ) -> Result<Self, Error> {
        let container = match kind {
            FileKind::Elf32 => elf_file::container::<elf::FileHeader32<Endianness>>(data, &mut findings),
            FileKind::Elf64 => elf_file::container::<elf::FileHeader64<Endianness>>(data, &mut findings),
            FileKind::MachO32 => {
                mach_o::container::<macho::MachHeader32<Endianness>>(data, slice, &mut findings)
            }
            FileKind::MachO64 => {
                mach_o::container::<macho::MachHeader64<Endianness>>(data, slice, &mut findings)
            }
            _ => Err(Error::NotAnObject("it is of another kind".into())),
        };
        Ok(Self::of(&container?, findings))
    }
}

fn ranges<Fat: FatArch>(arches: &[Fat]) -> Vec<Range<usize>> {
    let range = |arch: &Fat| {
        let (start, size) = arch.file_range();
        let position = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
        position(start)..position(start.saturating_add(size))
    };
    arches.iter().take(MAX_SLICES).map(range).collect()
}

fn chosen(
    mut maps: Vec<InstrumentationMap>,
    architecture: Option<&str>,
    findings: &mut Findings,
) -> Result<InstrumentationMap, Error> {
    let position = |wanted: &str| maps.iter().position(|map| map.architecture == wanted);
    let at = match architecture {
        Some(wanted) => position(wanted).ok_or(Error::NoMap("none is for the architecture asked for"))?,
        None => position(ARCH).unwrap_or(0),
    };
    if at >= maps.len() {
        return Err(Error::NoMap("no part of the universal file has a section xray_instr_map"));
    }
    let all: Vec<&str> = maps.iter().map(|map| map.architecture).collect();
    if all.len() > 1 && architecture.is_none() {
        findings.about(
            SEVERAL_SLICES,
            format!("there are maps for {}; that for {} is shown", all.join(", "), all[at]),
        );
    }
    Ok(maps.swap_remove(at))
}
