//! Arrow over the C stream interface: out as a capsule that any Arrow library takes, in from any object that offers one.

use std::error::Error;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use perfuse_profile::CachedBatches;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::call::{StoppableStream, call};
use crate::errors::value_error;
use crate::streams::CatchPanics;

const STREAM: &CStr = c"arrow_array_stream";
const TAKEN: &str = "this Arrow stream was already taken";

/// Record batches on their way to an Arrow library; can be taken once.
#[pyclass(frozen, module = "perfuse._core")]
pub struct ArrowStream {
    reader: Mutex<Option<Box<dyn RecordBatchReader + Send>>>,
}

impl ArrowStream {
    /// Batches made on demand.
    pub fn new(schema: SchemaRef, batches: impl Iterator<Item = RecordBatch> + Send + 'static) -> Self {
        let reader = RecordBatchIterator::new(
            CatchPanics(StoppableStream::new(batches.map(Ok::<_, ArrowError>))),
            schema,
        );
        Self { reader: Mutex::new(Some(Box::new(reader))) }
    }

    /// Batches whose computation may fail.
    pub fn trying<E: Into<Box<dyn Error + Send + Sync>> + 'static>(
        schema: SchemaRef,
        batches: impl Iterator<Item = Result<RecordBatch, E>> + Send + 'static,
    ) -> Self {
        let batches = batches.map(|batch| batch.map_err(|error| ArrowError::ExternalError(error.into())));
        Self {
            reader: Mutex::new(Some(Box::new(RecordBatchIterator::new(
                CatchPanics(StoppableStream::new(batches)),
                schema,
            )))),
        }
    }

    fn take(&self) -> Option<Box<dyn RecordBatchReader + Send>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// One batch.
    pub fn of(batch: RecordBatch) -> Self {
        Self::new(batch.schema(), std::iter::once(batch))
    }
}

#[pymethods]
impl ArrowStream {
    /// The same stream with all batches computed, without the interpreter's lock.
    fn collected(&self, py: Python<'_>) -> PyResult<Self> {
        let reader = self.take().ok_or_else(|| PyValueError::new_err(TAKEN))?;
        let schema = reader.schema();
        Ok(Self::new(schema, collected(py, reader)?.into_iter()))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        match self.take() {
            Some(reader) => PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM),
            None => Err(PyValueError::new_err(TAKEN)),
        }
    }
}

/// A table that is built again for each scan, so that it may be larger than memory; a small one is cached by its first scan.
#[pyclass(frozen, module = "perfuse._core")]
pub struct ScannedTable {
    schema: SchemaRef,
    build: Py<PyAny>,
    cached: CachedBatches,
}

#[pymethods]
impl ScannedTable {
    /// `build` returns the stream of the table with this name.
    #[new]
    fn new(name: &str, build: Py<PyAny>) -> PyResult<Self> {
        let table = perfuse_tables::table(name).ok_or_else(|| PyValueError::new_err(name.to_owned()))?;
        Ok(Self { schema: table.schema(), build, cached: CachedBatches::default() })
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema).map_err(crate::errors::table_error)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = Arc::clone(&self.schema);
        let stream = match self.cached.get() {
            Some(batches) => ArrowStream::new(schema, batches.into_iter()),
            None => {
                let batches = reader(self.build.bind(py).call0()?.as_any())?;
                ArrowStream::trying(schema, self.cached.fill(batches))
            }
        };
        stream.__arrow_c_stream__(py, requested_schema)
    }
}

/// All batches of any Python object that offers the Arrow C stream interface.
pub fn batches(object: &Bound<'_, PyAny>) -> PyResult<Vec<RecordBatch>> {
    collected(object.py(), reader(object)?)
}

/// All batches of a stream, which may have to be computed.
fn collected(py: Python<'_>, batches: impl RecordBatchReader + Send) -> PyResult<Vec<RecordBatch>> {
    let all = call(py, || batches.collect::<Result<_, _>>())?;
    all.map_err(value_error)
}

/// The batches of such an object, one by one.
pub fn reader(object: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("not an Arrow stream"))?;
    let pointer = capsule.pointer_checked(Some(STREAM))?;
    // SAFETY: the name was checked, so this is an ArrowArrayStream; from_raw moves it out and leaves a released one.
    unsafe { RecordBatchStreamReader::from_raw(pointer.cast().as_ptr()) }.map_err(value_error)
}

/// Panics, or returns a stream that does: a test of what becomes of panics.
#[pyfunction]
#[pyo3(signature = (in_stream=false, in_worker=false))]
pub fn panic_for_test(py: Python<'_>, in_stream: bool, in_worker: bool) -> PyResult<ArrowStream> {
    if in_worker {
        call(py, || perfuse_workers::install(|| panic!("panic in a worker thread for a test")))?;
    }
    if in_stream {
        let batches = std::iter::from_fn(|| panic!("panic in a stream for a test"));
        return Ok(ArrowStream::new(Arc::new(Schema::empty()), batches));
    }
    panic!("panic for a test")
}
