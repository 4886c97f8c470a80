use std::sync::Arc;

use super::PerfData;
use crate::{Placement, Recording, Source, TableRequest};

#[test]
fn look() {
    let path = std::env::var("PF").unwrap();
    let perf = PerfData::open(Arc::new(Source::open(&path).unwrap())).unwrap();
    println!("{:#?}", perf.summary());
    let mut sink = perfuse_wire::Diagnostics::default();
    perf.check(&mut sink);
    for d in sink.rows() {
        println!("{} {:?} {:#x} {}", d.rule.code, d.rule.severity, d.offset, d.message);
    }
    println!("{:?} {:?} {:?} {:?}", perf.jit_markers(), perf.namespaces(), perf.execs(), perf.extent());
    for t in ["processes", "threads", "mappings", "callchains"] {
        let n: usize =
            perf.table(t, &Placement::alone(), &TableRequest::default()).unwrap().map(|b| b.num_rows()).sum();
        println!("{t} {n}");
    }
}
