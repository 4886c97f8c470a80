//! Rows of SFrame sections compared with the `.eh_frame` of the same file.

use perfuse_binaries::eh_frame::{
    CrossCheck, Difference, Disagreement, EhFrame, RowRule, Unrepresentable, UnwindFunction, UnwindRow,
    UnwindTable, cross_check,
};
use perfuse_formats::Recording;
use perfuse_formats::sframe::container::Section;
use perfuse_formats::sframe::recovery::Recovery;
use perfuse_formats::sframe::rules;
use perfuse_formats::sframe::{SFrame, reader::UnitView};
use perfuse_wire::{Diagnostics, Rule};

/// An SFrame section and the `.eh_frame` of the same file.
pub(super) struct ComparedSection {
    /// Index of the section in the file.
    pub section: usize,
    /// Functions and rows of SFrame, with the addresses that `.eh_frame` uses.
    pub table: UnwindTable,
    /// Offset of each row in the file.
    row_offsets: Vec<u64>,
    /// `.eh_frame`.
    pub eh_frame: EhFrame,
}

impl ComparedSection {
    /// Each section of a file that has a readable `.eh_frame` beside it.
    pub(super) fn all_of(file: &SFrame) -> Vec<Self> {
        let sections = file.sections().iter().enumerate();
        sections.filter_map(|(index, section)| Self::of_section(file, index, section)).collect()
    }

    fn of_section(file: &SFrame, index: usize, section: &Section) -> Option<Self> {
        let elf = file.source().get(section.elf.clone()).filter(|elf| !elf.is_empty())?;
        let eh_frame = EhFrame::of_elf(elf).ok()?;
        let mut compared =
            Self { section: index, table: UnwindTable::default(), row_offsets: Vec::new(), eh_frame };
        for view in file.views().filter(|view| view.unit.section == index) {
            compared.add(section, view);
        }
        Some(compared)
    }

    fn add(&mut self, section: &Section, view: UnitView<'_>) {
        let unit = view.unit;
        for function in view.functions() {
            let Some(start) = self.start(section, function.at, function.start) else { continue };
            let context = unit.context(&function);
            let mut rows = Vec::with_capacity(function.num_rows.min(1 << 10) as usize);
            for row in view.rows(&function).map_while(Result::ok) {
                let recovery = context.interpret(&row);
                let rule =
                    recovery.map_or(RowRule::Unrepresentable(Unrepresentable::Invalid), RowRule::Recovery);
                rows.push(UnwindRow { start: row.start, rule });
                self.row_offsets.push(view.offset(row.at));
            }
            // In version 3 a function without rows is the outermost frame, except that a signal frame without rows has no meaning.
            if rows.is_empty()
                && unit.version() >= 3
                && !function.info.is_signal()
                && function.rows_at.is_some()
            {
                rows.push(UnwindRow { start: 0, rule: RowRule::Recovery(Recovery::Outermost) });
                self.row_offsets.push(view.offset(function.at));
            }
            let function = UnwindFunction {
                start,
                size: function.size,
                repeat_bytes: if function.info.repeats() { function.repeat_bytes } else { 0 },
                is_signal: unit.version() >= 3 && function.info.is_signal(),
                is_key_b: unit.abi().has_pointer_authentication() && function.info.pauth_key_b(),
                nests_states: false,
                entry_offset: view.offset(function.at),
                first_row: 0,
                num_rows: 0,
            };
            self.table.push(function, rows);
        }
    }

    /// Address of a function. In an object file it depends on the section it is in; `None` where that is unknown.
    fn start(&self, section: &Section, at: usize, start: u64) -> Option<u64> {
        let Some(bases) = &self.eh_frame.bases else { return Some(start) };
        let relocated = section.relocations.as_ref()?;
        let base = bases.base(relocated.section_of(at as u64)?.into())?;
        Some(base.wrapping_add(start))
    }

    /// Compares rows.
    pub(super) fn cross_check(&self) -> CrossCheck {
        cross_check(&self.table, &self.eh_frame.table)
    }

    fn report(&self, found: &Disagreement, sink: &mut Diagnostics) {
        let Some(function) = self.table.functions.get(found.function as usize) else { return };
        let code = self.eh_frame.code_at(found.address);
        let rule = rule(found, code.is_some_and(|code| code.name.starts_with(".plt")));
        let offset = match found.row {
            Some(row) => self.row_offsets.get(function.first_row.saturating_add(row) as usize).copied(),
            None => None,
        };
        let offset = offset.unwrap_or(function.entry_offset);
        let section = code.map_or_else(String::new, |code| code.name.clone()).into();
        sink.push_in(section, rule, offset, None, field(found.difference), || {
            let place = code.map_or(String::new(), |code| {
                format!("{}+{:#x}", code.name, found.address.wrapping_sub(code.start))
            });
            let row = found.row.map_or(String::new(), |row| format!("row {row} of "));
            let times = match found.count.saturating_sub(1) {
                0 => String::new(),
                more => format!(", and {more} times more"),
            };
            let what = difference(found, function);
            format!("{row}function {} at {:#x} ({place}): {what}{times}", found.function, found.address)
                .into()
        });
    }

    /// Functions of `.eh_frame` that do not overlap a function of SFrame.
    fn uncovered(&self) -> impl Iterator<Item = &UnwindFunction> {
        let mut covered: Vec<(u64, u64)> =
            self.table.functions.iter().map(|function| (function.start, function.end())).collect();
        covered.sort_unstable();
        let mut end = 0;
        for range in &mut covered {
            end = end.max(range.1);
            range.1 = end;
        }
        self.eh_frame.table.functions.iter().filter(move |function| {
            let num_before = covered.partition_point(|(start, _)| *start < function.end());
            let last = num_before.checked_sub(1).and_then(|at| covered.get(at));
            function.size != 0 && last.is_none_or(|(_, end)| *end <= function.start)
        })
    }
}

/// Reports each row of SFrame that disagrees with `.eh_frame`. Reports nothing for other formats.
pub fn cross_check_recording(recording: &dyn Recording, sink: &mut Diagnostics) {
    let Some(file) = recording.as_any().downcast_ref::<SFrame>() else { return };
    for compared in ComparedSection::all_of(file) {
        for function in compared.uncovered() {
            let offset = compared.eh_frame.file_offset.saturating_add(function.entry_offset);
            let code = compared.eh_frame.code_at(function.start);
            let section = code.map_or_else(String::new, |code| code.name.clone()).into();
            sink.push_in(section, &rules::NOT_COVERED, offset, None, "", || {
                format!("the first at {:#x}, of {} bytes", function.start, function.size).into()
            });
        }
        compared.cross_check().disagreements.iter().for_each(|found| compared.report(found, sink));
    }
}

fn rule(found: &Disagreement, is_plt: bool) -> &'static Rule {
    match found.difference {
        Difference::NoRow => &rules::ROWS_MISSING,
        Difference::Unrepresentable => &rules::UNREPRESENTABLE,
        Difference::Signal => &rules::SIGNAL_DIFFERS,
        Difference::Key => &rules::KEY_DIFFERS,
        _ if is_plt => &rules::PLT_DIFFERS,
        _ if found.nests_states => &rules::NESTED_STATES,
        Difference::Outermost => &rules::OUTERMOST_DIFFERS,
        Difference::Cfa => &rules::CFA_DIFFERS,
        Difference::Ra | Difference::RaMangled => &rules::RA_DIFFERS,
        Difference::Fp => &rules::FP_DIFFERS,
    }
}

fn field(differs: Difference) -> &'static str {
    match differs {
        Difference::Signal | Difference::Key => "sfde_func_info",
        Difference::NoRow => "sfde_func_num_fres",
        Difference::RaMangled => "sfre_info",
        _ => "sfre_words",
    }
}

fn difference(found: &Disagreement, function: &UnwindFunction) -> String {
    match (found.difference, found.recovery, found.eh_frame) {
        (Difference::Signal, ..) if function.is_signal => {
            "entered for a signal; not so in .eh_frame".to_owned()
        }
        (Difference::Signal, ..) => "not marked as entered for a signal; in .eh_frame it is".to_owned(),
        (Difference::Key, ..) => {
            let (has, other) = if function.is_key_b { ("B", "A") } else { ("A", "B") };
            format!("key {has}, .eh_frame has key {other}")
        }
        (_, None, _) => "no row; .eh_frame has one".to_owned(),
        (_, Some(sframe), Err(why)) => format!("{}; .eh_frame has {why}", all_rules(&sframe)),
        (_, Some(sframe), Ok(eh_frame)) => {
            match (differing_rule(&sframe, found.difference), differing_rule(&eh_frame, found.difference)) {
                (Some(sframe), Some(eh_frame)) => format!("{sframe}; .eh_frame has {eh_frame}"),
                _ => format!("{}; .eh_frame has {}", all_rules(&sframe), all_rules(&eh_frame)),
            }
        }
    }
}

/// Text of the rule that differs; `None` where the whole recovery does.
fn differing_rule(recovery: &Recovery, differs: Difference) -> Option<String> {
    let Recovery::Caller { cfa, fp, ra, ra_mangled } = recovery else { return None };
    Some(match differs {
        Difference::Cfa => format!("CFA {cfa}"),
        Difference::Ra => format!("return address {ra}"),
        Difference::RaMangled => {
            (if *ra_mangled { "a signed return address" } else { "a return address that is not signed" })
                .to_owned()
        }
        Difference::Fp => format!("frame pointer {fp}"),
        _ => return None,
    })
}

/// Text of all rules.
fn all_rules(recovery: &Recovery) -> String {
    match recovery {
        Recovery::Outermost => "the outermost frame".to_owned(),
        Recovery::Caller { cfa, fp, ra, .. } => format!("CFA {cfa}, return address {ra}, frame pointer {fp}"),
    }
}
