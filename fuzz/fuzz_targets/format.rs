//! Fuzzes the format that `PERFUSE_FUZZ_FORMAT` names.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use perfuse_formats::Format;
use perfuse_formats::registry::FORMATS;
use perfuse_fuzz::exercise;

fn fuzzed_format() -> &'static Format {
    static FUZZED: OnceLock<&'static Format> = OnceLock::new();
    FUZZED.get_or_init(|| {
        let name = std::env::var("PERFUSE_FUZZ_FORMAT").expect("PERFUSE_FUZZ_FORMAT is the name of a format");
        FORMATS.iter().find(|format| format.name == name).expect("the registry has a format of that name")
    })
}

fuzz_target!(|bytes: &[u8]| exercise(fuzzed_format(), bytes));
