//! How much of a program's code SFrame covers, and why other functions are missing.

use perfuse_binaries::eh_frame::{Coverage, CrossCheck, EhFrameEntry, UncoveredFunction as EhFrameFunction};
use perfuse_formats::Recording as _;
use perfuse_formats::sframe::SFrame;
use perfuse_formats::sframe::consts::Abi;

use super::cross_check::ComparedSection;
use super::from_eh_frame::{Reason, reason_not_representable};

/// Coverage of one SFrame section that has an `.eh_frame` beside it.
pub struct SectionCoverage {
    /// Index of the section in the file.
    pub section: usize,
    /// Size of `.eh_frame`.
    pub eh_frame_bytes: u64,
    /// Functions of `.eh_frame`.
    pub num_eh_frame_functions: usize,
    /// Covered code, by code section.
    pub coverage: Coverage,
    /// Agreement of rows with `.eh_frame`.
    pub cross_check: CrossCheck,
    /// Functions that the section does not cover.
    pub uncovered: Vec<MissingFunction>,
}

/// A function without rows.
pub struct MissingFunction {
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Name, where the symbol table has it.
    pub name: Option<String>,
    /// Code of the reason why it has no rows, for which Python has a text.
    pub reason: &'static str,
    /// What that text contains; may be empty.
    pub detail: String,
}

/// Coverage of each SFrame section of a file that has an `.eh_frame` beside it.
#[must_use]
pub fn section_coverage(file: &SFrame) -> Vec<SectionCoverage> {
    let of_section = |compared: ComparedSection| {
        let elf =
            file.sections().get(compared.section).and_then(|section| file.source().get(section.elf.clone()));
        let coverage = Coverage::of(elf.unwrap_or_default(), &compared.eh_frame, &compared.table);
        let unit = file.units().iter().find(|unit| unit.section == compared.section);
        let version = unit.map_or((3, Abi(0)), |unit| (unit.version(), unit.abi()));
        let uncovered = coverage.uncovered.iter().map(|function| {
            let (reason, detail) = reason(function, &compared, version);
            let name = function.name.clone();
            MissingFunction { start: function.start, size: function.size, name, reason, detail }
        });
        SectionCoverage {
            section: compared.section,
            eh_frame_bytes: compared.eh_frame.size_bytes,
            num_eh_frame_functions: compared.eh_frame.table.functions.len(),
            uncovered: uncovered.collect(),
            coverage,
            cross_check: compared.cross_check(),
        }
    };
    ComparedSection::all_of(file).into_iter().map(of_section).collect()
}

fn reason(function: &EhFrameFunction, compared: &ComparedSection, (version, abi): (u8, Abi)) -> Reason {
    let table = &compared.eh_frame.table;
    let of_linker_or_assembler = || match compared.eh_frame.code_at(function.start) {
        Some(code) if code.name.starts_with(".plt") => ("linker", String::new()),
        _ => ("assembler", String::new()),
    };
    match &function.eh_frame {
        EhFrameEntry::Missing => ("no_eh_frame", String::new()),
        EhFrameEntry::Unreadable(why) => ("unreadable_eh_frame", why.clone()),
        EhFrameEntry::Unrepresentable(why) => ("eh_frame_rule", why.to_string()),
        EhFrameEntry::Rows(at) => {
            let function = table.functions.get(*at);
            let reason = function.and_then(|it| reason_not_representable(table, it, version, abi));
            reason.unwrap_or_else(of_linker_or_assembler)
        }
    }
}
