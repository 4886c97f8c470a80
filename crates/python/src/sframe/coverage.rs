//! How much of a program's code has rows, and why the rest has none.

use perfuse_binaries::eh_frame::{Coverage, CrossCheck, EhFrameEntry, UncoveredFunction};
use perfuse_formats::Recording as _;
use perfuse_formats::sframe::SFrame;
use perfuse_formats::sframe::consts::Abi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::cross_check::Beside;
use super::synthesis::why_not;
use crate::recording::PyRecording;

/// What the report tells of each section that has an `.eh_frame` beside it, in dictionaries: how much code is covered,
/// which functions are not, and how far rows agree with `.eh_frame`.
#[pyfunction]
pub fn sframe_coverage<'py>(py: Python<'py>, recording: &PyRecording) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let file = super::sframe(recording)?;
    let found = py.detach(|| {
        let all = Beside::of(file).into_iter();
        all.map(|beside| {
            let checked = beside.cross_check();
            let elf = file.source().get(file.sections()[beside.section].elf.clone()).unwrap_or_default();
            let coverage = Coverage::of(elf, &beside.eh_frame, &beside.table);
            (beside, checked, coverage)
        })
        .collect::<Vec<_>>()
    });
    let row = |(beside, checked, coverage): &(Beside, CrossCheck, Coverage)| {
        let version = version(file, beside.section);
        let row = PyDict::new(py);
        row.set_item("section", beside.section)?;
        row.set_item("eh_frame_bytes", beside.eh_frame.size_bytes)?;
        row.set_item("eh_frame_functions", beside.eh_frame.table.functions.len())?;
        row.set_item("num_functions", coverage.num_functions)?;
        row.set_item("compared_functions", checked.num_functions)?;
        row.set_item("compared_stretches", checked.num_stretches)?;
        row.set_item("compared_bytes", checked.num_bytes)?;
        row.set_item("unmatched_bytes", checked.num_bytes_alone)?;
        row.set_item("num_disagreements", checked.disagreements.len())?;
        row.set_item("is_complete", checked.is_complete)?;
        let code = PyList::empty(py);
        for section in &coverage.sections {
            code.append((
                &section.name,
                section.start,
                section.size,
                section.covered_bytes,
                section.eh_frame_bytes,
            ))?;
        }
        row.set_item("code", code)?;
        let without = PyList::empty(py);
        for function in &coverage.uncovered {
            let why = why(function, beside, version);
            without.append((function.start, function.size, function.name.as_deref(), why))?;
        }
        row.set_item("without", without)?;
        Ok(row)
    };
    found.iter().map(row).collect()
}

fn version(file: &SFrame, section: usize) -> (u8, Abi) {
    let unit = file.units().iter().find(|unit| unit.section == section);
    unit.map_or((3, Abi(0)), |unit| (unit.version(), unit.abi()))
}

fn why(function: &UncoveredFunction, beside: &Beside, (version, abi): (u8, Abi)) -> String {
    let table = &beside.eh_frame.table;
    match &function.eh_frame {
        EhFrameEntry::Missing => "not in .eh_frame either".to_owned(),
        EhFrameEntry::Unreadable(why) => format!("its .eh_frame cannot be read: {why}"),
        EhFrameEntry::Unrepresentable(why) => why.to_string(),
        EhFrameEntry::Rows(at) => match why_not(table, &table.functions[*at], version, abi) {
            Some(why) => why,
            None => match beside.eh_frame.code_at(function.start) {
                Some(code) if code.name.starts_with(".plt") => {
                    "left out by the linker, which writes PLTs".to_owned()
                }
                _ => "assembled without --gsframe".to_owned(),
            },
        },
    }
}
