//! Compares the unwind rows of a module with those of its `.eh_frame`, at each address where either changes.

use perfuse_tables::Recovery;

use super::table::{RowRule, Unrepresentable, UnwindFunction, UnwindRow, UnwindTable};

/// The amount of code that was compared, and the differences found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossCheck {
    /// Number of functions that have a byte in common with a function of `.eh_frame`.
    pub num_functions: u64,
    /// Number of ranges of code in which neither table changes.
    pub num_stretches: u64,
    /// Number of their bytes.
    pub num_bytes: u64,
    /// Number of bytes of functions that `.eh_frame` has no function for.
    pub num_bytes_alone: u64,
    /// The differences, by function in the order of the table.
    pub disagreements: Vec<Disagreement>,
    /// Whether all was compared. Functions of a hostile table overlap so often that comparing them would not end.
    pub is_complete: bool,
}

/// A row that differs from `.eh_frame`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// Index of the function.
    pub function: u32,
    /// Index of the row in it; `None` where no row applies to the address, or where it is the function that differs.
    pub row: Option<u32>,
    /// First address at which they differ.
    pub address: u64,
    /// Number of occurrences: one for each block of code that repeats.
    pub count: u64,
    /// What differs.
    pub difference: Difference,
    /// The row's rule.
    pub recovery: Option<Recovery>,
    /// The rule of `.eh_frame`.
    pub eh_frame: Result<Recovery, Unrepresentable>,
    /// Whether the function's instructions remember a state while another is remembered.
    pub nests_states: bool,
}

/// What differs between two rows, or between two functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Difference {
    /// No row applies where `.eh_frame` has one.
    NoRow,
    /// One of them states that there is no caller.
    Outermost,
    /// The rule for the CFA.
    Cfa,
    /// The rule for the return address.
    Ra,
    /// Whether the return address is signed.
    RaMangled,
    /// The rule for the frame pointer.
    Fp,
    /// The rule of `.eh_frame` cannot be represented in a row, so any row differs from it.
    Unrepresentable,
    /// Whether the kernel enters the function for a signal.
    Signal,
    /// The key that signs return addresses.
    Key,
}

/// Compares each function of a table with the rules of a sorted table of `.eh_frame` for the same addresses. The rows of
/// `table` may be damaged: neither sorted nor inside their function.
#[must_use]
pub fn cross_check(table: &UnwindTable, eh_frame: &UnwindTable) -> CrossCheck {
    let lengths = [table.rows.len(), eh_frame.rows.len(), table.functions.len(), eh_frame.functions.len()];
    let num_items = lengths.into_iter().fold(0, usize::saturating_add);
    let mut comparison = Comparison {
        table,
        eh_frame,
        steps_left: num_items.saturating_mul(4).saturating_add(1 << 20),
        found: CrossCheck { is_complete: true, ..CrossCheck::default() },
    };
    for (index, function) in (0..).zip(&table.functions) {
        if comparison.compare_function(index, function).is_none() {
            comparison.found.is_complete = false;
            break;
        }
    }
    comparison.found
}

struct Comparison<'a> {
    table: &'a UnwindTable,
    eh_frame: &'a UnwindTable,
    steps_left: usize,
    found: CrossCheck,
}

impl Comparison<'_> {
    /// Compares a function; `None` when no steps are left.
    fn compare_function(&mut self, index: u32, function: &UnwindFunction) -> Option<()> {
        let (mut pc, end) = (function.start, function.end());
        let mut last: Option<UnwindFunction> = None;
        while pc < end {
            self.steps_left = self.steps_left.checked_sub(1)?;
            let Some(other) = self.eh_frame.find(pc) else {
                let next = self.next_function(pc).min(end);
                self.found.num_bytes_alone =
                    self.found.num_bytes_alone.saturating_add(next.saturating_sub(pc));
                pc = next;
                continue;
            };
            if last.is_none_or(|last| last != *other) {
                self.compare_flags(index, function, other, pc);
                last = Some(*other);
            }
            let row = self.table.row_at(function, pc);
            let theirs = self.eh_frame.row_at(other, pc);
            let next_ours = self.next_change(function, row, pc);
            let next_theirs = next_row_start(self.eh_frame, other, theirs, pc);
            // Where rows of a damaged table are not sorted, the next row may start before `pc`.
            let next = next_ours.min(next_theirs).max(pc.saturating_add(1)).min(end);
            if let Some(theirs) = theirs {
                self.compare_rows(index, function, other, row, theirs, pc);
                self.found.num_stretches = self.found.num_stretches.saturating_add(1);
                self.found.num_bytes = self.found.num_bytes.saturating_add(next.saturating_sub(pc));
            }
            pc = next;
        }
        self.found.num_functions = self.found.num_functions.saturating_add(last.is_some().into());
        Some(())
    }

    /// Start of the first function of `.eh_frame` after an address.
    fn next_function(&self, pc: u64) -> u64 {
        let functions = &self.eh_frame.functions;
        let next = functions.partition_point(|function| function.start <= pc);
        functions.get(next).map_or(u64::MAX, |function| function.start)
    }

    /// The address after `pc` at which the next row of a function starts to apply.
    fn next_change(&self, function: &UnwindFunction, row: Option<&UnwindRow>, pc: u64) -> u64 {
        let next = next_row_start(self.table, function, row, pc);
        let repeat = u64::from(function.repeat_bytes);
        let Some(offset_in_block) = pc.saturating_sub(function.start).checked_rem(repeat) else {
            return next;
        };
        let block = pc.saturating_sub(offset_in_block);
        block.saturating_add(next.wrapping_sub(function.start).min(repeat))
    }

    /// Compares the flags of two functions.
    fn compare_flags(&mut self, index: u32, function: &UnwindFunction, other: &UnwindFunction, pc: u64) {
        let difference = if function.is_signal != other.is_signal {
            Difference::Signal
        } else if function.is_key_b != other.is_key_b {
            Difference::Key
        } else {
            return;
        };
        self.report(Disagreement {
            function: index,
            row: None,
            address: pc,
            count: 1,
            difference,
            recovery: None,
            eh_frame: Err(Unrepresentable::Invalid),
            nests_states: false,
        });
    }

    /// Compares the rules of two rows at an address.
    fn compare_rows(
        &mut self,
        index: u32,
        function: &UnwindFunction,
        other: &UnwindFunction,
        row: Option<&UnwindRow>,
        theirs: &UnwindRow,
        pc: u64,
    ) {
        let eh_frame = theirs.rule.at(pc);
        let recovery = row.and_then(|row| row.rule.at(pc).ok());
        let difference = match (recovery, eh_frame) {
            // Rows that are not valid are reported by the checks of their own format.
            (None, _) if row.is_some() => None,
            (None, Err(_)) => None,
            (None, Ok(_)) => Some(Difference::NoRow),
            (Some(_), Err(_)) => Some(Difference::Unrepresentable),
            (Some(recovery), Ok(eh_frame)) => find_difference(recovery, eh_frame),
        };
        let Some(difference) = difference else { return };
        let number = row.map(|row| {
            let rows = self.table.rows(function);
            rows.partition_point(|other| other.start < row.start) as u32
        });
        let nests_states = other.nests_states;
        let found = Disagreement {
            function: index,
            row: number,
            address: pc,
            count: 1,
            difference,
            recovery,
            eh_frame,
            nests_states,
        };
        self.report(found);
    }

    /// Adds a disagreement, or counts it where the same one was found in another block of the function.
    fn report(&mut self, found: Disagreement) {
        let same = |earlier: &&mut Disagreement| {
            **earlier == Disagreement { address: earlier.address, count: earlier.count, ..found }
        };
        let of_function = self.found.disagreements.iter_mut().rev().take(4);
        match of_function.take_while(|earlier| earlier.function == found.function).find(same) {
            Some(earlier) => earlier.count = earlier.count.saturating_add(1),
            None => self.found.disagreements.push(found),
        }
    }
}

/// Address at which the row after `row` starts, or at which the CFA of a PLT moves next.
fn next_row_start(table: &UnwindTable, function: &UnwindFunction, row: Option<&UnwindRow>, pc: u64) -> u64 {
    let rows = table.rows(function);
    let after = row.map_or(0, |row| rows.partition_point(|other| other.start <= row.start));
    let next =
        rows.get(after).map_or(function.end(), |next| function.start.saturating_add(next.start.into()));
    match row.map(|row| row.rule) {
        Some(RowRule::Plt(plt)) => {
            let (mask, moves_at) = (u64::from(plt.mask), u64::from(plt.moves_at));
            let block = pc & !mask;
            let step = if pc & mask < moves_at { moves_at } else { mask.saturating_add(1) };
            next.min(block.saturating_add(step))
        }
        _ => next,
    }
}

/// The first rule that differs, if any.
fn find_difference(recovery: Recovery, eh_frame: Recovery) -> Option<Difference> {
    match (recovery, eh_frame) {
        (Recovery::Outermost, Recovery::Outermost) => None,
        (Recovery::Outermost, _) | (_, Recovery::Outermost) => Some(Difference::Outermost),
        (
            Recovery::Caller { cfa, fp, ra, ra_mangled },
            Recovery::Caller { cfa: their_cfa, fp: their_fp, ra: their_ra, ra_mangled: their_mangled },
        ) => {
            if cfa != their_cfa {
                Some(Difference::Cfa)
            } else if ra.expression() != their_ra.expression() {
                Some(Difference::Ra)
            } else if ra_mangled != their_mangled {
                Some(Difference::RaMangled)
            } else if fp.expression() != their_fp.expression() {
                Some(Difference::Fp)
            } else {
                None
            }
        }
    }
}
