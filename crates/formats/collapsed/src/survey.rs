//! One pass over a file: distinct functions, frames, stacks and threads, and the sample of each line; and the tables of them.
//!
//! Chunks of lines are parsed side by side and then numbered in file order, so that the result does not depend on the chunks.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use perfuse_recording::{BatchStream, Placement, Source, one_batch};
use perfuse_tables::{BATCH_ROWS, Identities, Offsets, frames, functions, samples, stacks};
use perfuse_wire::{Diagnostic, Diagnostics};
use perfuse_workers::{in_call, install, num_threads};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::line::{
    FrameKind, Line, StackLine, ThreadRoot, frames_from, last_line_start, line_end, next, split_suffix,
};
use crate::{CUT_LINE, EMPTY_FRAME, FRACTION, NOT_UTF8, TWO_COUNTS};

/// Bytes that one thread parses at a time.
const CHUNK_BYTES: usize = 4 << 20;

/// Stands for "no stack".
const NONE: u32 = u32::MAX;

/// What one pass over a file finds.
#[derive(Debug, Default)]
pub struct Survey {
    /// Distinct texts of frames with their suffixes: offset and length of the first occurrence.
    texts: Vec<Range<usize>>,
    /// Distinct frames: number of the text and inline depth.
    frames: Vec<(u32, u32)>,
    /// Distinct stacks: number of the caller's stack, which precedes it, and of the frame; depth.
    stacks: Vec<StackNode>,
    threads: Vec<ThreadRoot>,
    samples: Vec<Sample>,
    num_comments: u64,
    diagnostics: Vec<Diagnostic>,
    /// Number of the function of each text.
    text_functions: Vec<u32>,
    /// Text of each function.
    function_texts: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct StackNode {
    caller: u32,
    frame: u32,
    depth: u32,
    inline_depth: u32,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    offset: u64,
    count: u64,
    stack: u32,
    thread: u32,
}

/// Distinct texts, frames, stacks and threads, found by their content.
#[derive(Debug, Default)]
struct Interner<'a> {
    texts: FxHashMap<&'a [u8], u32>,
    text_list: Vec<&'a [u8]>,
    frames: FxHashMap<(u32, u32), u32>,
    frame_list: Vec<(u32, u32)>,
    stacks: FxHashMap<(u32, u32), u32>,
    stack_list: Vec<StackNode>,
    threads: FxHashMap<ThreadRoot, u32>,
    thread_list: Vec<ThreadRoot>,
}

impl<'a> Interner<'a> {
    fn text(&mut self, text: &'a [u8]) -> u32 {
        let next = self.text_list.len() as u32;
        let id = *self.texts.entry(text).or_insert(next);
        if id == next {
            self.text_list.push(text);
        }
        id
    }

    /// The stack of a frame's text on top of a caller's stack.
    #[inline]
    fn stack(&mut self, caller: u32, text: u32) -> u32 {
        if let Some(&known) = self.stacks.get(&(caller, text)) {
            return known;
        }
        let above = self.stack_list.get(caller as usize).copied();
        let kind = self.text_list.get(text as usize).map_or(FrameKind::Unknown, |text| split_suffix(text).1);
        let inline_depth = match (kind, above) {
            (FrameKind::Inlined, Some(above)) => above.inline_depth.saturating_add(1),
            _ => 0,
        };
        let next_frame = self.frame_list.len() as u32;
        let frame = *self.frames.entry((text, inline_depth)).or_insert(next_frame);
        if frame == next_frame {
            self.frame_list.push((text, inline_depth));
        }
        let depth = above.map_or(0, |above| above.depth.saturating_add(1));
        let stack = self.stack_list.len() as u32;
        self.stack_list.push(StackNode { caller, frame, depth, inline_depth });
        self.stacks.insert((caller, text), stack);
        stack
    }

    fn thread(&mut self, root: ThreadRoot) -> u32 {
        let next = self.thread_list.len() as u32;
        if let Some(&known) = self.threads.get(&root) {
            return known;
        }
        self.threads.insert(root.clone(), next);
        self.thread_list.push(root);
        next
    }
}

/// The lines of a part of the file.
#[derive(Debug, Default)]
struct Chunk<'a> {
    interner: Interner<'a>,
    samples: Vec<Sample>,
    num_comments: u64,
    num_second_counts: u64,
    diagnostics: Diagnostics,
    previous: Previous<'a>,
}

/// The previous line's stack: lines that follow each other mostly share their outer frames.
#[derive(Debug, Default)]
struct Previous<'a> {
    frames: &'a [u8],
    /// End of its second frame, or of its only one; `None` before the first line.
    first_two: Option<usize>,
    /// Position of the first frame after those that name process and thread.
    start: usize,
    thread: u32,
    /// End of each frame's text, and the stack up to it.
    ends: Vec<(usize, u32)>,
}

impl<'a> Chunk<'a> {
    fn parse(text: &'a [u8], range: Range<usize>) -> Self {
        let mut chunk = Self::default();
        let part = text.get(..range.end).unwrap_or(text);
        let mut at = range.start as u64;
        while let Some((offset, line)) = next(part, at) {
            perfuse_stopping::checkpoint();
            at = offset.saturating_add(line.len() as u64).saturating_add(1);
            match Line::parse(line) {
                Line::Blank => {}
                Line::Comment(_) => chunk.num_comments = chunk.num_comments.saturating_add(1),
                Line::Stack(stack) => chunk.push(offset, &stack),
                Line::Malformed(rule) => chunk.diagnostics.push(rule, offset, None, "count", || {
                    format!("{:?} does not end in a count", excerpt(line)).into()
                }),
            }
        }
        chunk
    }

    fn push(&mut self, offset: u64, line: &StackLine<'a>) {
        if line.is_rounded {
            self.diagnostics.push(&FRACTION, offset, None, "count", || "the count was rounded".into());
        }
        self.num_second_counts = self.num_second_counts.saturating_add(line.has_second_count().into());
        let (stack, thread) = self.stack(offset, line.frames);
        self.samples.push(Sample { offset, count: line.count, stack, thread });
    }

    /// Stack and thread of a line.
    fn stack(&mut self, offset: u64, text: &'a [u8]) -> (u32, u32) {
        let Self { interner, previous, diagnostics, .. } = self;
        let num_equal = text.iter().zip(previous.frames).take_while(|(a, b)| a == b).count();
        let is_shared = |end: usize| num_equal >= end && text.get(end).is_none_or(|byte| *byte == b';');
        // The first two frames decide which of them name a process and a thread.
        let first_two = frames_from(text, 0).take(2).last().map_or(0, |frame| frame.end);
        if previous.first_two == Some(first_two) && num_equal >= first_two {
            let num_shared = previous.ends.partition_point(|(end, _)| is_shared(*end));
            previous.ends.truncate(num_shared);
        } else {
            let (root, start) = ThreadRoot::of(text);
            previous.ends.clear();
            previous.start = start;
            previous.first_two = Some(first_two);
            previous.thread = interner.thread(root);
        }
        previous.frames = text;
        let (start, mut stack) = match previous.ends.last() {
            Some((end, stack)) => (end.saturating_add(1), *stack),
            None => (previous.start, NONE),
        };
        if start <= text.len() {
            for range in frames_from(text, start) {
                let end = range.end;
                let frame = text.get(range).unwrap_or_default();
                if frame.is_empty() {
                    diagnostics.push(&EMPTY_FRAME, offset, None, "frame", || "a frame is empty".into());
                }
                let text = interner.text(frame);
                stack = interner.stack(stack, text);
                previous.ends.push((end, stack));
            }
        }
        (stack, previous.thread)
    }
}

impl Survey {
    /// Reads a whole file.
    #[must_use]
    pub fn new(source: &Source) -> Self {
        let text: &[u8] = source;
        let mut merged = Interner::default();
        let mut survey = Self::default();
        let mut diagnostics = Diagnostics::default();
        let mut num_second_counts: u64 = 0;
        let ranges = chunks(text);
        // A few chunks at a time: their own tables are dropped once they are merged.
        for group in ranges.chunks(num_threads().saturating_mul(2).max(1)) {
            let parse = |range: &Range<usize>| Chunk::parse(text, range.clone());
            let parsed: Vec<_> = install(|| group.par_iter().map(in_call(parse)).collect());
            for mut chunk in parsed {
                num_second_counts = num_second_counts.saturating_add(chunk.num_second_counts);
                survey.num_comments = survey.num_comments.saturating_add(chunk.num_comments);
                diagnostics = diagnostics.followed_by(std::mem::take(&mut chunk.diagnostics));
                if survey.samples.is_empty() {
                    // The numbers of the first chunk are those of the file: most files have no other.
                    (merged, survey.samples) = (chunk.interner, chunk.samples);
                } else {
                    survey.merge(&mut merged, &chunk);
                }
            }
        }
        if num_second_counts > 0 && num_second_counts == survey.samples.len() as u64 {
            diagnostics.push(&TWO_COUNTS, 0, None, "count", || {
                "the last number of each line was read as the count, the one before it as part of the innermost frame".into()
            });
        }
        if !text.is_empty() && !text.ends_with(b"\n") {
            let start = last_line_start(text);
            diagnostics
                .push(&CUT_LINE, start as u64, None, "", || "the file may end inside this line".into());
        }
        survey.finish(merged, text, &mut diagnostics);
        survey.diagnostics = diagnostics.into_rows();
        survey
    }

    /// Renumbers a chunk's samples by the tables of the whole file.
    fn merge<'a>(&mut self, merged: &mut Interner<'a>, chunk: &Chunk<'a>) {
        let texts: Vec<u32> = chunk.interner.text_list.iter().map(|text| merged.text(text)).collect();
        let threads: Vec<u32> =
            chunk.interner.thread_list.iter().map(|root| merged.thread(root.clone())).collect();
        let mut numbers: Vec<u32> = Vec::with_capacity(chunk.interner.stack_list.len());
        for node in &chunk.interner.stack_list {
            let caller = numbers.get(node.caller as usize).copied().unwrap_or(NONE);
            let text = chunk
                .interner
                .frame_list
                .get(node.frame as usize)
                .and_then(|(text, _)| texts.get(*text as usize));
            numbers.push(merged.stack(caller, text.copied().unwrap_or(0)));
        }
        self.samples.extend(chunk.samples.iter().map(|sample| Sample {
            stack: numbers.get(sample.stack as usize).copied().unwrap_or(NONE),
            thread: threads.get(sample.thread as usize).copied().unwrap_or(0),
            ..*sample
        }));
    }

    /// Takes over the tables of the whole file, and finds the functions.
    fn finish(&mut self, merged: Interner<'_>, source: &[u8], diagnostics: &mut Diagnostics) {
        let Interner { text_list, frame_list, stack_list, thread_list, texts, frames, stacks, threads } =
            merged;
        drop((texts, frames, stacks, threads));
        (self.frames, self.stacks, self.threads) = (frame_list, stack_list, thread_list);
        let mut functions: FxHashMap<&[u8], u32> = FxHashMap::default();
        for (number, text) in text_list.iter().enumerate() {
            let name = split_suffix(text).0;
            let next = self.function_texts.len() as u32;
            let function = *functions.entry(name).or_insert(next);
            let start = (text.as_ptr() as usize).saturating_sub(source.as_ptr() as usize);
            if function == next {
                self.function_texts.push(number as u32);
                if std::str::from_utf8(name).is_err() {
                    diagnostics.push(&NOT_UTF8, start as u64, None, "frame", || excerpt(name).into());
                }
            }
            self.text_functions.push(function);
            self.texts.push(start..start.saturating_add(text.len()));
        }
    }

    /// Number of lines with a stack.
    #[must_use]
    pub fn num_stack_lines(&self) -> u64 {
        self.samples.len() as u64
    }

    /// Number of comments.
    #[must_use]
    pub fn num_comments(&self) -> u64 {
        self.num_comments
    }

    /// Departures found in the whole file.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Number of keys of each kind that the tables use.
    #[must_use]
    pub fn extent(&self) -> Offsets {
        Offsets {
            function: self.function_texts.len() as u32,
            frame: self.frames.len() as u32,
            stack: self.stacks.len() as u32,
            sample: self.samples.len() as u64,
            ..Offsets::default()
        }
    }

    fn text<'a>(&self, source: &'a [u8], text: u32) -> &'a [u8] {
        let range = self.texts.get(text as usize).cloned().unwrap_or_default();
        source.get(range).unwrap_or_default()
    }

    fn functions(&self, source: &[u8], placement: &Placement) -> BatchStream {
        let mut table = functions::Builder::new();
        for (&text, id) in self.function_texts.iter().zip(placement.first.function..) {
            let name = String::from_utf8_lossy(split_suffix(self.text(source, text)).0);
            table.push(id, None, &name, &name, None, None, None, None);
        }
        one_batch(table.finish())
    }

    fn frames(&self, source: &[u8], placement: &Placement) -> BatchStream {
        let mut table = frames::Builder::new();
        for (&(text, inline_depth), id) in self.frames.iter().zip(placement.first.frame..) {
            let (name, kind) = split_suffix(self.text(source, text));
            let function = self.text_functions.get(text as usize).filter(|_| !name.is_empty());
            let function_id = function.map(|function| placement.first.function.saturating_add(*function));
            let why = name.is_empty().then_some("the file has an empty name here");
            let kind = kind.name();
            table.push(
                id,
                function_id,
                None,
                None,
                None,
                None,
                None,
                None,
                None,
                inline_depth,
                kind,
                "callchain",
                why,
            );
        }
        one_batch(table.finish())
    }

    fn stacks(&self, placement: &Placement) -> BatchStream {
        let mut table = stacks::Builder::new();
        for (node, id) in self.stacks.iter().zip(placement.first.stack..) {
            let caller = (node.caller != NONE).then(|| placement.first.stack.saturating_add(node.caller));
            table.push(id, caller, placement.first.frame.saturating_add(node.frame), node.depth);
        }
        one_batch(table.finish())
    }

    /// Keys of the threads, whose names and processes become known to the profile.
    fn thread_ids(&self, identities: &mut Identities, placement: &Placement) -> Vec<u32> {
        let thread = |root: &ThreadRoot| {
            let process = placement.process(root.pid.unwrap_or(0));
            let tid = root.tid.and_then(|tid| i32::try_from(tid).ok());
            let thread_id = match (root.tid, tid) {
                (Some(native), None) => identities.native_thread(process, native, 0),
                _ => identities.thread(process, tid.unwrap_or(0)),
            };
            identities.describe(thread_id, root.thread_name.as_deref(), None, None);
            if let Some(name) = &root.process_name {
                identities.name_process(process, name);
            }
            thread_id
        };
        self.threads.iter().map(thread).collect()
    }
}

/// One of the tables of a file; `None` for a table that it does not fill.
pub fn table(
    survey: &Arc<Survey>,
    source: &Arc<Source>,
    name: &str,
    placement: &Placement,
) -> Option<BatchStream> {
    match name {
        "functions" => Some(survey.functions(source, placement)),
        "frames" => Some(survey.frames(source, placement)),
        "stacks" => Some(survey.stacks(placement)),
        "samples" => Some(sample_batches(Arc::clone(survey), placement)),
        "processes" | "threads" | "thread_names" => {
            let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
            survey.thread_ids(&mut identities, placement);
            identities.table(name).map(one_batch)
        }
        _ => None,
    }
}

/// Table `samples`: a row per line, in file order.
fn sample_batches(survey: Arc<Survey>, placement: &Placement) -> BatchStream {
    let thread_ids = {
        let lock = placement.identities.lock();
        survey.thread_ids(&mut lock.unwrap_or_else(PoisonError::into_inner), placement)
    };
    let (first, source_id) = (placement.first, placement.source_id);
    let mut start: usize = 0;
    Box::new(std::iter::from_fn(move || {
        let rows = survey.samples.get(start..)?.chunks(BATCH_ROWS).next()?;
        let mut table = samples::Builder::new();
        for (sample, id) in rows.iter().zip(first.sample.saturating_add(start as u64)..) {
            let thread_id = thread_ids.get(sample.thread as usize).copied().unwrap_or(0);
            let stack_id = (sample.stack != NONE).then(|| first.stack.saturating_add(sample.stack));
            table.push(
                id,
                0,
                thread_id,
                None,
                stack_id,
                sample.count,
                "samples",
                "samples",
                source_id,
                sample.offset,
            );
        }
        start = start.saturating_add(rows.len());
        Some(table.finish())
    }))
}

/// Ranges of whole lines of about [`CHUNK_BYTES`].
fn chunks(text: &[u8]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let least = start.saturating_add(CHUNK_BYTES);
        let rest = text.get(least..).unwrap_or_default();
        let end = line_end(rest).map_or(text.len(), |len| least.saturating_add(len).saturating_add(1));
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// The beginning of a text for a message.
fn excerpt(text: &[u8]) -> String {
    String::from_utf8_lossy(text.get(..60).unwrap_or(text)).into_owned()
}
