//! Results of calls, and the message of the last error.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use perfuse_symbolizer::Error;

/// Result of a call.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum perfuse_status {
    /// Done.
    PERFUSE_OK = 0,
    /// There is nothing at that address, or no code at that time.
    PERFUSE_NOT_FOUND = 1,
    /// An argument is NULL or not valid.
    PERFUSE_ERROR_ARGUMENT = 2,
    /// The operating system refused: perfuse_error_message() has its reason.
    PERFUSE_ERROR_IO = 3,
    /// The bytes are not of the format: perfuse_error_message() states what is wrong at which offset.
    PERFUSE_ERROR_FORMAT = 4,
    /// The file became shorter or was written anew while it was used: open it again.
    PERFUSE_ERROR_CUT = 5,
    /// A defect of this library. The handle of the call can still be freed.
    PERFUSE_ERROR_INTERNAL = 6,
}

use perfuse_status::{
    PERFUSE_ERROR_ARGUMENT, PERFUSE_ERROR_CUT, PERFUSE_ERROR_FORMAT, PERFUSE_ERROR_INTERNAL,
    PERFUSE_ERROR_IO, PERFUSE_NOT_FOUND, PERFUSE_OK,
};

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Why a call failed.
pub enum Failure {
    /// An argument cannot be used: which, and why.
    Argument(&'static str),
    /// There is nothing.
    NotFound,
    /// The library's error.
    Of(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Of(error)
    }
}

/// Runs the work of a call: errors and panics become a status.
pub fn run(work: impl FnOnce() -> Result<(), Failure>) -> perfuse_status {
    let (status, message) = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return PERFUSE_OK,
        Ok(Err(Failure::NotFound)) => return PERFUSE_NOT_FOUND,
        Ok(Err(Failure::Argument(message))) => (PERFUSE_ERROR_ARGUMENT, message.to_owned()),
        Ok(Err(Failure::Of(error))) => {
            let status = match error {
                Error::Io(_) => PERFUSE_ERROR_IO,
                Error::Format(_) => PERFUSE_ERROR_FORMAT,
                Error::Cut => PERFUSE_ERROR_CUT,
                Error::IsFile => PERFUSE_ERROR_ARGUMENT,
                _ => PERFUSE_ERROR_INTERNAL,
            };
            (status, error.to_string())
        }
        Err(panic) => {
            // A payload may panic when it is dropped, too.
            std::mem::forget(panic);
            (PERFUSE_ERROR_INTERNAL, "a defect of perfuse-symbolizer".to_owned())
        }
    };
    let _ = MESSAGE.try_with(|last| *last.borrow_mut() = text(&message));
    status
}

/// A text as C has it: a NUL inside would end it.
pub fn text(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| CString::new(text.replace('\0', " ")).unwrap_or_default())
}

/// The message of the last error of this thread; empty without one. It is valid until the next call in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn perfuse_error_message() -> *const c_char {
    MESSAGE.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Name of a status: "PERFUSE_OK".
#[unsafe(no_mangle)]
pub extern "C" fn perfuse_status_name(status: i32) -> *const c_char {
    let names = [
        c"PERFUSE_OK",
        c"PERFUSE_NOT_FOUND",
        c"PERFUSE_ERROR_ARGUMENT",
        c"PERFUSE_ERROR_IO",
        c"PERFUSE_ERROR_FORMAT",
        c"PERFUSE_ERROR_CUT",
        c"PERFUSE_ERROR_INTERNAL",
    ];
    let name = usize::try_from(status).ok().and_then(|status| names.get(status));
    name.unwrap_or(&c"unknown").as_ptr()
}

/// Version of the library: "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn perfuse_symbolizer_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_panic_is_a_status() {
        assert_eq!(run(|| panic!("of this test")), PERFUSE_ERROR_INTERNAL);
        assert_eq!(run(|| Err(Failure::Argument("dump is NULL"))), PERFUSE_ERROR_ARGUMENT);
        // SAFETY: a text that ends with a NUL, valid until the next call.
        assert_eq!(unsafe { CStr::from_ptr(perfuse_error_message()) }, c"dump is NULL");
        assert_eq!(run(|| Ok(())), PERFUSE_OK);
    }

    #[test]
    fn texts_end_at_their_end() {
        assert_eq!(text("a\0b").as_c_str(), c"a b");
        for (status, name) in [(1, c"PERFUSE_NOT_FOUND"), (6, c"PERFUSE_ERROR_INTERNAL"), (-1, c"unknown")] {
            // SAFETY: static texts that end with a NUL.
            assert_eq!(unsafe { CStr::from_ptr(perfuse_status_name(status)) }, name);
        }
    }
}
