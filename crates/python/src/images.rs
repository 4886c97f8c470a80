//! JIT code as ELF files, one per process, and a perf.data that maps them.

use std::collections::HashMap;
use std::io::BufWriter;
use std::os::fd::RawFd;

use perfuse_binaries::elf_image::{Error, ImageSummary};
use perfuse_formats::perf_data::{InjectError, Injection};
use perfuse_profile::code_images::{CodeImages, InjectImagesError};
use pyo3::prelude::*;

use crate::errors::{export_error, os_error, table_error};
use crate::inputs::ReadInputs;
use crate::output::duplicate;
use crate::profile::PyProfile;

/// Written ELF files, and the position of each code object in them.
#[pyclass(frozen, module = "perfuse._core")]
pub struct Images(CodeImages);

/// `(pid, build id in hexadecimal, size in bytes, functions, line rows, inlined calls)`.
type ImageFacts = (i32, String, u64, u64, u64, u64);

#[pymethods]
impl Images {
    /// Contents of each file, by pid.
    fn facts(&self) -> Vec<ImageFacts> {
        let facts = |(pid, s): &(i32, ImageSummary)| {
            (*pid, hex(&s.build_id), s.size_bytes, s.num_functions, s.num_line_rows, s.num_inlined_calls)
        };
        self.0.images().iter().map(facts).collect()
    }
}

/// Pids of the processes that have JIT code.
#[pyfunction]
pub fn code_pids(py: Python<'_>, profile: &PyProfile) -> PyResult<Vec<i32>> {
    profile.inputs.read(py, || profile.inner.code_pids())?.map_err(table_error)
}

/// Writes the code of each process in `files` to a new file, given by its descriptor. `machine` is the ELF `e_machine` of
/// dumps that have none.
#[pyfunction]
pub fn write_images(
    py: Python<'_>,
    profile: &PyProfile,
    files: HashMap<i32, RawFd>,
    machine: u16,
) -> PyResult<Images> {
    let open = |pid| files.get(&pid).map(|&descriptor| duplicate(descriptor)).transpose();
    let written = profile.inputs.read(py, || profile.inner.write_code_images(machine, open))?;
    written.map(Images).map_err(|error| match error {
        Error::Io(error) => os_error(error),
        Error::TooLarge(_) => export_error(py, error),
        Error::Column(_) | Error::Unsorted(_) | Error::UnknownFunction(_) => table_error(error),
    })
}

/// Copies the profile's perf.data to a new file, with mappings of the images, which are at `paths`. Returns the numbers of
/// records copied, mappings added and mappings left out; `None` where there is no perf.data.
#[pyfunction]
pub fn inject_images(
    py: Python<'_>,
    profile: &PyProfile,
    images: &Images,
    paths: HashMap<i32, String>,
    out: RawFd,
) -> PyResult<Option<(u64, u64, u64)>> {
    let mut out = BufWriter::with_capacity(1 << 20, duplicate(out)?);
    let injected =
        profile.inputs.read(py, || profile.inner.inject_code_images(&images.0, &paths, &mut out))?;
    let counts = |Injection { num_copied, num_added, num_dropped }| (num_copied, num_added, num_dropped);
    injected.map(|injection| injection.map(counts)).map_err(|error| match error {
        InjectImagesError::Column(error) => table_error(error),
        InjectImagesError::Inject(InjectError::Io(error)) => os_error(error),
        InjectImagesError::Inject(error) => export_error(py, error),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
