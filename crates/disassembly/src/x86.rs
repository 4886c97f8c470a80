//! x86 instructions, by iced-x86, with its text changed to that of GNU binutils.

use std::borrow::Cow;
use std::fmt::Write;

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, Instruction as Decoded,
    IntelFormatter, MemorySizeOptions, Mnemonic, OpKind,
};

use crate::{Flow, Instruction, Syntax};

/// Decodes x86 code.
pub(crate) struct X86Decoder<'a> {
    address: u64,
    decoder: Decoder<'a>,
    formatter: TextFormatter,
    raw: String,
}

enum TextFormatter {
    Gas(GasFormatter),
    Intel(IntelFormatter),
}

impl TextFormatter {
    fn new(syntax: Syntax) -> Self {
        let mut new = match syntax {
            Syntax::Att => Self::Gas(GasFormatter::new()),
            Syntax::Intel => Self::Intel(IntelFormatter::new()),
        };
        let formatter = new.formatter();
        let options = formatter.options_mut();
        options.set_hex_prefix("0x");
        options.set_hex_suffix("");
        options.set_uppercase_hex(false);
        options.set_small_hex_numbers_in_decimal(false);
        options.set_branch_leading_zeros(false);
        options.set_leading_zeros(false);
        options.set_rip_relative_addresses(true);
        options.set_show_branch_size(false);
        options.set_show_zero_displacements(true);
        options.set_show_useless_prefixes(true);
        if syntax == Syntax::Intel {
            options.set_always_show_scale(true);
            options.set_memory_size_options(MemorySizeOptions::Always);
        }
        new
    }

    fn formatter(&mut self) -> &mut dyn Formatter {
        match self {
            Self::Gas(formatter) => formatter,
            Self::Intel(formatter) => formatter,
        }
    }

    fn is_gas(&self) -> bool {
        matches!(self, Self::Gas(_))
    }
}

impl<'a> X86Decoder<'a> {
    pub(crate) fn new(bits: u32, code: &'a [u8], address: u64, syntax: Syntax) -> Self {
        // As objdump, which shows `lock mov`.
        let decoder = Decoder::with_ip(bits, code, address, DecoderOptions::NO_INVALID_CHECK);
        Self { address, decoder, formatter: TextFormatter::new(syntax), raw: String::new() }
    }

    pub(crate) fn next(&mut self, text: &mut String) -> Option<Instruction> {
        if !self.decoder.can_decode() {
            return None;
        }
        let offset = self.decoder.position();
        let decoded = self.decoder.decode();
        if decoded.is_invalid() {
            // The next attempt is one byte further.
            let next = offset.saturating_add(1);
            self.decoder.set_ip(self.address.wrapping_add(next as u64));
            let _ = self.decoder.set_position(next);
            text.push_str("(bad)");
            return Some(Instruction { offset, size: 1, flow: Flow::Bad, target: None, constant: None });
        }
        self.write(&decoded, text);
        Some(Instruction {
            offset,
            size: decoded.len(),
            flow: flow(&decoded),
            target: target(&decoded),
            constant: constant(&decoded),
        })
    }

    fn write(&mut self, decoded: &Decoded, text: &mut String) {
        self.raw.clear();
        let is_string = decoded.is_string_instruction();
        let formatter = self.formatter.formatter();
        formatter.options_mut().set_always_show_segment_register(is_string);
        formatter.format(decoded, &mut self.raw);
        if self.formatter.is_gas() {
            write_as_objdump(&self.raw, decoded, text);
        } else {
            text.push_str(&self.raw);
        }
    }
}

fn flow(decoded: &Decoded) -> Flow {
    match decoded.flow_control() {
        FlowControl::Next if decoded.mnemonic() == Mnemonic::Hlt => Flow::Trap,
        FlowControl::Next | FlowControl::XbeginXabortXend => Flow::Next,
        FlowControl::UnconditionalBranch => Flow::Jump,
        FlowControl::ConditionalBranch => Flow::Branch,
        FlowControl::IndirectBranch => Flow::IndirectJump,
        FlowControl::Call if decoded.is_call_near() => Flow::Call,
        // System calls return here.
        FlowControl::Call => Flow::Next,
        FlowControl::IndirectCall => Flow::IndirectCall,
        FlowControl::Return => Flow::Return,
        FlowControl::Interrupt if decoded.mnemonic() == Mnemonic::Int3 => Flow::Trap,
        FlowControl::Interrupt => Flow::Next,
        FlowControl::Exception => Flow::Trap,
    }
}

fn target(decoded: &Decoded) -> Option<u64> {
    if is_near_branch(decoded) {
        return Some(decoded.near_branch_target());
    }
    decoded.is_ip_rel_memory_operand().then(|| decoded.ip_rel_memory_address())
}

fn is_near_branch(decoded: &Decoded) -> bool {
    matches!(decoded.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
}

fn constant(decoded: &Decoded) -> Option<u64> {
    (decoded.op1_kind() == OpKind::Immediate64).then(|| decoded.immediate64())
}

/// Writes the text of iced's GNU assembler formatter as `objdump -d` of binutils 2.40 has it.
fn write_as_objdump(raw: &str, decoded: &Decoded, text: &mut String) {
    let mut rest = raw;
    while let Some((prefix, after)) = split_prefix(rest, decoded) {
        text.push_str(prefix);
        text.push(' ');
        rest = after;
    }
    let (mnemonic, operands) = rest.split_once(' ').unwrap_or((rest, ""));
    let ignored = if decoded.is_string_instruction() { None } else { ignored_segment(operands) };
    if let Some((_, prefix)) = ignored {
        text.push_str(prefix);
    }
    let operands = match ignored {
        Some((segment, _)) => Cow::Owned(operands.replacen(segment, "", 1)),
        None => Cow::Borrowed(operands),
    };
    write_mnemonic(mnemonic, decoded, text);
    let operands = operands.trim_start();
    if is_near_branch(decoded) {
        let _ = write!(text, " {:x}", decoded.near_branch_target());
    } else if !operands.is_empty() {
        text.push(' ');
        write_operands(operands, decoded, text);
    } else if let Some(implied) = implied_operands(decoded.mnemonic()) {
        text.push_str(implied);
    }
}

/// Operands that iced leaves out and objdump writes.
fn implied_operands(mnemonic: Mnemonic) -> Option<&'static str> {
    match mnemonic {
        Mnemonic::Fxch => Some(" %st(1)"),
        Mnemonic::Faddp
        | Mnemonic::Fmulp
        | Mnemonic::Fsubp
        | Mnemonic::Fsubrp
        | Mnemonic::Fdivp
        | Mnemonic::Fdivrp => Some(" %st,%st(1)"),
        _ => None,
    }
}

/// A segment that 64-bit code has no use for, as an operand and as a prefix.
fn ignored_segment(operands: &str) -> Option<(&'static str, &'static str)> {
    const SEGMENTS: [(&str, &str); 4] = [("%cs:", "cs "), ("%ds:", "ds "), ("%es:", "es "), ("%ss:", "ss ")];
    SEGMENTS.into_iter().find(|(segment, _)| operands.contains(segment))
}

/// Prefixes that precede the mnemonic in the text.
const PREFIXES: [&str; 18] = [
    "lock", "rep", "repe", "repz", "repne", "repnz", "notrack", "bnd", "data16", "addr32", "xacquire",
    "xrelease", "cs", "ds", "es", "ss", "fs", "gs",
];

/// The first prefix of a text in objdump's words, and what follows it.
fn split_prefix<'a>(text: &'a str, decoded: &Decoded) -> Option<(&'static str, &'a str)> {
    let (first, rest) = text.split_once(' ')?;
    let prefix = *PREFIXES.iter().find(|prefix| **prefix == first)?;
    let compares = matches!(
        decoded.mnemonic(),
        Mnemonic::Cmpsb
            | Mnemonic::Cmpsw
            | Mnemonic::Cmpsd
            | Mnemonic::Cmpsq
            | Mnemonic::Scasb
            | Mnemonic::Scasw
            | Mnemonic::Scasd
            | Mnemonic::Scasq
    );
    let shown = match prefix {
        "repne" => "repnz",
        "rep" | "repe" if compares || !decoded.is_string_instruction() => "repz",
        other => other,
    };
    Some((shown, rest.trim_start()))
}

fn write_mnemonic(mnemonic: &str, decoded: &Decoded, text: &mut String) {
    let shown = match mnemonic {
        "pushq" => "push",
        "popq" => "pop",
        "callq" => "call",
        "jmpq" => "jmp",
        "retq" => "ret",
        "lretl" => "lret",
        "iretl" => "iret",
        "ljmpl" => "ljmp",
        "lcalll" => "lcall",
        "pushfq" => "pushf",
        "popfq" => "popf",
        other => other,
    };
    match shown.strip_prefix("sal").filter(|_| is_shift_left(decoded)) {
        Some(suffix) => {
            text.push_str("shl");
            text.push_str(suffix);
        }
        None => text.push_str(shown),
    }
}

fn is_shift_left(decoded: &Decoded) -> bool {
    decoded.mnemonic() == Mnemonic::Sal
}

/// Whether it is the encoding of a shift or rotation by one that has no immediate.
fn shifts_by_one(decoded: &Decoded) -> bool {
    (Code::Rol_rm8_1 as usize..=Code::Sar_rm64_1 as usize).contains(&(decoded.code() as usize))
}

fn write_operands(operands: &str, decoded: &Decoded, text: &mut String) {
    let mut operands = operands.replace(", ", ",");
    if shifts_by_one(decoded) {
        operands = operands.replacen("$0x1,", "", 1);
    }
    match decoded.mnemonic() {
        Mnemonic::In
        | Mnemonic::Out
        | Mnemonic::Insb
        | Mnemonic::Insd
        | Mnemonic::Insw
        | Mnemonic::Outsb
        | Mnemonic::Outsd
        | Mnemonic::Outsw => operands = operands.replace("%dx", "(%dx)"),
        Mnemonic::Xlatb if !operands.contains(':') => operands.insert_str(0, "%ds:"),
        _ => {}
    }
    write_with_scales(&operands, decoded, text);
    let multiplies = decoded.mnemonic() == Mnemonic::Imul && decoded.op_count() == 3;
    if multiplies && operands.matches(',').count() == 1 {
        // iced leaves out one of two equal registers.
        let register = operands.rsplit(',').next().unwrap_or_default();
        text.push(',');
        text.push_str(register);
    }
}

/// Writes operands; an index without a scale gets the scale 1.
fn write_with_scales(operands: &str, decoded: &Decoded, text: &mut String) {
    let mut rest = operands;
    while let Some((before, from)) = rest.find('(').and_then(|open| rest.split_at_checked(open)) {
        let Some((inside, after)) = from.find(')').and_then(|close| from.split_at_checked(close)) else {
            break;
        };
        text.push_str(before);
        text.push_str(inside);
        match inside.matches(',').count() {
            1 if inside.ends_with(',') => {
                let _ = write!(text, "%riz,{}", decoded.memory_index_scale());
            }
            1 => text.push_str(",1"),
            _ => {}
        }
        rest = after;
    }
    text.push_str(rest);
}
