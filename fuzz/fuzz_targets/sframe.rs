#![no_main]

use libfuzzer_sys::fuzz_target;
use perfuse_formats::sframe::FORMAT;
use perfuse_fuzz::exercise;

fuzz_target!(|bytes: &[u8]| exercise(&FORMAT, bytes));
