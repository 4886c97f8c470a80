//! The header in `include` is what cbindgen makes of this crate; with `PERFUSE_BLESS=1` it is written.

use std::fs;
use std::path::Path;

#[test]
fn the_header_is_made_of_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("include/perfuse_symbolizer.h");
    let mut made = Vec::new();
    cbindgen::generate(root).unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    if std::env::var_os("PERFUSE_BLESS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(fs::read_to_string(&path).is_ok_and(|kept| kept == made), "make header writes it anew");
}
