//! Answers: what is at an address, in memory that is used again for the next look-up.

use std::ffi::c_char;
use std::ptr;

use perfuse_symbolizer::{Code, CodeFrame, CodeKind};

use crate::handle;
use crate::status::{perfuse_status, run};

/// Memory for the answer of a look-up, which can be used for any number of look-ups, by one thread at a time.
#[allow(non_camel_case_types)]
#[derive(Default)]
pub struct perfuse_answer {
    /// Texts, each with a NUL.
    texts: Vec<u8>,
    frames: Vec<perfuse_frame>,
    code: Option<perfuse_code>,
}

/// A piece of code, from one JIT_CODE_LOAD. Texts are UTF-8 and end with a NUL.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct perfuse_code {
    /// Name of the function, without tier marks and position.
    pub name: *const c_char,
    /// Name as written.
    pub linkage_name: *const c_char,
    /// Tier of the compiler, as the runtime names it; NULL where unknown.
    pub tier: *const c_char,
    /// Address at which it was created.
    pub start_address: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Bytes from its start to the address that was looked up, wherever the code was moved to.
    pub code_offset: u64,
    /// Time stamp of its record.
    pub created: u64,
    /// Time stamp at which other code replaced it; UINT64_MAX where none did.
    pub replaced: u64,
    /// The writer's number for it.
    pub code_index: u64,
    /// Offset of its record in the dump.
    pub record_offset: u64,
    /// Its number in the dump, from 0.
    pub id: u32,
    /// Process id in its record.
    pub pid: u32,
    /// Thread that compiled it.
    pub tid: u32,
    /// 1 for a stub, thunk, builtin or handler; 0 for a compiled function.
    pub is_stub: u32,
}

/// A function at an address: the compiled one, or one that is inlined in it. Texts are UTF-8 and end with a NUL.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct perfuse_frame {
    /// Name of the function.
    pub function: *const c_char,
    /// Name as written.
    pub linkage_name: *const c_char,
    /// Source file of the position; NULL where unknown.
    pub path: *const c_char,
    /// Line, from 1; 0 where unknown.
    pub line: u32,
    /// Column, from 1; 0 where unknown.
    pub column: u32,
    /// 1 where it is inlined in the next frame, else 0.
    pub is_inlined: u32,
}

/// Stands for "no text" while the texts of an answer are collected.
const NO_TEXT: usize = usize::MAX;

impl perfuse_answer {
    /// Empties the answer.
    pub fn clear(&mut self) {
        self.texts.clear();
        self.frames.clear();
        self.code = None;
    }

    /// Replaces the answer.
    pub fn fill(&mut self, code: &Code<'_>, code_offset: u64, frames: &[CodeFrame<'_>]) {
        self.clear();
        let code_texts = [Some(code.name), Some(code.linkage_name), code.tier].map(|text| self.add(text));
        let [name_at, linkage_name_at, _] = code_texts;
        let frame_texts: Vec<[usize; 3]> = frames
            .iter()
            .map(|frame| {
                // The function of the code itself is in the answer already.
                let [function, linkage_name] = if ptr::eq(frame.linkage_name, code.linkage_name) {
                    [name_at, linkage_name_at]
                } else {
                    [frame.function, frame.linkage_name].map(|text| self.add(Some(text)))
                };
                [function, linkage_name, self.add(frame.path.as_deref())]
            })
            .collect();
        // From here on the texts do not move.
        let [name, linkage_name, tier] = code_texts.map(|at| self.text(at));
        self.code = Some(perfuse_code {
            name,
            linkage_name,
            tier,
            start_address: code.start_address,
            size_bytes: code.size_bytes,
            code_offset,
            created: code.created,
            replaced: code.replaced.unwrap_or(u64::MAX),
            code_index: code.code_index,
            record_offset: code.record_offset,
            id: code.id,
            pid: code.pid,
            tid: code.tid,
            is_stub: u32::from(code.kind == CodeKind::Stub),
        });
        for (frame, texts) in frames.iter().zip(frame_texts) {
            let [function, linkage_name, path] = texts.map(|at| self.text(at));
            self.frames.push(perfuse_frame {
                function,
                linkage_name,
                path,
                line: frame.line.unwrap_or(0),
                column: frame.column.unwrap_or(0),
                is_inlined: u32::from(frame.is_inlined),
            });
        }
    }

    fn add(&mut self, text: Option<&str>) -> usize {
        let Some(text) = text else { return NO_TEXT };
        let at = self.texts.len();
        // Without an end at the first one, many bytes are compared at once.
        if text.bytes().fold(false, |found, byte| found | (byte == 0)) {
            // C would read it as the end.
            self.texts.extend(text.bytes().map(|byte| if byte == 0 { b' ' } else { byte }));
        } else {
            self.texts.extend_from_slice(text.as_bytes());
        }
        self.texts.push(0);
        at
    }

    fn text(&self, at: usize) -> *const c_char {
        self.texts.get(at..).map_or(ptr::null(), |text| text.as_ptr().cast())
    }
}

/// Makes memory for answers.
///
/// # Safety
/// `answer` is a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_answer_new(answer: *mut *mut perfuse_answer) -> perfuse_status {
    // SAFETY: as the documentation asks.
    run(|| unsafe { handle::give(answer, || Ok(perfuse_answer::default())) })
}

/// The code of the answer; NULL where nothing was found. It is valid until the next look-up with this answer.
///
/// # Safety
/// `answer` is NULL or from perfuse_answer_new(), and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_answer_code(answer: *const perfuse_answer) -> *const perfuse_code {
    let mut code = ptr::null();
    run(|| {
        // SAFETY: as the documentation asks.
        let answer = unsafe { handle::get(answer) }?;
        code = answer.code.as_ref().map_or(ptr::null(), ptr::from_ref);
        Ok(())
    });
    code
}

/// The frames of the answer, innermost first, and their number. They are valid until the next look-up with this answer.
///
/// # Safety
/// `answer` is NULL or from perfuse_answer_new(), and not freed; `num_frames` is a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_answer_frames(
    answer: *const perfuse_answer,
    num_frames: *mut usize,
) -> *const perfuse_frame {
    let mut frames = ptr::null();
    run(|| {
        // SAFETY: as the documentation asks.
        unsafe { handle::put(num_frames, 0) }?;
        // SAFETY: as the documentation asks.
        let answer = unsafe { handle::get(answer) }?;
        // SAFETY: as the documentation asks.
        unsafe { handle::put(num_frames, answer.frames.len()) }?;
        frames = answer.frames.as_ptr();
        Ok(())
    });
    frames
}

/// Frees the memory; NULL is ignored.
///
/// # Safety
/// `answer` is NULL or from perfuse_answer_new(), and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_answer_free(answer: *mut perfuse_answer) {
    // SAFETY: as the documentation asks.
    unsafe { handle::free(answer) };
}
