use std::collections::BTreeMap;
use std::fmt;

use super::map_file::MapFile;

/// Which file each object of a process was: the program is object 0, libraries follow in the order they were loaded.
#[derive(Debug, Default)]
pub struct ObjectMaps {
    files: BTreeMap<u8, MapFile>,
}

/// A log has no room for an object of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectNumberError(pub u32);

impl ObjectMaps {
    /// No objects.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that an object is this file. What was said of it before is forgotten.
    ///
    /// # Errors
    /// When the number is above 255.
    pub fn insert(&mut self, object: u32, file: MapFile) -> Result<(), ObjectNumberError> {
        self.files.insert(u8::try_from(object).map_err(|_| ObjectNumberError(object))?, file);
        Ok(())
    }

    /// The objects, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &MapFile)> {
        self.files.iter().map(|(&object, file)| (object, file))
    }

    pub(super) fn get(&self, object: u8) -> Option<&MapFile> {
        self.files.get(&object)
    }

    /// Whether there are no libraries, so that ids are those of the program alone.
    pub(super) fn is_program_alone(&self) -> bool {
        self.files.keys().all(|&object| object == 0)
    }
}

impl fmt::Display for ObjectNumberError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "object {} cannot be: XRay numbers objects from 0 to 255", self.0)
    }
}

impl std::error::Error for ObjectNumberError {}
