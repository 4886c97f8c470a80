//! Samples in order of time, by what the survey noted and by another pass over the file.

use super::{open, testdata};
use crate::consts::RecordType;
use crate::order::TimeOrder;
use crate::perf_file::PerfFile;

fn places(file: &PerfFile, mut order: TimeOrder) -> Vec<(u64, u64)> {
    std::iter::from_fn(|| order.next(file)).map(|record| (record.time, record.location.number())).collect()
}

#[test]
fn what_was_noted_is_what_another_pass_finds() {
    let mut num_files = 0;
    for entry in std::fs::read_dir(testdata("")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "data") {
            continue;
        }
        let perf = open(&path);
        let file = &**perf.file();
        let noted = places(file, TimeOrder::samples(file));
        let passed = places(file, TimeOrder::new(file, |record, _| record.record_type == RecordType::SAMPLE));
        assert!(file.survey().samples.is_some() && noted.is_sorted_by_key(|(time, _)| *time));
        assert_eq!(noted, passed, "{}", path.display());
        num_files += usize::from(!noted.is_empty());
    }
    assert!(num_files > 2, "{num_files} files with samples");
}
