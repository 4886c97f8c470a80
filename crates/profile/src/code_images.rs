//! JIT code as ELF files, one per process, and a perf.data with mappings of them.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Seek, Write};

use arrow_array::types::UInt32Type;
use perfuse_binaries::elf_image::tables::{self, ImageTables, PlacedCode};
use perfuse_binaries::elf_image::{Error, ImageSpec, ImageSummary};
use perfuse_engine::code_map;
use perfuse_engine::code_mappings::{CodeMapping, code_mappings};
use perfuse_formats::TableRequest;
use perfuse_formats::jitdump::JitDump;
use perfuse_formats::perf_data::{InjectError, InjectedMmap, Injection, PerfData, inject};
use perfuse_tables::access::{ColumnError, numbers};
use perfuse_wire::{Endian, machine_pointer_bytes};
use rustc_hash::FxHashMap;

use crate::profile::Profile;

/// Written ELF files, and the position of each code object in them.
pub struct CodeImages {
    /// By pid.
    images: Vec<(i32, ImageSummary)>,
    code: Vec<PlacedCode>,
}

impl CodeImages {
    /// Pid and summary of each file.
    #[must_use]
    pub fn images(&self) -> &[(i32, ImageSummary)] {
        &self.images
    }
}

/// Why a perf.data with mappings of images cannot be written.
#[derive(Debug)]
pub enum InjectImagesError {
    /// A recording's table is not as declared.
    Column(ColumnError),
    /// The perf.data cannot be written.
    Inject(InjectError),
}

/// Path of memory not backed by a file, as the kernel reports it.
const ANONYMOUS: &str = "//anon";

impl Profile {
    /// Pids of the processes that have JIT code, sorted.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn code_pids(&self) -> Result<Vec<i32>, ColumnError> {
        let mut process_ids = BTreeSet::<u32>::new();
        for batch in self.stream("code_objects", false) {
            process_ids.extend(numbers::<UInt32Type>(&batch, "process_id")?.values());
        }
        let pids = self.pids().into_iter();
        let mut pids: Vec<_> = pids.filter(|(id, _)| process_ids.contains(id)).map(|(_, pid)| pid).collect();
        pids.sort_unstable();
        Ok(pids)
    }

    /// Writes the code of each process for which `open` returns a file. `machine` is the ELF `e_machine` of dumps without one.
    ///
    /// # Errors
    /// Those of `open` and of writing, and when a recording's table is not as declared.
    pub fn write_code_images(
        &self,
        machine: u16,
        open: impl Fn(i32) -> io::Result<Option<File>>,
    ) -> Result<CodeImages, Error> {
        let tables = ImageTables {
            functions: self.collect("functions", &TableRequest::default()),
            code_objects: self.stream("code_objects", true),
            line_rows: self.stream("line_rows", false),
            inline_calls: self.stream("inline_calls", false),
        };
        let mut pids = FxHashMap::default();
        let written = tables::write(tables, |process_id| {
            if !pids.contains_key(&process_id) {
                // Processes get their keys while their code is decoded.
                pids.extend(self.pids());
            }
            let Some(&pid) = pids.get(&process_id) else { return Ok(None) };
            Ok(open(pid)?.map(|file| (file, self.image_spec(pid, machine))))
        })?;
        let images = written.images.into_iter().filter_map(|(id, summary)| Some((*pids.get(&id)?, summary)));
        let mut images: Vec<_> = images.collect();
        images.sort_unstable_by_key(|(pid, _)| *pid);
        Ok(CodeImages { images, code: written.code })
    }

    /// Describes the image of a process by the dumps of its pid, else by any dump.
    fn image_spec(&self, pid: i32, machine: u16) -> ImageSpec {
        let dumps = || {
            self.placed.iter().filter_map(|placed| {
                let index = placed.recording.as_any().downcast_ref::<JitDump>()?.index();
                Some((placed.placement.pid.unwrap_or(index.header.pid as i32), index))
            })
        };
        let mut of_pid_first = dumps().filter(|(of, _)| *of == pid).chain(dumps());
        let index = of_pid_first.clone().next().map(|(_, index)| index);
        let stated = of_pid_first
            .find_map(|(_, index)| u16::try_from(index.header.elf_mach).ok().filter(|&stated| stated != 0));
        let machine = stated.unwrap_or(machine);
        ImageSpec {
            machine,
            big_endian: index.is_some_and(|index| index.endian == Endian::Big),
            is_64: machine_pointer_bytes(machine.into()) != Some(4),
            title: index.map_or_else(
                || format!("JIT code (pid {pid})"),
                |index| format!("JIT code of {} (pid {pid})", index.producer),
            ),
            comp_dir: String::new(),
        }
    }

    /// Copies the profile's perf.data with mappings of images added, which are at `paths` by pid. `None` where the profile has
    /// no perf.data.
    ///
    /// # Errors
    /// [`InjectImagesError`]
    pub fn inject_code_images(
        &self,
        images: &CodeImages,
        paths: &HashMap<i32, String>,
        out: &mut (impl Write + Seek),
    ) -> Result<Option<Injection>, InjectImagesError> {
        let perf = self.recordings().find_map(|recording| recording.as_any().downcast_ref::<PerfData>());
        let Some(perf) = perf else { return Ok(None) };
        let mmaps = self.image_mmaps(images, paths).map_err(InjectImagesError::Column)?;
        inject(perf, &mmaps, &[], out).map(Some).map_err(InjectImagesError::Inject)
    }

    fn image_mmaps(
        &self,
        images: &CodeImages,
        paths: &HashMap<i32, String>,
    ) -> Result<Vec<InjectedMmap>, ColumnError> {
        let everything = TableRequest::default();
        let code_objects = self.collect("code_objects", &everything);
        let codes = code_map::of_tables(&code_objects, &self.collect("code_moves", &everything))?;
        let pids: FxHashMap<_, _> = self.pids().into_iter().collect();
        let build_ids: FxHashMap<_, _> = images.images.iter().map(|(pid, s)| (*pid, s.build_id)).collect();
        let mmap = |mapping: CodeMapping| {
            let pid = *pids.get(&mapping.process_id)?;
            let (path, build_id) = match mapping.file_offset {
                Some(_) => (paths.get(&pid)?.clone(), Some(build_ids.get(&pid)?.to_vec())),
                None => (ANONYMOUS.to_owned(), None),
            };
            Some(InjectedMmap {
                pid,
                // The thread that made the code does not always have the recorder's id (Erlang writes pthread_t), and perf would
                // assign the mapping to whichever process has a thread of that id.
                tid: pid,
                // perf would put a record without a time before the start of the process.
                ts_ns: u64::try_from(mapping.ts_ns).unwrap_or(0).max(1),
                start_address: mapping.start_address,
                size: mapping.size,
                file_offset: mapping.file_offset.unwrap_or(0),
                path,
                build_id,
            })
        };
        Ok(code_mappings(&codes, &images.code).into_iter().filter_map(mmap).collect())
    }
}
