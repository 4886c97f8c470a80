//! Reads the instrumentation map of a large program and names its functions: `cargo bench -p perfuse-engine --bench sleds [FILE]`.
//!
//! 100,000 functions with three sleds each and C++ names, as ClickHouse has them; or the program given.

use std::path::PathBuf;
use std::time::Instant;

use object::write::{Object, StandardSegment, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope};
use perfuse_binaries::symbolize::{Options, Symbolizer};
use perfuse_binaries::xray_map::MapFile;

const NUM_FUNCTIONS: u64 = 100_000;
const FUNCTION_BYTES: u64 = 64;

fn main() {
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let path = given.map_or_else(made, PathBuf::from);
    let start = Instant::now();
    let file = MapFile::open(&path, None).expect("a map");
    let map = file.map();
    println!(
        "{} functions, {} sleds: {:.3} s",
        map.functions.len(),
        map.sleds.len(),
        start.elapsed().as_secs_f64()
    );
    let start = Instant::now();
    let names = file.names(&map.functions, &Symbolizer::new(Options::default()));
    let num_named = names.functions.iter().flatten().count();
    println!("{num_named} names: {:.3} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let rows = map.functions_batch(&names).expect("a table").num_rows()
        + map.sleds_batch().expect("a table").num_rows();
    println!("{rows} rows: {:.3} s", start.elapsed().as_secs_f64());
}

/// A program whose sections are where a linker would put them: absolute entries need no more than that.
fn made() -> PathBuf {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let text = object.section_id(object::write::StandardSection::Text);
    object.append_section_data(text, &vec![0x90; (NUM_FUNCTIONS * FUNCTION_BYTES) as usize], 16);
    let segment = object.segment_name(StandardSegment::Data).to_vec();
    let map = object.add_section(segment, b"xray_instr_map".to_vec(), SectionKind::ReadOnlyData);
    let mut entries = Vec::new();
    for function in 0..NUM_FUNCTIONS {
        let start = function * FUNCTION_BYTES;
        for (within, kind) in [(0, 0u8), (20, 1), (40, 1)] {
            entries.extend_from_slice(&(start + within).to_le_bytes());
            entries.extend_from_slice(&start.to_le_bytes());
            entries.extend_from_slice(&[kind, 1, 1]);
            entries.extend_from_slice(&[0; 13]);
        }
        object.add_symbol(Symbol {
            name: format!("_ZN2db9Functions{:06}7executeERKSt6vectorINS_6ColumnESaIS2_EEm", function)
                .into_bytes(),
            value: start,
            size: FUNCTION_BYTES,
            kind: SymbolKind::Text,
            scope: SymbolScope::Linkage,
            weak: false,
            section: SymbolSection::Section(text),
            flags: SymbolFlags::None,
        });
    }
    object.append_section_data(map, &entries, 1);
    let mut bytes = object.write().expect("an object");
    // The type of a linked file, which has its addresses without relocations; all sections of this one start at 0.
    bytes[16..18].copy_from_slice(&2u16.to_le_bytes());
    let path = std::env::temp_dir().join("perfuse-bench-sleds.elf");
    std::fs::write(&path, bytes).expect("a writable file");
    path
}
