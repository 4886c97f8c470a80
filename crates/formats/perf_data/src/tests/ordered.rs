//! Samples in time order, from the sample times of the survey and from another pass over the file.

use super::{open, testdata};
use crate::consts::RecordType;
use crate::order::TimeOrder;
use crate::perf_file::PerfFile;

fn ordered_records(file: &PerfFile, mut order: TimeOrder) -> Vec<(u64, u64)> {
    std::iter::from_fn(|| order.next(file)).map(|record| (record.time, record.location.number())).collect()
}

#[test]
fn sample_times_equal_another_pass() {
    let mut num_files = 0;
    for entry in std::fs::read_dir(testdata("")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "data") {
            continue;
        }
        let perf = open(&path);
        let file = &**perf.file();
        let from_survey = ordered_records(file, TimeOrder::samples(file));
        let from_pass =
            ordered_records(file, TimeOrder::new(file, |record, _| record.record_type == RecordType::SAMPLE));
        assert!(file.survey().samples.is_some() && from_survey.is_sorted_by_key(|(time, _)| *time));
        assert_eq!(from_survey, from_pass, "{}", path.display());
        num_files += usize::from(!from_survey.is_empty());
    }
    assert!(num_files > 2, "{num_files} files with samples");
}
