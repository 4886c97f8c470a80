//! A file with the results of passes over its records, each computed once.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use perfuse_recording::Source;
use perfuse_wire::ParseError;

use super::features::{BuildIds, build_id_table};
use super::reader::RecordFile;
use super::survey::RecordSurvey;
use super::tasks::Tasks;
use super::user_registers::UserRegisters;

/// A file with the results of passes over its records.
#[derive(Debug)]
pub struct PerfFile {
    records: RecordFile,
    survey: OnceLock<RecordSurvey>,
    tasks: OnceLock<Tasks>,
    user_registers: OnceLock<Vec<UserRegisters>>,
}

impl Deref for PerfFile {
    type Target = RecordFile;

    fn deref(&self) -> &RecordFile {
        &self.records
    }
}

impl PerfFile {
    /// Reads the header, the attributes and the table of features.
    ///
    /// # Errors
    /// When the bytes are not a perf.data file, or end inside its header.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        Ok(Self {
            records: RecordFile::open(source)?,
            survey: OnceLock::new(),
            tasks: OnceLock::new(),
            user_registers: OnceLock::new(),
        })
    }

    /// Counts and facts from one pass over all records.
    pub fn survey(&self) -> &RecordSurvey {
        self.survey.get_or_init(|| RecordSurvey::new(&self.records))
    }

    /// Processes, threads and mappings, in time order.
    pub fn tasks(&self) -> &Tasks {
        self.tasks.get_or_init(|| Tasks::new(&self.records, self.survey()))
    }

    /// The user registers in samples, by index of the event.
    pub fn user_registers(&self) -> &[UserRegisters] {
        self.user_registers.get_or_init(|| {
            let arch = self.features.arch(&self.source, self.endian).map(|(name, _)| name);
            self.attributes.list().iter().map(|attribute| UserRegisters::of(attribute, arch)).collect()
        })
    }

    /// Build ids of files, from the feature section and from records.
    pub fn build_ids(&self) -> BuildIds {
        let mut ids = BuildIds::default();
        let table = self.features.cursor(linux_perf_data::Feature::BUILD_ID, &self.source, self.endian);
        table.into_iter().flat_map(build_id_table).for_each(|entry| ids.insert(entry));
        self.survey().build_ids.iter().cloned().for_each(|entry| ids.insert(entry));
        ids
    }
}
