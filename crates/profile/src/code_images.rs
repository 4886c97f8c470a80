//! JIT code as ELF files, one a process, and a perf.data that maps them.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::{BorrowedFd, RawFd};

use arrow_array::types::UInt32Type;
use perfuse_binaries::elf_image::tables::{self, ImageTables, PlacedCode};
use perfuse_binaries::elf_image::{Error, ImageSpec, ImageSummary};
use perfuse_engine::code_map::CodeMap;
use perfuse_engine::code_mappings::{CodeMapping, code_mappings};
use perfuse_formats::jitdump::JitDump;
use perfuse_formats::perf_data::{InjectError, InjectedMmap, Injection, PerfData, inject};
use perfuse_formats::{TableRequest, machine_pointer_bytes};
use perfuse_tables::access::{ColumnError, numbers};
use perfuse_wire::Endian;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::errors::{export_error, table_error};
use crate::fusion::Fusion;

/// Written ELF files, and where in them each piece of code is.
#[pyclass(frozen, module = "perfuse._core")]
pub struct Images {
    /// By pid.
    images: Vec<(i32, ImageSummary)>,
    code: Vec<PlacedCode>,
}

/// `(pid, build id in hexadecimal, size in bytes, functions, line rows, inlined calls)`.
type ImageFacts = (i32, String, u64, u64, u64, u64);

#[pymethods]
impl Images {
    /// What is in each file, by pid.
    fn facts(&self) -> Vec<ImageFacts> {
        let facts = |(pid, s): &(i32, ImageSummary)| {
            (*pid, hex(&s.build_id), s.size_bytes, s.num_functions, s.num_line_rows, s.num_inlined_calls)
        };
        self.images.iter().map(facts).collect()
    }
}

/// Processes that have JIT code, by pid.
#[pyfunction]
fn code_pids(py: Python<'_>, fusion: &Fusion) -> PyResult<Vec<i32>> {
    py.detach(|| fusion.code_pids()).map_err(table_error)
}

/// Writes the code of each process in `files` to a new file, given as its descriptor. `machine` is the ELF `e_machine`
/// where a dump has none.
#[pyfunction]
fn write_images(
    py: Python<'_>,
    fusion: &Fusion,
    files: HashMap<i32, RawFd>,
    machine: u16,
) -> PyResult<Images> {
    let written = py.detach(|| fusion.write_images(&files, machine));
    written.map_err(|error| match error {
        Error::Io(error) => error.into(),
        Error::TooLarge(_) => export_error(py, error),
        Error::Column(_) | Error::Unsorted(_) | Error::UnknownFunction(_) => table_error(error),
    })
}

/// Writes the fusion's perf.data again to a new file, with mappings of the images, which are at `paths`. Gives the numbers of
/// records copied, mappings added and mappings left out; `None` where there is no perf.data.
#[pyfunction]
fn inject_images(
    py: Python<'_>,
    fusion: &Fusion,
    images: &Images,
    paths: HashMap<i32, String>,
    out: RawFd,
) -> PyResult<Option<(u64, u64, u64)>> {
    let mut recordings = fusion.placed.iter().map(|placed| placed.recording());
    let Some(perf) = recordings.find_map(|recording| recording.as_any().downcast_ref::<PerfData>()) else {
        return Ok(None);
    };
    let mmaps = py.detach(|| fusion.mmaps(images, &paths)).map_err(table_error)?;
    let injected = py.detach(|| {
        let mut out = BufWriter::with_capacity(1 << 20, duplicate(out)?);
        inject(perf, &mmaps, &[], &mut out)
    });
    match injected {
        Ok(Injection { num_copied, num_added, num_dropped }) => {
            Ok(Some((num_copied, num_added, num_dropped)))
        }
        Err(InjectError::Io(error)) => Err(error.into()),
        Err(error) => Err(export_error(py, error)),
    }
}

impl Fusion {
    fn code_pids(&self) -> Result<Vec<i32>, ColumnError> {
        let mut process_ids = BTreeSet::<u32>::new();
        for batch in self.stream("code_objects", false) {
            process_ids.extend(numbers::<UInt32Type>(&batch, "process_id")?.values());
        }
        let known = self.pids().into_iter();
        let mut pids: Vec<_> = known.filter(|(id, _)| process_ids.contains(id)).map(|(_, pid)| pid).collect();
        pids.sort_unstable();
        Ok(pids)
    }

    fn write_images(&self, files: &HashMap<i32, RawFd>, machine: u16) -> Result<Images, Error> {
        let tables = ImageTables {
            functions: self.collect("functions", &TableRequest::default()),
            code_objects: self.stream("code_objects", true),
            line_rows: self.stream("line_rows", false),
            inline_calls: self.stream("inline_calls", false),
        };
        let mut pids = FxHashMap::default();
        let written = tables::write(tables, |process_id| {
            if !pids.contains_key(&process_id) {
                // Processes become known as their code comes.
                pids.extend(self.pids());
            }
            let wanted = pids.get(&process_id).and_then(|&pid| Some((pid, *files.get(&pid)?)));
            let Some((pid, file)) = wanted else { return Ok(None) };
            Ok(Some((duplicate(file)?, self.image_spec(pid, machine))))
        })?;
        let images = written.images.into_iter().filter_map(|(id, summary)| Some((*pids.get(&id)?, summary)));
        let mut images: Vec<_> = images.collect();
        images.sort_unstable_by_key(|(pid, _)| *pid);
        Ok(Images { images, code: written.code })
    }

    /// What the dumps say of a process: those that have its pid first.
    fn image_spec(&self, pid: i32, machine: u16) -> ImageSpec {
        let dumps = || {
            self.placed.iter().filter_map(|placed| {
                let dump = placed.recording().as_any().downcast_ref::<JitDump>()?;
                let header = &dump.index().header;
                Some((placed.placement.pid.unwrap_or(header.pid as i32), header, dump.index()))
            })
        };
        let mut told = dumps().filter(|(of, ..)| *of == pid).chain(dumps());
        let index = told.clone().next().map(|(_, _, index)| index);
        let told_machine =
            told.find_map(|(_, header, _)| u16::try_from(header.elf_mach).ok().filter(|&m| m != 0));
        let machine = told_machine.unwrap_or(machine);
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

    fn mmaps(&self, images: &Images, paths: &HashMap<i32, String>) -> Result<Vec<InjectedMmap>, ColumnError> {
        let whole = TableRequest::default();
        let codes = CodeMap::new(&self.collect("code_objects", &whole), &self.collect("code_moves", &whole))?;
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
                // The thread that made the code is not always the recorder's (Erlang writes pthread_t); perf would give the
                // mapping to whichever process has a thread of that number.
                tid: pid,
                // Without a time perf would take the record before the process exists.
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

/// What the kernel calls memory of no file.
const ANONYMOUS: &str = "//anon";

/// The open file behind a descriptor that Python keeps.
pub fn duplicate(descriptor: RawFd) -> io::Result<File> {
    if descriptor < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the caller holds the file open for the length of the call, and what is kept is a copy.
    let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
    Ok(file.try_clone_to_owned()?.into())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Images>()?;
    module.add_function(wrap_pyfunction!(code_pids, module)?)?;
    module.add_function(wrap_pyfunction!(write_images, module)?)?;
    module.add_function(wrap_pyfunction!(inject_images, module)?)
}
