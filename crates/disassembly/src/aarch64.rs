//! AArch64 instructions, by yaxpeax-arm, with its text changed to that of GNU binutils.

use std::fmt::Write;

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction as Decoded, Opcode, Operand};

use crate::{Flow, Instruction};

/// Size of an instruction.
const WORD: usize = 4;

/// Decodes AArch64 code.
pub(crate) struct Aarch64Decoder<'a> {
    code: &'a [u8],
    address: u64,
    offset: usize,
    decoder: InstDecoder,
}

impl<'a> Aarch64Decoder<'a> {
    pub(crate) fn new(code: &'a [u8], address: u64) -> Self {
        Self { code, address, offset: 0, decoder: InstDecoder::default() }
    }

    pub(crate) fn next(&mut self, text: &mut String) -> Option<Instruction> {
        let offset = self.offset;
        let rest = self.code.get(offset..).filter(|rest| !rest.is_empty())?;
        let word = rest.get(..rest.len().min(WORD))?;
        self.offset = offset.saturating_add(word.len());
        let address = self.address.wrapping_add(offset as u64);
        let bad = Instruction { offset, size: word.len(), flow: Flow::Bad, target: None, constant: None };
        let Some(value) = word.first_chunk::<WORD>().map(|word| u32::from_le_bytes(*word)) else {
            crate::bytes::write_bytes(word, text);
            return Some(bad);
        };
        let Ok(decoded) = self.decoder.decode(&mut U8Reader::new(word)) else {
            // As objdump lists data.
            let _ = write!(text, ".inst 0x{value:08x}");
            return Some(bad);
        };
        let target = target(&decoded, address);
        write_as_objdump(&decoded, value, target, text);
        Some(Instruction { flow: flow(&decoded), target, ..bad })
    }
}

fn target(decoded: &Decoded, address: u64) -> Option<u64> {
    let offset = decoded.operands.iter().find_map(|operand| match operand {
        Operand::PCOffset(offset) => Some(*offset),
        _ => None,
    })?;
    let base = if decoded.opcode == Opcode::ADRP { address & !0xfff } else { address };
    Some(base.wrapping_add_signed(offset))
}

fn flow(decoded: &Decoded) -> Flow {
    match decoded.opcode {
        Opcode::B => Flow::Jump,
        Opcode::Bcc(_) | Opcode::CBZ | Opcode::CBNZ | Opcode::TBZ | Opcode::TBNZ => Flow::Branch,
        Opcode::BL => Flow::Call,
        Opcode::BLR | Opcode::BLRAA | Opcode::BLRAAZ | Opcode::BLRAB | Opcode::BLRABZ => Flow::IndirectCall,
        Opcode::BR | Opcode::BRAA | Opcode::BRAAZ | Opcode::BRAB | Opcode::BRABZ => Flow::IndirectJump,
        Opcode::RET | Opcode::RETAA | Opcode::RETAB | Opcode::ERET => Flow::Return,
        Opcode::BRK | Opcode::HLT | Opcode::UDF => Flow::Trap,
        _ => Flow::Next,
    }
}

/// Writes yaxpeax's text as `objdump -d` of binutils has it.
fn write_as_objdump(decoded: &Decoded, word: u32, target: Option<u64>, text: &mut String) {
    let raw = decoded.to_string();
    if let (Some(at), Some(target)) = (raw.find("$+").or_else(|| raw.find("$-")), target) {
        // What follows is the distance.
        let before = raw.get(..at).unwrap_or_default();
        if has_decimal_immediates(before) {
            write_decimal(before, text);
        } else {
            text.push_str(before);
        }
        let _ = write!(text, "{target:x}");
        with_condition_of_objdump(text);
        return;
    }
    if has_decimal_immediates(&raw) {
        write_decimal(&raw, text);
    } else {
        let operands = raw.find('[').unwrap_or(raw.len());
        let (before, address) = raw.split_at_checked(operands).unwrap_or((&raw, ""));
        text.push_str(before);
        write_decimal(address, text);
    }
    with_condition_of_objdump(text);
    if is_register_offset(word) && word >> 12 & 1 == 0 {
        replace_end(text, " #0]", "]");
    }
    if let Some(shift) = zero_extended_word(word) {
        write_zero_extension(text, shift);
    }
    for (instruction, without_shift) in [("sshll", "sxtl"), ("ushll", "uxtl")] {
        if text.starts_with(instruction) && text.ends_with(", #0x0") {
            replace_end(text, ", #0x0", "");
            text.replace_range(..instruction.len(), without_shift);
        }
    }
    if decoded.opcode == Opcode::FMOV {
        with_exponent(text);
    }
    if decoded.opcode == Opcode::DUP && text.starts_with("mov v") {
        text.replace_range(.."mov".len(), "dup");
    }
}

/// Writes a floating-point constant with its exponent, as C's `%.18e`.
fn with_exponent(text: &mut String) {
    let Some((before, number)) = text.split_once('#') else { return };
    let Ok(number) = number.parse::<f64>() else { return };
    let shown = format!("{number:.18e}");
    let Some((mantissa, exponent)) = shown.split_once('e') else { return };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    *text = format!("{before}#{mantissa}e{sign}{digits:0>2}");
}

/// Whether objdump writes the immediates of an instruction, which are shifts, widths or numbers of bits, in decimal.
fn has_decimal_immediates(text: &str) -> bool {
    const MNEMONICS: [&str; 24] = [
        "lsl", "lsr", "asr", "ror", "ubfx", "sbfx", "ubfiz", "sbfiz", "bfi", "bfxil", "bfc", "extr", "tbz",
        "tbnz", "ubfm", "sbfm", "shl", "ushr", "sshr", "fcvtzs", "fcvtzu", "scvtf", "ucvtf", "sli",
    ];
    let mnemonic = text.split(' ').next().unwrap_or_default();
    MNEMONICS.contains(&mnemonic)
}

/// Writes a text with immediates such as `#0x10` and `#-0x10` in decimal.
fn write_decimal(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some((before, from)) = rest.find('#').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let digits = from.trim_start_matches(['#', '-']).strip_prefix("0x");
        let end = digits.map(|digits| digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len()));
        let number =
            digits.zip(end).and_then(|(digits, end)| u64::from_str_radix(digits.get(..end)?, 16).ok());
        match (number, digits.zip(end).and_then(|(digits, end)| digits.get(end..))) {
            (Some(number), Some(after)) => {
                let sign = if from.starts_with("#-") { "-" } else { "" };
                let _ = write!(out, "#{sign}{number}");
                rest = after;
            }
            _ => {
                out.push('#');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
}

/// Conditions have two names; objdump has these.
fn with_condition_of_objdump(text: &mut String) {
    for (name, shown) in [("hs", "cs"), ("lo", "cc")] {
        if let Some(rest) = text.strip_prefix("b.").and_then(|rest| rest.strip_prefix(name)) {
            *text = format!("b.{shown}{rest}");
        }
        replace_end(text, &format!(", {name}"), &format!(", {shown}"));
    }
}

fn replace_end(text: &mut String, end: &str, by: &str) {
    if let Some(rest) = text.strip_suffix(end) {
        text.truncate(rest.len());
        text.push_str(by);
    }
}

/// Whether it is a load or store whose address is a base and a register.
fn is_register_offset(word: u32) -> bool {
    word & 0x3b20_0c00 == 0x3820_0800
}

/// The shift of an addition, subtraction or comparison whose last operand is a 32-bit register, zero-extended.
fn zero_extended_word(word: u32) -> Option<u32> {
    const OPTION_UXTW: u32 = 2;
    let is_extended = word & 0x1fe0_0000 == 0x0b20_0000;
    let is_wide = word >> 31 == 1;
    (is_extended && is_wide && word >> 13 & 7 == OPTION_UXTW).then_some(word >> 10 & 7)
}

fn write_zero_extension(text: &mut String, shift: u32) {
    let end = text.find(", lsl").or_else(|| text.find(", uxtw")).unwrap_or(text.len());
    text.truncate(end);
    text.push_str(", uxtw");
    if shift > 0 {
        let _ = write!(text, " #{shift}");
    }
}
