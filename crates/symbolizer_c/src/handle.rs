//! Arguments: handles, texts, bytes and places for results.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::status::Failure;

/// Makes a value the caller's, through the place for its handle, which is NULL where it cannot be made.
///
/// # Safety
/// `out` is NULL, or a place that may be written.
pub unsafe fn give<T>(out: *mut *mut T, make: impl FnOnce() -> Result<T, Failure>) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    unsafe { put(out, std::ptr::null_mut()) }?;
    let value = make()?;
    // SAFETY: the caller's promise.
    unsafe { put(out, Box::into_raw(Box::new(value))) }
}

/// Writes a result.
///
/// # Safety
/// `out` is NULL, or a place that may be written.
pub unsafe fn put<T>(out: *mut T, value: T) -> Result<(), Failure> {
    if out.is_null() {
        return Err(Failure::Argument("the place for the result is NULL"));
    }
    // SAFETY: not NULL, so a place that may be written.
    unsafe { out.write(value) };
    Ok(())
}

/// The value of a handle.
///
/// # Safety
/// `handle` is NULL, or from [`give`] and not freed.
pub unsafe fn get<'a, T>(handle: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise; nothing writes to the value but through its own locks.
    unsafe { handle.as_ref() }.ok_or(Failure::Argument("the handle is NULL"))
}

/// The value of a handle that no other thread uses.
///
/// # Safety
/// `handle` is NULL, or from [`give`], not freed, and not used by another thread during the call.
pub unsafe fn get_mut<'a, T>(handle: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { handle.as_mut() }.ok_or(Failure::Argument("the handle is NULL"))
}

/// Frees the value of a handle; NULL is ignored.
///
/// # Safety
/// `handle` is NULL, or from [`give`] and not freed; it is not used afterwards.
pub unsafe fn free<T>(handle: *mut T) {
    crate::status::run(|| {
        if !handle.is_null() {
            // SAFETY: not NULL, so from `Box::into_raw` in `give`, and given back once.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}

/// The path that a C string is; an error where it is NULL.
///
/// # Safety
/// `path` is NULL, or a text that ends with a NUL and does not change during the call.
pub unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path, Failure> {
    if path.is_null() {
        return Err(Failure::Argument("the path is NULL"));
    }
    // SAFETY: not NULL, so a text that ends with a NUL.
    let text = unsafe { CStr::from_ptr(path) };
    Ok(Path::new(OsStr::from_bytes(text.to_bytes())))
}

/// Bytes.
///
/// # Safety
/// `bytes` is NULL, or `len` bytes are there that do not change during the call.
pub unsafe fn bytes<'a>(bytes: *const u8, len: usize) -> Result<&'a [u8], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if bytes.is_null() || isize::try_from(len).is_err() {
        return Err(Failure::Argument("the bytes are NULL, or more than memory has"));
    }
    // SAFETY: not NULL, so `len` bytes, and `len` fits an isize.
    Ok(unsafe { std::slice::from_raw_parts(bytes, len) })
}
