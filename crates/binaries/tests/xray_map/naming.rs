//! The functions of a log, named by the maps of its objects.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::types::UInt32Type;
use perfuse_binaries::xray_map::{
    MapFile, MapFinding, NamedFunctions, NativeIds, ObjectMaps, name_functions,
};
use perfuse_tables::access::{nullable, numbers, text};
use perfuse_tables::functions;

use crate::corpus::corpus;
use crate::tools::symbolizer;

/// Rows as a decoder makes them, with these native ids.
fn rows(native_ids: &[u64]) -> RecordBatch {
    let mut table = functions::Builder::new();
    for (&native_id, row) in native_ids.iter().zip(10..) {
        let name = format!("function {native_id}");
        table.push(row, Some(native_id), &name, &name, None, None, None, None);
    }
    table.finish()
}

fn maps(objects: &[(u32, PathBuf)]) -> ObjectMaps {
    let mut maps = ObjectMaps::new();
    for (object, path) in objects {
        let file = MapFile::open(path, None).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        maps.insert(*object, file).expect("a number");
    }
    maps
}

/// A program and its 18 libraries: object N is library N.
fn program_and_libraries(corpus: &Path) -> Vec<(u32, PathBuf)> {
    let library = |number| (number, corpus.join(format!("dso/libl{number}.so")));
    std::iter::once((0, corpus.join("dso/dso22"))).chain((1..=18).map(library)).collect()
}

fn named(native_ids: &[u64], ids: NativeIds, maps: &ObjectMaps) -> NamedFunctions {
    let named = name_functions(&rows(native_ids), ids, maps, 5, &symbolizer(true)).expect("table functions");
    assert_eq!(named.functions.num_rows(), native_ids.len());
    named
}

fn names(named: &NamedFunctions) -> Vec<&str> {
    let names = text(&named.functions, "name").expect("names");
    (0..named.functions.num_rows()).map(|row| names.get(row).expect("a name")).collect()
}

fn module_ids(named: &NamedFunctions) -> Vec<Option<u32>> {
    let ids = numbers::<UInt32Type>(&named.functions, "module_id").expect("modules");
    (0..ids.len()).map(|row| nullable(ids, row)).collect()
}

/// Codes of findings, and what they are about.
fn findings(named: &NamedFunctions) -> Vec<(&str, &str)> {
    fn code_and_file((path, finding): &(String, MapFinding)) -> (&str, &str) {
        (finding.code, path.rsplit('/').next().unwrap_or_default())
    }
    named.findings.iter().map(code_and_file).collect()
}

/// The native id of a function of an object.
fn id(object: u64, function: u64) -> u64 {
    (object << 24) | function
}

#[test]
fn objects_have_their_own_functions() {
    let Some(corpus) = corpus() else { return };
    let maps = maps(&program_and_libraries(&corpus));
    let named = named(&[1, id(1, 1), id(1, 2), id(17, 2), id(18, 1)], NativeIds::Bits32, &maps);
    assert_eq!(names(&named), ["mainfn(long)", "lib1_inner", "lib1_f", "lib17_f", "lib18_inner"]);
    assert_eq!(module_ids(&named), [Some(5), Some(6), Some(6), Some(7), Some(8)]);
    assert_eq!(named.findings, []);
    let paths = text(&named.modules, "name").expect("paths");
    assert!(paths.get(3).is_some_and(|path| path.ends_with("dso/libl18.so")), "{:?}", named.modules);
    let raw = text(&named.functions, "linkage_name").expect("names");
    assert_eq!((raw.get(0), raw.get(1)), (Some("_Z6mainfnl"), Some("lib1_inner")));
}

#[test]
fn objects_that_fdr_logs_cannot_distinguish_have_both_names() {
    let Some(corpus) = corpus() else { return };
    let all = maps(&program_and_libraries(&corpus));
    let named = named(&[1, 2, id(1, 2), id(3, 2)], NativeIds::Bits28, &all);
    // The program has one function, so that its second id is of object 16.
    assert_eq!(names(&named), ["mainfn(long) | lib16_inner", "lib16_f", "lib1_f | lib17_f", "lib3_f"]);
    assert_eq!(module_ids(&named)[0], None);
    assert_eq!(findings(&named), [("XM012", "dso22"), ("XM012", "libl1.so")]);
    let message = &named.findings[0].1.message;
    assert!(message.starts_with("1 function may be of any of objects 0 and 16"), "{message}");
}

#[test]
fn only_an_object_above_15_is_reported() {
    let Some(corpus) = corpus() else { return };
    let only = maps(&[(0, corpus.join("dso/dso22")), (17, corpus.join("dso/libl17.so"))]);
    let named = named(&[1, id(1, 1), id(1, 2)], NativeIds::Bits28, &only);
    assert_eq!(names(&named), ["mainfn(long)", "lib17_inner", "lib17_f"]);
    assert_eq!(findings(&named), [("XM012", "libl17.so")]);
    assert!(
        named.findings[0].1.message.contains("object 17 has the ids of object 1"),
        "{:?}",
        named.findings
    );
}

#[test]
fn ids_of_basic_logs_may_be_negative() {
    let Some(corpus) = corpus() else { return };
    let high = maps(&[(0, corpus.join("dso/dso22")), (200, corpus.join("dso/libl1.so"))]);
    let unsigned = id(200, 2);
    let signed = i64::from(unsigned as u32 as i32) as u64;
    assert!((signed as i64) < 0);
    let named = named(&[unsigned, signed, 1], NativeIds::Bits32, &high);
    assert_eq!(names(&named), ["lib1_f", "lib1_f", "mainfn(long)"]);
    let mut more = ObjectMaps::new();
    let refused = more.insert(256, MapFile::open(&corpus.join("dso/dso22"), None).expect("a map"));
    assert_eq!(
        refused.expect_err("no such object").to_string(),
        "object 256 is not possible: XRay numbers objects from 0 to 255"
    );
}

#[test]
fn what_has_no_map_keeps_its_name() {
    let Some(corpus) = corpus() else { return };
    let program = maps(&[(0, corpus.join("dso/dso22"))]);
    let named = named(&[1, 9, id(1, 2), 1 << 40], NativeIds::Bits28, &program);
    assert_eq!(names(&named), ["mainfn(long)", "function 9", "function 16777218", "function 1099511627776"]);
    assert_eq!(module_ids(&named), [Some(5), None, None, None]);
    assert_eq!(findings(&named), [("XM013", ""), ("XM014", "dso22")]);
    let messages: Vec<&str> = named.findings.iter().map(|(_, finding)| finding.message.as_str()).collect();
    assert_eq!(messages[0], "no map was given for object 1, which has 1 function in the log");
    let beyond = "the map ends at id 1, and the log has 1 function beyond, up to id 9:";
    assert!(messages[1].starts_with(beyond), "{messages:?}");

    let library = maps(&[(1, corpus.join("dso/libl1.so"))]);
    let named = self::named(&[1, id(1, 2)], NativeIds::Bits28, &library);
    assert_eq!(names(&named), ["function 1", "lib1_f"]);
    assert_eq!(findings(&named), [("XM013", "")]);
    assert_eq!(names(&self::named(&[], NativeIds::Bits28, &ObjectMaps::new())), [""; 0]);
}

#[test]
fn lines_come_with_names() {
    let Some(corpus) = corpus() else { return };
    let program = maps(&[(0, corpus.join("bin/sqmt22-g1"))]);
    let named = named(&[1], NativeIds::Bits28, &program);
    assert_eq!(names(&named), ["query"]);
    let paths = text(&named.functions, "path").expect("paths");
    assert!(paths.get(0).is_some_and(|path| path.ends_with("sqmt.cc")), "{:?}", paths.get(0));
    let lines = numbers::<UInt32Type>(&named.functions, "line").expect("lines");
    // Without declarations the line is that of the first instruction, in the function itself.
    assert_eq!(nullable(lines, 0), Some(12));
}
