//! Files with an instrumentation map: reads the map, and the names of its functions.

use std::env::consts::ARCH;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use object::read::macho::{FatArch, MachOFatFile32, MachOFatFile64};
use object::{Endianness, FileKind, elf, macho};
use perfuse_mapped::CUT;

use super::decode::decode;
use super::findings::{Error, MapFinding, MapFindings, SEVERAL_SLICES, UNNAMED, UNREADABLE_SLICE};
use super::map::{CodeLocation, InstrumentationMap, InstrumentedFunction};
use super::yaml::{self, YamlMap};
use super::{elf as elf_side, mach_o};
use crate::symbolize::{Image, Module, SymbolFrame, Symbolizer};

/// An open file with an instrumentation map.
#[derive(Debug)]
pub struct MapFile {
    image: Image,
    map: InstrumentationMap,
    /// The names in a YAML map, by function.
    names: Option<Vec<Option<SymbolFrame>>>,
}

/// The names of a map's functions.
#[derive(Debug, Default)]
pub struct FunctionNames {
    /// By function, in the order of the request; `None` where no function of the file is known to start at its address.
    pub functions: Vec<Option<SymbolFrame>>,
    /// Build id of the file in hexadecimal, where it has one.
    pub build_id: Option<String>,
    /// The reason why functions have no name.
    pub unnamed_because: Option<Arc<str>>,
}

impl FunctionNames {
    /// A finding if some functions have no name.
    #[must_use]
    pub fn finding(&self) -> Option<MapFinding> {
        let num_unnamed = self.functions.iter().filter(|frame| frame.is_none()).count();
        let because = self.unnamed_because.as_deref().unwrap_or(
            "no symbol starts where they do: the file is stripped, and its debug file was not found",
        );
        let message = format!("{num_unnamed} of {} functions have no name: {because}", self.functions.len());
        (num_unnamed > 0).then_some(MapFinding { code: UNNAMED, message, offset: None, count: 1 })
    }
}

impl MapFile {
    /// Opens a program, a library or an object file, and reads its map; or a map that `llvm-xray extract` wrote.
    ///
    /// # Errors
    /// When it cannot be read, is neither, or has no map. See [`InstrumentationMap::read`] for `architecture`.
    pub fn open(path: &Path, architecture: Option<&str>) -> Result<Self, Error> {
        let image = Image::open(path)?;
        let read = if yaml::is_yaml(&image) {
            yaml::read(&image).map(|YamlMap { map, names }| (map, Some(names)))
        } else {
            InstrumentationMap::read(&image, architecture).map(|map| (map, None))
        };
        if image.is_cut() {
            return Err(io::Error::other(CUT).into());
        }
        let (map, names) = read?;
        Ok(Self { image, map, names })
    }

    /// Path of the program or library.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.image.path
    }

    /// The file, as text.
    pub(super) fn display(&self) -> String {
        self.image.path.display().to_string()
    }

    /// Its map.
    #[must_use]
    pub fn map(&self) -> &InstrumentationMap {
        &self.map
    }

    /// Looks up the names of functions of the map: in the symbol table or DWARF of an ELF file or of its separate debug file, in the
    /// symbol table of a Mach-O file. dSYM bundles are not read.
    #[must_use]
    pub fn names(&self, functions: &[InstrumentedFunction], symbolizer: &Symbolizer) -> FunctionNames {
        if let Some(names) = &self.names {
            let of = |function: &InstrumentedFunction| {
                names.get(usize::try_from(function.id.checked_sub(1)?).ok()?)?.clone()
            };
            let unnamed_because = Some("llvm-xray extract writes names with --symbolize".into());
            let functions = functions.iter().map(of).collect();
            return FunctionNames { functions, build_id: None, unnamed_because };
        }
        if self.map.is_mach_o {
            let slice = self.image.get(self.map.slice.clone()).unwrap_or_default();
            return FunctionNames { functions: mach_o::names(slice, functions), ..FunctionNames::default() };
        }
        let module = symbolizer.file(&self.image.path);
        let addresses: Vec<Option<u64>> =
            functions.iter().map(|function| address(&module, function)).collect();
        let build_id = self.image.build_id().map(|id| id.to_string());
        FunctionNames {
            functions: module.functions_at(&addresses),
            build_id,
            unnamed_because: module.unnamed_because(),
        }
    }
}

/// A function's address in the address space of its module's symbols.
fn address(module: &Module, function: &InstrumentedFunction) -> Option<u64> {
    match function.location? {
        CodeLocation { section: None, address } => Some(address),
        CodeLocation { section: Some(section), address } => module.section_address(section, address),
    }
}

/// Limit on the architectures of a universal file; real ones have two or three.
const MAX_SLICES: usize = 32;

impl InstrumentationMap {
    /// Reads the map in the bytes of a file. In a universal file: the one for `architecture`, else for this machine, else the first.
    ///
    /// # Errors
    /// When the file is not an object file, or has no map (for that architecture).
    pub fn read(bytes: &[u8], architecture: Option<&str>) -> Result<Self, Error> {
        let slices = match FileKind::parse(bytes)? {
            FileKind::MachOFat32 => ranges(MachOFatFile32::parse(bytes)?.arches()),
            FileKind::MachOFat64 => ranges(MachOFatFile64::parse(bytes)?.arches()),
            kind => return Self::read_kind(kind, bytes, 0..bytes.len(), MapFindings::default()),
        };
        let mut findings = MapFindings::default();
        let mut maps = Vec::new();
        for slice in slices {
            let at = slice.start as u64;
            let part = bytes
                .get(slice.clone())
                .ok_or_else(|| Error::NotAnObject("it is not all in the file".into()));
            let kind = part.and_then(|part| Ok((FileKind::parse(part)?, part)));
            match kind.and_then(|(kind, part)| Self::read_kind(kind, part, slice, MapFindings::default())) {
                Ok(map) => maps.push(map),
                Err(Error::NoMap(_)) => {}
                Err(error) => {
                    findings.at(UNREADABLE_SLICE, at, || format!("a part of the universal file: {error}"))
                }
            }
        }
        let mut map = select_map(maps, architecture, &mut findings)?;
        map.findings.splice(0..0, findings.into_vec());
        Ok(map)
    }

    fn read_kind(
        kind: FileKind,
        data: &[u8],
        slice: Range<usize>,
        mut findings: MapFindings,
    ) -> Result<Self, Error> {
        let container = match kind {
            FileKind::Elf32 => elf_side::container::<elf::FileHeader32<Endianness>>(data, &mut findings),
            FileKind::Elf64 => elf_side::container::<elf::FileHeader64<Endianness>>(data, &mut findings),
            FileKind::MachO32 => {
                mach_o::container::<macho::MachHeader32<Endianness>>(data, slice, &mut findings)
            }
            FileKind::MachO64 => {
                mach_o::container::<macho::MachHeader64<Endianness>>(data, slice, &mut findings)
            }
            _ => Err(Error::NotAnObject("it is of another kind".into())),
        };
        Ok(decode(&container?, findings))
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

/// The map for an architecture, or for this machine.
fn select_map(
    mut maps: Vec<InstrumentationMap>,
    architecture: Option<&str>,
    findings: &mut MapFindings,
) -> Result<InstrumentationMap, Error> {
    let position = |name: &str| maps.iter().position(|map| map.architecture == name);
    let at = match architecture {
        Some(name) => position(name).ok_or(Error::NoMap("none is for the architecture asked for"))?,
        None => position(ARCH).unwrap_or(0),
    };
    let Some(selected) = maps.get(at).map(|map| map.architecture) else {
        return Err(Error::NoMap("no part of the universal file has a section xray_instr_map"));
    };
    let all: Vec<&str> = maps.iter().map(|map| map.architecture).collect();
    if all.len() > 1 && architecture.is_none() {
        findings.about(
            SEVERAL_SLICES,
            format!("there are maps for {}; that for {selected} is shown", all.join(", ")),
        );
    }
    Ok(maps.swap_remove(at))
}
