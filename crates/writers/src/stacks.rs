//! Stacks and their frames, read from query results over the common tables.

use arrow_array::types::UInt64Type;
use arrow_array::{PrimitiveArray, RecordBatch};

pub use perfuse_engine::NONE;
use perfuse_engine::stacks::StackError;
use perfuse_engine::stacks::columns::{Keys, Texts, column, numbers, text};

/// A frame. Texts are numbers into [`Stacks::texts`].
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Its name.
    pub name: u32,
    /// Name as the symbol table has it.
    pub system_name: u32,
    /// File its function is declared in.
    pub path: u32,
    /// Line its function starts at.
    pub start_line: u32,
    /// Line it was at.
    pub line: u32,
    /// Column it was at.
    pub column: u32,
    /// Key of its mapping.
    pub mapping: u32,
    /// The file that contains it, or the name of a pseudo-module.
    pub binary: u32,
    /// Build id of that, in hexadecimal.
    pub build_id: u32,
    /// `jit`, `native`, `kernel` and so on.
    pub kind: u32,
    /// Address.
    pub address: Option<u64>,
    /// Address within the binary.
    pub relative_address: Option<u64>,
    /// 0 for the outermost function at an address, then the calls inlined into it.
    pub inline_depth: u32,
}

/// All stacks of a profile.
#[derive(Debug)]
pub struct Stacks {
    /// Names of functions, modules and files, once each.
    pub texts: Texts,
    /// The frames, by row.
    pub frames: Vec<Frame>,
    keys: Keys,
    /// Row of each stack's caller.
    parents: Vec<u32>,
    /// Row of each stack's frame.
    tops: Vec<u32>,
}

impl Stacks {
    /// Reads rows with the columns of [`Frame`] and `frame_id`, and rows of table `stacks`.
    ///
    /// # Errors
    /// [`StackError`] where a column is not there, a key is of no row, or a parent does not come before its children.
    pub fn of(frames: &[RecordBatch], stacks: &[RecordBatch]) -> Result<Self, StackError> {
        let mut texts = Texts::default();
        let rows = read_frames(frames, &mut texts)?;
        let frame_keys = Keys::of(&numbers(frames, "frames", "frame_id")?);
        let keys = Keys::of(&numbers(stacks, "stacks", "stack_id")?);
        let row = |keys: &Keys, key: u32, column: &'static str, below: usize| match keys.row(key) {
            row if (row as usize) < below => Ok(row),
            _ => Err(StackError::Reference { table: "stacks", column, key }),
        };
        let tops = numbers(stacks, "stacks", "frame_id")?.into_iter();
        let tops = tops.map(|key| row(&frame_keys, key, "frame_id", rows.len())).collect::<Result<_, _>>()?;
        let parents = numbers(stacks, "stacks", "parent_stack_id")?.into_iter().enumerate();
        let parents = parents.map(|(child, key)| match key {
            NONE => Ok(NONE),
            key => row(&keys, key, "parent_stack_id", child),
        });
        let parents = parents.collect::<Result<_, _>>()?;
        Ok(Self { texts, frames: rows, keys, parents, tops })
    }

    /// Number of stacks.
    #[must_use]
    pub fn num_stacks(&self) -> usize {
        self.tops.len()
    }

    /// Row of a stack; [`NONE`] for a key that none has.
    #[must_use]
    pub fn row(&self, stack_id: u32) -> u32 {
        self.keys.row(stack_id)
    }

    /// Rows of the frames of a stack, innermost first.
    pub fn frames_of(&self, stack: u32) -> impl Iterator<Item = u32> {
        let parent = |row: &u32| Some(self.parents[*row as usize]).filter(|&parent| parent != NONE);
        std::iter::successors(Some(stack).filter(|&row| row != NONE), parent)
            .map(|row| self.tops[row as usize])
    }
}

fn read_frames(frames: &[RecordBatch], texts: &mut Texts) -> Result<Vec<Frame>, StackError> {
    let mut column = |name| text(frames, "frames", name, texts);
    let (names, system_names) = (column("name")?, column("system_name")?);
    let (paths, binaries) = (column("path")?, column("binary")?);
    let (build_ids, kinds) = (column("build_id")?, column("kind")?);
    let (start_lines, lines) = (numbers(frames, "frames", "start_line")?, numbers(frames, "frames", "line")?);
    let (columns, mappings) =
        (numbers(frames, "frames", "column")?, numbers(frames, "frames", "mapping_id")?);
    let inline_depths = numbers(frames, "frames", "inline_depth")?;
    let (addresses, relative_addresses) = (wide(frames, "address")?, wide(frames, "relative_address")?);
    let frame = |row: usize| Frame {
        name: names[row],
        system_name: system_names[row],
        path: paths[row],
        start_line: start_lines[row],
        line: lines[row],
        column: columns[row],
        mapping: mappings[row],
        binary: binaries[row],
        build_id: build_ids[row],
        kind: kinds[row],
        address: addresses[row],
        relative_address: relative_addresses[row],
        inline_depth: inline_depths[row],
    };
    Ok((0..names.len()).map(frame).collect())
}

fn wide(batches: &[RecordBatch], name: &'static str) -> Result<Vec<Option<u64>>, StackError> {
    let mut out = Vec::new();
    for batch in batches {
        let array: &PrimitiveArray<UInt64Type> = column(batch, "frames", name)?;
        out.extend(array.iter());
    }
    Ok(out)
}
