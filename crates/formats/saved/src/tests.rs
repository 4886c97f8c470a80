use super::*;

#[test]
fn other_files_are_not_recognized() {
    assert!(!container::begins(
        b"PK\x03\x04 something else, longer than a header with the name of its member"
    ));
    let empty = Arc::new(Source::from_bytes("x.perfuse", Vec::new()).unwrap());
    assert!(SavedProfile::open(empty).is_err());
}
