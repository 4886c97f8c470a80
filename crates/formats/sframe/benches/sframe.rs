//! Reads a section: `cargo bench -p perfuse-formats --bench sframe FILE`. Best of ten, on all processors.

use std::sync::Arc;
use std::time::{Duration, Instant};

use perfuse_recording::{Placement, Recording, Source, TableRequest};
use perfuse_sframe::readelf::{Dump, Style};
use perfuse_sframe::{self as sframe, SFrame};

fn main() {
    let Some(path) = std::env::args().skip(1).find(|argument| !argument.starts_with('-')) else {
        println!("give a file with an SFrame section");
        return;
    };
    let open = || SFrame::open(Arc::new(Source::open(&path).expect("a file"))).expect("a section");
    let (opening, _) = best(|| open().units().len());
    let (decoding, rows) = best(|| {
        let file = open();
        let placement = Placement::alone(&file);
        let stream = file.table("unwind_rows", &placement, &TableRequest::default()).expect("the table");
        stream.map(|batch| batch.num_rows()).sum()
    });
    println!("opened in {opening:?}, decoded in {decoding:?}: {rows} rows");

    let file = open();
    let unit = file.units().first().expect("a header");
    let style = Style::for_unit(unit).and_then(Style::named);
    let (dumping, bytes) = best(|| {
        let dump = Dump::of(&open(), style.expect("a readelf that shows it"), 0);
        dump.expect("a text").map(|block| block.len()).sum()
    });
    println!("text in {dumping:?}: {bytes} bytes");

    let view = file.view(unit);
    // A fixed scatter, so that runs compare.
    let pick = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let address = |number: u64| {
        let function = view.function((pick(number) >> 33) as u32 % unit.num_functions).expect("a function");
        function.start + pick(number) % u64::from(function.size.max(1))
    };
    let addresses: Vec<u64> = (0..1_000_000).map(address).collect();
    let (looking, _) = best(|| sframe::look_up(&file, &addresses).len());
    println!("a million lookups in {looking:?}");
}

fn best(run: impl Fn() -> usize) -> (Duration, usize) {
    let timed = || {
        let start = Instant::now();
        let size = run();
        (start.elapsed(), size)
    };
    (0..10).map(|_| timed()).min().expect("ten runs")
}
