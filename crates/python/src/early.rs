//! Files that a command line names, opened and read while Python still loads the verb.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use perfuse_formats::{Recording, registry};
use pyo3::prelude::*;

type Opening = JoinHandle<Option<Arc<dyn Recording>>>;

static EARLY: Mutex<Vec<(String, Opening)>> = Mutex::new(Vec::new());

/// Begins to read a file; `Recording.open` of the same path goes on from there, or says what is wrong with it.
#[pyfunction]
fn read_early(path: String) {
    let name = path.clone();
    let opening = std::thread::spawn(move || {
        let recording = registry::open(Arc::new(registry::read(&name).ok()?)).ok()?;
        read_ahead(&recording);
        Some(recording)
    });
    EARLY.lock().unwrap_or_else(PoisonError::into_inner).push((path, opening));
}

/// The file of that path, if it was begun early and can be read.
pub fn take(path: &str) -> Option<Arc<dyn Recording>> {
    let mut early = EARLY.lock().unwrap_or_else(PoisonError::into_inner);
    let at = early.iter().position(|(known, _)| known == path)?;
    let (_, opening) = early.swap_remove(at);
    drop(early);
    opening.join().ok()?
}

/// Starts the pass over the record headers in a thread of the core's own: it needs no GIL, so an interpreter that ends meanwhile
/// is not disturbed. Whoever needs the result waits for it.
pub fn read_ahead(recording: &Arc<dyn Recording>) {
    let recording = Arc::clone(recording);
    std::thread::spawn(move || drop(recording.summary()));
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_early, module)?)
}
