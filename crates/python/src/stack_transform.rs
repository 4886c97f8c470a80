//! Transformations of stacks: filters of the command line and of `perfuse.Profile`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use perfuse_engine::stacks::{StackStep, StackTransform};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::arrow::{ArrowStream, reader};
use crate::choice::choice;
use crate::errors::value_error;
use crate::stacks::stack_tables;

/// Stacks of a profile, on which steps are applied one after the other.
#[pyclass(frozen, name = "StackTransform", module = "perfuse._core")]
pub struct PyStackTransform(Mutex<StackTransform>);

impl PyStackTransform {
    fn get(&self) -> MutexGuard<'_, StackTransform> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyStackTransform {
    /// `tables` are the common tables by name; only stacks with samples in them count.
    #[new]
    fn new(py: Python<'_>, tables: &Bound<'_, PyAny>) -> PyResult<Self> {
        let tables = stack_tables(tables)?;
        let transform = py.detach(|| StackTransform::new(tables)).map_err(value_error)?;
        Ok(Self(Mutex::new(transform)))
    }

    /// A copy, on which other steps can be applied.
    fn copy(&self, py: Python<'_>) -> Self {
        Self(Mutex::new(py.detach(|| self.get().clone())))
    }

    /// One row a symbol, by which steps select frames; those that steps added are last.
    fn symbols(&self, py: Python<'_>) -> ArrowStream {
        ArrowStream::of(py.detach(|| self.get().symbols().batch()))
    }

    /// Applies a step to frames of marked symbols. Returns the number of stacks with samples that contain one.
    fn apply(&self, py: Python<'_>, step: &str, symbols: Vec<bool>) -> PyResult<u64> {
        let step = choice("step", step, &StackStep::ALL)?;
        Ok(py.detach(|| self.get().apply(step, &symbols)))
    }

    /// Keeps or drops the samples whose stack begins with the functions of a stack. Returns the number of such stacks.
    fn apply_to_stack(&self, py: Python<'_>, keep: bool, stack_id: u32) -> u64 {
        py.detach(|| self.get().apply_to_stack(keep, stack_id))
    }

    /// Cuts stacks back where a function is entered that is on them already. Returns the number of such stacks.
    fn collapse_recursion(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.get().collapse_recursion())
    }

    /// Makes one frame of consecutive frames of a group: `groups` by symbol, `names` by group. Returns the number of stacks
    /// with such a frame.
    fn collapse(&self, py: Python<'_>, groups: Vec<Option<u32>>, names: Vec<String>) -> u64 {
        let groups: Vec<u32> = groups.into_iter().map(|group| group.unwrap_or(u32::MAX)).collect();
        py.detach(|| self.get().collapse(&groups, &names))
    }

    /// Table `stacks`, `frames` or `functions`. With `appended`, new stacks follow those of the original.
    #[pyo3(signature = (name, appended=false))]
    fn table(&self, py: Python<'_>, name: &str, appended: bool) -> PyResult<ArrowStream> {
        let Some(spec) = perfuse_tables::table(name) else {
            return Err(PyKeyError::new_err(name.to_owned()));
        };
        let batches = py.detach(|| {
            let transform = self.get();
            match name {
                "stacks" => transform.stacks(appended),
                "frames" => transform.frames(appended),
                _ => transform.functions(),
            }
        });
        Ok(ArrowStream::new(spec.schema(), batches.map_err(value_error)?.into_iter()))
    }

    /// The samples of a table that are left, with their new stacks, in batches that are made on demand.
    #[pyo3(signature = (samples, appended=false))]
    fn samples(&self, py: Python<'_>, samples: &Bound<'_, PyAny>, appended: bool) -> PyResult<ArrowStream> {
        let samples = reader(samples)?;
        let schema = arrow_array::RecordBatchReader::schema(&samples);
        let transform = self.get().clone();
        let ids = py.detach(|| transform.ids(appended)).map_err(value_error)?;
        let batches = samples.map(move |batch| {
            let batch: RecordBatch = batch.map_err(|error| error.to_string())?;
            transform.samples(&batch, &ids).map_err(|error| error.to_string())
        });
        Ok(ArrowStream::trying(schema, batches))
    }
}
