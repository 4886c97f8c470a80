//! Bytes opened as a recording.

use std::sync::Arc;

use perfuse_formats::{Format, Recording, Source};

/// Opens bytes as a format; `None` where they are refused or packed.
///
/// # Panics
/// When the error's offset is outside the bytes.
pub(crate) fn open(format: &'static Format, bytes: &[u8]) -> Option<Arc<dyn Recording>> {
    // Unpacking is the business of `Source`, and a bomb would only measure the decompressor.
    if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return None;
    }
    let source = Source::from_bytes("fuzz", bytes.to_vec()).ok()?;
    match (format.open)(Arc::new(source)) {
        Ok(recording) => Some(recording),
        Err(error) => {
            let len = bytes.len() as u64;
            assert!(error.offset <= len, "error at {} of {len} bytes", error.offset);
            None
        }
    }
}
