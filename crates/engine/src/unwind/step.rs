use std::sync::Arc;

/// What found a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Origin {
    /// It is what was interrupted.
    Sampled,
    /// The recorder walked there itself.
    Callchain,
    /// SFrame of the function called.
    SFrame,
    /// `.eh_frame` of the function called.
    EhFrame,
    /// `.debug_frame` of the function called.
    DebugFrame,
    /// The unwinding record of a JITDUMP.
    JitDump,
    /// The frame pointer.
    FramePointer,
}

impl Origin {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Sampled,
        Self::Callchain,
        Self::SFrame,
        Self::EhFrame,
        Self::DebugFrame,
        Self::JitDump,
        Self::FramePointer,
    ];

    /// As column `frames.unwound_by` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sampled => "sampled",
            Self::Callchain => "callchain",
            Self::SFrame => "sframe",
            Self::EhFrame => "eh_frame",
            Self::DebugFrame => "debug_frame",
            Self::JitDump => "jitdump",
            Self::FramePointer => "frame_pointer",
        }
    }
}

/// A DWARF expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expression {
    /// Its operations.
    pub bytes: Arc<[u8]>,
    /// How they are written.
    pub encoding: gimli::Encoding,
}

/// What an offset is counted from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// The canonical frame address.
    Cfa,
    /// A register of the frame.
    Register(u8),
    /// What an expression says.
    Expression(Expression),
}

/// How the caller's value of a register is found, or the CFA.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// It is not: the frame has overwritten it.
    Lost,
    /// It is this address.
    Is(Base, i64),
    /// It is in memory there.
    At(Base, i64),
}

/// How to get from a frame to its caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// What told.
    pub origin: Origin,
    /// The CFA.
    pub cfa: Rule,
    /// Registers with a rule. The return address is among them; where it is [`Rule::Lost`] there is no caller.
    pub rules: Box<[(u8, Rule)]>,
    /// Bits of the registers that have no rule because the frame left them as they were.
    pub kept: u64,
    /// Whether the frame was entered by a signal: what it returns to was interrupted, and called nothing.
    pub is_signal: bool,
}

impl Step {
    /// There is no caller.
    #[must_use]
    pub fn outermost(origin: Origin, ra: u8) -> Self {
        let rules = Box::from([(ra, Rule::Lost)]);
        Self { origin, cfa: Rule::Lost, rules, kept: 0, is_signal: false }
    }

    /// Whether there is no caller.
    #[must_use]
    pub fn is_outermost(&self, ra: u8) -> bool {
        self.rules.iter().any(|(register, rule)| *register == ra && *rule == Rule::Lost)
    }

    /// Whether any rule is about registers of the frame rather than its CFA alone.
    pub(super) fn needs_registers(&self) -> bool {
        let is_plain =
            |rule: &Rule| matches!(rule, Rule::At(Base::Cfa, _) | Rule::Is(Base::Cfa, _) | Rule::Lost);
        !self.rules.iter().all(|(_, rule)| is_plain(rule))
    }
}
