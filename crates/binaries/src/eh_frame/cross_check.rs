//! Rows somebody else made of a module held against those of its `.eh_frame`, wherever either changes.

use perfuse_tables::Recovery;

use super::table::{Function, Row, Says, Unsayable, UnwindTable};

/// What was compared, and where the two say something else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossCheck {
    /// Functions that have any byte in common.
    pub num_functions: u64,
    /// Stretches of code in which neither changes.
    pub num_stretches: u64,
    /// Their bytes.
    pub num_bytes: u64,
    /// Bytes of functions that `.eh_frame` says nothing about.
    pub num_bytes_alone: u64,
    /// Where they differ, by function in the order of the table.
    pub disagreements: Vec<Disagreement>,
    /// Whether all was compared. Functions of a hostile table overlap so often that comparing them would not end.
    pub is_complete: bool,
}

/// A row that says something else than `.eh_frame`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// Index of the function.
    pub function: u32,
    /// Index of the row in it; `None` where it has none that holds there, or it is about the function.
    pub row: Option<u32>,
    /// First address at which they differ.
    pub address: u64,
    /// How often: once for each block of code that repeats.
    pub count: u64,
    /// In what.
    pub differs: Differs,
    /// What the row says.
    pub says: Option<Recovery>,
    /// What `.eh_frame` says.
    pub eh_frame: Result<Recovery, Unsayable>,
    /// Whether the function's instructions remember a state within another that is remembered.
    pub nests_states: bool,
}

/// In what rows differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Differs {
    /// No row holds where `.eh_frame` has one.
    NoRow,
    /// One of them says that there is no caller.
    Outermost,
    /// Where the CFA is.
    Cfa,
    /// Where the return address is.
    Ra,
    /// Whether the return address is signed.
    RaMangled,
    /// Where the frame pointer is.
    Fp,
    /// `.eh_frame` has what a row has no word for, so whatever the row says is something else.
    Unsayable,
    /// Whether the kernel enters the function for a signal.
    Signal,
    /// With which key return addresses are signed.
    Key,
}

/// Compares each function of a table with what a sorted table of `.eh_frame` says of the same addresses.
#[must_use]
pub fn cross_check(table: &UnwindTable, eh_frame: &UnwindTable) -> CrossCheck {
    let num_rows = table.rows.len() + eh_frame.rows.len() + table.functions.len() + eh_frame.functions.len();
    let mut check = Check {
        table,
        eh_frame,
        steps_left: num_rows * 4 + (1 << 20),
        found: CrossCheck { is_complete: true, ..CrossCheck::default() },
    };
    for (index, function) in (0..).zip(&table.functions) {
        if check.function(index, function).is_none() {
            check.found.is_complete = false;
            break;
        }
    }
    check.found
}

struct Check<'a> {
    table: &'a UnwindTable,
    eh_frame: &'a UnwindTable,
    steps_left: usize,
    found: CrossCheck,
}

impl Check<'_> {
    /// Compares a function; `None` where there is no end to it.
    fn function(&mut self, index: u32, function: &Function) -> Option<()> {
        let (mut pc, end) = (function.start, function.end());
        let mut met: Option<Function> = None;
        while pc < end {
            self.steps_left = self.steps_left.checked_sub(1)?;
            let Some(other) = self.eh_frame.find(pc) else {
                let next = self.next_function(pc).min(end);
                self.found.num_bytes_alone += next - pc;
                pc = next;
                continue;
            };
            if met.is_none_or(|met| met != *other) {
                self.functions(index, function, other, pc);
                met = Some(*other);
            }
            let row = self.table.row_at(function, pc);
            let theirs = self.eh_frame.row_at(other, pc);
            let next =
                self.next_change(function, row, pc).min(next_of(self.eh_frame, other, theirs, pc)).min(end);
            if let Some(theirs) = theirs {
                self.rows(index, function, other, row, theirs, pc);
                self.found.num_stretches += 1;
                self.found.num_bytes += next - pc;
            }
            pc = next.max(pc + 1);
        }
        self.found.num_functions += u64::from(met.is_some());
        Some(())
    }

    fn next_function(&self, pc: u64) -> u64 {
        let functions = &self.eh_frame.functions;
        let behind = functions.partition_point(|function| function.start <= pc);
        functions.get(behind).map_or(u64::MAX, |function| function.start)
    }

    fn next_change(&self, function: &Function, row: Option<&Row>, pc: u64) -> u64 {
        let next = next_of(self.table, function, row, pc);
        match u64::from(function.repeat_bytes) {
            0 => next,
            repeat => {
                let block = pc - (pc - function.start) % repeat;
                let in_block = next.wrapping_sub(function.start);
                block.saturating_add(in_block.min(repeat))
            }
        }
    }

    fn functions(&mut self, index: u32, function: &Function, other: &Function, pc: u64) {
        let differs = if function.is_signal != other.is_signal {
            Differs::Signal
        } else if function.is_key_b != other.is_key_b {
            Differs::Key
        } else {
            return;
        };
        self.tell(Disagreement {
            function: index,
            row: None,
            address: pc,
            count: 1,
            differs,
            says: None,
            eh_frame: Err(Unsayable::Meaningless),
            nests_states: false,
        });
    }

    fn rows(
        &mut self,
        index: u32,
        function: &Function,
        other: &Function,
        row: Option<&Row>,
        theirs: &Row,
        pc: u64,
    ) {
        let eh_frame = theirs.says.at(pc);
        let says = row.and_then(|row| row.says.at(pc).ok());
        let differs = match (says, eh_frame) {
            // What a row means nothing by is told of it elsewhere.
            (None, _) if row.is_some() => None,
            (None, Err(_)) => None,
            (None, Ok(_)) => Some(Differs::NoRow),
            (Some(_), Err(_)) => Some(Differs::Unsayable),
            (Some(says), Ok(eh_frame)) => difference(says, eh_frame),
        };
        let Some(differs) = differs else { return };
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
            differs,
            says,
            eh_frame,
            nests_states,
        };
        self.tell(found);
    }

    /// Tells of each row once for each other thing it should say.
    fn tell(&mut self, found: Disagreement) {
        let same = |known: &&mut Disagreement| {
            **known == Disagreement { address: known.address, count: known.count, ..found }
        };
        let of_function = self.found.disagreements.iter_mut().rev().take(4);
        match of_function.take_while(|known| known.function == found.function).find(same) {
            Some(known) => known.count += 1,
            None => self.found.disagreements.push(found),
        }
    }
}

/// Where the next row of a function begins behind the one that holds at an address, or the next block of code that repeats.
fn next_of(table: &UnwindTable, function: &Function, row: Option<&Row>, pc: u64) -> u64 {
    let rows = table.rows(function);
    let behind = row.map_or(0, |row| rows.partition_point(|other| other.start <= row.start));
    let next =
        rows.get(behind).map_or(function.end(), |next| function.start.saturating_add(next.start.into()));
    match row.map(|row| row.says) {
        Some(Says::Stub(stub)) => {
            let (mask, moves_at) = (u64::from(stub.mask), u64::from(stub.moves_at));
            let block = pc & !mask;
            let change = if pc & mask < moves_at { block + moves_at } else { block.saturating_add(mask + 1) };
            next.min(change)
        }
        _ => next,
    }
}

fn difference(says: Recovery, eh_frame: Recovery) -> Option<Differs> {
    match (says, eh_frame) {
        (Recovery::Outermost, Recovery::Outermost) => None,
        (Recovery::Outermost, _) | (_, Recovery::Outermost) => Some(Differs::Outermost),
        (
            Recovery::Caller { cfa, fp, ra, ra_mangled },
            Recovery::Caller { cfa: their_cfa, fp: their_fp, ra: their_ra, ra_mangled: their_mangled },
        ) => {
            if cfa != their_cfa {
                Some(Differs::Cfa)
            } else if ra.expression() != their_ra.expression() {
                Some(Differs::Ra)
            } else if ra_mangled != their_mangled {
                Some(Differs::RaMangled)
            } else if fp.expression() != their_fp.expression() {
                Some(Differs::Fp)
            } else {
                None
            }
        }
    }
}
